"""`@jit`: functions of threads, launched over grids. What they mean is decided in the core."""

import functools
import operator

from .. import _core
from ..errors import KernelError, LaunchError, as_raised
from . import signatures as declared
from .numba_names import Dispatcher, read_options
from .tree import program_of, unchanged
from .types import Array, Signature, Type, signature_of

_THREADS = 256  # of a block, where forall chooses
_KEPT_LAUNCHES = 256  # of one kernel


class Jit(Dispatcher):
    """A function of threads. `kernel[grid, block](...)` runs it for each thread; as a `device`
    function it is called from others, which it becomes part of."""

    def __init__(self, function, signatures, device, backend, fastmath, check, seed):
        if getattr(function, "__code__", None) is None:
            raise LaunchError(f"@simt.jit takes a Python function, not a {type(function).__name__}")
        if backend is not None:
            _core.check_backend(backend)
        self.python_function = function
        self._device = device
        self._signatures = signatures
        self._backend = backend or ""
        self._fastmath, self._check = fastmath, check
        self._seed = seed
        self._reads, self._kernel, self._kernels, self._captured = [], None, {}, ()
        self._launches = {}  # by configuration
        functools.update_wrapper(self, function)
        for signature in signatures:
            self._check_signature(signature)

    def __repr__(self):
        return f"<simt.jit {self.__qualname__}>"

    def __call__(self, *args):
        if self._device:
            return self.python_function(*args)
        raise LaunchError(
            f"the kernel '{self.__name__}' is called without a grid\n"
            f"  hint: {self.__name__}[blocks, threads](...), or {self.__name__}.forall(n)(...)"
        )

    def __getitem__(self, configuration):
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise LaunchError(
                f"the kernel '{self.__name__}' is launched by [grid, block], [grid, block, stream] or "
                "[grid, block, stream, bytes of dynamic shared memory]"
            )
        # 1.0 equals 1 and is none: a dict tells them apart by their types alone.
        kinds = [type(part) for part in configuration]
        plain = kinds == [int, int] or _is_plain(configuration)
        if plain and configuration in self._launches:
            return self._launches[configuration]
        blocks = self._dimensions(configuration[0], "grid", 0, 2**31 - 1)
        threads = self._dimensions(configuration[1], "block", 1, 1024)
        made = Launch(
            self, blocks, threads, operator.index(configuration[3]) if configuration[3:] else 0
        )
        if plain and len(self._launches) < _KEPT_LAUNCHES:
            self._launches[configuration] = made
        return made

    def configure(self, grid, block, stream=0, shared_bytes=0):
        """The same as [grid, block, stream, shared_bytes]."""
        return self[grid, block, stream, shared_bytes]

    def forall(self, count, tpb=0, stream=0, sharedmem=0):
        """To launch with at least so many threads along x, in blocks of `tpb` threads, or of a size
        that suits the device."""
        count, tpb = operator.index(count), operator.index(tpb) or _THREADS
        if count < 0:
            raise LaunchError(
                f"forall({count}) of kernel '{self.__name__}': there are no such threads"
            )
        return self[-(-count // tpb), tpb, stream, sharedmem]

    def ir(self, *args, backend=None):
        """The IR's text for these arguments: as the front end makes it, or as `backend` gets it."""
        kernel = self._compiled()
        return kernel.text(backend or "", (*args, *self._captured))

    def source(self, *args, backend):
        """What `backend` prints for these arguments: "cuda" CUDA C++, "opencl" OpenCL C."""
        kernel = self._compiled()
        return kernel.source(backend, (*args, *self._captured))

    def parameter_types(self):
        """The declared types of a device function's parameters and of its result, or None."""
        (signature,) = self._signatures if len(self._signatures) == 1 else (None,)
        return signature

    def _dimensions(self, value, what, least, most):
        sizes = value if isinstance(value, (tuple, list)) else (value,)
        try:
            sizes = tuple(operator.index(n) for n in sizes)
        except TypeError:
            sizes = ()
        if not 1 <= len(sizes) <= 3 or min(sizes) < least or max(sizes) > most:
            raise LaunchError(
                f"the {what} of kernel '{self.__name__}' is {value!r}\n  it is an int from {least} to {most}, or "
                f"a tuple of one to three: along x, y and z\n  hint: (n + 255) // 256 is an int, n / 256 is none"
            )
        return (*sizes, 1, 1)[:3]

    def _check_signature(self, signature):
        """Compiles for it, so that errors show where the kernel is written."""
        signature = signature_of(signature)
        names = self.python_function.__code__.co_argcount
        if len(signature.args) != names:
            raise LaunchError(
                f"the signature {signature} of '{self.__name__}' has {len(signature.args)} types, and the "
                f"function {names} parameters"
            )
        if self._device:
            return
        if repr(signature.return_type) != "void":
            raise LaunchError(
                f"the signature {signature} of kernel '{self.__name__}' gives a {signature.return_type}\n"
                "  kernels return nothing\n  hint: void(...), and an array to store into"
            )
        self._text_for(signature, None)

    def _text_for(self, signature, backend):
        return self.ir(*declared.examples(signature_of(signature)), backend=backend)

    def _compiled(self):
        if self._kernel is None or not unchanged(self._reads):
            program, self._captured, self._reads = program_of(self.python_function)
            self._kernel = self._kernels.get(program)
            if self._kernel is None:
                self._kernel = _core.ThreadKernel(program, self._fastmath, self._check)
                self._kernels[program] = self._kernel
        return self._kernel


class Launch:
    """A kernel with its grid, to be called with arguments: NumPy arrays, which it reads and writes in
    place, and numbers."""

    def __init__(self, jit, blocks, threads, shared_bytes):
        self._jit = jit
        self._grid = (blocks, threads, shared_bytes)
        self._made = (None, None)  # of a kernel, its launch: one reference, for other threads

    def __call__(self, *args):
        jit = self._jit
        if jit._signatures:
            args = declared.apply(jit.__name__, jit._signatures, args)
        kernel = jit._kernel
        if kernel is None or not unchanged(jit._reads):
            kernel = jit._compiled()
        of, launch = self._made
        if of is not kernel:
            launch = _core.ThreadLaunch(kernel, jit._backend, *self._grid, jit._seed)
            self._made = (kernel, launch)
        try:
            launch(*args, *jit._captured)
        except KernelError as error:
            raise as_raised(error) from None


def _is_plain(configuration):
    """Of ints and tuples of them alone: equal ones mean the same."""
    return all(
        type(part) is int or (type(part) is tuple and all(type(n) is int for n in part))
        for part in configuration
    )


def _signatures_of(given):
    """A signature, or a list of them."""
    several = isinstance(given, list) and not all(isinstance(t, (Type, Array)) for t in given)
    return [signature_of(s) for s in (given if several else [given])]


def jit(
    function=None, /, *, device=False, backend=None, fastmath=False, check=False, seed=0, **numba
):
    """Makes a kernel of threads of a function: `@simt.jit`, or `@simt.jit(backend="ref")`.

    The function runs once for each thread of a grid; `simt.grid(1)` is the number of the thread that
    asks. It is compiled from its source: numbers, elements of arrays, tuples, `if`, `for` over
    `range`, `while`, functions of NumPy and math, and what this package names. It stores into its
    arguments and returns nothing.

    `@simt.jit("void(float32[:], int32)")`, or a list of such signatures, declares what it takes: it is
    compiled at once, numbers are converted, and other arrays are refused. `device=True` makes a
    function for kernels to call. `backend` names where it runs: "cpu", the default, or "ref", which
    interprets it with checks, its threads in an order that follows from `seed`. `fastmath` is that of
    `picokernel.kernel`. With `check=True` (Numba's `debug`) an `assert` that fails, a `raise` and an index
    out of bounds end the launch as an error, of the lowest thread that meets one; without it assertions
    cost nothing. Options of Numba's that say how a GPU's compiler works are accepted. Raises
    CompileError at the launch that meets what cannot be compiled, or here if there is a signature;
    LaunchError if arguments or grid do not fit, KernelError if a check fails."""
    check = read_options(numba, check)
    if (
        function is None
        or isinstance(function, (str, tuple, list, Signature, Type, Array))
        or (hasattr(function, "return_type"))
    ):
        signatures = [] if function is None else _signatures_of(function)
        return lambda f: Jit(f, signatures, device, backend, fastmath, check, seed)
    return Jit(function, [], device, backend, fastmath, check, seed)

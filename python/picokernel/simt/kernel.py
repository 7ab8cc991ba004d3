"""`@jit`: functions of threads, launched over grids. What they mean is decided in the core."""

import functools
import operator

from .. import _core
from ..errors import LaunchError
from .tree import program_of, unchanged

_THREADS = 256  # of a block, where forall chooses


class Jit:
    """A function of threads. `kernel[grid, block](...)` runs it for each thread; as a `device`
    function it is called from others, which it becomes part of."""

    def __init__(self, function, device, backend, fastmath, seed):
        if getattr(function, "__code__", None) is None:
            raise LaunchError(f"@simt.jit takes a Python function, not a {type(function).__name__}")
        if backend is not None:
            _core.check_backend(backend)
        self.python_function = function
        self._device = device
        self._backend = backend or ""
        self._fastmath = fastmath
        self._seed = seed
        self._reads, self._kernel, self._kernels = [], None, {}
        functools.update_wrapper(self, function)

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
        blocks = self._dimensions(configuration[0], "grid", 0, 2**31 - 1)
        threads = self._dimensions(configuration[1], "block", 1, 1024)
        return Launch(
            self, blocks, threads, operator.index(configuration[3]) if configuration[3:] else 0
        )

    def forall(self, count):
        """To launch with at least so many threads along x, in blocks of a size that suits the device."""
        return self[-(-operator.index(count) // _THREADS), _THREADS]

    def ir(self, *args, backend=None):
        """The IR's text for these arguments: as the front end makes it, or as `backend` gets it."""
        return self._compiled().text(backend or "", args)

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

    def _compiled(self):
        if self._kernel is None or not unchanged(self._reads):
            program, self._reads = program_of(self.python_function)
            self._kernel = self._kernels.get(program)
            if self._kernel is None:
                self._kernel = _core.ThreadKernel(program, self._fastmath)
                self._kernels[program] = self._kernel
        return self._kernel


class Launch:
    """A kernel with its grid, to be called with arguments: NumPy arrays, which it reads and writes in
    place, and numbers."""

    def __init__(self, jit, blocks, threads, shared_bytes):
        self._jit = jit
        self._grid = (blocks, threads, shared_bytes)

    def __call__(self, *args):
        jit = self._jit
        jit._compiled().launch(jit._backend, *self._grid, args, jit._seed)


def jit(function=None, /, *, device=False, backend=None, fastmath=False, seed=0):
    """Makes a kernel of threads of a function: `@simt.jit`, or `@simt.jit(backend="ref")`.

    The function runs once for each thread of a grid; `simt.grid(1)` is the number of the thread that
    asks. It is compiled from its source: numbers, elements of arrays, tuples, `if`, `for` over
    `range`, `while`, functions of NumPy and math, and what this package names. It stores into its
    arguments and returns nothing.

    `device=True` makes a function for kernels to call. `backend` names where it runs: "cpu", the
    default, or "ref", which interprets it with checks, its threads in an order that follows from
    `seed`. `fastmath` is that of `picokernel.kernel`. Raises CompileError at the launch that meets what
    cannot be compiled, LaunchError if arguments or grid do not fit, KernelError if a check fails."""
    if function is None:
        return functools.partial(jit, device=device, backend=backend, fastmath=fastmath, seed=seed)
    return Jit(function, device, backend, fastmath, seed)

"""The contenders of a row of `works.WORKS`, each a piece of Python for a process of its own."""

import os

import numpy as np

from .ceiling import CALL, build_ceiling
from .duel import Contender

_SETUP = "import numpy as np\nrng = np.random.default_rng(0)\nn = {n}\n{data}\n"
_OURS = "import picokernel as pk\n@pk.kernel(backend={backend!r})\ndef f({args}): {body}\n"
# Without fastmath, as ours: the arithmetic is NumPy's.
_NUMBA = """
import numba as nb
from numba import prange
@nb.njit(parallel={parallel}{options})
def f({args}, o):
{loops}
"""
# Some contenders fuse operations, which rounds once less.
_CHECK = """
def want({args}, o): {writes}
w = np.zeros_like(o)
want({args}, w)
assert w.any(), "nothing to check"
assert np.abs(np.subtract(w, o, out=w), out=w).max() <= 1e-5 * np.abs(o).max(), "wrong results"
"""
# What keeps the meaning of infinities and NaN.
_FASTMATH = ', fastmath={"reassoc", "nsz", "arcp", "contract", "afn"}'
# Every contender held to AVX2 by its own switch. NumPy warns of targets that the machine lacks.
_NUMPY = np._core._multiarray_umath
_AVX2 = {
    "PICOKERNEL_CPU": "x86-64-v3",
    "NUMBA_CPU_NAME": "haswell",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    "NPY_DISABLE_CPU_FEATURES": " ".join(
        target
        for target in _NUMPY.__cpu_dispatch__
        if target.startswith(("X86_V4", "AVX512")) and _NUMPY.__cpu_features__.get(target)
    ),
}
MOST_REF = 10**5  # elements: the interpreter is not worth the wait beyond


class Contenders:
    """All that measure `work` at size n. `folder` is for libraries to build."""

    def __init__(self, work, n, folder):
        self._work, self._n, self._folder = work, n, folder
        self._setup = _SETUP.format(n=n, data=work.data)
        self._stores = work.body.startswith("o[")
        writes = work.body if self._stores else f"o[...] = {work.body}"
        self._check = _CHECK.format(args=work.args, writes=writes)

    def all(self, backends, peers):
        """Ours on these backends and, if `peers`, the others that can run here."""
        work, n = self._work, self._n
        ours = [b for b in backends if b != "ref" or n <= MOST_REF]
        names = work.peers_at(n) + [p for p in work.beside if n <= work.most_beside]
        made = [self._ours(b, b) for b in ours]
        made += [self._peer(p) for p in names if peers or p in VARIANTS]
        return [c for c in made if c is not None]

    def _contender(self, name, code, call):
        environment = _AVX2 if name.endswith("AVX2") else None
        return Contender(
            name, self._setup + code, call, self._check, environment, self._work.idle_s
        )

    def _ours(self, name, backend, setting=""):
        args = self._work.args
        kernel_args = f"{args}, o" if self._stores else args
        body = self._work.body if self._stores else f"return {self._work.body}"
        code = setting + _OURS.format(backend=backend, args=kernel_args, body=body)
        call = f"f({args}, o)" if self._stores else f"f({args}, out=o)"
        return self._contender(name, code, call)

    def _peer(self, name):
        if name in VARIANTS:
            return self._ours(name, "cpu", VARIANTS[name])
        return _PEERS[name](self, name)

    def _numba(self, name):
        args = self._work.args
        loops = "".join(f"    {line}\n" for line in self._work.loops.strip().splitlines())
        code = _NUMBA.format(
            parallel="parallel" in name,
            options=_FASTMATH if "fastmath" in name else "",
            args=args,
            loops=loops,
        )
        return self._contender(name, code, f"f({args}, o)")

    def _ceiling(self, name):
        library = build_ceiling(self._folder, self._work.point)
        if library is None:
            return None
        code = CALL.format(library=library, border=self._work.border, threads=os.cpu_count())
        return self._contender(name, code, "f()")

    def _two_ufuncs(self, name):
        return self._contender(name, "", "np.add(np.multiply(a, b), c, out=o)")

    def _numpy(self, name):
        call = self._work.body.removesuffix(")") + ", out=o)"
        return self._contender(name, "", call)

    def _one_ufunc(self, name):
        return Contender(name, self._setup, "np.add(a, b, out=o)")

    def _numexpr(self, name):
        code = "import numexpr as ne\n"
        return self._contender(name, code, f"ne.evaluate({self._work.body!r}, out=o)")

    def _jax(self, name):
        args = self._work.args
        code = f"import jax\nf = jax.jit(lambda {args}: {self._work.body})\n"
        return self._contender(name, code, f"np.copyto(o, np.asarray(f({args})))")

    def _jax_arrays(self, name):
        args = self._work.args
        # The row's functions are looked up in this module: with JAX's in the place of NumPy's.
        code = f"""
import jax, numpy
jax.config.update("jax_enable_x64", True)
arrays = [jax.numpy.asarray(a) for a in ({args})]
np = jax.numpy
f = jax.jit(lambda {args}: {self._work.body})
f(*arrays)
np = numpy
o[...] = f(*arrays)
"""
        return self._contender(name, code, "f(*arrays).block_until_ready()")


# Ours with code before it; whatever has a name that ends in AVX2 is held to that.
_ONE_THREAD = "import picokernel as pk; pk.set_num_threads(1)\n"
VARIANTS = {
    "1 thread": _ONE_THREAD,
    "all threads": "import picokernel as pk; pk._core.share_always(True)\n",
    "AVX2": "",
    "1 thread, AVX2": _ONE_THREAD,
}
_PEERS = {
    "numba serial": Contenders._numba,
    "numba parallel": Contenders._numba,
    "numba parallel, fastmath": Contenders._numba,
    "numba parallel, fastmath, AVX2": Contenders._numba,
    "C, streaming": Contenders._ceiling,
    "two ufuncs": Contenders._two_ufuncs,
    "np.add": Contenders._one_ufunc,
    "NumPy": Contenders._numpy,
    "NumPy, AVX2": Contenders._numpy,
    "numexpr": Contenders._numexpr,
    "jax": Contenders._jax,
    "jax, its arrays": Contenders._jax_arrays,
    "jax, its arrays, AVX2": Contenders._jax_arrays,
}

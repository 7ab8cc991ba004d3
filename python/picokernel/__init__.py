"""picokernel: one kernel, written in Python, on NumPy, as native CPU code, and on MLX.

import numpy as np, picokernel as pk

@pk.kernel
def fma(a, b, c):
    return a * b + c

fma(a, b, c)                # NumPy arrays in, a NumPy array out
fma(a, b, c, out=o)
print(fma.ir(), fma.source("numpy"))
"""

from numpy import clip, maximum, minimum, where

from . import _core
from ._core import __version__, backends, empty, num_threads, set_num_threads, span
from .errors import CompileError, Error, InternalError, KernelError, LaunchError
from .functions import erf, erfc, rsqrt
from .kernel import Kernel, kernel

_core._use_vectorcall(Kernel)

__all__ = [
    "CompileError",
    "Error",
    "InternalError",
    "Kernel",
    "KernelError",
    "LaunchError",
    "__version__",
    "backends",
    "clip",
    "empty",
    "erf",
    "erfc",
    "functions",
    "kernel",
    "maximum",
    "minimum",
    "num_threads",
    "profile",
    "rsqrt",
    "set_num_threads",
    "span",
    "trim",
    "use",
    "where",
]


class use:
    """`with use("numpy"): ...` runs the kernels called in the block, in this thread or task, on
    that backend. It comes before the decorator's backend; `backend=` of a call comes before both.
    Raises LaunchError if there is no such backend or it cannot run here."""

    def __init__(self, backend):
        _core.check_backend(backend)
        self._backend = backend
        self._tokens = []

    def __enter__(self):
        _core._look_at_chosen_backend(True)
        self._tokens.append(_core._chosen_backend.set(self._backend))
        return self

    def __exit__(self, *error):
        _core._chosen_backend.reset(self._tokens.pop())
        _core._look_at_chosen_backend(False)


def profile(path=None, *, split=False, metal_capture=None):
    """`with profile("trace.json") as p: ...` records all calls of all threads in the block, as a
    `picokernel.profiler.Profiler`; the file opens at ui.perfetto.dev. Without a path nothing is
    written: `print(p.table())`.

    `split=True` evaluates after each MLX operation, so that their times are told apart and not all in
    `sync`: trace and table say that it is intrusive. `metal_capture="work.gputrace"` records what the
    GPU does in the block as `mlx.core.metal.start_capture` does, for Xcode; raises LaunchError where
    MLX has no Metal."""
    from .profiler import Profiler

    return Profiler(path, split, metal_capture)


def functions():
    """Names of NumPy's functions that kernels can use, sorted: `np.hypot` is "hypot". Beside them there
    are erf, erfc and rsqrt of this package, and scipy.special's erf and erfc."""
    from .numpy_functions import functions

    return functions()


def trim():
    """Returns the memory that picokernel keeps for reuse to the system, and gives the number of bytes.

    Each thread keeps up to 64 MiB of large results and of scratch that native code has freed on it,
    and up to 64 MiB of arrays that printed NumPy sources use between their lines. Arrays in use are
    not affected."""
    from . import sources

    return _core.trim() + sources.trim()

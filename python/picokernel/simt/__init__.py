"""Kernels of threads, under the names of Numba's CUDA target: `from picokernel import simt as cuda`.

@simt.jit
def smooth(x, y):
    i = simt.grid(1)
    if 0 < i < x.size - 1:
        y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3

smooth[blocks, 256](x, y)
smooth.forall(x.size)(x, y)
"""

from .. import _core
from . import types
from .device_array import *  # noqa: F403
from .device_array import __all__ as _host
from .kernel import Jit, jit
from .reduce import Reduce, reduce
from .tree import Intrinsic
from .types import *  # noqa: F403
from .types import __all__ as _types


def backends():
    """Backends that run kernels of threads, by name: "" if it can run here, else why not and what to
    install."""
    return _core.thread_backends()


def _axes(name, doc):
    return Intrinsic(name, doc, **{axis: Intrinsic(f"{name}.{axis}") for axis in "xyz"})


threadIdx = _axes("threadIdx", "The thread's index in its block.")
blockIdx = _axes("blockIdx", "The block's index in the grid.")
blockDim = _axes("blockDim", "How many threads a block has.")
gridDim = _axes("gridDim", "How many blocks the grid has.")
grid = Intrinsic("grid", "grid(n): the thread's index in the grid; of 2 or 3 dimensions a tuple.")
gridsize = Intrinsic("gridsize", "gridsize(n): how many threads the grid has.")

syncthreads = Intrinsic("syncthreads", "Waits for all threads of the block.")
syncthreads_count = Intrinsic("syncthreads_count", "Waits; how many threads gave true.")
syncthreads_and = Intrinsic("syncthreads_and", "Waits; whether all threads gave true.")
threadfence = Intrinsic(
    "threadfence", "What was written before is seen before what is written after."
)
threadfence_block = Intrinsic("threadfence_block", "The same, for the threads of the block.")
threadfence_system = Intrinsic("threadfence_system", "The same, for the whole system.")
syncthreads_or = Intrinsic("syncthreads_or", "Waits; whether any thread gave true.")


def _members(name, members, doc):
    return Intrinsic(name, doc, **{m: Intrinsic(f"{name}.{m}") for m in members.split()})


shared = _members("shared", "array", "shared.array(shape, dtype): memory of a block.")
local = _members("local", "array", "local.array(shape, dtype): memory of a thread.")
const = _members("const", "array_like", "const.array_like(x): an array from outside, read only.")
atomic = _members(
    "atomic",
    "add sub min max nanmin nanmax and_ or_ xor inc dec exch cas compare_and_swap",
    "atomic.add(array, index, value): one step for all threads; gives what was there before.",
)
fma = Intrinsic("fma", "fma(x, y, z): x * y + z, rounded once.")
selp = Intrinsic("selp", "selp(c, x, y): x where c holds, else y.")
rsqrt = Intrinsic("rsqrt", "1 / sqrt(x).")
cbrt = Intrinsic("cbrt", "The cube root.")
popc = Intrinsic("popc", "How many bits are set.")

laneid = Intrinsic("laneid", "The thread's index in its warp of 32 threads.")
warpsize = Intrinsic("warpsize", "How many threads a warp has: 32.")
brev = Intrinsic("brev", "The bits in the other order.")
clz = Intrinsic("clz", "How many leading bits are not set.")
ffs = Intrinsic("ffs", "The number of the lowest bit that is set, from 1; 0 if none is.")

_kernels = [name for name, value in vars().items() if isinstance(value, Intrinsic)]
__all__ = ["Jit", "Reduce", "backends", "jit", "reduce", "types", *_kernels, *_host, *_types]

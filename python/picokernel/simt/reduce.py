"""`@reduce`: an array reduced by a function of two numbers, as by Numba's decorator."""

import functools

import numpy as np

from ..errors import LaunchError
from .kernel import jit

_BLOCKS, _THREADS = 64, 256


class Reduce:
    """`total = Reduce(function)`, then `total(array)`. The function is associative: parts are reduced
    by threads, what they give by one thread, in an order that depends on the size alone."""

    def __init__(self, function):
        from . import grid, gridsize

        own = jit(function, device=True)

        @jit
        def parts(x, size, out):
            i = grid(1)
            if i < size:
                total = x[i]
                for k in range(i + gridsize(1), size, gridsize(1)):
                    total = own(total, x[k])
                out[i] = total

        @jit
        def last(x, size, init, out):
            total = init[0]
            for k in range(size):
                total = own(total, x[k])
            out[0] = total

        self._parts, self._last = parts, last
        functools.update_wrapper(self, function)

    def __call__(self, arr, size=None, res=None, init=0, stream=0):
        """The value of all elements, of the first `size`, with `init` in front of them. Into `res[0]`,
        if it is given."""
        if arr.ndim != 1:
            raise LaunchError(
                f"a reduction of an array of {arr.ndim} dimensions\n  hint: reduce(x.ravel())"
            )
        size = arr.size if size is None else size
        if not 0 <= size <= arr.size:
            raise LaunchError(f"{size} elements of an array that has {arr.size}")
        few = min(size, _BLOCKS * _THREADS)
        found = np.empty(few, arr.dtype)
        self._parts[_BLOCKS, _THREADS](arr, size, found)
        out = np.empty(1, arr.dtype)
        self._last[1, 1](found, few, np.array([init], arr.dtype), out)
        if res is None:
            return out[0]
        res[:1] = out
        return None


reduce = Reduce

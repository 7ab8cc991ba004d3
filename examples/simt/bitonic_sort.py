"""Sorting by a network of comparisons: distances within a block in shared memory, longer ones by a
launch each."""

import numpy as np
from picokernel import simt

THREADS = 256
SPAN = 2 * THREADS  # elements that a block sorts by itself


@simt.jit(device=True)
def order(x, i, j, upward):
    """Puts x[i] and x[j] in order."""
    if (x[i] > x[j]) == upward:
        x[i], x[j] = x[j], x[i]


@simt.jit
def step(x, size, distance):
    """Compares elements `distance` apart in sequences of `size`, of which every other goes down."""
    pair = simt.grid(1)
    if pair < x.size // 2:
        i = 2 * distance * (pair // distance) + pair % distance
        order(x, i, i + distance, i & size == 0)


@simt.jit
def steps_within_blocks(x, first_size, last_size):
    """All steps of sizes from first_size to last_size whose distances are less than a block's span."""
    own = simt.shared.array(SPAN, simt.int32)
    t, start = simt.threadIdx.x, simt.blockIdx.x * SPAN
    own[t] = x[start + t]
    own[t + THREADS] = x[start + t + THREADS]
    simt.syncthreads()
    size = first_size
    while size <= last_size:
        distance = min(size, SPAN) // 2
        while distance > 0:
            i = 2 * distance * (t // distance) + t % distance
            order(own, i, i + distance, (start + i) & size == 0)
            simt.syncthreads()
            distance //= 2
        size *= 2
    x[start + t] = own[t]
    x[start + t + THREADS] = own[t + THREADS]


def sort(x):
    """Sorts x, int32 and a power of two of elements from SPAN on, in place."""
    blocks = x.size // SPAN
    steps_within_blocks[blocks, THREADS](x, 2, SPAN)
    size = 2 * SPAN
    while size <= x.size:
        distance = size // 2
        while distance >= SPAN:
            step[blocks, THREADS](x, size, distance)
            distance //= 2
        steps_within_blocks[blocks, THREADS](x, size, size)
        size *= 2


def main(n=1 << 16):
    x = np.random.default_rng(0).integers(-(2**31), 2**31, n, np.int32)
    plain = np.sort(x)
    sort(x)
    np.testing.assert_array_equal(x, plain)
    print(f"bitonic_sort: {n:,} elements are in NumPy's order")


if __name__ == "__main__":
    main()

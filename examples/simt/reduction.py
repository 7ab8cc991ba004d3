"""A sum: each thread adds a part, then the block adds its threads' sums as a tree."""

import numpy as np
from picokernel import simt

THREADS = 256
BLOCKS = 64


@simt.jit
def sums_of_blocks(x, sums):
    partial = simt.shared.array(THREADS, simt.float32)
    t = simt.threadIdx.x
    total = np.float32(0)
    for i in range(simt.grid(1), x.size, simt.gridsize(1)):
        total += x[i]
    partial[t] = total
    simt.syncthreads()
    width = THREADS // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        simt.syncthreads()
        width //= 2
    if t == 0:
        sums[simt.blockIdx.x] = partial[0]


def sum_of(x):
    """The sum of x, of float32: one launch for the blocks' sums, one for the sum of those."""
    sums, total = np.empty(BLOCKS, np.float32), np.empty(1, np.float32)
    sums_of_blocks[BLOCKS, THREADS](x, sums)
    sums_of_blocks[1, THREADS](sums, total)
    return total[0]


def main(n=1_000_003):
    x = np.random.default_rng(0).random(n, np.float32)
    np.testing.assert_allclose(sum_of(x), x.sum(dtype=np.float64), rtol=1e-5)
    print(f"reduction: the sum of {n:,} elements agrees with NumPy's")


if __name__ == "__main__":
    main()

"""Running sums: within each block by doubling distances, then across blocks by the sums of blocks."""

import numpy as np
from picokernel import simt

THREADS = 256


@simt.jit
def scan_blocks(x, out, totals):
    sums = simt.shared.array(THREADS, simt.int64)
    i, t = simt.grid(1), simt.threadIdx.x
    sums[t] = x[i] if i < x.size else 0
    simt.syncthreads()
    distance = 1
    while distance < THREADS:
        before = sums[t - distance] if t >= distance else 0
        simt.syncthreads()  # all have read before any writes
        sums[t] += before
        simt.syncthreads()
        distance *= 2
    if i < x.size:
        out[i] = sums[t]
    if t == THREADS - 1:
        totals[simt.blockIdx.x] = sums[t]


@simt.jit
def add_before(out, totals):
    i = simt.grid(1)
    if simt.blockIdx.x > 0 and i < out.size:
        out[i] += totals[simt.blockIdx.x - 1]


def cumsum(x):
    """The running sums of x, as int64."""
    blocks = -(-x.size // THREADS)
    out, totals = np.empty(x.size, np.int64), np.empty(blocks, np.int64)
    scan_blocks[blocks, THREADS](x, out, totals)
    if blocks > 1:
        add_before[blocks, THREADS](out, cumsum(totals))
    return out


def main(n=200_000):
    x = np.random.default_rng(0).integers(-100, 100, n)
    np.testing.assert_array_equal(cumsum(x), np.cumsum(x))
    print(f"scan: {n:,} running sums agree with NumPy's")


if __name__ == "__main__":
    main()

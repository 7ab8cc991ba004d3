"""A histogram of bytes: each block counts into shared memory, then adds its counts to the result."""

import numpy as np
from picokernel import simt

BINS = 256
BLOCKS = 64


@simt.jit
def histogram(data, counts):
    own = simt.shared.array(BINS, simt.int32)
    t = simt.threadIdx.x
    for b in range(t, BINS, simt.blockDim.x):
        own[b] = 0
    simt.syncthreads()
    for i in range(simt.grid(1), data.size, simt.gridsize(1)):
        simt.atomic.add(own, data[i], 1)
    simt.syncthreads()
    for b in range(t, BINS, simt.blockDim.x):
        simt.atomic.add(counts, b, own[b])


def main(n=1_000_003):
    data = np.random.default_rng(0).integers(0, BINS, n, np.uint8)
    counts = np.zeros(BINS, np.int32)
    histogram[BLOCKS, 256](data, counts)
    np.testing.assert_array_equal(counts, np.bincount(data, minlength=BINS))
    print(f"histogram: {BINS} counts of {n:,} bytes agree with NumPy's")


if __name__ == "__main__":
    main()

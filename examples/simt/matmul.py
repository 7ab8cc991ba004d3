"""A product of matrices through tiles in shared memory.

Each block computes a tile of the result. Its threads load a tile of each factor together, wait for
each other, use what all have loaded, and wait again before they overwrite it."""

import numpy as np
from picokernel import simt

TILE = 16


@simt.jit
def matmul(a, b, c):
    tile_a = simt.shared.array((TILE, TILE), simt.float32)
    tile_b = simt.shared.array((TILE, TILE), simt.float32)
    j, i = simt.grid(2)
    tx, ty = simt.threadIdx.x, simt.threadIdx.y
    total = np.float32(0)
    for first in range(0, a.shape[1], TILE):
        tile_a[ty, tx] = 0
        tile_b[ty, tx] = 0
        if i < a.shape[0] and first + tx < a.shape[1]:
            tile_a[ty, tx] = a[i, first + tx]
        if j < b.shape[1] and first + ty < b.shape[0]:
            tile_b[ty, tx] = b[first + ty, j]
        simt.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        simt.syncthreads()
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = total


def main(n=300):
    rng = np.random.default_rng(0)
    a = rng.random((n, n + 5), np.float32)
    b = rng.random((n + 5, n + 9), np.float32)
    c = np.empty((n, n + 9), np.float32)
    grid = -(-c.shape[1] // TILE), -(-c.shape[0] // TILE)
    matmul[grid, (TILE, TILE)](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    print(f"matmul: {c.shape[0]} x {c.shape[1]} elements agree with NumPy's")


if __name__ == "__main__":
    main()

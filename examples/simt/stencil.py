"""Five points around each element, read through a tile in shared memory with an edge on each side."""

import numpy as np
from picokernel import simt

TILE = 16


@simt.jit
def heat(u, out, k):
    tile = simt.shared.array((TILE + 2, TILE + 2), simt.float32)
    j, i = simt.grid(2)
    tx, ty = simt.threadIdx.x + 1, simt.threadIdx.y + 1
    inside = i < u.shape[0] and j < u.shape[1]
    if inside:
        tile[ty, tx] = u[i, j]
        if tx == 1 and j > 0:
            tile[ty, 0] = u[i, j - 1]
        if tx == TILE and j + 1 < u.shape[1]:
            tile[ty, TILE + 1] = u[i, j + 1]
        if ty == 1 and i > 0:
            tile[0, tx] = u[i - 1, j]
        if ty == TILE and i + 1 < u.shape[0]:
            tile[TILE + 1, tx] = u[i + 1, j]
    simt.syncthreads()
    if inside:
        if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
            around = tile[ty - 1, tx] + tile[ty + 1, tx] + tile[ty, tx - 1] + tile[ty, tx + 1]
            out[i, j] = tile[ty, tx] + k * (around - 4 * tile[ty, tx])
        else:
            out[i, j] = tile[ty, tx]


def expected(u, k):
    out = u.copy()
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    out[1:-1, 1:-1] += k * (around - 4 * u[1:-1, 1:-1])
    return out


def main(n=500):
    u = np.random.default_rng(0).random((n, n + 13), np.float32)
    out, k = np.empty_like(u), np.float32(0.2)
    heat[(-(-u.shape[1] // TILE), -(-n // TILE)), (TILE, TILE)](u, out, k)
    np.testing.assert_allclose(out, expected(u, k), atol=1e-6)
    print(f"stencil: {u.shape[0]} x {u.shape[1]} elements agree with NumPy's")


if __name__ == "__main__":
    main()

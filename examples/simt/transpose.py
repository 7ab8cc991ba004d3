"""A transposed copy through a tile, so that both reading and writing go along rows."""

import numpy as np
from picokernel import simt

TILE = 32
ROWS = 8  # of threads: each copies four elements


@simt.jit
def transpose(x, out):
    # One column more than used: on GPUs the elements of a column then lie in different banks.
    tile = simt.shared.array((TILE, TILE + 1), simt.float32)
    tx, ty = simt.threadIdx.x, simt.threadIdx.y
    left, top = simt.blockIdx.x * TILE, simt.blockIdx.y * TILE
    for r in range(ty, TILE, ROWS):
        if top + r < x.shape[0] and left + tx < x.shape[1]:
            tile[r, tx] = x[top + r, left + tx]
    simt.syncthreads()
    for r in range(ty, TILE, ROWS):
        if left + r < out.shape[0] and top + tx < out.shape[1]:
            out[left + r, top + tx] = tile[tx, r]


def main(n=700):
    x = np.random.default_rng(0).random((n, n + 11), np.float32)
    out = np.empty((n + 11, n), np.float32)
    transpose[(-(-(n + 11) // TILE), -(-n // TILE)), (TILE, ROWS)](x, out)
    np.testing.assert_array_equal(out, x.T)
    print(f"transpose: {n} x {n + 11} elements agree with NumPy's")


if __name__ == "__main__":
    main()

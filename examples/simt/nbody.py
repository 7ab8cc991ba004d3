"""Gravity between all pairs of bodies: a block loads a tile of bodies, and each thread adds what
they do to its own."""

import numpy as np
from picokernel import simt

TILE = 256
SOFTENING = 1e-2  # squared; also what keeps a body from dividing by its distance to itself


@simt.jit(fastmath=True)
def accelerations(x, y, z, mass, ax, ay, az):
    tile_x = simt.shared.array(TILE, simt.float32)
    tile_y = simt.shared.array(TILE, simt.float32)
    tile_z = simt.shared.array(TILE, simt.float32)
    tile_m = simt.shared.array(TILE, simt.float32)
    i, t = simt.grid(1), simt.threadIdx.x
    here = min(i, x.size - 1)
    own_x, own_y, own_z = x[here], y[here], z[here]
    sum_x = sum_y = sum_z = np.float32(0)
    for first in range(0, x.size, TILE):
        j = min(first + t, x.size - 1)
        tile_x[t] = x[j]
        tile_y[t] = y[j]
        tile_z[t] = z[j]
        tile_m[t] = mass[j] if first + t < x.size else 0
        simt.syncthreads()
        for k in range(TILE):
            dx, dy, dz = tile_x[k] - own_x, tile_y[k] - own_y, tile_z[k] - own_z
            inverse = simt.rsqrt(dx * dx + dy * dy + dz * dz + SOFTENING)
            pull = tile_m[k] * inverse * inverse * inverse
            sum_x += dx * pull
            sum_y += dy * pull
            sum_z += dz * pull
        simt.syncthreads()
    if i < x.size:
        ax[i] = sum_x
        ay[i] = sum_y
        az[i] = sum_z


def expected(x, y, z, mass):
    dx, dy, dz = (p[None, :] - p[:, None] for p in (x, y, z))
    pull = mass * (dx * dx + dy * dy + dz * dz + SOFTENING) ** -1.5
    return (dx * pull).sum(1), (dy * pull).sum(1), (dz * pull).sum(1)


def main(n=1000):
    bodies = np.random.default_rng(0).random((4, n), np.float32)
    found = np.empty((3, n), np.float32)
    accelerations[-(-n // TILE), TILE](*bodies, *found)
    plain = np.stack(expected(*bodies.astype(np.float64)))
    np.testing.assert_allclose(found, plain, atol=1e-4 * np.abs(plain).max())
    print(f"nbody: the accelerations of {n:,} bodies agree with NumPy's")


if __name__ == "__main__":
    main()

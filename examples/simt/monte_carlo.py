"""Pi from random points: each thread has its own random numbers, from a function of its own.

The numbers follow from a count alone (splitmix64, by Sebastiano Vigna), so that NumPy can draw the
same ones, and the two counts are equal."""

import numpy as np
from picokernel import simt

POINTS = 64  # of a thread


@simt.jit(device=True)
def random(count):
    """From 0 up to 1: the upper 53 bits of count's hash."""
    bits = count * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = bits ^ (bits >> np.uint64(31))
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


@simt.jit
def count_inside(inside):
    first = simt.grid(1) * POINTS
    own = 0
    for k in range(first, first + POINTS):
        x = random(np.uint64(2 * k + 1))
        y = random(np.uint64(2 * k + 2))
        if x * x + y * y < 1:
            own += 1
    simt.atomic.add(inside, 0, own)


def main(blocks=64, threads=256):
    inside = np.zeros(1, np.int64)
    count_inside[blocks, threads](inside)
    n = blocks * threads * POINTS
    x, y = random(np.arange(1, 2 * n + 1, dtype=np.uint64)).reshape(n, 2).T
    assert inside[0] == np.count_nonzero(x * x + y * y < 1)
    print(f"monte_carlo: pi is about {4 * inside[0] / n:.4f}; NumPy counts the same points")


if __name__ == "__main__":
    main()

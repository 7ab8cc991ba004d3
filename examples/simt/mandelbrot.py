"""The Mandelbrot set: a loop that ends for each thread at its own time."""

import numpy as np
from picokernel import simt


@simt.jit
def mandelbrot(left, top, step, iterations, counts):
    j, i = simt.grid(2)
    if i < counts.shape[0] and j < counts.shape[1]:
        cx, cy = left + j * step, top + i * step
        x = y = np.float32(0)
        count = 0
        while count < iterations and x * x + y * y <= 4:
            x, y = x * x - y * y + cx, 2 * x * y + cy
            count += 1
        counts[i, j] = count


def expected(left, top, step, iterations, shape):
    i, j = np.indices(shape).astype(np.float32)
    cx, cy = left + j * step, top + i * step
    x, y, counts = np.zeros_like(cx), np.zeros_like(cx), np.zeros(shape, np.int32)
    for _ in range(iterations):
        inside = x * x + y * y <= 4
        counts += inside
        x, y = np.where(inside, x * x - y * y + cx, x), np.where(inside, 2 * x * y + cy, y)
    return counts


def main(n=512, iterations=64):
    view = np.float32(-2), np.float32(-1.25), np.float32(2.5 / n)
    counts = np.empty((n, n), np.int32)
    block = 32, 8
    mandelbrot[(-(-n // 32), -(-n // 8)), block](*view, iterations, counts)
    # A fused multiply and add may let a point on the edge leave one step earlier or later.
    agree = (counts == expected(*view, iterations, counts.shape)).mean()
    assert agree > 0.99, agree
    print(f"mandelbrot: {agree:.2%} of {n} x {n} points agree with NumPy's")


if __name__ == "__main__":
    main()

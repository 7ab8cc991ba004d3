"""An image convolved with a small filter; beyond its edges the image goes on as on the edge."""

import numpy as np
from picokernel import simt


@simt.jit
def convolve(image, weights, out):
    j, i = simt.grid(2)
    rows, columns = image.shape
    if i < rows and j < columns:
        above, left = weights.shape[0] // 2, weights.shape[1] // 2
        total = np.float32(0)
        for di in range(weights.shape[0]):
            for dj in range(weights.shape[1]):
                y = min(max(i + di - above, 0), rows - 1)
                x = min(max(j + dj - left, 0), columns - 1)
                total += weights[di, dj] * image[y, x]
        out[i, j] = total


def expected(image, weights):
    above, left = weights.shape[0] // 2, weights.shape[1] // 2
    padded = np.pad(image, ((above, above), (left, left)), "edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, weights.shape)
    return np.einsum("ijkl,kl", windows, weights)


def main(n=300):
    rng = np.random.default_rng(0)
    image, weights = rng.random((n, n + 9), np.float32), rng.random((5, 7), np.float32)
    out = np.empty_like(image)
    convolve[(-(-image.shape[1] // 32), -(-n // 8)), (32, 8)](image, weights, out)
    np.testing.assert_allclose(out, expected(image, weights), rtol=1e-5)
    print(f"convolution: {n} x {n + 9} elements agree with NumPy's")


if __name__ == "__main__":
    main()

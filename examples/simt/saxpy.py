"""a * x + y: one thread for each element, the first kernel of every tutorial."""

import numpy as np
from picokernel import simt


@simt.jit
def saxpy(a, x, y, out):
    i = simt.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


def main(n=1_000_003):
    rng = np.random.default_rng(0)
    x, y = rng.random((2, n), np.float32)
    out = np.empty_like(x)
    saxpy.forall(n)(np.float32(2.5), x, y, out)
    np.testing.assert_allclose(out, np.float32(2.5) * x + y, rtol=1e-6)
    print(f"saxpy: {n:,} elements agree with NumPy's")


if __name__ == "__main__":
    main()

"""What `bench threads` measures: a row per kernel of `thread_kernels.py`. To measure something new,
add a row.

Pieces of Python in a row see `np`, `math`, `n`, `rng` and what its `data` defines; those of ours and of
Numba's simulator see the kernels, those of peers what their code defines. `result` is what each
contender's call must come to.
"""

from dataclasses import dataclass, field

from .works import Bar


@dataclass(frozen=True)
class Work:
    title: str
    n: int
    data: str
    launch: str  # ours and the simulator's: an expression
    check: str  # holds after a call of any contender
    bars: tuple = ()
    peers: dict = field(default_factory=dict)  # name -> (code, call)
    simulated: int = 0  # the size at which Numba's simulator stands beside ours; 0: nowhere
    backends: tuple = ()  # ours as well, as peers of cpu


_NUMBA = "import numba as nb\nfrom numba import prange\n@nb.njit(parallel=True{options})\n"
_FASTMATH = ", fastmath=True"


def _numba(code, call, options=""):
    return _NUMBA.format(options=options) + code, call


_BODIES = """
def f(bodies, out):
    n = bodies.shape[1]
    for i in prange(n):
        x, y, z = bodies[0, i], bodies[1, i], bodies[2, i]
        ax = ay = az = np.float32(0)
        for k in range(n):
            dx, dy, dz = bodies[0, k] - x, bodies[1, k] - y, bodies[2, k] - z
            square = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            inverse = np.float32(1) / np.sqrt(square)
            pull = bodies[3, k] * inverse * inverse * inverse
            ax += dx * pull
            ay += dy * pull
            az += dz * pull
        out[0, i], out[1, i], out[2, i] = ax, ay, az
"""


def _bodies(name, options, bars):
    return Work(
        f"n-body, tiles in shared memory, {name}",
        16384,
        "bodies, out = rng.random((4, n), np.float32), np.zeros((3, n), np.float32)\n",
        f"bodies_{name}[n // 256, 256](bodies, out)",
        """
some = slice(0, n, max(n // 16, 1))
d = bodies[:3, None, :].astype(np.float64) - bodies[:3, some, None]
want = (d * bodies[3] * ((d * d).sum(0) + 0.01) ** -1.5).sum(-1)
assert np.allclose(out[:, some], want, rtol=1e-3, atol=1e-4 * np.abs(want).max()), "wrong results"
""",
        bars,
        {"numba": _numba(_BODIES, "f(bodies, out)", options)},
        simulated=256,
    )


WORKS = {
    "mandelbrot": Work(
        "Mandelbrot, n x n, 256 iterations, float32",
        2048,
        "counts = np.zeros((n, n), np.int32)\n"
        "view = np.float32(-2), np.float32(-1.25), np.float32(2.5 / n), 256\n",
        "mandelbrot[(n // 32, n // 8), (32, 8)](counts, *view)",
        """
assert 0.15 < (counts == 256).mean() < 0.3 and counts[0, 0] < 3, "wrong results"
assert abs(counts.astype(np.int64) - counts[::-1]).mean() < counts.mean() / 10, "wrong results"
""",
        (Bar(("numba",), 6.0, 10.0),),
        {
            "numba": _numba(
                """
def f(counts, left, top, step, iterations):
    for i in prange(counts.shape[0]):
        for j in range(counts.shape[1]):
            cx, cy = left + step * np.float32(j), top + step * np.float32(i)
            x, y = np.float32(0), np.float32(0)
            count = 0
            for _ in range(iterations):
                xx, yy = x * x, y * y
                if xx + yy > np.float32(4):
                    break
                y = np.float32(2) * x * y + cy
                x = xx - yy + cx
                count += 1
            counts[i, j] = count
""",
                "f(counts, *view)",
                _FASTMATH,
            )
        },
        simulated=32,
    ),
    "black-scholes": Work(
        "Black-Scholes, float32",
        4 * 10**6,
        """
S, K = (rng.uniform(10, 100, n).astype(np.float32) for _ in range(2))
t, o = rng.uniform(0.1, 2, n).astype(np.float32), np.zeros(n, np.float32)
r, v = np.float32(0.03), np.float32(0.3)
""",
        "black_scholes[n // 256, 256](S, K, t, r, v, o)",
        """
def cdf(x): return 1 / (1 + np.exp(-1.5976 * x - 0.070566 * x * x * x))
width = v * np.sqrt(t.astype(np.float64))
d = (np.log(S / K) + (r + v * v / 2) * t) / width
want = S * cdf(d) - K * np.exp(-r * t) * cdf(d - width)
assert np.allclose(o, want, rtol=1e-3, atol=1e-3), "wrong results"
""",
        (Bar(("numba",), 3.0, 4.5),),
        {
            "numba": _numba(
                """
def f(S, K, t, r, v, o):
    one, two, a, b = np.float32(1), np.float32(2), np.float32(-1.5976), np.float32(0.070566)
    for i in prange(o.size):
        width = v * np.sqrt(t[i])
        d = (np.log(S[i] / K[i]) + (r + v * v / two) * t[i]) / width
        e = d - width
        o[i] = (S[i] / (one + np.exp(a * d - b * d * d * d))
                - K[i] * np.exp(-r * t[i]) / (one + np.exp(a * e - b * e * e * e)))
""",
                "f(S, K, t, r, v, o)",
            )
        },
        simulated=2048,
    ),
    "n-body": _bodies("fastmath", _FASTMATH, (Bar(("numba",), 0.95, 1.0),)),
    "n-body, strict": _bodies("strict", _FASTMATH, (Bar(("numba",), 0.8, 1.0),)),
    "stencil": Work(
        "5-point stencil with a tile in shared memory, n x n",
        4096,
        "u, o = rng.random((n, n), np.float32), np.zeros((n, n), np.float32)\n",
        "stencil[(-(-(n - 2) // 16),) * 2, (16, 16)](u, o)",
        """
want = np.float32(0.25) * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
assert np.allclose(o[1:-1, 1:-1], want, 1e-5), "wrong results"
""",
        (Bar(("numba",), 0.9, 1.2),),
        {
            "numba": _numba(
                """
def f(u, o):
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            o[i, j] = np.float32(0.25) * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
""",
                "f(u, o)",
            )
        },
        simulated=66,
    ),
    "reduction": Work(
        "Sum by a tree in shared memory, float32",
        50 * 10**6,
        """
x, sums, total = rng.random(n, np.float32), np.zeros(1024, np.float32), np.zeros(1, np.float32)
blocks = min(1024, n // 256)
""",
        "(reduction[blocks, 256](x, sums), reduction[1, 256](sums[:blocks], total))",
        "assert np.isclose(total[0], x.sum(dtype=np.float64), 1e-4), 'wrong results'\n",
        (Bar(("numba",), 0.8, 1.0),),
        {
            "numba": _numba(
                """
def f(x):
    s = np.float32(0)
    for i in prange(x.size):
        s += x[i]
    return s
""",
                "total.fill(f(x))",
                _FASTMATH,
            ),
            "np.sum": ("", "total.fill(x.sum())"),
        },
        simulated=2048,
    ),
    "matmul": Work(
        "Product of matrices by tiles in shared memory, float32",
        1024,
        "a, b = (rng.random((n, n), np.float32) for _ in range(2))\nc = np.zeros((n, n), np.float32)\n",
        "matmul[(n // 16, n // 16), (16, 16)](a, b, c)",
        "assert np.allclose(c, a @ b, 1e-3), 'wrong results'\n",
        (Bar(("opencl",), 1.0, 2.0),),
        simulated=16,
        backends=("opencl",),
    ),
    "histogram": Work(
        "Histogram of bytes with shared atomics",
        50 * 10**6,
        "data, counts = rng.integers(0, 256, n, np.uint8), np.zeros(256, np.int32)\n",
        "(counts.fill(0), histogram[64, 256](data, counts))",
        "assert (counts == np.bincount(data, minlength=256)).all(), 'wrong results'\n",
        (Bar(("np.bincount",), 1.0, 3.0),),
        {"np.bincount": ("", "counts.__setitem__(slice(None), np.bincount(data, minlength=256))")},
        simulated=16384,
    ),
}

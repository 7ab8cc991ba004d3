"""What `bench elementwise` measures: a row per kind of work. To measure something new, add a row.

Pieces of Python in a row see `np`, `n` (the size measured), `rng` and what its `data` defines; `o` is
the output.
"""

from dataclasses import dataclass

ANY_NUMBA = ("numba serial", "numba parallel")
PARALLEL, CEILING, UFUNCS = ("numba parallel",), ("C, streaming",), ("two ufuncs",)
FASTMATH, JAX = ("numba parallel, fastmath",), ("jax, its arrays",)
ONE_OR_ALL = ("1 thread", "all threads")


@dataclass(frozen=True)
class Bar:
    """`ours` must be `must` times as fast as the fastest of `peers`, and aims at `aim`."""

    peers: tuple
    must: float
    aim: float
    sizes: tuple = ()  # where it holds; none: at all sizes
    ours: str = "cpu"


@dataclass(frozen=True)
class Work:
    title: str
    sizes: tuple
    data: str
    args: str
    body: str  # an expression that becomes o, or statements that write o[...]
    bars: tuple
    loops: str = ""  # numba's: statements with prange
    point: str = ""  # C's: o at a point, L(x) being x there and w the row's length
    border: int = 0  # points at the rim of a plane that C leaves alone
    ours: tuple = ("cpu",)
    beside: tuple = ()  # measured too up to `most_beside` elements, without a bar
    most_beside: int = 10**5  # far slower contenders are not worth the wait beyond
    idle_s: float = 0.0  # before each call; no part of its time
    dtype: str = "float32"

    def bars_at(self, n):
        return [b for b in self.bars if not b.sizes or n in b.sizes]

    def peers_at(self, n):
        """Of the bars, each once; at a size that is none of the row's, those of all bars."""
        bars = self.bars_at(n) if n in self.sizes else self.bars
        names = [name for bar in bars for name in (*bar.peers, bar.ours)]
        return list(dict.fromkeys(name for name in names if name not in self.ours))


def _arrays(names, shape):
    made = "".join(
        f"{name} = rng.random({shape}, dtype=np.float32)\n" for name in names.split(", ")
    )
    return f"{made}o = np.zeros({shape}, np.float32)\n"


def _stencil(centre=False):
    """The fields of a row: a quarter of the four neighbours, less the point itself if `centre`."""
    body = "o[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])"
    loops = """
for y in prange(1, a.shape[0] - 1):
    for x in range(1, a.shape[1] - 1):
        o[y, x] = np.float32(0.25) * (a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1])"""
    point = "0.25f * (L(a - w) + L(a + w) + L(a - 1) + L(a + 1))"
    if centre:
        body, loops, point = body + " - a[1:-1, 1:-1]", loops + " - a[y, x]", point + " - L(a)"
    return {
        "sizes": (4096,),
        "data": _arrays("a", "(n, n)"),
        "args": "a",
        "body": body,
        "loops": loops,
        "point": point,
        "border": 1,
        "bars": (Bar(PARALLEL, 1.1, 1.3), Bar(CEILING, 0.95, 1.0)),
    }


_THREE = _arrays("a, b, c", "n")
_FMA = {
    "args": "a, b, c",
    "body": "a * b + c",
    "loops": "for i in prange(o.size): o[i] = a[i] * b[i] + c[i]",
}
_CHAIN, _LOOP_CHAIN, _C_CHAIN = "a", "a[i]", "L(a)"
for _ in range(16):
    _CHAIN = f"({_CHAIN} * b + c)"
    _LOOP_CHAIN = f"({_LOOP_CHAIN} * b[i] + c[i])"
    _C_CHAIN = f"({_C_CHAIN} * L(b) + L(c))"
_SUM = {"args": "x, y", "body": "x + y", "loops": "for i in prange(o.size): o[i] = x[i] + y[i]"}
_STREAMS = (10**7, 10**8)
_THREADS = {
    "sizes": (10**4, 30_000, 10**5, 300_000, 10**6, 3 * 10**6, 10**7),
    "data": _THREE,
    "bars": (Bar(ONE_OR_ALL, 0.91, 0.97),),
    **_FMA,
}


def _function(name, low, high, body="", arrays="x"):
    """A row of one function, one thread, float32: on all of this machine and held to AVX2."""
    draw = f"rng.uniform({low}, {high}, n).astype(np.float32)"
    made = "".join(f"{array} = {draw}\n" for array in arrays.split(", "))
    if name == "erf":
        bars = (Bar(("NumPy",), 10.0, 20.0, ours="1 thread"),)
    else:
        bars = (
            Bar(("NumPy",), 1.0, 1.5, ours="1 thread"),
            Bar(("NumPy, AVX2",), 1.5, 3.0, ours="1 thread, AVX2"),
        )
    return Work(
        f"{name}, one thread",
        (10**6,),
        ("import scipy.special\n" if name == "erf" else "") + made + "o = np.zeros_like(x)\n",
        arrays,
        body or f"np.{name}(x)",
        bars=bars,
    )


def _black_scholes(dtype, bars):
    """European calls: the price by a logistic fit of the normal distribution."""
    return Work(
        "Black-Scholes",
        (4 * 10**6,),
        f"""
real = np.{dtype}
S, K = (rng.uniform(10, 100, n).astype(real) for _ in range(2))
t, o = rng.uniform(0.1, 2, n).astype(real), np.zeros(n, real)
r, v = real(0.03), real(0.3)
def cdf(x): return real(1) / (real(1) + np.exp(real(-1.5976) * x - real(0.070566) * x * x * x))
def price(S, K, t, r, v):
    width = v * np.sqrt(t)
    d = (np.log(S / K) + (r + v * v / real(2)) * t) / width
    return S * cdf(d) - K * np.exp(-r * t) * cdf(d - width)
""",
        "S, K, t, r, v",
        "price(S, K, t, r, v)",
        loops=f"""
one, two, a, b = np.{dtype}(1), np.{dtype}(2), np.{dtype}(-1.5976), np.{dtype}(0.070566)
for i in prange(o.size):
    width = v * np.sqrt(t[i])
    d = (np.log(S[i] / K[i]) + (r + v * v / two) * t[i]) / width
    e = d - width
    o[i] = (S[i] / (one + np.exp(a * d - b * d * d * d))
            - K[i] * np.exp(-r * t[i]) / (one + np.exp(a * e - b * e * e * e)))
""",
        bars=bars,
        dtype=dtype,
    )


# The bars that the measurements of peers set, and for what reads or writes memory only: as fast as
# numba, aiming at the third that streaming stores can save.
WORKS = {
    "transparent": Work(
        "a*b+c, NumPy arrays in and out",
        tuple(10**e for e in range(3, 8)),
        _THREE,
        **_FMA,
        bars=(),
        point="L(a) * L(b) + L(c)",
        ours=("numpy", "cpu", "mlx"),
        beside=(*ANY_NUMBA, "numexpr", "jax", *CEILING),
        most_beside=10**9,
    ),
    "call": Work(
        "Python call, a*b+c and out=",
        (1000,),
        _THREE,
        **_FMA,
        bars=(Bar(("numba serial",), 1.67, 2.22),),
        beside=("np.add",),
    ),
    "fma": Work(
        "a*b+c",
        (10**4, 10**5, 10**6, *_STREAMS),
        _THREE,
        **_FMA,
        bars=(
            Bar(ANY_NUMBA, 1.2, 1.6, (10**4,)),
            Bar(ANY_NUMBA, 1.2, 1.4, (10**5,)),
            Bar(ANY_NUMBA, 0.95, 1.03, (10**6,)),
            Bar(ANY_NUMBA, 1.1, 1.3, _STREAMS),
            Bar(CEILING, 0.95, 1.0, _STREAMS),
            Bar(UFUNCS, 1.3, 1.5, (10**6, *_STREAMS), ours="numpy"),
        ),
        point="L(a) * L(b) + L(c)",
        ours=("numpy", "cpu"),
        beside=("numexpr", "jax"),
    ),
    "chain": Work(
        "16 times x = x*b + c, one pass",
        (10**7,),
        _THREE,
        "a, b, c",
        _CHAIN,
        loops=f"for i in prange(o.size): o[i] = {_LOOP_CHAIN}",
        point=_C_CHAIN,
        bars=(Bar(PARALLEL, 1.1, 1.3), Bar(CEILING, 0.95, 1.0)),
    ),
    "stencil": Work("5-point stencil, n x n", **_stencil()),
    "stencil-centre": Work("5-point stencil less its centre, n x n", **_stencil(centre=True)),
    "rows": Work(
        "a*b+c, (n,3) with c of (3,)",
        (10**6,),
        """
a, b = (rng.random((n, 3), dtype=np.float32) for _ in range(2))
c, o = rng.random(3, dtype=np.float32), np.zeros((n, 3), np.float32)
""",
        "a, b, c",
        "a * b + c",
        loops="""
for i in prange(a.shape[0]):
    for j in range(3): o[i, j] = a[i, j] * b[i, j] + c[j]
""",
        bars=(Bar(PARALLEL, 1.0, 1.5),),
    ),
    "strided": Work(
        "x + y, x = u[::2]",
        (10**6, 10**7),
        _arrays("x, y", "n") + "x = rng.random(2 * n, dtype=np.float32)[::2]\n",
        **_SUM,
        bars=(Bar(PARALLEL, 1.0, 1.5),),
    ),
    "reversed": Work(
        "x + y, x = u[::-1]",
        (10**6, 10**7),
        _arrays("x, y", "n") + "x = x[::-1]\n",
        **_SUM,
        bars=(Bar(PARALLEL, 1.0, 1.5),),
    ),
    "transposed": Work(
        "x.T + y, n x n",
        (2048, 4096),
        _arrays("x, y", "(n, n)") + "x = x.T\n",
        "x, y",
        "x + y",
        loops="""
for i in prange(o.shape[0]):
    for j in range(o.shape[1]): o[i, j] = x[i, j] + y[i, j]
""",
        bars=(Bar(PARALLEL, 1.0, 1.5),),
    ),
    "exp": _function("exp", -5, 5),
    "log": _function("log", 0.01, 100),
    "sin": _function("sin", -10, 10),
    "cos": _function("cos", -10, 10),
    "tanh": _function("tanh", -4, 4),
    "power": _function("power", 0.1, 5, "np.power(x, y)", "x, y"),
    "erf": _function("erf", -3, 3, "scipy.special.erf(x)"),
    "black-scholes": _black_scholes(
        "float32",
        (
            Bar(FASTMATH, 3.0, 4.5),
            Bar(JAX, 1.4, 2.0),
            Bar(("numba parallel, fastmath, AVX2",), 2.5, 2.5, ours="AVX2"),
            Bar(("jax, its arrays, AVX2",), 1.2, 1.2, ours="AVX2"),
        ),
    ),
    "black-scholes-f64": _black_scholes("float64", (Bar(FASTMATH, 2.0, 3.0),)),
    "threads": Work("a*b+c, automatic threads, back to back", **_THREADS),
    "threads-idle": Work("a*b+c, automatic threads, after 3 ms idle", **_THREADS, idle_s=0.003),
}

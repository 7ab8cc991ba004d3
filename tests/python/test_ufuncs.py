"""NumPy's elementwise functions on all types and awkward values, against NumPy."""

import sys
import warnings

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same, check

FLOATS = ["float32", "float64"]
AWKWARD = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.75, 9.0, -20.0, 88.0, -103.0, 127.5, -149.0,
    1e-10, -1e-10, 1e10, 1e-40, -1e-40, 1e-45, np.inf, -np.inf, np.nan,
]  # fmt: skip


def values(dtype, seed=0):
    """Awkward ones, then all magnitudes and signs."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, 50).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edges = [
            x for x in (info.min, info.min + 1, -2, -1, 0, 1, 2, 3, 12, info.max) if x >= info.min
        ]
        return np.concatenate(
            [np.array(edges, dtype), rng.integers(info.min, info.max, 60, dtype, endpoint=True),
             rng.integers(0, 100, 30).astype(dtype)]
        )  # fmt: skip
    limits = np.finfo(dtype)
    edges = [limits.max, -limits.max, limits.tiny, limits.smallest_subnormal, limits.eps]
    wide = np.exp(rng.uniform(-80, 80, 100)) * rng.choice([-1, 1], 100)
    with np.errstate(over="ignore"):
        return np.concatenate(
            [AWKWARD, edges, rng.uniform(-1, 1, 100), rng.uniform(-80, 80, 100), wide]
        ).astype(dtype)


def pairs(dtype, other=None):
    """Each value with many others."""
    a, b = values(dtype), values(other or dtype, seed=1)[::2]
    return np.repeat(a, len(b)), np.tile(b, len(a))


def assert_close(got, want, ulps, floor=0.0):
    """Within `ulps` units in the last place, special values and the signs of zeros exactly.
    `floor` is the magnitude below which errors are absolute."""
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind != "f":
        return np.testing.assert_array_equal(got, want)
    finite = np.isfinite(want)
    assert_same(got[~finite], want[~finite])
    g, w = got[finite], want[finite]
    floor = np.broadcast_to(np.asarray(floor, want.dtype), want.shape)[finite]
    with np.errstate(over="ignore"):
        bound = ulps * np.spacing(np.maximum(np.abs(w), floor))
    wrong = ~(np.abs(g - w) <= bound)
    assert not wrong.any(), f"{g[wrong][:5]} instead of {w[wrong][:5]}"
    zero = (w == 0) & (g == 0)
    np.testing.assert_array_equal(np.signbit(g[zero]), np.signbit(w[zero]))


def run(kernel, *args, backend):
    """What the kernel gives and what NumPy does."""
    with np.errstate(all="ignore"):
        return kernel(*args, backend=backend), kernel.__wrapped__(*args)


def check_exact(kernel, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(kernel, *args, **options)


def check_close(kernel, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(kernel, *args, ulps=4, **options)


# Both sides are within 3 units in the last place of the real value.
UNARY = [
    "exp2", "expm1", "log2", "log10", "log1p", "cbrt", "tan", "arcsin", "arccos", "arctan", "sinh",
    "cosh", "arcsinh", "arccosh", "arctanh",
]  # fmt: skip


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint16"])
@pytest.mark.parametrize("name", UNARY)
def test_functions(backend, name, dtype):
    function = getattr(np, name)

    @pk.kernel
    def kernel(x):
        return function(x)

    got, want = run(kernel, values(dtype), backend=backend)
    assert_close(got, want, 5)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint16"])
@pytest.mark.parametrize("name", ["arctan2", "hypot"])
def test_functions_of_two(backend, name, dtype):
    function = getattr(np, name)

    @pk.kernel
    def kernel(x, y):
        return function(x, y)

    got, want = run(kernel, *pairs(dtype), backend=backend)
    assert_close(got, want, 5)


ERROR_FUNCTIONS = ["erf", "erfc"]
TYPES = [*FLOATS, "float16", "bool", "int8", "int16", "uint16", "int32", "uint64"]


def assert_close_to_scipy(got, want):
    """Its erfc squares in float64, and gives up before the denormals."""
    double = want.dtype == np.float64
    assert_close(got, want, 1024 if double else 4, 1e-300 if double else 0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ERROR_FUNCTIONS)
def test_error_functions_of_scipy(backend, name, dtype):
    function = getattr(pytest.importorskip("scipy.special"), name)

    @pk.kernel
    def kernel(x):
        return function(x)

    x = values(dtype)
    if backend == "mlx" and (name == "erfc" or kernel.__wrapped__(x).dtype != np.float32):
        with pytest.raises(pk.CompileError, match="MLX"):
            kernel(x, backend=backend)
        return
    got, want = run(kernel, x, backend=backend)
    if backend == "mlx":  # of absolute accuracy only
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)
    else:
        assert_close_to_scipy(got, want)

    @pk.kernel
    def into(x, o):
        function(x, out=o)

    o = np.full(x.shape, 7, want.dtype)
    into(x, o, backend=backend)
    assert_same(o, got)


@pytest.mark.parametrize("dtype", TYPES)
def test_functions_that_numpy_lacks(backend, dtype):
    pytest.importorskip("scipy")

    @pk.kernel
    def kernel(x):
        return pk.rsqrt(x)

    with np.errstate(all="ignore"):
        check_exact(kernel, values(dtype), backend=backend)
    if backend == "mlx":
        return

    @pk.kernel
    def errors(x):
        return pk.erf(x), pk.erfc(x)

    x = values(dtype)
    got, want = run(errors, x, backend=backend)
    assert want[0].dtype == np.exp(x[:1]).dtype
    for g, w in zip(got, want, strict=True):
        assert_close_to_scipy(g, w)


def test_error_functions_of_numbers(backend):
    special = pytest.importorskip("scipy.special")
    if backend == "mlx":
        return

    @pk.kernel
    def kernel(a, s):
        return a * pk.erf(s), a * special.erfc(s), a + pk.erf(0.5), special.erf(True)

    a = np.ones(3, np.float32)
    for s in (0.25, 2, np.float32(0.25)):
        check_close(kernel, a, s, backend=backend)


def test_error_functions_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.special", None)

    @pk.kernel
    def kernel(x):
        return pk.erf(x)

    x = np.linspace(-1, 1, 5)
    with pytest.raises(pk.CompileError, match="by SciPy, which cannot be imported") as e:
        kernel(x, backend="numpy")
    assert e.value.lineno == kernel.__wrapped__.__code__.co_firstlineno + 2
    assert "scipy.special.erf(x, out=out)" in kernel.source("numpy", x)
    assert kernel(x, backend="ref")[2] == 0
    with pytest.raises(pk.Error, match="pip install scipy"):
        pk.erf(x)


def test_other_ufuncs_are_refused():
    special = pytest.importorskip("scipy.special")
    with pytest.raises(pk.CompileError, match="gamma is not NumPy's"):
        pk.kernel(lambda x: special.gamma(x))(np.ones(3))


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh"])
def test_aliases(name):
    x = np.linspace(0.1, 0.9, 5)
    x = x + 1 if name == "acosh" else x
    function = getattr(np, name)
    assert_close(pk.kernel(lambda x: function(x))(x), function(x), 5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logarithms_of_sums(backend, name, dtype):
    function = getattr(np, name)

    @pk.kernel
    def kernel(x, y):
        return function(x, y)

    if backend == "mlx" and dtype == "float64" and name == "logaddexp":
        with pytest.raises(pk.CompileError, match="exp of float64 is computed in float32 by MLX"):
            kernel(np.ones(3), np.ones(3), backend=backend)
        return
    x, y = pairs(dtype)
    got, want = run(kernel, x, y, backend=backend)
    # A sum near 0 has the errors of its terms. MLX's exp flushes what is near the denormals.
    terms = np.minimum(np.fmax(np.abs(x), np.abs(y)), 1)
    flushes = backend == "mlx" and name == "logaddexp"
    assert_close(got, want, 64 if flushes else 6, terms + (1e-30 if flushes else 0))


@pytest.mark.parametrize("dtype", FLOATS)
def test_bits_of_floats(backend, dtype):
    @pk.kernel
    def one(x):
        return (np.spacing(x), *np.frexp(x), *np.modf(x))

    check_exact(one, values(dtype), backend=backend)

    @pk.kernel
    def two(x, y):
        return np.nextafter(x, y), np.fmod(x, y)

    check_exact(two, *pairs(dtype), backend=backend)


@pytest.mark.parametrize("exponent", ["bool", "int8", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_ldexp(backend, dtype, exponent):
    @pk.kernel
    def kernel(x, n):
        return np.ldexp(x, n), np.ldexp(x, 3), np.ldexp(2.5, n)

    x, n = pairs(dtype, exponent)
    check_exact(kernel, x, n, backend=backend)
    if exponent == "int32":  # all results that are denormal, or nearly infinite
        n = np.arange(-2200, 2200, dtype=np.int32)
        for x in (1.0, -1.9999999, 1.1e-38, 1e-45, 1.2345e-310):
            check_exact(kernel, np.full(len(n), x, dtype), n, backend=backend)


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_integers(backend, dtype):
    @pk.kernel
    def kernel(x, y):
        return np.fmod(x, y), np.bitwise_count(x), np.conjugate(x)

    x, y = pairs(dtype)
    check_exact(kernel, x, y, backend=backend)

    @pk.kernel
    def divisors(x, y):
        return np.gcd(x, y), np.lcm(x, y), np.gcd(x, 12)

    if backend == "mlx":
        with pytest.raises(pk.CompileError, match=f"MLX has no gcd of {dtype}"):
            divisors(x, y, backend=backend)
    else:
        check_exact(divisors, x, y, backend=backend)


def test_bools(backend):
    @pk.kernel
    def kernel(x, y):
        return np.fmod(x, y), np.bitwise_count(x), np.conjugate(x), np.isclose(x, y)

    check_exact(kernel, values("bool"), ~values("bool"), backend=backend)


# Both are scalars of the host there.
def test_numbers(backend):
    @pk.kernel
    def kernel(a, x, k):
        return (
            a * np.nextafter(x, 2), a * np.ldexp(x, k), a + np.gcd(k, 12), a + np.bitwise_count(k),
            a * np.frexp(x)[0], a * np.spacing(x), a * np.hypot(x, k),
        )  # fmt: skip

    a = np.arange(3, dtype=np.float64)
    for x in (1.5, np.float64(-3.25)):
        check_exact(kernel, a, x, 18, backend=backend)


def test_results_in_out(backend):
    @pk.kernel
    def kernel(x, i, whole, fraction, exponent, count, o):
        np.modf(x, out=(fraction, whole))
        np.frexp(x, out=(None, exponent))
        np.bitwise_count(i, out=count)
        np.hypot(x, 2, out=o)
        np.nextafter(x, 2, out=x)
        np.round(i, out=i)

    x, i = values("float32"), values("int32")
    o = [np.zeros_like(x) for _ in range(3)]
    numbers = np.zeros(x.shape, np.int32), np.zeros(i.shape, np.uint8)
    check_close(kernel, x, i, o[0], o[1], *numbers, o[2], backend=backend)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64", "uint8"])
@pytest.mark.parametrize("decimals", [0, 1, 3, 12, 30, -1, -2])
def test_round(backend, dtype, decimals):
    @pk.kernel
    def kernel(x, o):
        np.round(x, decimals, out=o)
        return np.round(x, decimals), np.around(x, decimals), x.round(decimals)

    x = values(dtype)
    if x.dtype.kind != "f":  # NumPy leaves open what does not fit afterwards
        x = x[(x < np.iinfo(dtype).max - 60) & (x > np.iinfo(dtype).min + 60)]
    check_exact(kernel, x, np.zeros(x.shape, np.float64), backend=backend)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint8", "bool"])
def test_compositions(backend, dtype):
    @pk.kernel
    def kernel(x, y):
        return (
            np.isposinf(x), np.isneginf(x), np.isclose(x, y), np.isclose(x, 1),
            np.isclose(x, y, rtol=0.5, atol=0.25, equal_nan=True), np.real(x), x.imag,
            np.select([x > 1, y > 1], [x, y]), np.select([x > 1, x < 0], [0.5, y], default=7),
            np.piecewise(x, [x > 1, y > 1], [1, lambda v: v | v if dtype == "bool" else v + v]),
            np.piecewise(x, [x > 1], [3, 0]),
        )  # fmt: skip

    x, y = values(dtype), values(dtype, seed=1)
    check_exact(kernel, x, y, backend=backend)


@pytest.mark.parametrize("k", [2, 0.5, np.float32(0.5)])
def test_numbers_in_compositions(k):
    @pk.kernel
    def kernel(x, k):
        return (
            np.isclose(x, k),
            np.isclose(k, x),
            np.select([x > 0], [x], k),
            np.nan_to_num(x, nan=k),
        )

    check_exact(kernel, values("float32"), k)
    check_exact(kernel, values("int8"), k)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32"])
def test_nan_to_num(backend, dtype):
    @pk.kernel
    def kernel(x, o):
        np.nan_to_num(o, copy=False, nan=3)
        return np.nan_to_num(x), np.nan_to_num(x, nan=np.inf, posinf=1e300, neginf=x)

    check_exact(kernel, values(dtype), values(dtype), backend=backend)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32"])
def test_sinc(backend, dtype):
    @pk.kernel
    def kernel(x):
        return np.sinc(x)

    x = np.linspace(-9, 9, 73).astype(dtype)
    if backend == "mlx" and dtype != "float32":
        with pytest.raises(pk.CompileError, match="sin of float64"):
            kernel(x, backend=backend)
        return
    got, want = run(kernel, x, backend=backend)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=np.finfo(want.dtype).eps)
    assert got.dtype == want.dtype


X, F = np.ones(3, np.int32), np.ones(3, np.float32)


@pytest.mark.parametrize(
    "function, operands, message",
    [
        (np.gcd, (F, F), "`gcd` of float32 and float32"),
        (np.lcm, (X > 0, X > 0), "`lcm` of bool and bool"),
        (pk.erf, (F.astype(complex),), "`erf` of complex128"),
        (np.bitwise_count, (F,), "`bitwise_count` of float32"),
        (np.ldexp, (F, F), "exponents are integers"),
        (np.ldexp, (F, np.ones(3, np.uint64)), "exponents are integers that int64 holds"),
        (lambda x: np.ldexp(x, 2**40), (F,), "does not fit int32"),
        (lambda x: np.round(x, x), (F,), "decimals"),
        (lambda x: np.select([x], [x]), (F,), "arrays of bool"),
        (lambda x: np.select([x > 0], [x, x]), (F,), "as many choices"),
        (lambda x: np.piecewise(x, [x > 0], [1, 2, 3]), (F,), "a function for each"),
    ],
)
def test_refusals(function, operands, message):
    kernels = {1: lambda x: function(x), 2: lambda x, y: function(x, y)}
    with pytest.raises(pk.CompileError, match=message):
        pk.kernel(kernels[len(operands)])(*operands)


def test_every_ufunc_on_numbers_is_there():
    of_arrays = {"matmul", "matvec", "vecmat", "vecdot", "isnat"}
    ufuncs = {name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}
    assert ufuncs - of_arrays <= set(pk.functions())
    for name in of_arrays:
        with pytest.raises(pk.CompileError, match=name):
            pk.kernel(lambda x, f=name: getattr(np, f)(*[x] * getattr(np, f).nin))(np.ones((2, 2)))

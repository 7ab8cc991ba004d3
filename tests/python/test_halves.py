"""float16 and bfloat16: every operation on every bit pattern, against NumPy and ml_dtypes."""

import warnings

import numpy as np
import picokernel as pk
import pytest
from oracle import BFLOAT16, assert_same, check, layouts, sample

HALVES = [np.dtype("float16"), BFLOAT16]
ALL_BITS = np.arange(2**16, dtype=np.uint16)

UFUNCS = sorted(n for n in pk.functions() if isinstance(getattr(np, n), np.ufunc))
EXACT = {
    "absolute", "add", "ceil", "conjugate", "copysign", "degrees", "divmod", "equal", "fabs",
    "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp", "greater", "greater_equal",
    "heaviside", "isfinite", "isinf", "isnan", "less", "less_equal", "logical_and", "logical_not",
    "logical_or", "logical_xor", "maximum", "minimum", "modf", "multiply", "negative", "nextafter",
    "not_equal", "positive", "radians", "reciprocal", "remainder", "rint", "sign", "signbit",
    "spacing", "sqrt", "square", "subtract", "true_divide", "trunc",
}  # fmt: skip
# Which of two equal zeros: NumPy's loops differ by machine, and by type.
ZEROS_EITHER_WAY = {"maximum", "minimum", "fmax", "fmin", "nextafter", "sign"}
REFUSED = {
    "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift", "gcd", "lcm",
    "bitwise_count", "ldexp",
}  # fmt: skip
FUNCTIONS = {
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cbrt", "cos", "cosh",
    "exp", "exp2", "expm1", "hypot", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2",
    "power", "sin", "sinh", "tan", "tanh",
}  # fmt: skip


def test_every_ufunc_is_in_a_list():
    ours = {getattr(np, n).__name__ for n in UFUNCS}
    renamed = {"divide": "true_divide", "deg2rad": "radians", "rad2deg": "degrees"}
    ours = {renamed.get(n, n) for n in ours}
    assert ours - {"float_power", "clip"} == EXACT | REFUSED | FUNCTIONS
    assert not EXACT & FUNCTIONS


def wide(x):
    return x.astype(np.float32) if x.dtype == BFLOAT16 else x


def quiet_bits(dtype):
    """All bit patterns but signalling NaNs, which NumPy's conversions make quiet or not."""
    x = ALL_BITS.view(dtype)
    quiet = 0x0200 if dtype == np.float16 else 0x0040
    infinity = 0x7C00 if dtype == np.float16 else 0x7F80
    magnitudes = ALL_BITS & 0x7FFF
    return x[(magnitudes <= infinity) | (ALL_BITS & quiet != 0)]


def pairs_of(dtype):
    rng = np.random.default_rng(0)
    ends = {"float16": [0x7C00, 0x3C00, 0x7BFF, 0x0400, 0x4000], "bfloat16": [0x7F80, 0x3F80, 0x7F7F, 0x0080, 0x4000]}  # fmt: skip
    bits = [0, 1, 0x03FF, *ends[dtype.name]]
    bits = np.array([*bits, *(b | 0x8000 for b in bits)], np.uint16)
    x = np.concatenate([bits.view(dtype), rng.choice(quiet_bits(dtype), 150)])
    return np.repeat(x, len(x)), np.tile(x, len(x))


def units(x):
    """The position among all numbers of the type."""
    bits = x.view(np.uint16).astype(np.int32)
    return np.where(bits & 0x8000, -(bits & 0x7FFF), bits)


def assert_near(got, want, ulps):
    """Within units in the last place; special values exactly."""
    assert got.dtype == want.dtype and got.shape == want.shape
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan)
    distance = np.abs(units(got) - units(want))[~nan]
    assert distance.max(initial=0) <= ulps, (
        f"{distance.max()} units, {np.sum(distance > ulps)} times"
    )


def numpy_says(name, *args):
    """NumPy's result; where ml_dtypes has no loop of its own, float32's, rounded."""
    function = getattr(np, name)
    with np.errstate(all="ignore"):
        want = function(*args)
        if args[0].dtype == BFLOAT16 and name in ("degrees", "radians"):
            want = want.astype(BFLOAT16)
    return want


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", sorted(EXACT | FUNCTIONS))
def test_every_ufunc(backend, name, dtype):
    function = getattr(np, name)
    if function.nin == 1:
        kernel, args = pk.kernel(lambda x: function(x)), (quiet_bits(dtype),)
    else:
        kernel, args = pk.kernel(lambda x, y: function(x, y)), pairs_of(dtype)
    want = numpy_says(name, *args)
    with np.errstate(all="ignore"):
        got = kernel(*args, backend=backend)
    if name in EXACT:
        if name == "spacing":  # of negative and of large numbers NumPy's half has its own
            keep = (wide(args[0]) > 0) & (wide(args[0]) < 5e4)
            got, want = got[keep], want[keep]
        assert_same(got, want, signs=name not in ZEROS_EITHER_WAY)
        return
    special = {"hypot": np.isinf(args[0]) | np.isinf(args[-1]), "power": args[0] == 1}.get(name)
    if special is not None:  # beside NaN: as in C, where NumPy's loop differs by machine
        keep = ~(special & (np.isnan(args[0]) | np.isnan(args[1])))
        got, want = got[keep], want[keep]
    assert_near(got, want, 1)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_numpy_refuses_is_refused(name, dtype):
    function = getattr(np, name)
    x = np.ones(3, dtype)
    with pytest.raises(pk.CompileError, match=f"`{name}` of {dtype}"):
        pk.kernel(lambda x: function(*[x] * function.nin))(x)


# Casts

TYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    BFLOAT16, "float32", "float64", "complex64", "complex128",
]  # fmt: skip


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("other", TYPES, ids=str)
def test_casts(backend, dtype, other):
    other = np.dtype(other)
    there, back = pk.kernel(lambda x: x.astype(other)), pk.kernel(lambda x: x.astype(dtype))
    x = quiet_bits(dtype)
    if other.kind in "iu":  # out of range is ours to say, and tested elsewhere
        limit = np.iinfo(other)
        values = x.astype(np.float64)
        x = x[(values < min(limit.max, 2.0**62)) & (values > max(limit.min - 0.5, -(2.0**62)))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(there, x, backend=backend)
        y = sample(other, (500,))
        if other.kind == "f":
            y = np.concatenate(
                [y, quiet_bits(np.dtype("float16")).astype(other) * other.type(1.0001)]
            )
        check(back, y, backend=backend)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_stores_and_out_cast(backend, dtype):
    @pk.kernel
    def kernel(h, f, i, o, p):
        o[...] = f * 3  # unsafe, as an assignment
        p[...] = h
        h += f  # same_kind, as a ufunc's out=
        return h + i

    h, f, i = sample(dtype, (30,)), sample("float32", (30,)), np.arange(30, dtype=np.int8)
    o, p = np.zeros(30, dtype), np.zeros(30, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(kernel, h, f, i, o, p, backend=backend)
        into = np.zeros(30, dtype)
        add = pk.kernel(lambda x, y: x + y)
        assert add(f, h, out=into, backend=backend) is into
        assert_same(into, (f + h).astype(dtype))
    with pytest.raises(pk.LaunchError, match="same_kind"):
        add(h, h, out=np.zeros(30, np.int32), backend=backend)


# Promotion


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("other", TYPES, ids=str)
def test_beside_arrays_of_other_types(backend, dtype, other):
    @pk.kernel
    def kernel(x, y):
        return x + y, y * x, x < y, x == y, pk.where(x > 1, x, y)

    x, y = sample(dtype, (40,), seed=1), sample(other, (40,), seed=2)
    if np.dtype(other).kind == "c":
        kernel = pk.kernel(lambda x, y: (x + y, y - x, x == y, pk.where(x > 1, x, y)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if BFLOAT16 in (dtype, np.dtype(other)) and np.dtype(other) not in HALVES:
            common = (x + y).dtype  # ml_dtypes knows it in its loops, not in np.promote_types
            got = kernel(x, y, backend=backend)
            want = kernel.__wrapped__(x.astype(common), y.astype(common))
            assert [g.dtype for g in got] == [w.dtype for w in want]
            for g, w in zip(got, want, strict=True):
                assert_same(g, w)
        elif np.dtype(other) in HALVES and dtype != other:
            kernel = pk.kernel(lambda x, y: (x + y, y * x, x < y, x == y))  # no np.where of these
            check(kernel, x, y, backend=backend)
        else:
            check(kernel, x, y, backend=backend)


def test_numbers_are_weak_beside_float16(backend):
    @pk.kernel
    def kernel(x, n, f):
        return (
            x + n, f * x, x / n, x // f, x % n, n - x, x**2, x * 0.1 + 1, np.maximum(x, f), x < f,
            pk.where(x > n, x, f), np.clip(x, -1, n), x == 1, 2 * x,
        )  # fmt: skip

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n, f in ((3, 0.1), (2049, 1e-8), (-7, 65519.0), (1, 7e4)):
            check(kernel, sample("float16", (40,)), n, f, backend=backend, signs=False)
        for scalar in (
            np.float16(0.1),
            np.float32(0.1),
            np.int8(3),
            np.int32(3),
            np.array(0.1, "f2"),
        ):
            check(pk.kernel(lambda x, s: (x + s, s * x, x < s)), sample("float16"), scalar, backend=backend)  # fmt: skip


def test_numbers_are_weak_beside_bfloat16(backend):
    """Where ml_dtypes makes float32 of it: NEP 50 says what float16 does."""

    @pk.kernel
    def kernel(x, n, f):
        return x + n, f * x, x / n, n - x, x * 0.1 + 1, np.maximum(x, f), pk.where(x > n, x, f)

    x = sample(BFLOAT16, (40,))
    b = BFLOAT16.type
    with np.errstate(all="ignore"):
        for n, f in ((3, 0.1), (257, 1e-8), (-7, 3e38)):
            got = kernel(x, n, f, backend=backend)
            want = (x + b(n), b(f) * x, x / b(n), b(n) - x, x * b(0.1) + b(1))
            for g, w in zip(got, want, strict=False):
                assert_same(g, w)
            assert all(g.dtype == BFLOAT16 for g in got)
        for scalar in (b(2.5), b(-3), b(0), b("inf"), b("nan"), np.array(0.1, BFLOAT16)):
            check(pk.kernel(lambda x, s: (x + s, s * x, x < s, s)), x, scalar, backend=backend)
            if isinstance(scalar, b):
                check(pk.kernel(lambda x, s=(scalar,): (x + s[0], s[0] - x)), x, backend=backend)


# Functions that are no ufuncs


def test_compositions(backend):
    @pk.kernel
    def kernel(x, y, i):
        return (
            np.where(x > y, x, y), np.clip(x, -1, 2), np.round(x), np.round(x, 1), np.fix(x),
            np.nan_to_num(x), np.isposinf(x), np.isneginf(x), np.select([x > 1, y > 1], [x, y]),
            np.full_like(x, 0.1), np.zeros_like(x), np.ldexp(x, i), *np.frexp(x), *np.modf(x),
            np.real(x), np.imag(x), np.piecewise(x, [x > 1], [1, lambda v: v + v]), abs(x), -x,
        )  # fmt: skip

    x, y = sample("float16", (60,), seed=1), sample("float16", (60,), seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(kernel, x, y, np.arange(60, dtype=np.int32) - 30, backend=backend, signs=False)


def test_results_of_small_integers_are_float16(backend):
    """What NumPy computes in float16: functions of bool, int8 and uint8."""

    @pk.kernel
    def kernel(x):
        return np.sqrt(abs(x)), np.exp(x), np.arctan2(x, 2), np.rint(x), np.copysign(x, -1)

    for dtype in ("bool", "int8", "uint8"):
        x = sample(dtype, (50,))
        with np.errstate(all="ignore"):
            for got, want in zip(kernel(x, backend=backend), kernel.__wrapped__(x), strict=True):
                assert got.dtype == want.dtype
                assert_near(got.astype(np.float16), want.astype(np.float16), 1)
            check(pk.kernel(lambda x: np.sqrt(x)), np.abs(x), backend=backend)


# Layouts, shapes, writing


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_layouts_and_shapes(backend, dtype):
    @pk.kernel
    def kernel(a, b, o):
        o[...] = a * b
        return a + b, a[1:, ::-1] - b[:-1], a.T * b.T, a[..., None, :] + b[:, None]

    with np.errstate(all="ignore"):
        for _, a in layouts(sample(dtype, (5, 7), seed=1)):
            for _, b in layouts(sample(dtype, (5, 7), seed=2)):
                check(kernel, a, b, np.zeros((5, 7), dtype), backend=backend)
        for _, o in layouts(np.zeros((5, 7), dtype)):
            check(kernel, a, b, o, backend=backend)
        multiply = pk.kernel(lambda a, b: a * b + a)
        for shapes in (
            ((4, 3), (3,)),
            ((4, 1), (1, 3)),
            ((), (5,)),
            ((3, 1), (1, 0)),
            ((), ()),
            ((1,), (9,)),
        ):
            a, b = (sample(dtype, s, seed=i) for i, s in enumerate(shapes))
            check(multiply, a, b, backend=backend)
        large = sample(dtype, (100_003,))
        check(multiply, large, large[::-1], backend=backend)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_in_place_and_overlap(backend, dtype):
    @pk.kernel
    def kernel(x, y):
        x *= y
        x += 1 if dtype == np.float16 else y
        x[1:] -= y[:-1]
        return x * y

    x, y = (sample(dtype, (50,), seed=i) for i in range(2))
    with np.errstate(all="ignore"):
        check(kernel, x, y, backend=backend)
        add = pk.kernel(lambda a, b: a + b)
        want = x + y
        add(x, y, out=x, backend=backend)
        assert_same(x, want)
        want = x[:-1] + x[1:]
        add(x[:-1], x[1:], out=x[1:], backend=backend)
        assert_same(x[1:], want)
        want = y + y[::-1]
        add(y, y[::-1], out=y[::-1], backend=backend)
        assert_same(y[::-1], want)


def test_ir_names_the_types():
    kernel = pk.kernel(lambda x: x * 2 + x)
    for dtype, text in (("float16", "f16["), (BFLOAT16, "bf16[")):
        kernel(np.ones(3, dtype))
        assert f"ref {text}" in kernel.ir()

"""Cases that kernel compilers got wrong before, on every backend: integers, types, floats, arrays.

A test per case; its number is the one of the project's list of public bug reports. What another file
tests on every backend is not repeated here: fork and pickle, captured globals, threads, traces.
"""

import operator
import sys
import warnings

import numpy as np
import picokernel as pk
import pytest
from oracle import BFLOAT16, assert_same, check, flush_to_zero, layouts

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
HALVES = ["float16", BFLOAT16]
WIDE = ["float32", "float64"]
NAN, INF = np.nan, np.inf


def quiet(kernel, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check(kernel, *args, **options)


def all_pairs(values, dtype):
    values = np.array(values, dtype)
    return np.repeat(values, len(values)), np.tile(values, len(values))


def integers(dtype):
    info = np.iinfo(dtype)
    near = [info.min, info.min + 1, info.max - 1, info.max]
    small = [-513, -512, -100, -9, -8, -5, -1, 0, 1, 3, 4, 7, 8, 100, 511, 512]
    return np.array(near + [i for i in small if info.min <= i <= info.max], dtype)


# I01: floor division and modulo


@pk.kernel
def quotients(a, b):
    q, r = divmod(a, b)
    return a // b, a % b, q, r, q * b + r, np.floor_divide(a, b), np.mod(a, b)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_i01_quotients_floor_and_remainders_follow_the_divisor(backend, dtype):
    a, b = all_pairs(integers(dtype), dtype)
    a, b = a[b != 0], b[b != 0]
    results = quiet(quotients, a, b, backend=backend)
    assert_same(results[4], a)
    for divisor in (1, 2, 3, 8, 64, -1, -4, -5, -64):
        if np.can_cast(np.min_scalar_type(divisor), dtype):
            # A constant, a Python number at run time, a NumPy scalar: each has a path of its own.
            x = integers(dtype)
            quiet(pk.kernel(lambda x, d=(divisor,): (x // d[0], x % d[0])), x, backend=backend)
            for number in (divisor, np.dtype(dtype).type(divisor)):
                quiet(quotients, x, number, backend=backend)
                quiet(quotients, number, x[x != 0], backend=backend)


@pytest.mark.parametrize("dtype", ["float16", *WIDE])
def test_i01_of_floats(backend, dtype):
    a, b = all_pairs([-8, 8, 7.5, -7.5, 0.0, -0.0, 0.1, -0.3, 3, -3, 1e4, INF, -INF, NAN], dtype)
    quiet(pk.kernel(lambda a, b: (a // b, a % b, *divmod(a, b))), a, b, backend=backend)
    for divisor in (3.0, -3.0, 0.1, 4.0, -0.5):
        quiet(pk.kernel(lambda x, d=(divisor,): (x // d[0], x % d[0])), a, backend=backend)
        quiet(pk.kernel(lambda x, d: (x // d, x % d, d // x, d % x)), a, divisor, backend=backend)


# I03: unsigned wrap-around, then modulo


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_i03_hashes_wrap_and_their_modulus_is_unsigned(backend, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    p = [p % 2**bits for p in (1, 2654435761, 805459861)]
    buckets = min(524288, 2 ** (bits - 1) + 5)

    @pk.kernel
    def constants(x):
        h = x[:, 0] * p0 ^ x[:, 1] * p1 ^ x[:, 2] * p2
        return h, h % buckets, h // buckets, h >> 3, x[:, 0] - 2, -h

    @pk.kernel
    def arguments(x, p, n):
        h = x[:, 0] * p[0] ^ x[:, 1] * p[1] ^ x[:, 2] * p[2]
        return h, h % n, h // n, h % p[1], n - h

    p0, p1, p2 = p
    x = np.random.default_rng(0).integers(0, 2**bits, (50, 3), dtype)
    x[0] = [v % 2**bits for v in (901, 77, 4021)]
    x[1] = 0
    a = quiet(constants, x, backend=backend)
    b = quiet(arguments, x, np.array(p, dtype), buckets, backend=backend)
    assert_same(a[:3], b[:3])
    if dtype == "uint32":
        assert a[0][0] == 2187738849 and a[1][0] == 409313 and a[4][1] == 4294967294


# I04: uint64 and Python integers


@pytest.mark.parametrize("dtype", SIGNED)
def test_i04_uint64_never_goes_through_float64(backend, dtype):
    big = [0, 1, 5, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 1721142608025344941]
    u = np.repeat(np.array(big, np.uint64), len(integers(dtype)))
    s = np.tile(integers(dtype), len(big))

    @pk.kernel
    def compare(u, s):
        return u < s, u <= s, u == s, u != s, u > s, u >= s, s < u, s <= u, s == u, s >= u

    quiet(compare, u, s, backend=backend)

    @pk.kernel
    def compute(u, m):
        for k in range(3):
            u = u & ~(np.uint64(1) << np.uint64(k))
        z = pk.where(u >= m, u - np.uint64(2**61 - 1), u)
        return u, z, u + 5000, 5000 + u, u >= u + 5000, u // m, u % m, m % (u | 8)

    quiet(compute, u, 2**61 - 1, backend=backend)
    quiet(compute, u, 2**63 + 11, backend=backend)
    for number in (-1, 2**63, 2**64 - 1):
        for op in (operator.lt, operator.le, operator.eq, operator.gt):
            quiet(pk.kernel(lambda u, n, f=op: (f(u, n), f(n, u))), u, number, backend=backend)


# I05: powers of integers


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_i05_powers_of_integers(backend, dtype):
    x = integers(dtype)
    small = np.resize(np.arange(0, 25, dtype=dtype), x.shape)

    @pk.kernel
    def powers(x, n):
        return x**n, np.power(x, n), 3**n, x**0, x**1, x**2, x**5, x**21

    quiet(powers, x, small, backend=backend)
    with pytest.raises(pk.CompileError, match="negative integer power"):
        pk.kernel(lambda x: x**-2)(x, backend=backend)
    floats = pk.kernel(lambda x: (x**-2.0, x**0.5, x**2.0))
    with np.errstate(all="ignore"):
        for got, want in zip(floats(x, backend=backend), floats.__wrapped__(x), strict=True):
            assert got.dtype == want.dtype
            rtol = 4 * max(np.finfo(want.dtype).eps, 1e-15)
            np.testing.assert_allclose(got, want, rtol=rtol)
    if dtype in SIGNED:  # at run time NumPy raises: kernels give 0, and 1 or -1 for such a base
        base, exponent = all_pairs([-3, -2, -1, 1, 2, 3], dtype)
        base, exponent = base[exponent < 0], exponent[exponent < 0]
        want = np.where(np.abs(base) == 1, np.where(exponent % 2 == 0, 1, base), 0)
        assert_same(powers(base, exponent, backend=backend)[0], want.astype(dtype))


# I06: bool


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED, *HALVES, *WIDE, "complex64"], ids=str)
def test_i06_to_bool_is_not_zero(backend, dtype):
    with np.errstate(all="ignore"):
        values = np.array([256, 512, 0, -1, 2**15, 1], np.int64).astype(dtype)
        if np.dtype(dtype).kind not in "iu":
            values = np.append(values, np.array([-0.0, 0.5, NAN, -INF, 1e-7], dtype))
    if np.dtype(dtype).kind == "c":
        values = np.append(values, np.array([0.5j, -0.0j, complex(0, NAN)], dtype))

    @pk.kernel
    def kernel(x, o):
        o[...] = x
        return x.astype(bool), np.logical_not(x), np.logical_and(x, o), pk.where(o, 1, 2)

    quiet(kernel, values, np.zeros(values.shape, bool), backend=backend)


def test_i06_bools_compute_as_bools(backend):
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])

    @pk.kernel
    def kernel(a, b):
        return (
            a < b, a > b, a <= b, a >= b, a == b, a + b, a * b, ~a, a & b, a | b, a ^ b,
            np.maximum(a, b), np.minimum(a, b), a + 1, a * 2.5, (a > b) + (a < b), ~(a & b) | a,
            pk.where(a, b, ~b), a.astype(np.int8) - b.astype(np.int8), a + np.uint8(255), True + a,
        )  # fmt: skip

    check(kernel, a, b, backend=backend)
    for other in (np.array([255, 256, 0, 1], np.uint16), np.float32([0, NAN, 2, -1])):
        check(pk.kernel(lambda a, x: (a + x, a < x, x * a, x == a)), b, other, backend=backend)
    for function in (lambda a: -a, lambda a: a - a):
        with pytest.raises(pk.CompileError, match="for booleans"):
            pk.kernel(function)(a, backend=backend)


# I07: floats to integers


def saturated(value, dtype):
    """The rule: truncated, saturated, NaN is 0."""
    info = np.iinfo(dtype)
    if np.isnan(value):
        return 0
    if np.isinf(value):
        return info.max if value > 0 else info.min
    return min(max(int(value), info.min), info.max)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
@pytest.mark.parametrize("source", [*HALVES, *WIDE, "complex128"], ids=str)
def test_i07_casts_truncate_and_saturate(backend, source, dtype):
    limit = 3.3e38 if source == BFLOAT16 else float(np.finfo(source).max)
    info = np.iinfo(dtype)
    numbers = [
        0.0, -0.0, 0.9, -0.9, 3.9, -3.9, 100.5, 127.5, 128.0, -128.9, -129.0, 255.9, 300.0, 510.0,
        -200.0, 32767.5, 65519.0, INF, -INF, NAN, limit, -limit, float(info.max), float(info.min),
        np.nextafter(float(info.max), 0), np.nextafter(float(info.min), 0), 1e10, -1e10,
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        x = np.array(numbers).astype(source)
    exact = x.astype(np.float64) if x.dtype.kind != "c" else x.real
    want = np.array([saturated(v, dtype) for v in exact], dtype)

    @pk.kernel
    def kernel(x, o):
        o[...] = x
        return x.astype(dtype)

    o = np.zeros(x.shape, dtype)
    assert_same(kernel(x, o, backend=backend), want)
    assert_same(o, want)
    if source == "float64":
        # The same rule for constants, folded in parts or whole, and for numbers.
        one = np.zeros(1, dtype)
        kernels = [
            pk.kernel(lambda o, c=None: np.full_like(o, c[0])),
            pk.kernel(lambda o, c=None: np.full_like(o, c[0], np.float64).astype(o.dtype)),
            pk.kernel(lambda o, v: np.full_like(o, v)),
        ]
        for value, expected in zip(numbers, want, strict=True):
            for kernel, given in zip(kernels, ((np.float64(value),),) * 2 + (value,), strict=True):
                got = kernel(one, given, backend=backend)
                assert_same(got, np.array([expected], dtype))
    if source == "float64" and dtype != "uint64":
        # A constant of Python is refused where it does not fit, as by NumPy's o[...] = 1e30.
        with pytest.raises(pk.CompileError, match="does not fit"):
            pk.kernel(lambda o: o.__setitem__(..., 1e30))(np.zeros(1, dtype), backend=backend)


# T01: Python numbers are weak, NumPy's scalars and 0-d arrays are strong

NUMBERS = [
    True, 2, -3, 2.5, 1e-8, 2.5j, np.int8(3), np.uint8(200), np.int64(3), np.float16(0.1),
    np.float32(0.1), np.float64(0.1), np.complex64(1j), np.array(0.5, np.float32), np.array(7, np.int16),
]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: f"{type(n).__name__}-{n}")
def test_t01_numbers_take_the_precision_of_arrays(backend, number):
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64"):
        x = np.arange(1, 5).astype(dtype)

        def function(x, n):
            return x + n, n + x, x * n, n * x, x == n, pk.where(x == x, n, x)

        try:
            with np.errstate(all="ignore"):
                function(x, number)
        except OverflowError:
            with pytest.raises((pk.LaunchError, pk.CompileError), match=str(number)):
                pk.kernel(function)(x, number, backend=backend)
            with pytest.raises(pk.CompileError, match=str(number)):
                pk.kernel(lambda x, f=function: f(x, number))(x, backend=backend)
            continue
        ulps = 4 if np.result_type(dtype, number).kind == "c" else 0
        quiet(pk.kernel(function), x, number, backend=backend, ulps=ulps)
        quiet(pk.kernel(lambda x, f=function: f(x, number)), x, backend=backend, ulps=ulps)


def test_t01_in_functions_and_chains(backend):
    @pk.kernel
    def kernel(f, h, i, z, n):
        return (
            np.floor(f * 1.0 - 1e-9), (1 + z * f) / 3, 1 + h * 3, h * 0.1 + n, i / 2, i * 2.0, f**2,
            np.maximum(f, 0), np.clip(h, -1, n), np.hypot(f, 1), pk.where(f > 0.1, f, 0.1),
            f * np.float64(2.5), i + n.astype(np.int8), (n + 1) * h, np.arctan2(1, h),
        )  # fmt: skip

    f, h = np.array([-2, 0.1, 3], np.float32), np.array([-2, 0.1, 3], np.float16)
    i, z = np.array([1, 2, -3], np.int8), np.asarray(0.5, np.float32)
    arrays = f, h, i, z
    got = kernel(*arrays, np.int8(5), backend=backend)
    for g, w in zip(got, kernel.__wrapped__(*arrays, np.int8(5)), strict=True):
        assert g.dtype == w.dtype
        eps = np.finfo(np.float16 if w.dtype == np.float16 else np.float32).eps
        np.testing.assert_allclose(g, w, rtol=4 * eps)
    with pytest.raises((pk.LaunchError, pk.CompileError), match="300"):
        pk.kernel(lambda x: x + 300)(np.ones(3, np.uint8), backend=backend)


# T03: halves are rounded after every operation


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_t03_halves_round_after_each_operation(backend, dtype):
    number = np.dtype(dtype).type

    @pk.kernel
    def kernel(x, y):
        back = (x * y) / y  # an overflow in between stays one
        total = ((x + y) + y) + y  # as does a lost bit
        return (
            back,
            total,
            x * y + y,
            x * y - x * y,
            (x + 1) - x,
            (x - y) ** 2,
            x / y * y,
            x * x * x,
        )

    x, y = all_pairs([30000, 200, 2048, 1, 0.1, 3, -7.3, 65504, 257, 1e-4, 6e-8], dtype)
    if dtype == "float16":
        quiet(kernel, x, y, backend=backend)
        h = np.array([30000], dtype)
        with np.errstate(all="ignore"):
            assert np.isinf(kernel(h, number(200), backend=backend)[0])
            assert kernel(np.array([2048], dtype), number(1), backend=backend)[1] == 2048
    else:
        # ml_dtypes makes float32 of bfloat16 and a Python number: here numbers are weak.
        want = kernel.__wrapped__
        with np.errstate(all="ignore"):
            got = kernel(x, y, backend=backend)
            for i, w in enumerate(want(x, y)):
                if i not in (4, 5):
                    assert_same(got[i], w)
            assert_same(got[4], (x + number(1)) - x)
            assert_same(got[5], (x - y) * (x - y))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_t03_conversions_to_halves_round_once(backend, dtype):
    kernel = pk.kernel(lambda x: x.astype(dtype))
    near = [65504, 65519, 65519.99, 65520, 65536, 1e6, 2**-24, 2**-25, 2**-25 * 1.0001, 6.1e-5,
            1e-8, 3.3895e38, 3.4e38, NAN, INF, -INF, 0.0, -0.0]  # fmt: skip
    ties = [1 + i * 2**-12 for i in range(32)] + [1 + i * 2**-9 for i in range(32)]
    # A detour by float32 would round these to a tie first, and then the wrong way.
    double = [1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, 2**-25 + 2**-60, 65520 - 2**-20]
    values = np.array([*near, *ties, *double, *(-v for v in (*near, *ties, *double))])
    for source in ("float64", "float32"):
        with np.errstate(all="ignore"):
            x = values.astype(source)
            # ml_dtypes rounds float64 by way of float32, and so do kernels.
            quiet(kernel, x, backend=backend)
    for source in ("int32", "int64", "uint16", "int8", "bool"):
        x = np.array([0, 1, 2049, 2051, 65503, 65519, 65520, 257, 259]).astype(source)
        quiet(kernel, x, backend=backend)


def test_t03_halves_beside_other_types(backend):
    half, single = np.array([1.0, 2.0, NAN], np.float16), np.float32([1.0000010, 2, 1])

    @pk.kernel
    def kernel(h, f, n):
        return h < f, h == f, h + f, h * n, h + 100, h.astype(np.float32) * h, np.maximum(h, n)

    check(kernel, half, single, np.float16(1.5), backend=backend)
    check(kernel, half, single, np.array(1.5, np.float16), backend=backend)
    check(kernel, half, single, 2, backend=backend)
    check(kernel, half, np.arange(3, dtype=np.int16), 0.1, backend=backend)
    check(kernel, half, np.arange(3, dtype=np.int8), 0.1, backend=backend)


# F01: NaN


@pytest.mark.parametrize("dtype", [*HALVES, *WIDE], ids=str)
def test_f01_nan_in_minimum_maximum_and_comparisons(backend, dtype):
    x, y = all_pairs([NAN, 1, -2, INF, -INF, 0.5], dtype)
    x, y = np.append(x, np.array([-NAN], dtype)), np.append(y, np.array([3], dtype))
    number = np.dtype(dtype).type

    @pk.kernel
    def kernel(x, y):
        return (
            np.maximum(x, y), np.minimum(x, y), np.fmax(x, y), np.fmin(x, y),
            pk.where(x > y, x, y), pk.where(x, x, y), ~(x > y), x <= y, x != x, x == y, x != y,
            ~(x < y) & ~(x >= y), np.maximum(np.minimum(x, y), y),
        )  # fmt: skip

    quiet(kernel, x, y, backend=backend)
    quiet(kernel, x, number(NAN), backend=backend)
    quiet(kernel, number(NAN), y, backend=backend)

    @pk.kernel
    def constants(x):
        return (
            np.maximum(x, NAN), np.minimum(NAN, x), np.fmax(x, NAN), np.fmin(NAN, x), x < NAN,
            np.maximum(x, 0), np.minimum(0, x), np.fmax(0, x), pk.where(x > NAN, 1, 2), x != NAN,
        )  # fmt: skip

    if dtype != BFLOAT16:  # NumPy makes float32 of it in clip, and beside a Python number
        quiet(constants, x, backend=backend)
        quiet(pk.kernel(lambda x, y: (np.clip(x, y, y), x.clip(y))), x, y, backend=backend)
    with pytest.raises(pk.CompileError, match="truth"):
        pk.kernel(lambda x, y: max(x, y))(x, y, backend=backend)


# F02: isnan is never folded away


@pytest.mark.parametrize("dtype", [*HALVES, *WIDE, "complex64", "complex128"], ids=str)
def test_f02_isnan_stays(backend, dtype):
    @pk.kernel
    def kernel(x):
        d = x - x
        root = d / d
        return (
            np.isnan(x), x != x, ~(x == x), np.isnan(d), np.isnan(root), np.isnan(x * 2),
            np.isinf(x), np.isfinite(x), np.isnan(x * 0), pk.where(np.isnan(x), 0, 1),
            np.isnan(abs(x)), np.isinf(x) | np.isnan(x), np.isnan(x) & (x == x),
        )  # fmt: skip

    values = [2.0, NAN, 4.0, INF, -INF, 0.0, -NAN]
    if np.dtype(dtype).kind == "c":
        values = [complex(a, b) for a in values for b in values]
    x = np.array(values, dtype)
    if (
        dtype == BFLOAT16
    ):  # ml_dtypes makes float32 of it and a Python number: the values are the same
        with np.errstate(all="ignore"):
            assert_same(kernel(x, backend=backend), kernel.__wrapped__(x))
    else:
        quiet(kernel, x, backend=backend)


# F04: subnormals


@pk.kernel
def subnormals(x, y):
    return x / 2, x * 0.5, x + y, x - y, y * 2, x * y, -y, abs(y), y > 0, y == 0, np.sqrt(y), y + 0


@pytest.mark.parametrize("dtype", ["float16", *WIDE])
def test_f04_subnormals_are_numbers(backend, dtype):
    tiny, least = np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal
    x = np.array([tiny, -tiny, tiny * 3, least, -least, least * 5, 0, 1], dtype)
    y = np.array([least, least * 7, -least, least, least * 3, tiny, -0.0, least], dtype)
    quiet(subnormals, x, y, backend=backend)
    quiet(pk.kernel(lambda x: (x.astype(np.float32), x.astype(np.float16), x.astype(np.float64) * 2)),
          y, backend=backend)  # fmt: skip
    quiet(pk.kernel(lambda x: (x * least, x + tiny / 2, x > least)), x, backend=backend)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's way to the control register")
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("n", [8, 300_000])  # one thread, several
def test_f04_flush_to_zero_set_by_another_library(backend, dtype, n):
    tiny, least = np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal
    x = np.resize(np.array([tiny, -tiny, tiny * 3, least], dtype), n)
    y = np.resize(np.array([least, least * 7, -least, tiny / 4], dtype), n)
    with np.errstate(all="ignore"):
        want = subnormals.__wrapped__(x, y)
    with flush_to_zero():  # constants are folded when a kernel is compiled
        folded = pk.kernel(lambda x: (x * 0 + least, x + tiny / 4, pk.where(x == x, least * 4, x)))
        got = folded(x, backend=backend)
    assert_same(got, folded.__wrapped__(x))
    for profiled in (False, True):
        with flush_to_zero():
            flushes = (y[:2] * y.dtype.type(1.5)).tolist() == [0, 0]
            with np.errstate(all="ignore"):
                if profiled:
                    with pk.profile():
                        got = subnormals(x, y, backend=backend)
                else:
                    got = subnormals(x, y, backend=backend)
            still = (y[:2] * y.dtype.type(1.5)).tolist() == [0, 0]
        assert (
            flushes and still
        )  # NumPy itself does flush then, and the caller's state is the caller's
        assert_same(got, want)


def test_f04_exp2_near_the_end(backend):
    @pk.kernel
    def kernel(x):
        return np.exp2(x)

    x = np.float32([-126, -127, -140, -148, -149])
    np.testing.assert_allclose(kernel(x, backend=backend), np.exp2(x), atol=1.5e-45)
    assert (kernel(x, backend=backend) > 0).all()
    assert kernel(np.float32([-152]), backend=backend) == 0


# A01: any layout


@pk.kernel
def affine(v):
    return v * 2 + 1


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
def test_a01_reversed_strided_and_broadcast_inputs(backend, dtype):
    x = np.arange(24).reshape(4, 6).astype(dtype)
    views = [
        x[::-1, ::-2], x.T[1:3, ::2], x[::-1], x[:, ::-1], x[::2, 1:5:3], np.broadcast_to(x[:, :1], (4, 2)),
        np.broadcast_to(x[0], (3, 6)), x[None, :, ::-1], np.asfortranarray(x)[1:], x[2:3], x[:, 2:3],
        x.reshape(2, 2, 6)[:, ::-1, ::2].transpose(2, 0, 1), x[1], x[::-1, 2], np.diagonal(x),
        np.lib.stride_tricks.sliding_window_view(x[0], 3),
    ]  # fmt: skip
    for view in views:
        got = check(affine, view, backend=backend)
        assert_same(got, affine(view.copy(), backend=backend))
        check(pk.kernel(lambda v, w: v + w), view, view[::-1], backend=backend)


def test_a01_the_same_views_inside(backend):
    @pk.kernel
    def kernel(x):
        y = x * 1
        return (
            x[::-1, ::-2] * 2 + 1, x.T[1:3, ::2] + 1, x[:, :1] + x[::-1], x[1:, ::-1] - x[:-1],
            y[::-1, ::-2] * 2, y.T[::-1][:, 1:3] + 0, y[-1] - y[0], y[..., None] * y[0, ::2],
            x[::-1][::-1] + y, x[1:3, 2:5][::-1, ::2] * 3, x[None, ..., -1] + 1,
        )  # fmt: skip

    for _, x in layouts(np.arange(24, dtype=np.float32).reshape(4, 6)):
        check(kernel, x, backend=backend)


@pytest.mark.parametrize("dtype", ["int16", "float32", "complex64"])
def test_a01_outputs(backend, dtype):
    x = np.arange(24).reshape(4, 6).astype(dtype)
    for pick in (np.s_[::-1, ::-1], np.s_[::2, 1::2], np.s_[1:3, ::-2], np.s_[:, 3:4], np.s_[2]):
        base = np.zeros((4, 6), dtype)
        affine(x[pick], out=base[pick], backend=backend)
        want = np.zeros((4, 6), dtype)
        want[pick] = x[pick] * 2 + 1
        assert_same(base, want)
    turned = np.zeros((6, 4), dtype)
    affine(x, out=turned.T, backend=backend)
    assert_same(turned, (x * 2 + 1).T)


# A03: what may be written


def test_a03_read_only_and_broadcast_outputs_are_refused(backend):
    @pk.kernel
    def add(r, o):
        o[...] = r + 1

    @pk.kernel
    def result(r):
        return r + 1

    r = np.arange(4.0)
    r.flags.writeable = False
    broadcast = np.lib.stride_tricks.as_strided(np.zeros(4), (4,), (0,))
    inner = np.lib.stride_tricks.as_strided(np.zeros(8), (3, 2), (8, 8))
    for bad, reason in ((r, "read-only"), (np.broadcast_to(np.ones(1), (4,)), "."),
                        (broadcast, "overlapping elements")):  # fmt: skip
        before = bad.copy()
        with pytest.raises(pk.LaunchError, match=rf"argument 2 'o'(.|\n)*{reason}"):
            add(r, bad, backend=backend)
        with pytest.raises(pk.LaunchError, match=rf"kernel result: out (.|\n)*{reason}"):
            result(r, out=bad, backend=backend)
        with pytest.raises(pk.LaunchError, match=reason):
            pk.kernel(lambda x: x.__iadd__(1))(bad, backend=backend)
        assert_same(bad, before)
    with pytest.raises(pk.LaunchError, match="overlapping elements"):
        add(np.zeros((3, 2)), inner, backend=backend)
    assert check(result, r, backend=backend).tolist() == [1, 2, 3, 4]
    assert r.tolist() == [0, 1, 2, 3]


def test_a03_out_is_never_broadcast(backend):
    add = pk.kernel(lambda x, y: x + y)
    for shape in ((3, 1), (4,), (1, 3, 4), (3, 5), ()):
        o = np.full(shape, 7.0)
        with pytest.raises(pk.LaunchError, match=r"out has shape(.|\n)*never broadcast"):
            add(np.ones((3, 1)), np.ones(4), out=o, backend=backend)
        assert (o == 7).all()
    o = np.empty((3, 4))
    assert add(np.ones((3, 1)), np.ones(4), out=o, backend=backend) is o and (o == 2).all()

    @pk.kernel
    def store(x, o):  # a store does broadcast its value
        o[...] = x

    check(store, np.ones(4), np.zeros((3, 4)), backend=backend)
    with pytest.raises(pk.LaunchError, match="broadcast"):
        store(np.ones((3, 4)), np.zeros((3, 1)), backend=backend)


CAPTURED = np.zeros(3)


def test_a03_captured_arrays_are_read_only(backend):
    def store(x):
        CAPTURED[...] = x

    def in_place(x):
        t = CAPTURED
        t += x

    def by_out(x):
        return np.add(x, 1, out=CAPTURED)

    for function in (store, in_place, by_out):
        with pytest.raises(pk.CompileError, match="from outside is written"):
            pk.kernel(function)(np.ones(3), backend=backend)
    assert not CAPTURED.any()


# A05: nothing, and no dimensions


@pytest.mark.parametrize("dtype", ["bool", "int32", "float16", "float64", "complex64"])
def test_a05_zero_size(backend, dtype):
    @pk.kernel
    def kernel(x, o):
        o[...] = x
        o += x
        return x * 2 + x, x[..., ::-1], x == x

    for shape in ((0,), (3, 0, 2), (0, 0), (1, 0), (0, 5)):
        x = np.zeros(shape, dtype)
        check(kernel, x, x.copy(), backend=backend)
        check(kernel, x[::-1], x.copy(), backend=backend)
    add = pk.kernel(lambda x, y: x + y)
    for a, b in (((3, 1), (1, 0)), ((0,), (1,)), ((0,), ()), ((2, 1), (0,)), ((5, 0), (4, 1, 1))):
        got = check(add, np.ones(a, dtype), np.ones(b, dtype), backend=backend)
        o = np.empty_like(got)
        assert add(np.ones(a, dtype), np.ones(b, dtype), out=o, backend=backend) is o
    with pytest.raises(pk.LaunchError, match="broadcast"):
        add(np.ones(0, dtype), np.ones(2, dtype), backend=backend)
    with pk.profile() as profile:  # nothing to do, and still a call
        add(np.ones(0, dtype), np.ones(1, dtype), backend=backend)
    assert sum(e.category == "call" for e in profile.events) == 1
    # A slice of a full array that is empty at run time.
    ends = pk.kernel(lambda x: (x[3:] + x[:-3], x[1:-1] * 2))
    for n in (2, 3, 4):
        if n > 2:
            check(ends, np.ones(n, dtype), backend=backend)


@pytest.mark.parametrize("dtype", ["bool", "int32", "float16", "float64", "complex64"])
def test_a05_zero_dimensions(backend, dtype):
    s = np.array(3, dtype)
    o = np.zeros((), dtype)

    @pk.kernel
    def kernel(s, o):
        o[...] = s + s
        return s * s, o + s, pk.where(s == o, s, o)

    got = check(kernel, s, o, backend=backend)
    assert all(np.shape(g) == () for g in got)
    add = pk.kernel(lambda x, y: x + y)
    assert add(s, s, out=o, backend=backend) is o and o == s + s
    assert check(add, s, np.ones(1, dtype), backend=backend).shape == (1,)
    assert check(add, s, np.ones((1, 1, 2), dtype), backend=backend).shape == (1, 1, 2)
    check(add, s, np.broadcast_to(s, ()), backend=backend)

"""complex64 and complex128 on every backend, against NumPy."""

import warnings

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same, check, copied, layouts, sample

COMPLEX = ["complex64", "complex128"]
NAN, INF = np.nan, np.inf


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def grid(parts, dtype):
    return np.array([complex(a, b) for a in parts for b in parts], dtype)


def normal(dtype, shape=(300,), seed=0):
    """Numbers of ordinary size: products neither overflow nor vanish."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 3 + 1j * rng.standard_normal(shape) * 3).astype(dtype)


AWKWARD = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.75, 1e3, 1e-30, INF, -INF, NAN]


def pairs(dtype):
    z = np.concatenate([grid([0.0, -0.0, 1.0, -2.5, INF, NAN], dtype), normal(dtype, 50)])
    return np.repeat(z, len(z)), np.tile(z, len(z))


def assert_near(got, want, size, ulps=4):
    """Each part within `ulps` eps of `size`, the magnitude of the terms that made it, or of itself where
    that is infinite; special values are those of NumPy."""
    assert got.dtype == want.dtype and got.shape == want.shape
    eps = ulps * np.finfo(want.dtype).eps
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        finite = np.isfinite(w)
        np.testing.assert_array_equal(np.isnan(g), np.isnan(w))
        np.testing.assert_array_equal(g[~finite], w[~finite])
        bound = eps * np.where(np.isfinite(size), size, np.abs(w))
        wrong = ~(np.abs(g - w)[finite] <= bound[finite])
        assert not wrong.any(), f"{got[finite][wrong][:3]} instead of {want[finite][wrong][:3]}"


def near(kernel, *args, size, backend, ulps=4):
    got, want = kernel(*args, backend=backend), kernel.__wrapped__(*copied(args))
    got, want = (x if isinstance(x, tuple) else (x,) for x in (got, want))
    for g, w in zip(got, want, strict=True):
        assert_near(g, w, size, ulps)


# Operations


@pytest.mark.parametrize("dtype", COMPLEX)
def test_what_is_exact(backend, dtype):
    @pk.kernel
    def two(x, y):
        return (
            x + y, x - y, x == y, x != y, np.logical_and(x, y), np.logical_or(x, y),
            np.logical_xor(x, y), pk.where(x == y, x, y), pk.where(np.isnan(x), y, x),
        )  # fmt: skip

    check(two, *pairs(dtype), backend=backend)

    @pk.kernel
    def one(z):
        return (
            -z, +z, np.conj(z), z.conj(), z.conjugate(), z.real, z.imag, np.real(z), np.imag(z),
            np.isnan(z), np.isinf(z), np.isfinite(z), np.logical_not(z), z.astype(bool), z.copy(),
            np.zeros_like(z), np.ones_like(z), np.full_like(z, 2 - 3j), np.positive(z), z**1,
        )  # fmt: skip

    check(one, grid(AWKWARD, dtype), backend=backend, signs=False)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_products_and_quotients(backend, dtype):
    """NumPy fuses some on some processors: within 4 eps of |x||y|."""
    x, y = pairs(dtype)
    finite = np.isfinite(x) & np.isfinite(y)
    multiply, divide = pk.kernel(lambda x, y: x * y), pk.kernel(lambda x, y: x / y)
    near(multiply, x[finite], y[finite], size=(abs(x) * abs(y))[finite], backend=backend)
    ordinary = finite & (y != 0)
    near(divide, x[ordinary], y[ordinary], size=(abs(x) / abs(y))[ordinary], backend=backend)
    # Which parts are infinite or NaN is in the formula.
    got, want = multiply(x, y, backend=backend), x * y
    assert_same(np.isfinite(got), np.isfinite(want))
    got, want = divide(x, y, backend=backend), x / y
    assert_same(np.isnan(got), np.isnan(want))
    assert_same(divide(x[finite & (y == 0)], y[finite & (y == 0)], backend=backend),
                want[finite & (y == 0)])  # fmt: skip

    z = normal(dtype)
    one = pk.kernel(lambda z: (z * z, np.square(z), z**2))
    near(one, z, size=abs(z) ** 2, backend=backend)
    near(pk.kernel(lambda z: (1 / z, np.reciprocal(z), z**-1)), z, size=1 / abs(z), backend=backend)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_large_and_small_quotients(backend, dtype):
    """Dividing by the larger part first neither overflows nor vanishes."""
    scale = 1e30 if dtype == "complex64" else 1e300
    x = normal(dtype) * np.dtype(dtype).type(scale)
    divide = pk.kernel(lambda x, y: x / y)
    near(divide, x, x[::-1], size=abs(x / x[::-1]), backend=backend)
    x = normal(dtype) / np.dtype(dtype).type(scale)
    near(divide, x, x[::-1], size=abs(x / x[::-1]), backend=backend)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ["abs", "angle", "sqrt", "log", "exp"])
def test_functions(backend, name, dtype):
    function = getattr(np, name)
    kernel = pk.kernel(lambda z: function(z))
    z = np.concatenate([grid(AWKWARD, dtype), normal(dtype)])
    if backend == "mlx" and dtype == "complex128" and name == "exp":
        with pytest.raises(pk.CompileError, match="exp of float64 is computed in float32 by MLX"):
            kernel(z, backend=backend)
        return
    want = function(z)
    size = np.maximum(np.abs(want), np.abs(want.real) if want.dtype.kind == "c" else 0)
    ulps = 40 if backend == "mlx" and name == "exp" else 5
    near(kernel, z, size=size, ulps=ulps, backend=backend)


def test_branch_cuts_keep_their_signs(backend):
    kernel = pk.kernel(lambda z: (np.sqrt(z), np.log(z), np.angle(z), abs(z)))
    z = np.array(
        [-1 + 0j, complex(-1, -0.0), complex(-INF, 0), complex(-4, -0.0), complex(0, -0.0)]
    )
    for got, want in zip(kernel(z, backend=backend), kernel.__wrapped__(z), strict=True):
        for part in ("real", "imag"):
            g, w = getattr(got, part), getattr(want, part)
            np.testing.assert_allclose(g, w, rtol=1e-15)
            np.testing.assert_array_equal(np.signbit(g), np.signbit(w))


def test_angle_in_degrees(backend):
    z = normal("complex128")
    kernel = pk.kernel(lambda z: np.angle(z, deg=True))
    np.testing.assert_allclose(kernel(z, backend=backend), np.angle(z, deg=True), rtol=1e-15)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, -1, -2, -3, 0.5, 2.5, 1j, 2 - 1j, 99])
def test_powers(backend, exponent, dtype):
    z = normal(dtype) / 3
    constant = pk.kernel(lambda z, e=(exponent,): z ** e[0])
    number = pk.kernel(lambda z, e: z**e)
    by_exp = exponent in (2.5, 1j, 2 - 1j)
    if backend == "mlx" and dtype == "complex128" and by_exp:
        with pytest.raises(pk.CompileError, match="exp of float64"):
            constant(z, backend=backend)
        return
    size = np.abs(z**exponent) * (1 + abs(exponent) * (1 + np.abs(np.log(z))))
    near(constant, z, size=size, ulps=8, backend=backend)
    near(number, z, exponent, size=size, ulps=8, backend=backend)


def test_powers_of_arrays(backend):
    x, y = normal("complex64", seed=1), normal("complex64", seed=2) / 3
    size = np.abs(x**y) * (1 + np.abs(y) * np.abs(np.log(x)))
    near(pk.kernel(lambda x, y: x**y), x, y, size=size, ulps=8, backend=backend)
    z = np.array([0, 0, 0, 1 + 1j], np.complex64)
    kernel = pk.kernel(lambda x, y: np.power(x, y))
    assert_same(kernel(z, np.array([1, 2 + 1j, 0, 0], np.complex64), backend=backend),
                np.array([0, 0, 1, 1], np.complex64))  # fmt: skip


# Operands of other types


NUMBERS = [
    2j, 1.5 - 0.5j, complex(-0.0, 1), 2, 2.5, True, np.complex64(1 + 2j), np.complex128(1 - 2j),
    np.float32(0.5), np.float64(0.5), np.int8(3), np.int64(3), np.float16(1.5), np.bool_(True),
    np.array(1j, np.complex64), np.array(0.5, np.float32),
]  # fmt: skip
REALS = ["bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: f"{type(n).__name__}-{n}")
def test_numbers(backend, number):
    @pk.kernel
    def kernel(x, n):
        return x + n, n + x, x - n, n - x, x == n, n != x, pk.where(x == x, n, x)

    @pk.kernel
    def products(x, n):
        return x * n, n * x

    for dtype in [*COMPLEX, "float32", "float64", "int32", "bool"]:
        if dtype == "bool" and not isinstance(number, (complex, np.complexfloating, np.ndarray)):
            continue
        x = normal("complex128").astype(dtype) if dtype != "bool" else np.array([True, False])
        if np.result_type(x, number).kind != "c":
            continue
        check(kernel, x, number, backend=backend)
        near(products, x, number, size=np.abs(x) * abs(number), backend=backend)
        if not isinstance(number, np.ndarray):
            check(pk.kernel(lambda x, n=(number,): (x + n[0], n[0] - x)), x, backend=backend)


def test_new_complex_values_compile_nothing():
    kernel = pk.kernel(lambda x, n: x * n)
    x = normal("complex64")
    kernel(x, 1j)
    with pk.profile() as profile:
        for n in (2j, -1 + 0.5j, complex("nan")):
            near(kernel, x, n, size=np.abs(x) * abs(n), backend=None)
    assert not [e for e in profile.events if e.category == "compile"]


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("other", [*REALS, *COMPLEX])
def test_other_arrays(backend, dtype, other):
    @pk.kernel
    def kernel(z, x):
        return z + x, x - z, z == x, x != z, pk.where(x == 1, z, x), pk.where(x == 0, x, z)

    z, x = normal(dtype, (40,)), sample(other, (40,))
    check(kernel, z, x, backend=backend)
    if np.dtype(other).kind in "biu":
        near(
            pk.kernel(lambda z, x: (z * x, x * z)),
            z,
            x,
            size=np.abs(z) * np.abs(x.astype("f8")),
            backend=backend,
        )


def test_weak_complex_numbers_take_the_precision_of_arrays():
    for dtype in (*REALS, *COMPLEX):
        x = np.ones(3, dtype)
        kernel = pk.kernel(lambda x, n: (x + n, x * 1j, pk.where(x == 1, n, x)))
        for got, want in zip(kernel(x, 1j), kernel.__wrapped__(x, 1j), strict=True):
            assert got.dtype == want.dtype, dtype


# Casts


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("other", [*REALS, *COMPLEX])
def test_casts(backend, dtype, other):
    to, back = pk.kernel(lambda z: z.astype(other)), pk.kernel(lambda x: x.astype(dtype))
    z = grid(AWKWARD, dtype)
    if np.dtype(other).kind in "iu":
        z = np.array([0, 1 + 5j, 2.9 - 1j, 100.5j, 99.9 + 2j], dtype)
    check(to, z, backend=backend)
    check(back, sample(other, (60,)), backend=backend)


def test_stores_cast_and_out_does_not_lose_parts(backend):
    @pk.kernel
    def kernel(z, x, o, f, i):
        o[...] = x
        f[...] = z  # the real part, as NumPy's assignment
        i[...] = z
        o += x
        return o * 1

    z, x = np.array([1 + 2j, 3.5 - 1j, -4 + 0j]), np.float32([1, 2, 3])
    check(kernel, z, x, np.zeros(3, np.complex64), np.zeros(3, np.float32), np.zeros(3, np.int16),
          backend=backend)  # fmt: skip
    add = pk.kernel(lambda x, y: x + y)
    o = np.zeros(3, np.complex64)
    assert add(z, x, out=o, backend=backend) is o
    assert_same(o, (z + x).astype(np.complex64))
    o = np.zeros(3, np.complex128)
    assert_same(add(x, x, out=o, backend=backend), (x + x).astype(np.complex128))
    with pytest.raises(pk.LaunchError, match="complex128 to float64"):
        add(z, z, out=np.zeros(3), backend=backend)
    with pytest.raises(pk.CompileError, match="out= of type float64"):
        pk.kernel(lambda z, o: np.add(z, z, out=o))(z, np.zeros(3), backend=backend)


# Parts as views


@pytest.mark.parametrize("dtype", COMPLEX)
def test_parts_are_views(backend, dtype):
    @pk.kernel
    def writes(z, x):
        z.real[...] = x
        z.imag += 1
        z.imag[1:] *= 2
        z.real[::-2] = -x[::-2]
        return z.real + z.imag, z * 1

    part = np.dtype(dtype).type().real.dtype
    args = normal(dtype, (9,)), sample("int8", (9,)).astype(part)
    if backend == "mlx":  # which writes through one slice only
        with pytest.raises(pk.CompileError, match="MLX stores through slices only"):
            writes(*args, backend=backend)
    else:
        check(writes, *args, backend=backend)

    @pk.kernel
    def assigns(z, x):
        z.real = x
        z.imag = z.real * 2
        z.real, z.imag = z.imag, z.real - 1
        return z.imag - 1

    check(assigns, normal(dtype, (9,)), np.arange(9).astype(part), backend=backend)

    @pk.kernel
    def of_a_result(x):
        z = x + 0
        z.imag[...] = z.real
        z.real[0] = 7
        w = z[1:]
        w.imag -= 1  # z sees it
        return z, w.real, z.real.T, z.imag[::-1]

    if backend != "mlx":
        check(of_a_result, normal(dtype, (9,)), backend=backend)

    @pk.kernel
    def of_two_dimensions(z, o):
        o.real[:, ::-1] = z.T.imag
        o.imag[...] = z.T.real[:, :1]
        return z[::-1].imag + 1, z.real[1:, None] * z.imag[:-1]

    if backend != "mlx":
        check(of_two_dimensions, normal(dtype, (3, 5)), np.zeros((5, 3), dtype), backend=backend)


def test_parts_of_computed_arrays_are_views(backend):
    """Values until one of them is written: then the whole and both parts share memory."""

    @pk.kernel
    def through_parts(x):
        z = x * 1j + 1
        real, imag = z.real, z.imag
        real[...] = imag + 1
        z.imag[...] = real * 2
        return z, real, imag, z.real

    @pk.kernel
    def through_the_whole(x):
        z = x + 2j
        real, imag = z.real, z.imag
        before = real + imag
        z += 1 - 1j
        z[...] = z * 2
        return before, real, imag, z

    @pk.kernel
    def read_only(z, w):
        p = z * w
        return p.real - p.imag, p.real, p

    x = np.arange(5.0)
    check(through_parts, x, backend=backend)
    check(through_the_whole, x, backend=backend)
    check(read_only, x + 1j, x - 2j, backend=backend)
    # Reading the parts keeps a computed array out of memory.
    assert "scratch" not in pk.kernel(lambda z, w: (z * w).real + 1).source("cpu", x + 1j, x + 1j)


def test_parts_of_real_arrays(backend):
    @pk.kernel
    def kernel(x):
        y = x.imag + x.real
        x.real[...] = x * 2
        return y, x.conj(), np.real(x), np.imag(x)

    for dtype in ("float32", "int64", "float16"):
        check(kernel, np.arange(5).astype(dtype), backend=backend)
    with pytest.raises(pk.CompileError, match="no imaginary part to write"):

        @pk.kernel
        def write(x):
            x.imag = 1

        write(np.ones(3))


def test_parts_as_out(backend):
    @pk.kernel
    def kernel(z, x):
        np.add(x, 1, out=z.real)
        np.multiply(x, z.real, out=z.imag)

    check(kernel, normal("complex64", (9,)), np.arange(9, dtype=np.float32), backend=backend)


# Layouts, shapes, writing


@pytest.mark.parametrize("dtype", COMPLEX)
def test_layouts_and_shapes(backend, dtype):
    @pk.kernel
    def kernel(a, b, o):
        o[...] = a - b
        return a + b, a[1:, ::-1] - b[:-1], a.T + 1j, a[..., None, :] + b[:, None], a[-1] + b[0, 2]

    a, b = (normal(dtype, (5, 7), seed=i) for i in range(2))
    for _, left in layouts(a):
        for _, right in layouts(b):
            check(kernel, left, right, np.zeros((5, 7), dtype), backend=backend)
    for _, o in layouts(np.zeros((5, 7), dtype)):
        check(kernel, a, b, o, backend=backend)
    add = pk.kernel(lambda a, b: a + b)
    for shapes in (
        ((4, 3), (3,)), ((4, 1), (1, 3)), ((), (5,)), ((2, 1, 3), (4, 1)), ((3, 1), (1, 0)), ((), ()),
        ((1,), (9,)), ((1, 1), (1,)), ((2,), (2,)), ((2, 2), (2,)), ((0,), (1,)), ((3, 0, 2), (2,)),
    ):  # fmt: skip
        check(add, *(normal(dtype, s, seed=i) for i, s in enumerate(shapes)), backend=backend)
    check(add, np.broadcast_to(normal(dtype, (1, 7)), (5, 7)), b, backend=backend)
    large = normal(dtype, (50_003,))
    check(add, large, large[::-1], backend=backend)
    got = add(np.asfortranarray(a), np.asfortranarray(b), backend=backend)
    assert got.flags.f_contiguous


def test_zero_dimensions(backend):
    kernel = pk.kernel(lambda a, b: (a + b, a.real, b.imag + 1))
    check(kernel, np.array(1j), np.array(2 + 1j, np.complex64), backend=backend)
    check(kernel, np.complex64(1j), np.complex128(2), backend=backend)
    got = kernel(np.complex64(1j), np.complex64(2), backend=backend)[0]
    assert type(got) is np.complex64


@pytest.mark.parametrize("dtype", COMPLEX)
def test_in_place_and_overlap(backend, dtype):
    @pk.kernel
    def kernel(x, y):
        x += y
        x -= 1j
        x[1:] += y[:-1]
        y[...] = x[::-1]
        return x.conj()

    if backend != "mlx":  # which stores to slices of whole elements only
        check(kernel, normal(dtype, (9,), seed=1), normal(dtype, (9,), seed=2), backend=backend)
    # A product needs both parts of its operands after it has written one of them.
    scale = pk.kernel(lambda x: x.__imul__(2j))
    x = normal(dtype, (9,))
    check(scale, x, backend=backend)
    multiply = pk.kernel(lambda x, y: x * y)
    x, y = normal(dtype, (9,), seed=1), normal(dtype, (9,), seed=2)
    for a, b, out in (
        (x, y, x), (y, x, x), (x, x, x), (x[::-1], y, x), (x[:-1], y[1:], x[1:]), (x, y[::-1], y),
    ):  # fmt: skip
        want = a * b
        size = np.abs(a) * np.abs(b)
        multiply(a, b, out=out, backend=backend)
        assert_near(out, want, size)


def test_parts_of_one_array_as_two_arguments(backend):
    """NumPy's .real and .imag of one array: they interleave, and share no element."""

    @pk.kernel
    def kernel(re, im):
        re[...] = im * 2
        return re + im

    z = normal("complex128", (9,))
    want = z.copy()
    with np.errstate(all="ignore"):
        expected = kernel.__wrapped__(want.real, want.imag)
    try:
        got = kernel(z.real, z.imag, backend=backend)
    except pk.LaunchError as error:
        assert "shares memory" in str(error)
        return
    assert_same(got, expected)
    assert_same(z, want)


def test_functions_of_arrays(backend):
    @pk.kernel
    def kernel(z, w, x):
        return (
            np.where(x > 0, z, w), np.where(x > 0, z, 1), np.where(x > 0, 2j, x),
            np.select([x > 1, x < 0], [z, w], default=1j), np.copy(z), np.shape(z)[0] + z,
        )  # fmt: skip

    z, w, x = normal("complex64", (9,)), normal("complex64", (9,), 1), np.arange(9, dtype="f4") - 4
    check(kernel, z, w, x, backend=backend)


def test_captured_complex_arrays(backend):
    table = np.array([1j, 2, 3 - 1j])
    kernel = pk.kernel(lambda x: x + table)
    check(kernel, np.arange(3.0), backend=backend)
    table *= 2
    check(kernel, np.arange(3.0), backend=backend)


# Refusals


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda z, w: z < w, "`less` of complex128 and complex128"),
        (lambda z, w: np.maximum(z, w), "`maximum` of complex128"),
        (lambda z, w: z // w, "`floor_divide` of complex128"),
        (lambda z, w: z % w, "`remainder` of complex128"),
        (lambda z, w: np.sin(z) + w, "`sin` of complex128"),
        (lambda z, w: np.arctan2(z, w), "`arctan2` of complex128"),
        (lambda z, w: z & w, "`bitwise_and` of complex128"),
        (lambda z, w: np.clip(z, w, w), "`clip` of complex128"),
        (lambda z, w: np.floor(z) + w, "`floor` of complex128"),
        (lambda z, w: z.astype("f4") > 1j, "`greater` of float32 and Python complex"),
    ],
)
def test_refusals(function, message):
    z = np.ones(3, np.complex128)
    with pytest.raises(pk.CompileError, match=message) as caught:
        pk.kernel(function)(z, z)
    assert "complex numbers take + - * /" in str(caught.value)
    assert "z.real" in str(caught.value)


def test_truth_and_conversion_of_traced_complex():
    z = np.ones(3, np.complex64)
    for function in (lambda z: complex(z), lambda z: z if z else -z, lambda z: float(z)):
        with pytest.raises(pk.CompileError, match="known when the kernel runs"):
            pk.kernel(function)(z)


def test_nan_to_num(backend):
    z = np.array([complex(np.nan, 1), complex(np.inf, 2), complex(-3, -np.inf), 1 + 1j])
    check(pk.kernel(lambda z: np.nan_to_num(z)), z, backend=backend)
    check(pk.kernel(lambda z: np.nan_to_num(z, nan=1.0, posinf=2.0)), z, backend=backend)


def test_angle_of_real_numbers():
    angle = pk.kernel(lambda x: np.angle(x))
    for dtype in ("bool", "int8", "float32"):
        check(angle, np.array([-1, 0, 1]).astype(dtype), ulps=1)

"""Where MLX's own operations give other results than NumPy, or none at all: what kernels give there.

Each row runs with NumPy arrays through backend mlx, on arrays of MLX, within mx.compile and one operation
at a time. test_mlx_bridge.py runs the file once more, without the bridge.
"""

import ml_dtypes
import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same
from test_mlx_arrays import needs_bridge

mx = pytest.importorskip("mlx.core", reason="MLX is not installed")

INF, NAN = np.inf, np.nan
BFLOAT16 = ml_dtypes.bfloat16


def on_mlx(x):
    if not isinstance(x, np.ndarray):
        return x
    if x.dtype == BFLOAT16:
        return mx.array(x.astype(np.float32)).astype(mx.bfloat16)
    return mx.array(x, dtype=mx.float64) if x.dtype == np.float64 else mx.array(x)


def on_numpy(x):
    if isinstance(x, tuple):
        return tuple(map(on_numpy, x))
    if x.dtype == mx.bfloat16:
        return np.array(x.astype(mx.float32)).astype(BFLOAT16)
    return np.array(x)


def transparent(kernel, args):
    return kernel(*args, backend="mlx")


def on_arrays(kernel, args):
    given = [on_mlx(x) for x in args]
    kernel(*given)
    return on_numpy(kernel(*given))  # what later calls do


def compiled(kernel, args):
    given = [on_mlx(x) for x in args]
    arrays = [x for x in given if isinstance(x, mx.array)]

    def call(*arrays):
        rest = iter(arrays)
        return kernel(*(next(rest) if isinstance(x, mx.array) else x for x in given))

    return on_numpy(mx.compile(call)(*arrays))


def in_steps(kernel, args):
    with pk.profile(split=True):
        return on_numpy(kernel(*map(on_mlx, args)))


WAYS = [transparent, on_arrays, compiled, in_steps]


def i(dtype, *values):
    return np.array(values, dtype)


def f(*values, dtype=np.float32):
    return np.array(values, dtype)


def pairs(dtype):
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, -7, -1, 0, 1, 3, info.max], dtype)
    return np.repeat(values, 8), np.tile(values, 8)


def quotients(a, b):
    return a // b, a % b, *divmod(a, b), np.fmod(a, b)


def shifts(x, n):
    return x << n, x >> n


INTEGERS = i("int32", -5, 0, 1, 7)
SINGLES = f(-2.5, 0.5, 1, 3)
HALVES = f(0.25, -3, 2049, 7, dtype=np.float16)
BIG = i("uint64", 1, 2**53 + 1, 2**63 + 3, 2**64 - 1)
CONDITION = np.array([True, False, True, False])
BYTES = i("uint8", 0, 1, 254, 255)

# name -> (function, arguments[, units in the last place])
ROWS = {
    "int32 quotients of MIN, by 0 and -1": (quotients, pairs("int32")),
    "int64 quotients of MIN, by 0 and -1": (quotients, pairs("int64")),
    "int8 quotients of MIN, by 0 and -1": (quotients, pairs("int8")),
    "by the number -1": (lambda x: (x // -1, x % -1, *divmod(x, -1)), pairs("int32")[:1]),
    "by a number at run time": (quotients, (pairs("int64")[0], -1)),
    "shifts by the width, beyond it and below 0": (
        shifts,
        (i("int32", -5, 5, -1, 9, 3), i("int32", 32, 33, 64, -1, 31)),
    ),
    "shifts of uint8": (shifts, (BYTES, i("uint8", 8, 7, 200, 9))),
    "floor of an exact quotient": (
        quotients,
        (f(1, INF, -0.0, 1, -1, 0.0), f(0.1, 2, 1, INF, INF, 0.0)),
    ),
    "the same in float64": (quotients, (f(1, INF, -0.0, dtype="f8"), f(0.1, 2, 1, dtype="f8"))),
    "sign": (lambda x: np.sign(x), (f(NAN, -0.0, 0, -INF),)),
    "literals that do not fit": (
        lambda x, y: (x > -1, x < 300, x == -1, y < 2**40, y > -(2**40), y != 2**40),
        (BYTES, INTEGERS),
    ),
    "numbers that do not fit": (lambda x, n: (x > n, x < n, x == n), (BYTES, -1)),
    "uint64 and large numbers": (lambda x: (x + 2**63, x > 2**63, x ^ (2**64 - 1)), (BIG,)),
    "uint64 and large numbers at run time": (lambda x, n: (x + n, x >= n), (BIG, 2**63 + 3)),
    "uint64 beside signed integers": (
        lambda u, s: (u < s, u == s, u + s, s - u),
        (BIG, i("int64", 1, 2**53 + 1, -1, 2)),
    ),
    "integers divided": (lambda x, y: (x / y, 1 / y), (INTEGERS, i("int32", 3, 7, 0, -2))),
    "square roots of integers": (lambda x: np.sqrt(x), (i("int32", 0, 2, 16777217, 3),)),
    "integers and 1.5": (lambda x: (x + 1.5, x * 0.1), (INTEGERS,)),
    "int32 beside float32": (lambda x, y: (x + y, x * y, x < y), (INTEGERS, SINGLES)),
    "uint32 beside float32": (lambda x, y: x - y, (i("uint32", 1, 2**32 - 1, 7, 0), SINGLES)),
    "int64 beside float32": (lambda x, y: x + y, (i("int64", 2**40 + 1, 0, -1, 5), SINGLES)),
    "int16 beside float16": (lambda x, y: x + y, (i("int16", 2049, -5, 30000, 1), HALVES)),
    "int32 beside float16": (lambda x, y: x * y, (INTEGERS, HALVES)),
    "bool + 1": (lambda c: (c + 1, c * 2.5, c + c, c * c), (CONDITION,)),
    "quotients and powers of bools": (
        lambda a, b: (a // b, a % b, a**b),
        (CONDITION, np.array([True, True, False, False])),
    ),
    "where of int32 and float32": (
        lambda c, x, y: pk.where(c, x, y),
        (CONDITION, INTEGERS, SINGLES),
    ),
    "reciprocals of integers": (lambda x: np.reciprocal(x), (i("int32", 1, -1, 2, -5),)),
    "integer powers": (lambda x, n: (x**n, x**5), (INTEGERS, i("int32", 3, 0, 31, 2))),
    "exp of float32": (
        lambda x: np.exp(x),
        (f(-88, -95, -103, -104, 88, 88.5, 88.72, 89, 0, 1, INF, -INF, NAN, -0.0),),
        80,
    ),
    "sin of zeros": (lambda x: np.sin(x), (f(-0.0, 0.0),)),
    "the constant -0.0": (
        lambda x: (pk.where(x > 0, -0.0, x), pk.where(x > 0, x, np.float64(-0.0)), x * -0.0),
        (f(-2, 0.0, 3),),
    ),
    "fused operations round each": (
        lambda a, b, c: (a * b + c, a * b - c),
        (f(1 + 2**-12, 3), f(1 - 2**-12, 1 / 3), f(-1, -1)),
    ),
    "fmax, fmin, heaviside, copysign, nextafter, cbrt, hypot, exp2": (
        lambda x, y: (
            *(np.fmax(x, y), np.fmin(x, y), np.heaviside(x, y), np.copysign(x, y)),
            *(np.nextafter(x, y), np.signbit(x), np.rint(x), np.deg2rad(x), np.spacing(x)),
        ),
        (f(NAN, -0.0, 2.5, -1), f(1, 3, -0.0, NAN)),
    ),
    "functions that MLX lacks": (
        lambda x, y: (np.cbrt(x), np.hypot(x, y), np.exp2(x), np.logaddexp2(x, y), *np.frexp(x)),
        (SINGLES, f(4, 1e-20, 3, 1e20)),
        4,
    ),
    "float64 beyond exp, sin and cos": (
        lambda x: (np.sqrt(x), np.log(x), np.tan(x), np.tanh(x), x**0.3),
        (f(0.1, 2, 700.5, dtype="f8"),),
        4,
    ),
}
EXACT_FUNCTIONS = [np.exp, np.sin, np.cos]


def check(way, function, args, ulps=0):
    kernel = pk.kernel(function)
    with np.errstate(all="ignore"):
        want = function(*args)
        assert_same(way(kernel, args), want, ulps)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", ROWS)
def test_kernels_give_what_numpy_gives(row, way):
    check(way, *ROWS[row])


@pytest.mark.parametrize("way", WAYS)
def test_what_numpy_lacks(way):
    powers = pk.kernel(lambda x, n: x**n)  # NumPy raises
    base, exponent = i("int32", -2, -1, 1, 2, -1, 0), i("int32", -1, -3, -1, -2, -2, -1)
    assert way(powers, (base, exponent)).tolist() == [0, -1, 1, 0, 1, 0]
    both = pk.kernel(lambda b, h, n: (b + h, b * n, b + b))
    b = np.array([1.5, 257], np.float32).astype(BFLOAT16)  # 257 is 256 there
    sums, products, doubled = way(both, (b, i("float16", 1, 2049), i("int8", 3, 2)))
    assert (sums.dtype, sums.tolist()) == (np.float32, [2.5, 256 + 2048])
    assert (products.dtype, products.tolist()) == (BFLOAT16, [4.5, 512])
    assert (doubled.dtype, doubled.tolist()) == (BFLOAT16, [3, 512])


@pytest.mark.parametrize("way", [transparent, on_arrays])
def test_errors_of_float32_functions(way):
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    x = np.concatenate(
        [f(0.0, -0.0, 1e-40, 1e-10, -1e-3, 0.49999, 0.5, 4, -9), np.linspace(-2, 2, 999)]
    )
    x = x.astype(np.float32)
    cases = [(pk.erf, special.erf, x, 8), (np.exp, np.exp, np.linspace(-104, 88.72, 9999), 80)]
    cases += [(np.sin, np.sin, x, 3), (np.cos, np.cos, x, 3)]
    for function, right, values, ulps in cases:
        values = values.astype(np.float32)
        got = way(pk.kernel(lambda v, f=function: f(v)), (values,))
        want = right(values.astype(np.float64))
        unit = np.spacing(np.abs(want).astype(np.float32))
        assert (np.abs(got - want) <= ulps * unit).all(), function
        assert (np.signbit(got) == np.signbit(want))[want == 0].all()


@pytest.mark.parametrize("function", EXACT_FUNCTIONS)
def test_float64_functions(function):
    kernel = pk.kernel(lambda x: function(x))
    x = f(-700, -1e-3, 0.5, 3.1415926535897931, 709.5, dtype="f8")
    for way in (transparent, in_steps):
        with pytest.raises(pk.CompileError, match="is computed in float32 by MLX"):
            way(kernel, (x,))
    with pytest.raises(pk.CompileError, match="is computed in float32 by MLX"):
        transparent(kernel, (INTEGERS,))


@needs_bridge
@pytest.mark.parametrize("function", EXACT_FUNCTIONS)
def test_float64_functions_in_native_code(function):
    x = f(-700, -1e-3, 0.5, 3.1415926535897931, 709.5, dtype="f8")
    for way in (on_arrays, compiled):
        check(way, lambda x: function(x), (x,), 2)
        check(way, lambda x: function(x), (INTEGERS,), 2)


REFUSED = {
    "take": lambda x, y: x[y],
    "take by a number": lambda x, y: x[9],
    "np.take": lambda x, y: np.take(x, y),
    "sum": lambda x, y: x.sum(),
    "np.sum": lambda x, y: np.sum(x),
    "prod": lambda x, y: np.prod(x),
    "mean": lambda x, y: np.mean(x),
    "cumsum": lambda x, y: np.cumsum(x),
    "argmax": lambda x, y: np.argmax(x),
    "matmul": lambda x, y: x @ y,
    "sort": lambda x, y: np.sort(x),
    "bool - bool": lambda x, y: (x > 0) - (y > 0),
    "-bool": lambda x, y: -(x > 0),
    "a negative integer power": lambda x, y: x**-1,
    "a literal out of range": lambda x, y: x + 2**40,
    "gcd": lambda x, y: np.gcd(x, y) if x.dtype == np.int32 else np.gcd(x, 0.5),
}


@pytest.mark.parametrize("row", REFUSED)
def test_refusals(row):
    kernel = pk.kernel(REFUSED[row])
    for way in (transparent, in_steps) if row == "gcd" else WAYS:
        with pytest.raises((pk.CompileError, pk.LaunchError)) as error:
            way(kernel, (INTEGERS, INTEGERS))
        assert "\n" in str(error.value)  # where, or what to do


def test_refused_numbers():
    add = pk.kernel(lambda x, n: x + n)
    for way in WAYS:
        for x, n in ((BYTES, 300), (BYTES, -1), (INTEGERS, 2**40), (BIG, -1)):
            with pytest.raises(pk.LaunchError, match="out of bounds"):
                way(add, (x, n))
    z = mx.array([1.0, 2.0], dtype=mx.float64)
    with pytest.raises(pk.LaunchError, match="complex128, which MLX lacks"):
        add(z, 1j)
    assert add(np.ones(2), 1j, backend="mlx").dtype == np.complex128


# ---- Copies of transparent calls ---------------------------------------------------------------


def copies(category, profile):
    return [e for e in profile.events if e.category == category and e.phase == "X"]


def test_transparent_calls_copy_each_input_and_result_once():
    kernel = pk.kernel(lambda a, b: (a * b + a, a - b))
    side = 1 << 10
    n = side * side
    # Not contiguous: contiguous memory is lent, see test_mlx_lending.py.
    a, b = np.ones((side, side), np.float32).T, np.arange(n, dtype=np.float32).reshape(side, side).T
    outs = np.zeros((side, side), np.float32), np.zeros((side, side), np.float32)
    text = kernel.source("mlx", a, b)
    assert [text.count(f"{f}(") for f in ("mx.asarray", "np.asarray", "array")] == [2, 2, 4]
    kernel(a, b, out=outs, backend="mlx")
    with pk.profile() as p:
        kernel(a, b, out=outs, backend="mlx")
    for category in ("h2d", "d2h"):
        found = copies(category, p)
        assert [e.args["bytes"] for e in found] == [4 * n, 4 * n]
        pages = [e.args.get("page_faults", 0) for e in found]
        # A second copy would touch as many fresh pages again. What is stored to has its pages.
        most = 4 * n // 4096 * 1.1 if category == "h2d" else 64
        assert all(number <= most for number in pages), pages
    assert [int(o[3, 0]) for o in outs] == [4, -2]


def test_results_are_read_through_a_view():
    """np.asarray shares MLX's memory: the copy into the result is the only one."""
    v = mx.arange(8.0)
    mx.eval(v)
    addresses = [np.asarray(v).__array_interface__["data"][0] for _ in range(2)]
    assert addresses[0] == addresses[1]
    assert not np.asarray(v).flags.owndata


def test_calls_on_arrays_copy_nothing():
    kernel = pk.kernel(lambda a, b: a * b + a)
    a, b = mx.ones(1 << 20), mx.ones(1 << 20)
    mx.eval(a, b, kernel(a, b))
    with pk.profile() as p:
        mx.eval(kernel(a, b))
        kernel(a, np.ones(1 << 20, np.float32))
    assert [e.args["bytes"] for e in copies("h2d", p)] == [4 << 20]  # the array of NumPy
    assert copies("d2h", p) == []

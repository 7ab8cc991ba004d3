"""Numbers as arguments: weak Python numbers, strong NumPy scalars, constants."""

import enum

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same, check, sample, traces_of


@pk.kernel
def axpy(a, x, y):
    return a * x + y


def test_new_values_compile_nothing(backend):
    x = sample("float32")

    @pk.kernel
    def kernel(a, x):
        return a * x + a

    with pk.profile() as profile:
        for a in (1.5, 2.5, -3.0, float("inf"), 1e300):
            check(kernel, a, x, backend=backend)
        for a in (1, 2, -3):
            check(kernel, a, x, backend=backend)
    assert traces_of(kernel, profile) == 2  # float, int


@pytest.mark.parametrize(
    "dtype", ["bool", "int32", "int64", "uint8", "uint32", "float32", "float64"]
)
@pytest.mark.parametrize("number", [2, 2.5, np.float32(2.5), np.float64(2.5), np.int64(3), np.uint8(3)],
                         ids=lambda n: f"{type(n).__name__}-{n}")  # fmt: skip
def test_promotion_of_numbers(dtype, number):
    @pk.kernel
    def kernel(x, n):
        return x + n, x * n, n - (x * n), x < n, np.maximum(x, n)

    check(kernel, sample(dtype), number)

    @pk.kernel
    def constant(x):
        return x + number, x * number, x < number

    check(constant, sample(dtype))


def test_numbers_among_themselves():
    @pk.kernel
    def kernel(x, n, s):
        return x * (n + 1) + n / 2 - n // 2 + s * n, n * s

    check(kernel, sample("float32"), 7, 0.25)
    check(kernel, sample("int32"), 7, 3)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [("uint8", 300), ("uint8", -1), ("int32", 2**40), ("int64", 2**63), ("uint32", -5)],
)
def test_integers_that_do_not_fit(backend, dtype, number):
    @pk.kernel
    def kernel(x, n):
        return x + n

    x = np.ones(4, dtype)
    assert kernel(x, 1, backend=backend).dtype == dtype
    for _ in range(2):
        with pytest.raises((pk.LaunchError, pk.CompileError), match=str(number)):
            kernel(x, number, backend=backend)
    with pytest.raises(pk.CompileError, match=str(number)):
        pk.kernel(lambda x: x + number)(x)
    check(kernel, x, 2, backend=backend)


def test_large_unsigned_integers(backend):
    big = 2**63 + 5

    @pk.kernel
    def kernel(x, n):
        return x + n, x < n

    x = np.array([1, 2, 2**63 + 9], np.uint64)
    check(kernel, x, big, backend=backend)
    check(kernel, x, 3, backend=backend)


def test_uint64_and_python_integers_stay_exact():
    a, b = np.array([1721142608025344941], np.uint64), np.array([1721142608025339990], np.uint64)

    @pk.kernel
    def kernel(a, b, m):
        z = pk.where(a >= m, a - np.uint64(3), a)
        return a >= b + 5000, z, a > np.array([-1], np.int64)

    check(kernel, a, b, 2**61 - 1)


def test_comparisons_with_any_integer():
    @pk.kernel
    def kernel(x, n):
        return x < n, x == n, x >= n

    x = np.array([0, 200, 255], np.uint8)
    for n in (-1, 100, 300):
        check(kernel, x, n)


def test_strong_scalars_keep_their_type(backend):
    check(axpy, np.float32(2), sample("float32"), sample("float32", seed=1), backend=backend)
    check(axpy, np.int32(-2), sample("int32"), sample("int32", seed=1), backend=backend)
    check(axpy, np.uint8(200), sample("uint8"), sample("uint8", seed=1), backend=backend)
    check(axpy, np.bool_(True), sample("float32"), sample("float32", seed=1), backend=backend)


def test_zero_dimensional_arrays_are_strong(backend):
    check(axpy, np.array(0.5, np.float64), sample("float32"), sample("float32"), backend=backend)
    check(axpy, np.array(3, np.int32), sample("uint8"), sample("uint8"), backend=backend)


def test_constants_choose_the_code():
    @pk.kernel
    def kernel(x, mode="add", flag=True, dtype=None, function=np.sqrt, pair=(1, 2.5)):
        if dtype is not None:
            x = x.astype(dtype)
        y = x + pair[0] if mode == "add" else x * pair[1]
        return function(abs(y)) if flag else y

    x = sample("float32")
    for options in (
        {},
        {"mode": "mul"},
        {"flag": False},
        {"dtype": np.float64},
        {"dtype": np.dtype("float64"), "function": np.floor},
        {"pair": (2, 3)},
        {"pair": (2, 3.0)},
        {"function": abs},
    ):
        for _ in range(2):
            with np.errstate(all="ignore"):
                assert_same(kernel(x, **options), kernel.__wrapped__(x, **options))


def test_equal_constants_of_other_types_are_not_equal():
    @pk.kernel
    def kernel(x, c):
        return x * c[0]

    x = np.array([1, 2], np.int32)
    assert kernel(x, (True,)).dtype == np.int32
    assert kernel(x, (1.0,)).dtype == np.float64
    assert kernel(x, (1,)).dtype == np.int32
    assert np.signbit(kernel(x, (-0.0,))).all() and not np.signbit(kernel(x, (0.0,))).any()


def test_kernels_as_arguments():
    @pk.kernel
    def twice(x):
        return x * 2

    @pk.kernel
    def apply(x, f):
        return f(x) + 1

    x = sample("int32")
    assert_same(apply(x, twice), x * 2 + 1)
    assert_same(apply(x, lambda v: v - 3), x - 3 + 1)


def test_integer_exponents_become_constants():
    @pk.kernel
    def kernel(x, n, s):
        return x**n * s

    x = sample("float64")
    check(kernel, x, 2, 0.5, ulps=4)
    with pk.profile() as profile:
        for s in (1.0, 2.0, 3.0):
            check(kernel, x, 2, s, ulps=4)
    assert traces_of(kernel, profile) == 0
    check(kernel, x, 3, 1.0, ulps=4)
    check(kernel, x, 1000, 1.0, ulps=4)
    check(kernel, x, 0.5, 1.0, ulps=4)
    check(kernel, abs(x), np.full(37, 2.0), 1.0, ulps=4)
    with pytest.raises(pk.CompileError, match="negative integer power"):
        kernel(np.arange(3), -2, 1)


def test_subclasses_of_numbers():
    class Level(enum.IntEnum):
        high = 3

    class Celsius(float):
        pass

    x = sample("int32")
    assert_same(axpy(Level.high, x, x), 3 * x + x)
    assert_same(axpy(Celsius(2.5), x, x), 2.5 * x + x)


def test_a_number_returned_as_it_came():
    @pk.kernel
    def kernel(x, n):
        return x + n, n

    assert kernel(sample("int32"), 5)[1] == 5

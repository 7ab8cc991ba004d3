"""Kernels against NumPy: operators, functions, shapes, layouts, types, on every live backend."""

import inspect
import pickle
import threading

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same, check, layouts, sample, traces_of

FLOATS = ["float32", "float64"]
INTEGERS = ["int32", "int64", "uint8", "uint32"]
ALL = ["bool", *INTEGERS, *FLOATS]


@pk.kernel
def fma(a, b, c):
    return a * b + c


@pk.kernel
def step(x, b, c, o):
    o[...] = x * b + c


@pk.kernel
def original(a, b, c, o):
    o[...] = a[...] * b[...] + c[...]


def test_return_style(backend):
    a, b, c = (sample("float32", seed=i) for i in range(3))
    check(fma, a, b, c, backend=backend)


@pytest.mark.parametrize("kernel", [step, original], ids=["values", "slices"])
def test_store_style(backend, kernel):
    a, b, c = (sample("float32", seed=i) for i in range(3))
    check(kernel, a, b, c, np.zeros(37, np.float32), backend=backend)


def test_out(backend):
    a, b, c = (sample("float32", seed=i) for i in range(3))
    o = np.zeros(37, np.float32)
    for _ in range(3):
        assert fma(a, b, c, out=o, backend=backend) is o
    with np.errstate(all="ignore"):
        assert_same(o, fma.__wrapped__(a, b, c))


@pytest.mark.parametrize("dtype", ALL)
def test_arithmetic_types(backend, dtype):
    @pk.kernel
    def kernel(a, b):
        return a + b, a * b, a < b, a == b, np.minimum(a, b), np.maximum(a, b)

    # Which of two equal zeros NumPy takes for the smaller depends on the vector unit.
    check(kernel, sample(dtype, seed=1), sample(dtype, seed=2), backend=backend, signs=False)


@pytest.mark.parametrize("left", ALL)
@pytest.mark.parametrize("right", ALL)
def test_promotion(left, right):
    @pk.kernel
    def kernel(a, b):
        return a + b, a * b, a <= b, pk.where(a > b, a, b)

    check(kernel, sample(left, seed=1), sample(right, seed=2))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division(backend, dtype):
    @pk.kernel
    def kernel(a, b):
        return a // b, a % b, divmod(a, b)[0], -a, abs(a), ~a, a & b, a | b, a ^ b

    a, b = sample(dtype, seed=1), sample(dtype, seed=2)
    b[b == 0] = 3
    check(kernel, a, b, backend=backend)


def test_integer_division_by_zero_gives_zero(backend):
    @pk.kernel
    def kernel(a, b):
        return a // b, a % b

    a, b = np.array([5, -5, 0], np.int32), np.zeros(3, np.int32)
    with np.errstate(all="ignore"):
        for r in kernel(a, b, backend=backend):
            assert r.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_functions(backend, dtype):
    @pk.kernel
    def exact(x, y):
        return (
            np.sqrt(abs(x)),
            np.floor(x),
            np.ceil(x),
            np.trunc(x),
            np.rint(x),
            x / y,
            x // y,
            x % y,
            np.isnan(x),
            np.isfinite(x),
            np.signbit(x),
            np.copysign(x, y),
            np.fmax(x, y),
        )

    x, y = sample(dtype, seed=1), sample(dtype, seed=2)
    check(exact, x, y, backend=backend)

    @pk.kernel
    def close(x):
        return np.exp(x), np.log(abs(x) + 1), np.sin(x), np.cos(x), np.tanh(x)

    if backend == "mlx" and dtype == "float64":
        return  # MLX computes these in float32, and is refused
    x = np.random.default_rng(3).uniform(-10, 10, 100).astype(dtype)
    # sin and cos are near zero somewhere: an absolute bound is what counts there.
    with np.errstate(all="ignore"):
        for got, want in zip(close(x, backend=backend), close.__wrapped__(x), strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(
                got, want, rtol=16 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps
            )


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 0, 2), (5, 1), (4, 9), (2, 3, 5)])
def test_shapes(backend, shape):
    a, b, c = (sample("float32", shape, seed=i) for i in range(3))
    check(fma, a, b, c, backend=backend)
    check(step, a, b, c, np.zeros(shape, np.float32), backend=backend)


@pytest.mark.parametrize(
    "shapes", [((4, 3), (3,)), ((4, 1), (1, 3)), ((), (5,)), ((2, 1, 3), (4, 1)), ((3, 1), (1, 0))]
)
def test_broadcasting(backend, shapes):
    a, b = (sample("float32", s, seed=i) for i, s in enumerate(shapes))
    check(fma, a, b, a, backend=backend)


def test_layouts(backend):
    values = [sample("float32", (6, 5), seed=i) for i in range(3)]
    for name, a in layouts(values[0]):
        for _, b in layouts(values[1]):
            got = check(fma, a, b, values[2], backend=backend)
            assert got.flags.c_contiguous or name != "contiguous"
    for _, o in layouts(np.zeros((6, 5), np.float32)):
        check(step, *values, o, backend=backend)


def test_unaligned_arrays():
    record = np.zeros(9, dtype=[("pad", "i1"), ("x", "f4")])
    record["x"] = sample("float32", (9,))
    x = record["x"]
    assert not x.flags.aligned
    check(fma, x, x, x)
    before = x.copy()
    step(before, before, before, x)
    with np.errstate(all="ignore"):
        assert_same(record["x"], before * before + before)


def test_overlap_is_as_if_inputs_were_copied(backend):
    x = np.arange(10, dtype=np.float32)
    want = x[:-1] * 2 + 1
    step(x[:-1], np.full(9, 2, np.float32), np.ones(9, np.float32), x[1:], backend=backend)
    assert x[1:].tolist() == want.tolist() and x[0] == 0


def test_in_place_on_an_argument(backend):
    @pk.kernel
    def kernel(x, y):
        x += 1
        x *= y
        return x - 1

    check(kernel, sample("float32"), sample("float32", seed=1), backend=backend)


def test_in_place_on_a_result(backend):
    @pk.kernel
    def kernel(x):
        t = x * 2
        u = t
        t += x  # u is the same array
        t[...] = t - 1
        return u, np.add(t, 1, out=t)

    check(kernel, sample("int32"), backend=backend)


def test_several_stores_see_each_other(backend):
    @pk.kernel
    def kernel(x, o, p):
        o[...] = x + 1
        p[...] = o * 2
        o += p
        return o, p

    x = sample("int32")
    got = check(kernel, x, np.zeros_like(x), np.zeros_like(x), backend=backend)
    assert isinstance(got, tuple)


def test_an_argument_returned_is_the_object_itself(backend):
    @pk.kernel
    def kernel(x, o):
        o[...] = x * 2
        return o, x

    x, o = sample("float32"), np.zeros(37, np.float32)
    first, second = kernel(x, o, backend=backend)
    assert first is o and second is x


def test_zero_dimensional_results_are_scalars():
    got = fma(np.float32(2), np.array(3, np.float32), np.float32(1))
    assert type(got) is np.float32 and got == 7


def test_fortran_order_is_kept():
    a = np.asfortranarray(sample("float32", (4, 5)))
    assert fma(a, a, a).flags.f_contiguous


def test_casts_and_constants(backend):
    @pk.kernel
    def kernel(x):
        y = x.astype(np.float64) * np.float32(0.1)
        return y, (x > 0).astype(np.int32), np.full_like(x, 7), np.zeros_like(x), x.copy()

    check(kernel, sample("int32"), backend=backend)


def test_functions_and_methods(backend):
    @pk.kernel
    def kernel(x, y):
        return (
            np.where(x > y, x, y),
            np.clip(x, -1, 2),
            x.clip(None, 3),
            np.round(x),
            np.square(x),
            +x,
            np.sign(x),
            np.fix(x),
            np.reciprocal(y),
            np.abs(x),
            x.round(),
        )

    x, y = sample("float32", seed=1), sample("float32", seed=2)
    check(kernel, x, y, backend=backend)


def test_shape_is_symbolic():
    @pk.kernel
    def kernel(x):
        n, m = x.shape
        assert x.ndim == 2
        return x * n + m / x.size

    with pk.profile() as profile:
        for shape in [(3, 4), (5, 6), (7, 2)]:
            check(kernel, sample("float64", shape))
    assert traces_of(kernel, profile) == 1


def test_powers():
    @pk.kernel
    def kernel(x, n):
        return x**n

    x = sample("float32")
    for n in (2, 3, 0, -1, 2):
        check(kernel, x, n, ulps=4)
    check(kernel, sample("int64"), 3)
    check(kernel, x, 0.5, ulps=4)


def test_kernels_call_kernels():
    @pk.kernel
    def scale(x, factor=2):
        return x * factor

    @pk.kernel
    def shift(x, o):
        o[...] = x + 1

    @pk.kernel
    def kernel(x, o):
        shift(scale(x), o)
        return scale(x, factor=3) + scale(o, 4)

    o = np.zeros(5, np.float32)
    got = kernel(np.arange(5, dtype=np.float32), o)
    assert o.tolist() == [1, 3, 5, 7, 9]
    assert got.tolist() == [4, 15, 26, 37, 48]


def test_several_outputs(backend):
    @pk.kernel
    def kernel(a, b):
        return a + b, [a, b][0] - b

    a, b = sample("float32", seed=1), sample("float32", seed=2)
    check(kernel, a, b, backend=backend)
    o, p = np.empty_like(a), np.empty_like(a)
    with np.errstate(all="ignore"):
        got = kernel(a, b, out=(o, None), backend=backend)
        assert got[0] is o
        assert_same(got, kernel.__wrapped__(a, b))
        got = kernel(a, b, out=(o, p), backend=backend)
        assert got[0] is o and got[1] is p
        assert_same(got, kernel.__wrapped__(a, b))


def test_one_value_twice_is_one_array():
    @pk.kernel
    def kernel(a):
        t = a + 1
        return t, t

    first, second = kernel(sample("float32"))
    assert first is second


def test_a_list_returned_is_a_list():
    @pk.kernel
    def kernel(a):
        return [a + 1, a + 2]

    check(kernel, sample("float32"))


def test_kernel_is_like_its_function():
    assert fma.__name__ == "fma" and fma.__module__ == __name__
    assert str(inspect.signature(fma)) == "(a, b, c)"
    assert "fma(a, b, c)" in repr(fma)
    assert pickle.loads(pickle.dumps(fma)) is fma


def test_texts_before_and_after_a_call():
    @pk.kernel
    def kernel(a, b: float, n: int, flag=True):
        return a * b + n if flag else a

    assert "f32" in kernel.ir() and "f64" in kernel.ir()
    assert "np." in kernel.source("numpy")
    kernel(np.zeros((2, 3), np.int32), 1.5, 2)
    assert "i32" in kernel.ir()
    assert "np.float64" in kernel.source("numpy") or "np.multiply" in kernel.source("numpy")
    assert "mx." in kernel.source("mlx")
    assert "f32[" in kernel.ir(None, np.zeros(3, np.float32), 1.5, 2)
    assert "kernel @" in kernel.ir("kernel")
    for backend in pk.backends():
        assert kernel.source(backend)


def test_thin_twins(capsys, tmp_path):
    arrays = [np.ones(4, np.float32) for _ in range(4)]
    original(*arrays)
    original.show_ir()
    assert "original" in capsys.readouterr().out
    assert "np.multiply" in original.lower(*arrays)
    profile = original.run_profiled(*arrays, n_repeats=3)
    profile.save(tmp_path / "p.json")
    assert (tmp_path / "p.json").read_text().startswith("{")
    other = pk.profiler.Profiler.merge(profile, profile, name="again")
    other.save(tmp_path / "q.json")
    assert len(other.events) == 2 * len(profile.events)


def test_many_threads_make_the_first_call():
    @pk.kernel
    def kernel(v):
        return v * 3 + 1

    seen, errors = [], []

    def call(i):
        try:
            seen.append((i, kernel(np.full(4, i)).tolist()))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(16)]
    with pk.profile() as profile:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not errors
    assert sorted(seen) == [(i, [3 * i + 1] * 4) for i in range(16)]
    assert traces_of(kernel, profile) == 1


def test_fastmath():
    def function(x, y):
        r = x * y - 1
        return r, r / 3, np.isnan(r), np.isinf(r), np.copysign(np.float32(1), r * y), np.exp(r)

    strict, fast = pk.kernel(function), pk.kernel(fastmath=True)(function)
    x = np.float32([1 + 2**-13, np.nan, np.inf, -np.inf, 0, -0.0, 1e38])
    y = np.float32([1 - 2**-13, 1, 2, 3, np.inf, 0, 1e38])
    with np.errstate(all="ignore"):
        results = fast(x, y)
        assert strict(x, y)[0][0] == 0 and results[0][0] == -(2.0**-26)  # rounded once
        for got, want in zip(results, fast(x, y, backend="ref"), strict=True):
            np.testing.assert_array_equal(got, want)
        for got, want in zip(results, function(x, y), strict=True):
            others = [2, 3, 5, 6]  # whose product is no NaN: of these the sign is open
            np.testing.assert_allclose(got[others], want[others], rtol=1e-6)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    assert "accuracy fast fastmath {" in fast.ir()
    assert "accuracy" not in pk.kernel(fastmath=True, accuracy="strict")(function).ir()


def test_accuracy():
    @pk.kernel(accuracy="fast")
    def fast(x):
        return np.exp(x)

    @pk.kernel
    def strict(x):
        return fast(x)

    x = np.linspace(-5, 5, 100)
    for kernel in (fast, strict):
        np.testing.assert_allclose(kernel(x), np.exp(x), rtol=4 * np.finfo(float).eps)
    assert "accuracy fast {" in fast.ir() and "accuracy fast {" in fast.ir("kernel")
    assert "accuracy" not in strict.ir()
    assert fast.source("numpy") == strict.source("numpy").replace("strict", "fast")
    for wrong in ("Fast", "", 2):
        with pytest.raises(pk.LaunchError, match=r'of .fast.\n  it is "strict", the default, or'):
            pk.kernel(fast.__wrapped__, accuracy=wrong)

"""Kernels of threads: what they compute, on every backend that runs them, against NumPy and Python."""

import math

import numpy as np
import picokernel as pk
import pytest
from picokernel import simt
from picokernel import simt as cuda

LIVE = [name for name, why_not in simt.backends().items() if not why_not]


@pytest.fixture(params=LIVE)
def backend(request):
    with pk.use(request.param):
        yield request.param


@pytest.fixture
def rng():
    return np.random.default_rng(8)


@simt.jit
def smooth(x, y):
    i = simt.grid(1)
    if 0 < i < x.size - 1:
        y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3


@pytest.mark.parametrize("n", [0, 1, 2, 3, 31, 256, 257, 1000])
def test_three_points(backend, rng, n):
    x = rng.random(n, np.float32)
    y = np.zeros_like(x)
    smooth.forall(n)(x, y)
    expected = np.zeros_like(x)
    expected[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / np.float32(3)
    np.testing.assert_array_equal(y, expected)


@cuda.jit
def visit(out, hits):
    j, i = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = i * out.shape[1] + j
        hits[i, j] += 1


@pytest.mark.parametrize("block", [(16, 16), (1, 1), (7, 3), (32, 8), (64, 16)])
def test_ragged_grids_of_two_dimensions(backend, block):
    """Case A08: each element once, whatever the blocks."""
    out, hits = np.full((37, 53), -1), np.zeros((37, 53), np.int8)
    grid = (-(-53 // block[0]), -(-37 // block[1]))
    visit[grid, block](out, hits)
    np.testing.assert_array_equal(out, np.arange(37 * 53).reshape(37, 53))
    assert (hits == 1).all()


def test_random_grids_of_three_dimensions(backend, rng):
    @simt.jit
    def number(out):
        x, y, z = simt.grid(3)
        if z < out.shape[0] and y < out.shape[1] and x < out.shape[2]:
            out[z, y, x] = 10000 * z + 100 * y + x

    for _ in range(8):
        shape = tuple(int(n) for n in rng.integers(1, 9, 3))
        block = tuple(int(n) for n in rng.integers(1, 6, 3))
        grid = tuple(-(-n // b) for n, b in zip(reversed(shape), block, strict=True))
        out = np.full(shape, -1)
        number[grid, block](out)
        z, y, x = np.indices(shape)
        np.testing.assert_array_equal(out, 10000 * z + 100 * y + x)


def test_blocks_larger_than_the_data_and_grid_strides(backend):
    @simt.jit
    def fill(out, who):
        first, step = simt.grid(1), simt.gridsize(1)
        for i in range(first, out.size, step):
            out[i] = i
        who[first] = simt.blockDim.x * 1000 + simt.gridDim.x

    out, who = np.zeros(24, int), np.zeros(24 * 256, int)
    fill[24, 256](out, who)
    np.testing.assert_array_equal(out, np.arange(24))
    assert (who == 256024).all()


@simt.jit
def ids(out):
    b = simt.blockIdx.x + simt.gridDim.x * (simt.blockIdx.y + simt.gridDim.y * simt.blockIdx.z)
    t = simt.threadIdx.x + simt.blockDim.x * (simt.threadIdx.y + simt.blockDim.y * simt.threadIdx.z)
    out[b, t] = b * out.shape[1] + t


def test_ids(backend):
    out = np.zeros((2 * 3 * 4, 5 * 3 * 2), int)
    ids[(2, 3, 4), (5, 3, 2)](out)
    np.testing.assert_array_equal(out, np.arange(out.size).reshape(out.shape))


def test_strided_and_reversed_arrays(backend, rng):
    @simt.jit
    def twice(x, y):
        i, j = simt.grid(2)
        if i < x.shape[0] and j < x.shape[1]:
            y[i, j] = 2 * x[i, j]

    x = rng.random((12, 20))
    for view in (x[::-1, ::-2], x.T[1:3, ::2], x[3:7], np.broadcast_to(x[:, :1], (12, 5))):
        y = np.zeros((view.shape[1], view.shape[0])).T
        twice[(4, 4), (8, 8)](view, y)
        np.testing.assert_array_equal(y, 2 * view)


# ---- Control flow


def nested(n, out, i):
    t = 0
    for a in range(5):
        if a == 1:
            continue
        j = 0
        while True:
            j += 1
            if j % 2:
                continue
            if j > n:
                break
            t += 10 * a + j
        if a == 3:
            break
    else:
        t += 1000
    out[i] = t


def test_break_and_continue_in_nested_loops(backend):
    """Case L03."""

    @simt.jit
    def run(n, out):
        i = simt.grid(1)
        if i < out.size:
            nested(n[i], out, i)

    n, out, expected = np.arange(8), np.zeros(8, int), np.zeros(8, int)
    run.forall(8)(n, out)
    for i in range(8):
        nested(n[i], expected, i)
    assert (expected[5], expected[0]) == (118, 0)
    np.testing.assert_array_equal(out, expected)


@simt.jit
def ranges(start, stop, step, count, total, last):
    i = simt.grid(1)
    if i >= count.size:
        return
    n = 0
    k = -99
    for k in range(start[i], stop[i], step[i]):
        n += 1
        total[i] += k
    count[i] = n
    last[i] = k


def test_ranges_of_any_step(backend):
    """Case L01."""
    cases = [(21, -1, -7), (5, 3, 1), (0, 33, 2), (2, 13, 5), (3, 5, -1), (-4, 4, 3), (5, 5, -2)]
    start, stop, step = np.array(cases).T.copy()
    count, total, last = (np.zeros(len(cases), int) for _ in range(3))
    ranges.forall(len(cases))(start, stop, step, count, total, last)
    for i, case in enumerate(cases):
        values = list(range(*case))
        assert (count[i], total[i]) == (len(values), sum(values))
        assert last[i] == (values[-1] if values else -99)


def returns(x, kind):
    if kind == 0:
        return x
    for k in range(10):
        if k * k > x:
            if kind == 1:
                return k
            while True:
                k += 1
                if k % 7 == 0:
                    return 100 + k
        elif kind == 3 and k == 2:
            break
    else:
        return -1
    return -2


def test_returns_from_anywhere(backend):
    @simt.jit
    def run(x, kind, out):
        i, j = simt.grid(2)
        if i < x.size and j < kind.size:
            out[i, j] = returns(x[i], kind[j])

    x, kind = np.arange(0, 120, 7), np.arange(4)
    out = np.zeros((x.size, kind.size), int)
    run[(3, 1), (8, 4)](x, kind, out)
    expected = [[returns(int(v), int(k)) for k in kind] for v in x]
    np.testing.assert_array_equal(out, expected)


def test_short_circuits_read_nothing_that_is_not_there(backend):
    @simt.jit
    def first_negative(x, out):
        i = simt.grid(1)
        if i == 0:
            k = 0
            while k < x.size and x[k] >= 0:
                k += 1
            out[0] = k
            out[1] = x[k] if k < x.size else 77
            out[2] = k >= x.size or x[k] < 0
            out[3] = not (k < x.size) and k > 0

    for x in ([1, 2, -3, 4], [1, 2], [-1]):
        out = np.zeros(4, int)
        first_negative[1, 1](np.array(x), out)
        k = next((i for i, v in enumerate(x) if v < 0), len(x))
        assert out.tolist() == [k, x[k] if k < len(x) else 77, 1, int(k == len(x))]


def test_variables_of_branches(backend):
    @simt.jit
    def run(x, out):
        i = simt.grid(1)
        if i < x.size:
            if x[i] > 0:
                a, b = 1.5, x[i]
            elif x[i] < -1:
                a, b = b_of(x[i])
            else:
                a = b = 0
            b, a = a, b
            out[i] = a * 10 + b

    def b_of(v):
        return (v, 2)

    x = np.array([2.0, -3.0, -0.5, 0.0])
    out = np.zeros(4)
    run.forall(4)(x, out)
    np.testing.assert_array_equal(out, [21.5, 17.0, 0, 0])


# ---- Types and numbers


def test_elements_are_strong_and_literals_weak():
    @simt.jit
    def f(x, n, out):
        i = simt.grid(1)
        s = 0.0
        for k in range(4):
            s += x[k] * 0.5
        out[0] = s
        t = x[0] + i
        out[1] = t
        u = n[0] + 1
        out[2] = u

    text = f.ir(np.zeros(4, np.float32), np.zeros(4, np.int8), np.zeros(3))
    assert "with %s_ = %s" in text and "%s = constant 0.0 : f32" in text
    assert "%t = add" in text and ": f64\n  %t = add" in text
    assert "constant 1 : i8" in text


@simt.jit
def ranges_to(n, out):
    for k in range(n):
        out[0] = k


def test_python_numbers_take_the_type_of_what_they_meet(backend):
    @simt.jit
    def axpy(a, x, y):
        i = simt.grid(1)
        if i < x.size:
            y[i] = a * x[i] + y[i]

    for dtype in (np.float32, np.float64, np.int16, np.uint8):
        x, y = np.arange(5, dtype=dtype), np.ones(5, dtype)
        axpy.forall(5)(3, x, y)
        np.testing.assert_array_equal(y, 3 * x + np.ones(5, dtype))
    with pytest.raises(pk.LaunchError, match="does not fit int64"):
        ranges_to.forall(1)(2**63, np.zeros(1, int))
    with pytest.raises(pk.LaunchError, match="does not fit uint8"):
        axpy.forall(5)(300, np.zeros(5, np.uint8), np.zeros(5, np.uint8))


def test_integers_divide_as_pythons(backend):
    """Case I01."""

    @simt.jit
    def divide(a, b, q, r, d):
        i = simt.grid(1)
        if i < a.size:
            q[i] = a[i] // b[i]
            d[i], r[i] = divmod(a[i], b[i])

    a = np.array([-9, 9, -1, -8, -5, 12], np.int32)
    b = np.array([4, -4, 4, 3, -5, -5], np.int32)
    q, r, d = (np.zeros(6, np.int32) for _ in range(3))
    divide.forall(6)(a, b, q, r, d)
    np.testing.assert_array_equal(q, a // b)
    np.testing.assert_array_equal(r, a % b)
    np.testing.assert_array_equal(d, a // b)


@simt.jit
def functions(x, out):
    i = simt.grid(1)
    if i < x.size:
        v = x[i]
        out[i, 0] = math.sqrt(abs(v)) + math.exp(-v * v)
        out[i, 1] = np.maximum(v, 0.25) * np.sin(v) if v > 0 else np.cos(v)
        out[i, 2] = min(v, 0.5, v * v) + max(v, -0.5)
        out[i, 3] = np.where(v > 0, math.floor(v), math.ceil(v))
        out[i, 4] = round(v * 10) + int(v * 3) + float(i) + bool(v)
        out[i, 5] = np.float32(v) + math.pi
        out[i, 6] = pow(v, 2) + v**3 + math.fabs(v) + math.hypot(v, 1)
        out[i, 7] = (i & 3) | (i << 2) ^ ~i


def test_functions(backend, rng):
    x = rng.normal(size=50) * 2
    out = np.zeros((50, 8))
    functions.forall(50)(x, out)
    i = np.arange(50)
    expected = np.stack(
        [
            np.sqrt(abs(x)) + np.exp(-x * x),
            np.where(x > 0, np.maximum(x, 0.25) * np.sin(x), np.cos(x)),
            np.minimum(np.minimum(x, 0.5), x * x) + np.maximum(x, -0.5),
            np.trunc(x),
            np.rint(x * 10) + np.trunc(x * 3) + i + 1,
            np.float32(x) + np.float32(math.pi),
            x * x + x**3 + abs(x) + np.hypot(x, 1),
            (i & 3) | (i << 2) ^ ~i,
        ],
        axis=1,
    )
    np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_negative_indices_wrap_once(backend):
    @simt.jit
    def reverse(x, y):
        i = simt.grid(1)
        if i < x.size:
            y[i] = x[-1 - i]
            y[-1] = x[0]

    x, y = np.arange(7), np.zeros(7, int)
    reverse.forall(7)(x, y)
    np.testing.assert_array_equal(y, x[::-1])


def test_no_select_where_indices_cannot_be_negative():
    text = smooth.ir(np.zeros(4), np.zeros(4))
    assert "select" not in text and "if %" in text


# ---- Functions, globals and closures

SCALE = 3
SIZES = (2, 5)


@simt.jit(device=True)
def scaled(v, by):
    by = by * SCALE
    return v * by


@simt.jit
def constants(out):
    i = simt.grid(1)
    if i < out.size:
        out[i] = scaled(i, 2) + SIZES[1] + len(SIZES)


def test_globals_are_constants_that_are_watched(backend, monkeypatch):
    """Case R01."""
    out = np.zeros(4, int)
    constants.forall(4)(out)
    np.testing.assert_array_equal(out, np.arange(4) * 6 + 7)
    monkeypatch.setitem(globals(), "SCALE", 5)
    constants.forall(4)(out)
    np.testing.assert_array_equal(out, np.arange(4) * 10 + 7)
    assert scaled(1, 2) == 10


def test_a_closure(backend):
    def make(width):
        @simt.jit
        def run(out):
            out[simt.grid(1)] = width if width > 3 else 0.5

        return run

    out = np.zeros(4)
    make(7)[1, 4](out)
    assert (out == 7).all()
    make(2)[1, 4](out)
    assert (out == 0.5).all()


# ---- Launches


def test_arguments_that_do_not_fit():
    x = np.zeros(4)
    with pytest.raises(pk.LaunchError, match=r"takes 2 arguments, 1 were given(.|\n)*x, y"):
        smooth[1, 4](x)
    with pytest.raises(pk.LaunchError, match="argument 2 'y' of kernel 'smooth' is a list"):
        smooth[1, 4](x, [1, 2])
    with pytest.raises(pk.LaunchError, match="called without a grid"):
        smooth(x, x)
    for grid in (1.5, (1, 2, 3, 4), -1, "4", (), 2**31):
        with pytest.raises(pk.LaunchError, match="the grid of kernel 'smooth'"):
            smooth[grid, 4]
    for block in (0, 2**40, (8, 1025)):
        with pytest.raises(pk.LaunchError, match="the block of kernel 'smooth'"):
            smooth[1, block]
    with pytest.raises(pk.LaunchError, match="up to 1024 threads"):
        smooth[1, (64, 64)](x, x)
    with pytest.raises(pk.LaunchError, match="is launched by"):
        smooth[1]
    y = np.zeros(4)
    y.flags.writeable = False
    with pytest.raises(pk.LaunchError, match="'y', which is read-only"):
        smooth[1, 4](x, y)
    smooth[1, 4](y, x)
    with (
        pytest.raises(pk.LaunchError, match=r"runs no kernels of threads(.|\n)*ref"),
        pk.use("numpy"),
    ):
        smooth[1, 4](x, x)


def test_an_empty_grid_runs_nothing(backend):
    y = np.zeros(4)
    smooth[0, 4](y, y)
    smooth.forall(0)(y, y)


def test_numpy_integers_are_fine_in_a_grid(backend):
    x, y = np.ones(8), np.zeros(8)
    smooth[np.int64(1), (np.int32(8), 1)](x, y)
    assert y[1:-1].tolist() == [1] * 6


# ---- Checks


def checked(kernel, grid, block, *args):
    with pytest.raises(pk.KernelError) as e, pk.use("ref"):
        kernel[grid, block](*args)
    return str(e.value)


def test_out_of_bounds():
    text = checked(visit, 1, (8, 4), np.zeros((4, 8), int), np.zeros((4, 4), int))
    assert "along axis 1 of `hits`, whose size there is 4" in text
    assert "hits[i, j] += 1" in text and "thread (" in text and "of block (0, 0, 0)" in text

    @simt.jit
    def before(x):
        x[simt.grid(1) - 9] = 1

    assert "the index -9 along axis 0 of `x`" in checked(before, 1, 1, np.zeros(8))


def test_races():
    @simt.jit
    def shift(x):
        i = simt.grid(1)
        if i < x.size - 1:
            x[i] = x[i + 1]

    text = checked(shift, 1, 8, np.arange(8))
    assert "a race: thread (" in text and "of `x`" in text and "at line" in text


# ---- Atomics and local memory


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", "float32", "float64"])
def test_atomics_give_what_was_there(backend, dtype):
    """Case S04."""

    @simt.jit
    def count(counter, old):
        i = simt.grid(1)
        if i < old.size:
            old[i] = simt.atomic.add(counter, 0, 1)

    counter, old = np.zeros(1, dtype), np.full(1024, 7, dtype)
    count[8, 128](counter, old)
    assert counter[0] == 1024 and sorted(old.tolist()) == list(range(1024))
    if dtype == "int64":
        counter[0] = 2**53
        count[8, 128](counter, old)
        assert counter[0] == 2**53 + 1024


def test_atomics_of_every_kind(backend, rng):
    @simt.jit
    def run(x, o, f):
        i = simt.grid(1)
        if i < x.size:
            v = x[i]
            simt.atomic.min(o, 0, v)
            simt.atomic.max(o, 1, v)
            simt.atomic.sub(o, 2, v)
            simt.atomic.and_(o, 3, v)
            simt.atomic.or_(o, 4, v)
            simt.atomic.xor(o, 5, v)
            simt.atomic.inc(o, 6, 9)
            simt.atomic.dec(o, 7, 9)
            simt.atomic.min(f, (0, 0), v * 0.5)
            simt.atomic.max(f, (0, 1), v * 0.5)
            simt.atomic.nanmax(f, (1, 0), v * 0.5 if v > 0 else np.float32(math.nan))
            simt.atomic.exch(f, (1, 1), 4)

    x = rng.integers(-1000, 1000, 100)
    o, f = np.zeros(8, int), np.zeros((2, 2), np.float32)
    o[3] = -1
    run.forall(100)(x, o, f)
    expected = [x.min(), x.max(), -x.sum(), np.bitwise_and.reduce(x), np.bitwise_or.reduce(x)]
    assert o.tolist() == [*expected, np.bitwise_xor.reduce(x), 0, 0]
    np.testing.assert_array_equal(f, [[x.min() / 2, x.max() / 2], [x.max() / 2, 4]])


def test_compare_and_swap_has_one_winner(backend):
    @simt.jit
    def run(lock, won):
        i = simt.grid(1)
        if i < won.size:
            won[i] = simt.atomic.cas(lock, 0, -1, i) == -1

    lock, won = np.array([-1]), np.zeros(100, bool)
    run.forall(100)(lock, won)
    assert won.sum() == 1 and won[lock[0]]


def test_local_memory(backend, rng):
    @simt.jit
    def median_of_five(x, out):
        i = simt.grid(1)
        if i < out.size:
            v = simt.local.array(5, simt.float64)
            for k in range(5):
                v[k] = x[i, k]
            for a in range(1, 5):
                key, b = v[a], a - 1
                while b >= 0 and v[b] > key:
                    v[b + 1] = v[b]
                    b -= 1
                v[b + 1] = key
            out[i] = v[2]

    x, out = rng.random((40, 5)), np.zeros(40)
    median_of_five.forall(40)(x, out)
    np.testing.assert_array_equal(out, np.median(x, axis=1))

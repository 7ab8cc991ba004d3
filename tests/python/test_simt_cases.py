"""Inputs that kernel compilers get wrong, as kernels of threads, on every backend that runs them."""

import contextlib

import numpy as np
import picokernel as pk
import pytest
from picokernel import simt

pytestmark = pytest.mark.usefixtures("threads_backend")


def run(kernel, n, *args):
    kernel.forall(n)(*args)


# ---- I: integers


@simt.jit
def divide(a, b, quotient, remainder):
    i = simt.grid(1)
    if i < a.size:
        quotient[i], remainder[i] = divmod(a[i], b[i])


@simt.jit
def divide_by_512(a, quotient, remainder):
    i = simt.grid(1)
    if i < a.size:
        quotient[i] = a[i] // 512
        remainder[i] = a[i] % 512


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float32", "float64"])
def test_division_floors_and_the_remainder_has_the_divisors_sign(dtype):
    a = np.array([-9, 9, -1, -8, -5, 12, -8, 8], dtype)
    b = np.array([4, -4, 4, 3, -5, -5, 3, -3], dtype)
    q, r = np.zeros_like(a), np.zeros_like(a)
    run(divide, a.size, a, b, q, r)
    np.testing.assert_array_equal(q, a // b)
    np.testing.assert_array_equal(r, a % b)


def test_division_by_a_constant_power_of_two():
    a = np.array([-1, -512, -513, 511, 512, 2**31 - 1, -(2**31)], np.int32)
    q, r = np.zeros_like(a), np.zeros_like(a)
    run(divide_by_512, a.size, a, q, r)
    np.testing.assert_array_equal(q, a // 512)
    np.testing.assert_array_equal(r, a % 512)


@simt.jit
def mix(x, p, h):
    total = np.uint32(0)
    for i in range(x.size):
        total ^= x[i] * p[i]
    h[0] = total
    h[1] = total % np.uint32(524288)
    h[2] = h[2] - np.uint32(2)


def test_unsigned_integers_wrap():
    x = np.array([901, 77, 4021], np.uint32)
    p = np.array([1, 2654435761, 805459861], np.uint32)
    h = np.zeros(3, np.uint32)
    mix[1, 1](x, p, h)
    assert h.tolist() == [2187738849, 409313, 4294967294]


@simt.jit
def of_64_bits(a, z, bits, truths):
    truths[0] = a[0] >= a[1] + 5000
    truths[1] = a[2] > np.int64(-1)
    for i in range(z.size):
        v = z[i]
        if v >= 2305843009213693951:
            v = v - np.uint64(2305843009213693951)
        z[i] = v
    mask = bits[0]
    for t in range(3):
        mask = mask & ~(np.uint64(1) << np.uint64(t))
    bits[0] = mask


def test_uint64_stays_exact():
    a = np.array([1721142608025344941, 1721142608025339990, 2**63], np.uint64)
    z = np.array([2**61 + 2, 5], np.uint64)
    bits = np.array([2**64 - 1], np.uint64)
    truths = np.zeros(2, bool)
    of_64_bits[1, 1](a, z, bits, truths)
    assert truths.tolist() == [False, True]
    assert z.tolist() == [3, 5] and bits.tolist() == [2**64 - 8]


@simt.jit
def truths(x, y, stored, less, equal):
    i = simt.grid(1)
    if i < x.size:
        stored[i] = x[i]
        less[i] = stored[i] < y[i]
        equal[i] = ~stored[i] == y[i]


def test_bools_are_true_or_false():
    x = np.array([256, 512, 0, -1])
    y = np.array([True, False, True, False])
    stored, less, equal = np.zeros((3, 4), bool)
    run(truths, 4, x, y, stored, less, equal)
    assert stored.tolist() == [True, True, False, True]
    np.testing.assert_array_equal(less, stored < y)
    np.testing.assert_array_equal(equal, ~stored == y)


@simt.jit
def store(x, y):
    i = simt.grid(1)
    if i < x.size:
        y[i] = x[i]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_floats_saturate_as_integers(dtype):
    x = np.array([np.inf, -np.inf, np.nan, 3.9, -3.9, 510, -200, 1e30, -1e30, 0.5])
    limits = np.iinfo(dtype)
    wanted = [0 if np.isnan(v) else int(np.clip(np.trunc(v), -1e40, 1e40)) if np.isfinite(v)
              else limits.max if v > 0 else limits.min for v in x]  # fmt: skip
    wanted = [min(max(v, limits.min), limits.max) for v in wanted]
    y = np.zeros(x.size, dtype)
    run(store, x.size, x, y)
    assert y.tolist() == wanted


# ---- T: types


@simt.jit
def halves(x, y):
    i = simt.grid(1)
    if i < x.size:
        y[i] = x[i] * np.float16(200) + np.float16(1)


def test_halves_round_after_each_operation():
    x = np.array([30000, 1, 10.24, 0.1, 2048], np.float16)
    y = np.zeros_like(x)
    run(halves, x.size, x, y)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y, x * np.float16(200) + np.float16(1))


# ---- A: arrays and launches


@simt.jit
def twice_plus_one(x, y):
    i, j = simt.grid(2)
    if i < y.shape[0] and j < y.shape[1]:
        y[i, j] = x[i, j] * 2 + 1


X = np.arange(12, dtype=np.float32).reshape(3, 4)
LAYOUTS = [
    X,
    X[::-1, ::-2],
    X.T[1:3, ::2],
    np.broadcast_to(X[:, :1], (3, 2)),
    np.asfortranarray(X),
    X[:0],
    X[1:2],
]


@pytest.mark.parametrize("x", LAYOUTS, ids=lambda x: f"{x.shape} {x.strides}")
def test_any_layout(x):
    y = np.zeros((x.shape[1], x.shape[0]), np.float32).T
    twice_plus_one[(1, 1), (8, 8)](x, y)
    np.testing.assert_array_equal(y, x * 2 + 1)


def test_what_may_be_written():
    fixed = np.arange(4.0)
    fixed.flags.writeable = False
    y = np.zeros(4)
    run(store, 4, fixed, y)
    assert y.tolist() == [0, 1, 2, 3]
    for target in (fixed, np.broadcast_to(np.ones(1), (4,))):
        with pytest.raises(pk.LaunchError, match="y"):
            run(store, 4, np.ones(4), target)
    assert fixed.tolist() == [0, 1, 2, 3]


@simt.jit
def sizes(x, out):
    out[0] = x.size
    out[1] = x.ndim
    out[2] = x.shape[x.ndim - 1]


def test_arrays_of_nothing():
    out = np.zeros(3, np.int64)
    sizes[1, 1](np.zeros((3, 0, 2), np.float32), out)
    assert out.tolist() == [0, 3, 2]
    y = np.zeros(0)
    run(store, 0, np.zeros(0), y)
    store[1, 32](np.zeros(0), y)


@simt.jit
def cover(out, hits, threads):
    i = simt.blockIdx.y * 16 + simt.threadIdx.y
    j = simt.blockIdx.x * 16 + simt.threadIdx.x
    simt.atomic.add(threads, 0, 1)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = i * out.shape[1] + j
        simt.atomic.add(hits, (i, j), 1)


def test_ragged_edges():
    out, hits = np.full((37, 53), -1), np.zeros((37, 53), np.int32)
    threads = np.zeros(1, np.int32)
    cover[(4, 3), (16, 16)](out, hits, threads)
    assert (hits == 1).all() and threads[0] == 3072
    np.testing.assert_array_equal(out.ravel(), np.arange(37 * 53))


def test_blocks_are_never_clamped():
    threads = np.zeros(1, np.int32)
    cover[24, 256](np.zeros((1, 24), np.int64), np.zeros((1, 24), np.int32), threads)
    assert threads[0] == 24 * 256


# ---- L: control flow


@simt.jit
def steps(start, stop, step, out):
    for i in range(start, stop, step):
        out[0] += 1
        out[1] += i


@pytest.mark.parametrize(
    "bounds", [(21, -1, -7), (5, 3, 1), (0, 33, 2), (2, 13, 5), (3, 3, -1), (-5, 5, 3)]
)
def test_ranges(bounds):
    out = np.zeros(2, np.int64)
    steps[1, 1](*bounds, out)
    assert out.tolist() == [len(range(*bounds)), sum(range(*bounds))]


@simt.jit
def nested(n, out):
    t = 0
    for i in range(5):
        if i == 1:
            continue
        j = 0
        while True:
            j += 1
            if j % 2:
                continue
            if j > n[simt.threadIdx.x]:
                break
            t += 10 * i + j
        if i == 3:
            break
    else:
        t += 1000
    out[simt.threadIdx.x] = t


def test_break_continue_and_else():
    n = np.array([5, 0, 5, 2, 7])
    out = np.zeros(5, np.int64)
    nested[1, 5](n, out)

    def plain(n):
        t = 0
        for i in (0, 2, 3):
            t += sum(10 * i + j for j in range(2, n + 1, 2))
        return t

    assert out.tolist() == [plain(k) for k in n] and out[0] == 118


@simt.jit
def accumulate(x, flags, out):
    count, plus, minus, halved = 5, 2, 3, 10000
    for i in range(x.size):
        if flags[i]:
            count += 1
        plus = plus + x[i]
        minus = minus - x[i]
    for _ in range(4):
        halved //= 2
    out[0], out[1], out[2], out[3] = count, plus, minus, halved


def test_updates_keep_their_start_and_their_order():
    flags = np.array([1, 0, 1, 1, 0, 1, 0, 0, 1, 1], bool)
    out = np.zeros(4, np.int64)
    accumulate[1, 1](np.arange(10), flags, out)
    assert out.tolist() == [11, 47, -42, 625]


# ---- S: threads, shared memory, atomics


@simt.jit
def backwards(n, out):
    own = simt.shared.array(32, simt.float32)
    t = simt.threadIdx.x
    if t >= n:
        return
    own[t] = t + 1
    simt.syncthreads()
    out[t] = own[n - 1 - t]


def test_a_return_before_a_barrier():
    out = np.zeros(32, np.float32)
    backwards[1, 32](25, out)
    assert out.tolist() == [*range(25, 0, -1)] + [0] * 7


def test_a_divergent_barrier_is_refused():
    @simt.jit
    def half(out):
        if simt.threadIdx.x % 2 == 0:
            simt.syncthreads()
        out[0] = 1

    @simt.jit
    def skipped(out):
        for k in range(3):
            if simt.threadIdx.x == k:
                continue
            simt.syncthreads_or(out[0] > 0)

    for kernel in (half, skipped):
        with pytest.raises(pk.CompileError, match="threadIdx"):
            kernel[1, 8](np.zeros(1))


@simt.jit
def reverse(x, out):
    own = simt.shared.array(64, simt.int64)
    t = simt.threadIdx.x
    for turn in range(3):  # what is read is written again: two barriers a turn
        own[t] = x[t] + turn
        simt.syncthreads()
        out[t] += own[simt.blockDim.x - 1 - t]
        simt.syncthreads()


def test_write_after_read_through_shared_memory():
    x, out = np.arange(64), np.zeros(64, np.int64)
    reverse[1, 64](x, out)
    np.testing.assert_array_equal(out, 3 * x[::-1] + 3)


@simt.jit
def count(counter, old):
    i = simt.grid(1)
    old[i] = simt.atomic.add(counter, 0, 1)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", "float32", "float64"])
def test_atomics_give_each_old_value_once(dtype):
    start = 2**53 if dtype in ("int64", "uint64") else 0
    counter, old = np.array([start], dtype), np.zeros(1024, dtype)
    count[4, 256](counter, old)
    assert int(counter[0]) == start + 1024
    assert sorted(int(v) - start for v in old) == list(range(1024))


@simt.jit
def extremes(x, out):
    i = simt.grid(1)
    if i < x.size:
        simt.atomic.max(out, 0, x[i])
        simt.atomic.min(out, 1, x[i])
        simt.atomic.nanmax(out, 2, x[i])
        simt.atomic.nanmin(out, 3, x[i])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_atomics_of_negative_floats_and_nan(dtype):
    x = np.array([-3.5, -0.25, -7, np.nan, -1], dtype)
    out = np.array([-100, 100, -100, 100], dtype)
    run(extremes, x.size, x, out)
    np.testing.assert_array_equal(out[2:], [-0.25, -7])
    assert np.isnan(out[:2]).all()
    negative = x[~np.isnan(x)]
    out = np.array([-100, 100, -100, 100], dtype)
    run(extremes, negative.size, negative, out)
    np.testing.assert_array_equal(out, [-0.25, -7, -0.25, -7])


# ---- Indices beyond 32 bits


@simt.jit
def far(x, y):
    i = simt.grid(1)
    if i < y.size:
        large = np.int64(3000000000) + i
        y[i] = x[large - 3000000000] + (large % 7)


def test_indices_are_computed_in_64_bits():
    x, y = np.arange(40.0), np.zeros(40)
    run(far, 40, x, y)
    np.testing.assert_array_equal(y, x + (3000000000 + np.arange(40)) % 7)


def test_an_array_of_more_than_two_to_the_31_elements():
    """By strides: the memory is small, the index of the last element is not."""
    own = np.zeros((2, 1 << 10), np.int8)
    x = np.lib.stride_tricks.as_strided(own, (1 << 32, 2), (0, 1 << 10))

    @simt.jit
    def last(x, out):
        out[0] = x.shape[0]
        out[1] = x.size
        out[2] = x[x.shape[0] - 1, 1]

    own[1, 0] = 7
    out = np.zeros(3, np.int64)
    last[1, 1](x, out)
    assert out.tolist() == [1 << 32, 1 << 33, 7]


# ---- What ref alone reports


def test_the_checker_reports_races_and_unwritten_memory():
    @simt.jit
    def missing_barrier(x, out):
        own = simt.shared.array(8, simt.float32)
        own[simt.threadIdx.x] = x[simt.threadIdx.x]
        out[simt.threadIdx.x] = own[simt.blockDim.x - 1 - simt.threadIdx.x]

    @simt.jit
    def across_blocks(a, b):
        i = simt.grid(1)
        a[i] = 1
        simt.syncthreads()
        b[i] = a[(i + simt.blockDim.x) % a.size]

    @simt.jit
    def unwritten(out):
        own = simt.shared.array(8, simt.float32)
        if simt.threadIdx.x < 5:
            own[simt.threadIdx.x] = 1
        simt.syncthreads()
        if simt.threadIdx.x == 0:
            for k in range(8):
                out[0] += own[k]

    x = np.zeros(8, np.float32)
    found = [
        (lambda: missing_barrier[1, 8](x, x.copy()), "reads element . of `own`"),
        (lambda: across_blocks[2, 4](x.copy(), x.copy()), "a race: .*`a`"),
        (lambda: unwritten[1, 8](x.copy()), "element 5 of `own`, which nobody has written"),
    ]
    with pk.use("ref") if "ref" in pk.backends() else contextlib.nullcontext():
        for launch, says in found:
            with pytest.raises(pk.KernelError, match=says):
                launch()

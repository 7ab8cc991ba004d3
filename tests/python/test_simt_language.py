"""Slices, loops over items, arrays from outside, bits: against Python and NumPy, on every backend."""

import math

import numpy as np
import picokernel as pk
import pytest
from picokernel import simt
from picokernel import simt as cuda

pytestmark = pytest.mark.usefixtures("threads_backend")

SLICES = [
    (None, None, 1), (1, None, 1), (None, -1, 1), (2, 5, 1), (-4, -1, 1), (5, 2, 1), (-99, 99, 1),
    (None, None, 2), (1, 6, 3), (None, None, -1), (5, 1, -2), (-1, None, -3), (99, -99, -1), (3, 3, -1),
]  # fmt: skip


@pytest.mark.parametrize("bounds", SLICES, ids=str)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_slices_of_one_dimension(bounds, n):
    start, stop, step = bounds
    begins, ends = start is not None, stop is not None
    first, last = start or 0, stop or 0

    @simt.jit
    def kernel(x, first, last, out):
        if begins and ends:
            part = x[first:last:step]
        elif begins:
            part = x[first::step]
        elif ends:
            part = x[:last:step]
        else:
            part = x[::step]
        out[0] = part.size
        out[1] = part.strides[0]
        for i in range(part.shape[0]):
            out[2 + i] = part[i]
        if part.size > 0:
            part[-1] = 100

    x = np.arange(1, n + 1)
    out, expected = np.zeros(9, np.int64), np.zeros(9, np.int64)
    part = x.copy()[start:stop:step]
    expected[0], expected[1] = part.size, 8 * step
    expected[2 : 2 + part.size] = part
    kernel[1, 1](x, first, last, out)
    np.testing.assert_array_equal(out, expected)
    if part.size:
        assert (x == 100).sum() == 1


@simt.jit
def parts(x, out):
    row = x[1, :]
    column = x[:, -1]
    inner = x[1:-1, 1:-1]
    out[0] = row[2]
    out[1] = column[0]
    out[2] = inner[0, 0] + inner[-1, -1]
    out[3] = inner.shape[0] * 10 + inner.shape[1]
    out[4] = x.T[2, 0]
    out[5] = x[::-1][0, ::2][1]
    out[6] = x[2][1:][0]
    out[7] = x.nbytes + x.itemsize + x.ndim


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_slices_of_two_dimensions(order):
    x = np.arange(20, dtype=np.int32).reshape(4, 5)
    if order == "F":
        x = np.asfortranarray(x)
    if order == "strided":
        x = np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3]
    out = np.zeros(8, np.int64)
    parts[1, 1](x, out)
    inner = x[1:-1, 1:-1]
    assert out.tolist() == [
        x[1, 2], x[0, -1], inner[0, 0] + inner[-1, -1], 23, x[0, 2], x[-1, 2], x[2, 1], 86,
    ]  # fmt: skip


@simt.jit
def fill_rows(x, y):
    i = simt.grid(1)
    if i < x.shape[0]:
        x[i, :] = 7
        x[i, 1:3] = y[i, :2]
    tile = simt.local.array((2, 3), simt.float32)
    tile[:, :] = 1.5
    tile[1, :] = tile[0, :]
    if i == 0:
        x[0, 0] = tile[1, 2]


def test_stores_to_slices():
    x, y = np.zeros((3, 4), np.float32), np.arange(6.0).reshape(3, 2)
    fill_rows.forall(3)(x, y)
    expected = np.full((3, 4), 7)
    expected[:, 1:3] = y
    expected[0, 0] = 1
    np.testing.assert_array_equal(x.astype(int), expected)
    assert x[0, 0] == 1.5


@simt.jit
def loops(x, y, out):
    for v in x:
        out[0] += v
    for i, v in enumerate(x):
        out[1] += i * v
    for v, w in zip(x, y):  # noqa: B905
        out[2] += v * w
    for i, (v, w) in enumerate(zip(x, y), 5):  # noqa: B905
        if v == 3:
            continue
        if i == 8:
            break
        out[3] += i + v + w
    for v in (3, 4.5, x[0]):
        out[4] += v
    for i, k in zip(range(3), (10, 20, 30)):  # noqa: B905
        out[5] += i * k


def test_loops_over_items():
    x, y = np.arange(1.0, 6.0), np.arange(4.0)
    out = np.zeros(6)
    loops[1, 1](x, y, out)
    python = np.zeros(6)
    loops.python_function(x, y, python)
    np.testing.assert_array_equal(out, python)


@simt.jit
def rows(x, out):
    for i, row in enumerate(x):
        for v in row:
            out[i] += v


def test_loops_over_rows():
    x, out = np.arange(12.0).reshape(3, 4), np.zeros(3)
    rows[1, 1](x, out)
    np.testing.assert_array_equal(out, x.sum(1))


TABLE = np.array([3, 1, 4, 1, 5], np.int32)


@simt.jit(device=True)
def looked_up(i):
    return TABLE[i % TABLE.size]


@cuda.jit
def with_table(out):
    i = cuda.grid(1)
    table = cuda.const.array_like(TABLE)
    if i < out.size:
        out[i] = looked_up(i) + 10 * table[-1] + TABLE.shape[0]


def test_arrays_from_outside(monkeypatch):
    out = np.zeros(7, np.int64)
    with_table.forall(7)(out)
    assert out.tolist() == [TABLE[i % 5] + 55 for i in range(7)]
    TABLE[0] = 30  # they follow changes in place
    with_table.forall(7)(out)
    assert out[0] == 85
    TABLE[0] = 3
    monkeypatch.setitem(globals(), "TABLE", np.arange(3.0))
    with_table.forall(7)(out)
    assert out.tolist() == [i % 3 + 23 for i in range(7)]
    with pytest.raises(pk.LaunchError, match="takes 1 arguments, 2 were given"):
        with_table.forall(7)(out, out)


def test_arrays_from_outside_are_read_only():
    own = np.zeros(3)

    @simt.jit
    def stores(x):
        own[0] = x[0]

    with pytest.raises(pk.LaunchError, match="own"):
        stores[1, 1](np.ones(1))
    assert own[0] == 0


@simt.jit
def bits(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i, 0] = cuda.popc(x[i])
        out[i, 1] = cuda.clz(x[i])
        out[i, 2] = cuda.ffs(x[i])
        out[i, 3] = cuda.brev(x[i]) == cuda.brev(cuda.brev(cuda.brev(x[i])))
        out[i, 4] = cuda.brev(x[i])


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_bits(dtype):
    width, limits = np.iinfo(dtype).bits, np.iinfo(dtype)
    x = np.array([0, 1, 2, 3, 80, 0x1234567, limits.max, limits.min, limits.max - 6], dtype)
    out = np.zeros((x.size, 5), dtype)
    bits.forall(x.size)(x, out)
    for value, row in zip(x, out, strict=True):
        word = int(value) % 2**width
        text = f"{word:0{width}b}"
        reverse = np.array(int(text[::-1], 2), f"uint{width}").astype(dtype)
        wanted = [
            text.count("1"),
            len(text) - len(text.lstrip("0")),
            len(text) - text.rfind("1"),
            1,
            reverse,
        ]
        if word == 0:
            wanted[2] = 0
        assert row.tolist() == wanted, value


@simt.jit
def functions(x, k, out):
    i = cuda.grid(1)
    if i < x.size:
        mantissa, exponent = math.frexp(x[i])
        fraction, whole = math.modf(x[i])
        out[i, 0] = mantissa
        out[i, 1] = exponent
        out[i, 2] = fraction
        out[i, 3] = whole
        out[i, 4] = math.ldexp(x[i], k)
        out[i, 5] = round(x[i], 2)
        out[i, 6] = math.copysign(math.degrees(x[i]), -1.0)


def test_functions_of_several_results():
    x = np.array([0.5, -3.75, 1e10, 123.456, -0.0])
    out = np.zeros((x.size, 7))
    functions.forall(x.size)(x, np.int32(3), out)
    for value, row in zip(x, out, strict=True):
        wanted = [*math.frexp(value), *math.modf(value), math.ldexp(value, 3)]
        assert row[:5].tolist() == wanted
        assert row[5] == pytest.approx(round(value, 2), abs=1e-12)
        assert row[6] == pytest.approx(-abs(math.degrees(value)))


@cuda.jit
def rounds(x, digits, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = round(x[i], digits)


@pytest.mark.parametrize("digits", [0, 2, 5, -2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_round(dtype, digits):
    large = np.finfo(dtype).max
    x = np.array([0.3425, -2.5, 1234.5678, 1e-9, 0.0, -0.0, large, -large, np.inf, np.nan], dtype)
    out = np.zeros_like(x)
    rounds.forall(x.size)(x, digits, out)
    for value, got in zip(x, out, strict=True):
        wanted = round(float(value), digits) if np.isfinite(value) else value
        np.testing.assert_allclose(
            got, np.asarray(wanted, dtype), rtol=2e-7 if dtype == "float32" else 1e-15
        )


@cuda.jit
def remainders(x, y, nearest, floored):
    i, j = cuda.grid(2)
    if i < x.size and j < y.size:
        nearest[i, j] = math.remainder(x[i], y[j])
        floored[i, j] = np.remainder(x[i], y[j])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_maths_remainder_is_the_nearest_one(dtype):
    f = np.finfo(dtype)
    x = np.array(
        [
            0,
            -0.0,
            2.25,
            5.25,
            8.25,
            -4.5,
            1.5,
            4.5,
            1e10,
            f.max,
            f.tiny,
            f.smallest_subnormal,
            np.inf,
            np.nan,
        ],
        dtype,
    )
    y = np.array([3, -3, 1, 0.1, f.max, f.tiny, f.smallest_subnormal * 3, np.inf, 0], dtype)
    nearest, floored = np.zeros((2, x.size, y.size), dtype)
    remainders[(2, 2), (8, 8)](x, y, nearest, floored)
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            invalid = np.isinf(a) or b == 0 or np.isnan(a)
            wanted = math.nan if invalid else math.remainder(float(a), float(b))
            np.testing.assert_array_equal(
                nearest[i, j], np.asarray(wanted, dtype), err_msg=f"{a} {b}"
            )
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(floored, np.remainder(x[:, None], y))


@cuda.jit
def swaps(x, out):
    out[0] = cuda.atomic.compare_and_swap(x, 5, 7)
    out[1] = cuda.atomic.compare_and_swap(x[1:], 5, 7)


def test_compare_and_swap():
    x, out = np.array([5, 6]), np.zeros(2, np.int64)
    swaps[1, 1](x, out)
    assert x.tolist() == [7, 6] and out.tolist() == [5, 6]


@cuda.jit
def lanes(out):
    t = cuda.threadIdx.x + cuda.blockDim.x * cuda.threadIdx.y
    out[cuda.blockIdx.x, t] = cuda.laneid + 100 * cuda.warpsize


def test_lanes():
    out = np.zeros((2, 96), np.int64)
    lanes[2, (24, 4)](out)
    assert (out == np.arange(96) % 32 + 3200).all()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("y = x[:: n[0]]", "the step of a slice is not a constant"),
        ("y = x[::0]", "the step of a slice is not a constant"),
        ("x[0, 1:2] = 1", "2 indices for an array of 1"),
        ("x[1:] = m", "an array of 2 dimensions is stored into one of 1"),
        ("y = x[0.5:]", "a bound of a slice is Python float"),
        ("for i in enumerate(range(1, 3)):\n    pass", "does not count from 0 by 1"),
        ("for v in 3:\n    pass", "do not loop over Python int"),
        ("x[0] = cuda.clz(x[0])", "`simt.clz` of float32"),
        ("x[0] = x[1:]", "what is stored is an array of float32"),
        ("t = cuda.shared.array(0, cuda.int32)\ny = t[1:]", "dynamic shared memory, whose size"),
    ],
)
def test_messages(body, says, tmp_path):
    text = "from picokernel import simt as cuda\n@cuda.jit\ndef k(x, n, m):\n"
    path = tmp_path / "bad.py"
    path.write_text(text + "".join(f"    {line}\n" for line in body.splitlines()))
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(pk.CompileError, match=says):
        names["k"][1, 1](np.zeros(4, np.float32), np.ones(1, np.int64), np.zeros((2, 2)))

"""assert, raise and bounds in checked kernels: errors of the launch, of the lowest thread."""

import numpy as np
import picokernel as pk
import pytest
from picokernel import simt

pytestmark = pytest.mark.usefixtures("threads_backend")


@simt.jit(device=True)
def doubled(v):
    if v < 0:
        raise ValueError("neg")
    return v * 2


@simt.jit(check=True)
def double(x, out):
    i = simt.grid(1)
    if i < x.size:
        out[i] = doubled(x[i])


def test_a_raise_in_a_function():
    """Case S08."""
    x, out = np.array([1, -2, 3, -4]), np.zeros(4, np.int64)
    for _ in range(3):
        with pytest.raises(ValueError, match="raises ValueError: neg") as found:
            double[2, 2](x, out)
        assert isinstance(found.value, pk.KernelError)
        assert "thread (1, 0, 0) of block (0, 0, 0)" in str(found.value)
        assert 'raise ValueError("neg")' in str(found.value)
    double[2, 2](abs(x), out)
    assert out.tolist() == [2, 4, 6, 8]


@simt.jit(check=True)
def asserts(x, out):
    i, j = simt.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        assert x[i, j] >= 0, "no roots of negative numbers"
        assert x[i, j] != 9
        out[i, j] = x[i, j] ** 0.5


def test_the_lowest_thread_is_the_one_that_is_told():
    x, out = np.ones((40, 30)), np.zeros((40, 30))
    x[20, 7] = x[33, 1] = -1
    with pytest.raises(AssertionError, match="no roots of negative numbers") as found:
        asserts[(5, 4), (8, 8)](x, out)
    assert "thread (4, 7, 0) of block (2, 0, 0)" in str(found.value)
    x[20, 7] = x[33, 1] = 9
    with pytest.raises(AssertionError, match=r"raises AssertionError\n"):
        asserts[(5, 4), (8, 8)](x, out)
    x[:] = 4
    asserts[(5, 4), (8, 8)](x, out)
    assert (out == 2).all()


def test_a_thread_ends_where_it_raises(threads_backend):
    @simt.jit(check=True)
    def stops(out):
        tile = simt.shared.array(32, simt.int64)
        t = simt.threadIdx.x
        tile[t] = t
        for k in range(3):
            if t == 5 and k == 1:
                raise IndexError("five", 5)
            simt.syncthreads()
            out[t] += tile[31 - t]

    out = np.zeros(32, np.int64)
    with pytest.raises(IndexError, match="raises IndexError: five, 5"):
        stops[1, 32](out)
    wanted = 3 * np.arange(32)[::-1]
    wanted[5] = 26
    assert out.tolist() == wanted.tolist()


@simt.jit(check=True)
def shifts(x, y, by):
    i = simt.grid(1)
    y[i, 1] = x[i + by, 0]
    simt.atomic.add(y, (i, 0), 1)


def test_indices_out_of_bounds(threads_backend):
    x, y = np.arange(8.0).reshape(4, 2), np.zeros((4, 2))
    shifts[1, 4](x, y, 0)
    assert y.tolist() == [[1, 0], [1, 2], [1, 4], [1, 6]]
    with pytest.raises(
        pk.KernelError, match=r"the index [456] along axis 0 of `x`, whose size there is 4"
    ):
        shifts[1, 4](x, y, 3)
    with pytest.raises(pk.KernelError, match="along axis 0 of `x`"):
        shifts[1, 4](x, y, -1000)
    with pytest.raises(pk.KernelError, match="along axis 0 of `y`"):
        shifts[1, 5](np.zeros((9, 2)), y, 0)
    with pytest.raises(pk.KernelError, match="along axis 0 of `x`, whose size there is 0"):
        shifts[1, 1](np.zeros((0, 2)), y, 0)


def test_unchecked_kernels():
    @simt.jit
    def ignores(x):
        assert x[0] > 5, "small"
        x[0] += 1

    @simt.jit
    def raises(x):
        if x[0] > 5:
            raise ValueError

    x = np.zeros(1)
    if "cpu" in simt.backends():
        with pk.use("cpu"):
            ignores[1, 1](x)
            assert x[0] == 1
            with pytest.raises(pk.CompileError, match="`raise` is for kernels that are checked"):
                raises[1, 1](x)
    with pk.use("ref"), pytest.raises(AssertionError, match="small"):
        ignores[1, 1](np.zeros(1))


def test_debug_is_numbas_name():
    kernel = simt.jit(debug=True, opt=False)(asserts.python_function)
    with pytest.raises(AssertionError):
        kernel[1, (2, 2)](-np.ones((2, 2)), np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise", "kernels raise Python's own exceptions"),
        ("raise x", "kernels raise Python's own exceptions"),
        ("raise Exception(x[0])", "this text is not a constant"),
        ("assert x[0], x[0]", "this text is not a constant"),
        ("assert x", "a condition is an array of float32"),
    ],
)
def test_messages(body, says, tmp_path):
    path = tmp_path / "bad.py"
    path.write_text(f"from picokernel import simt\n@simt.jit(check=True)\ndef k(x):\n    {body}\n")
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(pk.CompileError, match=says):
        names["k"][1, 1](np.zeros(4, np.float32))

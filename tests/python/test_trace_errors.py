"""Wrong kernels: a CompileError at the user's line, with what is allowed; one test per message."""

import math
import traceback

import numpy as np
import picokernel as pk
import pytest

X = np.arange(6, dtype=np.float32)
TABLE = [1, 2, 3]
ARRAY = np.ones(6, np.float32)


def error_of(function, *args):
    """The CompileError of calling a kernel made of the function. It names the line marked # here."""
    kernel = pk.kernel(function)
    with pytest.raises(pk.CompileError) as caught:
        kernel(*(args or (X,)))
    error = caught.value
    assert isinstance(error, SyntaxError) and isinstance(error, pk.Error)
    assert error.filename == __file__
    if error.text and "# here" not in error.text:
        raise AssertionError(f"reported at: {error.text}")
    assert error.offset and error.end_offset > error.offset
    return error


def test_if():
    def kernel(x):
        if x > 0:  # here
            return x
        return -x

    error = error_of(kernel)
    assert "truth of a traced" in error.msg and "pk.where" in error.msg
    shown = "".join(traceback.format_exception(error))
    assert "        if x > 0:  # here\n" in shown.replace("    if", "        if")
    assert "^^^^^" in shown


def test_formats():
    def kernel(x):
        return x if f"{x}" and f"{x:.2f}" else -x  # here

    error = error_of(kernel)
    assert "cannot be formatted" in error.msg and "print what the kernel returns" in error.msg


def test_what_is_no_dtype():
    def kernel(x):
        return x.astype("foo")  # here

    error = error_of(kernel)
    assert "'foo' is no dtype" in error.msg and "supported: bool, int8" in error.msg


def test_the_caret_stands_below_the_operation():
    def kernel(x):
        return 1 + (x @ x)  # here

    error = error_of(kernel)
    line = error.text
    assert line[error.offset - 1 : error.end_offset - 1] == "x @ x"


def test_plain_traceback_shows_no_inside_of_picokernel():
    @pk.kernel
    def kernel(x):
        return x @ x

    with pytest.raises(pk.CompileError) as caught:
        kernel(X)
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files == [__file__]


@pytest.mark.parametrize(
    ("function", "message", "hint"),
    [
        (lambda x: [v + 1 for v in x], "iterated", "whole array"),  # here
        (lambda x: x * len(x), "len()", "x.shape[0]"),  # here
        (lambda x: x * math.sqrt(x), "float()", "NumPy's functions"),  # here
        (lambda x: x * int(x), "int()", "astype(np.int64)"),  # here
        (lambda x: x * complex(x), "complex()", "complex128"),  # here
        (lambda x: [1, 2, 3][x], "as an index", "constants"),  # here
        (lambda x: x * range(x.shape[0])[1], "as an index", "constants"),  # here
        (lambda x: np.asarray(x) * 2, "cannot become a NumPy array", "zeros_like"),  # here
        (lambda x: -x if 1 in x else x, "`in` on a traced", "pk.where"),  # here
        (lambda x: x and x, "truth of a traced", "& | ~"),  # here
        (lambda x: x @ x, "matrix multiplication", "np.matmul"),  # here
        (lambda x: x.sum(), ".sum is not supported", "functions"),  # here
        (lambda x: np.sum(x), "np.sum is not supported", "functions"),  # here
        (lambda x: np.add.reduce(x), "np.add.reduce is not supported", "functions"),  # here
        (lambda x: np.add(x, x, where=x > 0), "with where=", "pk.where"),  # here
        (lambda x: np.add(x, x, dtype="f8"), "with dtype=", ".astype"),  # here
        (lambda x: np.vecdot(x, x), "`vecdot` cannot be traced", "these can"),  # here
        (lambda x: x["a"], "indexing a traced array (float32, 1-d) by 'a'", "constants"),  # here
        (lambda x: x[x > 0], "by an array of bool", "pk.where"),  # here
        (lambda x: x[:, :], "too many indices", ""),  # here
        (lambda x: x * [1, 2], "a list meets a traced array", "np.asarray"),  # here
        (lambda x: x + "1", "a str meets a traced array", "np.asarray"),  # here
        (lambda x: x + 2**70, "fits neither int64 nor uint64", "float"),  # here
        (lambda x: x.astype("longdouble"), f"dtype {np.dtype(np.longdouble)} is not supported", "float32"),  # here
        (lambda x: x.astype("M8[s]"), "dtype datetime64[s] is not supported", "float32"),  # here
        (lambda x: x * np.longdouble(1), f"dtype {np.dtype(np.longdouble)} is not supported", "float32"),  # here
        (lambda x: x.astype("i4", casting="safe"), "cannot cast float32 to int32", ""),  # here
        (lambda x: np.round(x, 2.5), "decimals is a float", "constant"),  # here
        (lambda x: np.where(x), "with one argument", "pk.where(condition, x, y)"),  # here
        (lambda x: x << 1, "left_shift", ""),  # here
        (lambda x: x ** x.shape[0], "a size as exponent", "astype"),  # here
    ],
)  # fmt: skip
def test_messages(function, message, hint):
    error = error_of(function)
    assert message in error.msg, error.msg
    assert hint in error.msg, error.msg


def test_unknown_attributes_are_attribute_errors():
    kernel = pk.kernel(lambda x: x.no_such_thing)
    with pytest.raises(AttributeError, match="no_such_thing"):
        kernel(X)


def test_a_number_is_not_assigned_to():
    def kernel(x, n):
        n[...] = 1  # here
        return x

    assert "a number cannot be assigned to" in error_of(kernel, X, 2).msg


def test_in_place_results_keep_type_and_shape():
    def narrowing(x):
        t = x.astype(np.int32)
        t += 0.5  # here
        return t

    assert "float64 result cannot be stored into a int32 array" in error_of(narrowing).msg

    def growing(x, y):
        t = y * 1
        t += x  # here
        return t

    assert "more elements" in error_of(growing, X, np.ones(1, np.float32)).msg


def test_captured_arrays_are_not_written():
    def kernel(x):
        ARRAY[...] = x  # here
        return x

    error = error_of(kernel)
    assert "an array from outside is written" in error.msg and "argument" in error.msg

    def by_out(x):
        return np.add(x, 1, out=ARRAY)  # here

    assert "an array from outside is written" in error_of(by_out).msg
    assert ARRAY.tolist() == [1] * 6


def test_captured_lists_are_refused():
    def kernel(x):
        return x * TABLE[0]  # here

    error = error_of(kernel)
    assert "reads 'TABLE', a list from outside" in error.msg and "tuple" in error.msg


def test_captured_objects_are_refused():
    class Settings:
        factor = 2

    settings = Settings()

    def kernel(x):
        return x * settings.factor  # here

    error = error_of(kernel)
    assert "reads 'settings', a Settings from outside" in error.msg


def test_what_may_be_returned():
    with pytest.raises(pk.CompileError, match="the kernel returns a dict"):
        pk.kernel(lambda x: {"x": x})(X)
    with pytest.raises(pk.CompileError, match="computes nothing"):
        pk.kernel(lambda x: None)(X)


def test_traced_arrays_do_not_outlive_the_trace():
    kept = []

    class Keeper:
        pass

    def leak(x):
        type.__setattr__(Keeper, "x", x)
        return x + 1

    pk.kernel(leak)(X)
    kept.append(Keeper.x)
    with pytest.raises(pk.CompileError, match="another call"):
        kept[0] + 1


def test_varargs_are_refused():
    with pytest.raises(pk.CompileError, match="'args' of 'kernel' takes any number"):

        @pk.kernel
        def kernel(*args):
            return args[0]


def test_not_a_function():
    with pytest.raises(pk.LaunchError, match="takes a Python function, not a int"):
        pk.kernel(3)


def test_errors_of_the_function_itself_pass_through():
    @pk.kernel
    def kernel(x):
        return x + undefined_name  # noqa: F821

    with pytest.raises(NameError, match="undefined_name"):
        kernel(X)


def test_a_kernel_is_usable_after_an_error():
    @pk.kernel
    def kernel(x, flag):
        if flag:
            return x @ x
        return x + 1

    for _ in range(2):
        with pytest.raises(pk.CompileError):
            kernel(X, True)
        assert kernel(X, False).tolist() == (X + 1).tolist()


def test_non_ascii_lines_keep_their_caret():
    def kernel(x):
        größe = x  # a name of two bytes a letter
        return größe @ größe  # here

    error = error_of(kernel)
    assert error.text[error.offset - 1 : error.end_offset - 1] == "größe @ größe"

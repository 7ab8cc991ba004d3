"""The call: arguments, keywords, defaults, out=, and every way to get them wrong."""

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same

A, B, C = (np.arange(6, dtype=np.float32) + i for i in range(3))


@pk.kernel
def fma(a, b, c):
    return a * b + c


@pk.kernel
def store(x, o):
    o[...] = x * 2


def refused(message, call):
    """The call raises a LaunchError with this in its text, twice, and the kernel still works."""
    for _ in range(2):
        with pytest.raises(pk.LaunchError) as caught:
            call()
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, pk.Error)
        assert message in str(caught.value), str(caught.value)
    assert_same(fma(A, B, C), A * B + C)
    return str(caught.value)


def test_keywords_and_defaults():
    @pk.kernel
    def kernel(x, /, y=2, *, z=None, flag=False):
        r = x * y
        if z is not None:
            r = r + z
        return -r if flag else r

    for _ in range(2):
        assert_same(kernel(A), A * 2)
        assert_same(kernel(A, 3), A * 3)
        assert_same(kernel(A, y=B), A * B)
        assert_same(kernel(A, z=B), A * 2 + B)
        assert_same(kernel(A, B, flag=True, z=C), -(A * B + C))
        assert_same(kernel(A, B, flag=False, z=C), A * B + C)


def test_parameters_named_like_options():
    @pk.kernel
    def kernel(x, out):
        out[...] = x + 1

    o = np.zeros(6, np.float32)
    kernel(A, out=o)
    assert_same(o, A + 1)


def test_arity():
    text = refused("misses argument 3 'c'", lambda: fma(A, B))
    assert "kernel 'fma' (test_call.py:" in text and "a, b, c" in text
    refused("takes 3 positional arguments, 4 were given", lambda: fma(A, B, C, A))
    refused("has no parameter 'd'", lambda: fma(A, B, d=C))
    refused("got argument 'a' twice", lambda: fma(A, B, C, a=A))


@pytest.mark.parametrize(
    ("bad", "message", "hint"),
    [
        ([1.0, 2.0], "argument 2 'b' of kernel 'fma'", "np.asarray"),
        ({"x": 1}, "is a dict", "kernels take arrays, numbers"),
        (np.array([None, 1]), "has dtype object", "np.asarray(x, dtype=np.float64)"),
        (
            np.arange(6, dtype=">f4"),
            "has dtype >f4, which is in foreign byte order",
            "newbyteorder",
        ),
        (
            np.arange(6, dtype=np.longdouble),
            f"has dtype {np.dtype(np.longdouble)}",
            "supported: bool, int8",
        ),
        (np.arange(6).astype("datetime64[s]"), "has dtype datetime64", "astype"),
        (np.array(["a"]), "has dtype <U1", "supported: bool"),
        (np.datetime64("2020-01-01"), "has dtype datetime64", "supported: bool"),
        (np.longdouble(1), f"has dtype {np.dtype(np.longdouble)}", "supported: bool"),
        (2**64, "is the integer 18446744073709551616, which fits neither", "float"),
        (-(2**63) - 1, "fits neither int64 nor uint64", "float"),
        (np.ma.masked_array([1.0], [True]), "computes in its own way", "np.asarray"),
        (np.ones((1, 1)).view(np.matrix), "computes in its own way", "np.asarray"),
    ],
)
def test_arguments_that_kernels_do_not_take(bad, message, hint):
    text = refused(message, lambda: fma(A, bad, C))
    assert hint in text, text


def test_shapes_that_do_not_broadcast():
    text = refused("(6", lambda: fma(A, np.ones(4, np.float32), C))
    assert "(4" in text and "return a * b + c" in text and "^" in text


def test_out_is_checked_before_anything_is_written():
    read_only = np.zeros(6, np.float32)
    read_only.flags.writeable = False
    refused("read-only", lambda: fma(A, B, C, out=read_only))
    refused("shape (5,)", lambda: fma(A, B, C, out=np.zeros(5, np.float32)))
    refused("shape (2, 6)", lambda: fma(A, B, C, out=np.zeros((2, 6), np.float32)))
    refused("overlapping elements", lambda: fma(A, B, C, out=np.broadcast_to(np.zeros(1, "f4"), 6)))
    o = np.zeros(6, np.int32)
    text = refused("same_kind", lambda: fma(A, B, C, out=o))
    assert "int32" in text and "float32" in text and not o.any()
    refused("is a list", lambda: fma(A, B, C, out=[0.0] * 6))
    refused("foreign byte order", lambda: fma(A, B, C, out=np.zeros(6, ">f4")))
    refused("1 result, out= brings 2", lambda: fma(A, B, C, out=(None, None)))


def test_out_casts_as_ufuncs_do(backend):
    o = np.zeros(6, np.float64)
    fma(A, B, C, out=o, backend=backend)
    assert_same(o, (A * B + C).astype(np.float64))
    narrow = np.zeros(6, np.float32)
    fma(A.astype(np.float64), B, C, out=narrow, backend=backend)
    assert_same(narrow, A * B + C)


def test_written_arguments_are_checked():
    read_only = np.zeros(6, np.float32)
    read_only.flags.writeable = False
    refused("writes argument 2 'o', which is read-only", lambda: store(A, read_only))
    refused("overlapping elements", lambda: store(A, np.broadcast_to(np.zeros(1, "f4"), 6)))
    refused("does not broadcast", lambda: store(A, np.zeros(3, np.float32)))
    refused("gives 0 results, out= brings 1", lambda: store(A, np.zeros(6, "f4"), out=A))


def test_read_only_inputs_are_fine():
    a = A.copy()
    a.flags.writeable = False
    assert_same(fma(a, a, a), A * A + A)


def test_one_array_twice(backend):
    x = A.copy()
    assert_same(fma(x, x, x, backend=backend), A * A + A)
    fma(x, x, x, out=x, backend=backend)
    assert_same(x, A * A + A)
    y = A.copy()
    fma(y[:-1], y[1:], y[1:], out=y[1:], backend=backend)
    assert_same(y[1:], A[:-1] * A[1:] + A[1:])


def test_methods_are_refused():
    class Model:
        @pk.kernel
        def apply(x):
            return x + 1

        plain = staticmethod(fma)

    with pytest.raises(pk.LaunchError, match="method of Model"):
        Model().apply(A)
    assert_same(Model.apply(A), A + 1)
    assert_same(Model().plain(A, B, C), A * B + C)


def test_memmaps_are_arrays(tmp_path):
    m = np.memmap(tmp_path / "m", np.float32, "w+", shape=(6,))
    m[:] = A
    assert_same(fma(m, B, C), A * B + C)
    store(A, m)
    assert_same(np.asarray(m), A * 2)


def test_many_shapes_and_types_in_turn():
    for _ in range(3):
        for n in (1, 2, 3, 10, 100):
            for dtype in ("f4", "f8", "i4"):
                x = np.arange(n, dtype=dtype)
                assert_same(fma(x, x, x), x * x + x)


def test_large_outputs_are_reused_only_when_free():
    x = np.ones(1 << 20, np.float32)
    first = fma(x, x, x)
    second = fma(x, x, first)
    assert first[0] == 2 and second[0] == 3
    del first
    third = fma(second, x, x)
    assert second[-1] == 3 and third[-1] == 4
    assert not np.shares_memory(second, third)


def test_strides_of_any_sign_for_written_arguments(backend):
    o = np.zeros((4, 6), np.float32)
    store(np.arange(12, dtype=np.float32).reshape(2, 6), o[::-2, ::-1], backend=backend)
    want = np.zeros((4, 6), np.float32)
    want[::-2, ::-1] = np.arange(12).reshape(2, 6) * 2
    assert_same(o, want)


def test_calls_do_not_leak():
    import gc
    import sys

    x = np.ones(4, np.float32)
    o = np.empty_like(x)
    fma(x, x, x, out=o)
    fma(x, x, x)
    before = sys.getrefcount(x), sys.getrefcount(o)
    for _ in range(100):
        fma(x, x, x, out=o)
        fma(x, b=x, c=2.5)
        with pytest.raises(pk.LaunchError):
            fma(x, x, o[:3])
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(o)) == before


def unaligned(values):
    memory = np.zeros(values.nbytes + 1, "u1")
    array = memory[1:].view(values.dtype)
    array[...] = values
    return array


def test_unaligned_arrays_are_used_in_place(backend):
    x = unaligned(np.arange(9.0))
    add = pk.kernel(lambda x, y: x + y)
    assert add(x, 1.0, out=x, backend=backend) is x
    np.testing.assert_array_equal(x, np.arange(9.0) + 1)

    @pk.kernel
    def both(a, b):
        a += 1
        b *= 2

    with pytest.raises(pk.LaunchError, match="share memory"):
        both(x, x, backend=backend)
    # Elements that are no whole elements apart are copied there and back.
    packed = np.zeros(5, dtype=[("a", "u1"), ("b", "f4")])
    both(packed["b"], np.zeros(5, "f4"), backend=backend)
    np.testing.assert_array_equal(packed["b"], 1)


def test_arrays_that_differ_in_each_trace():
    with pytest.raises(pk.CompileError, match="meets another array each time"):
        pk.kernel(lambda x: x + np.random.rand(3))(np.ones(3))


def test_a_number_and_an_argument_as_results():
    """At the first call too, where a constant made while tracing is a hidden argument."""
    for body in (
        lambda a, s: (a, s + np.where(True, 3, 1)),
        lambda a, s: [s < np.asarray(2.5), a, s * np.asarray(2)],
    ):
        kernel = pk.kernel(body)
        x = np.ones(3)
        for _ in range(3):
            got, want = kernel(x, 1.0), body(x, 1.0)
            assert [type(g) for g in got] == [type(w) for w in want]
            assert [g is x for g in got] == [w is x for w in want]
            assert all(np.array_equal(g, w) for g, w in zip(got, want, strict=True))

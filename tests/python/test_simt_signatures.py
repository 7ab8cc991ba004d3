"""Types, and signatures of kernels of threads: read, checked, applied."""

import numpy as np
import picokernel as pk
import pytest
from picokernel import simt
from picokernel.simt import types
from picokernel.simt.types import float32, float64, int32, signature_of, void


def test_types_are_spelt_as_they_are_written():
    written = [
        "float32[:]",
        "float32[:, :]",
        "float32[:, ::1]",
        "float32[::1, :]",
        "int8[:, :, ::1]",
    ]
    for text in [*written, "float32[::1]", "complex64", "uint64"]:
        assert repr(eval(text, vars(types))) == text
    assert types.f4 == float32 and types.double == float64 and types.intp == types.int64
    assert float32[:] == types.Array(float32, 1, "A") != float32[::1]
    assert len({float32, types.f4, int32}) == 2
    for wrong in ("float32[0]", "float32[::2]", "float32[:, ::1, :]"):
        with pytest.raises(pk.CompileError, match="is no type of arrays"):
            eval(wrong, vars(types))


def test_types_are_dtypes_and_convert():
    assert np.zeros(2, float32).dtype == np.float32
    assert float32(0.1) == np.float32(0.1) and int32(-1.9) == -1 and types.boolean(3) is np.True_


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("void(float32[:], int32)", "void(float32[:], int32)"),
        ("(f4[:,::1], i8)", "void(float32[:, ::1], int64)"),
        ("float64(float64, float64)", "float64(float64, float64)"),
        (void(float32[:]), "void(float32[:])"),
        ((np.float32, np.dtype("i4"), "uint8"), "void(float32, int32, uint8)"),
        ((), "void()"),
    ],
)
def test_signatures(given, text):
    assert repr(signature_of(given)) == text


@pytest.mark.parametrize(
    "given", ["void(float33)", "void(", "open('x')", "3", 3, (object(),), ("x",)]
)
def test_what_is_no_signature(given):
    with pytest.raises(pk.CompileError, match=r"signature|no type"):
        signature_of(given)


class OfNumba:
    """What Numba's types look like."""

    def __init__(self, text, **members):
        self.text = text
        vars(self).update(members)

    def __str__(self):
        return self.text


def test_numbas_types():
    number = OfNumba("float32")
    array = OfNumba("array(float32, 2d, C)", dtype=number, ndim=2, layout="C")
    given = OfNumba("(...) -> none", args=(array, number), return_type=OfNumba("none"))
    assert repr(signature_of(given)) == "void(float32[:, ::1], float32)"


@simt.jit("void(float32[:], int32, float32[::1])")
def scale(x, factor, out):
    i = simt.grid(1)
    if i < x.size:
        out[i] = x[i] * factor


def test_numbers_are_converted_and_arrays_checked(threads_backend):
    x, out = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    scale.forall(6)(x, 3, out)
    np.testing.assert_array_equal(out, 3 * x)
    scale.forall(3)(x[::2], np.int64(2), out)
    np.testing.assert_array_equal(out[:3], 2 * x[::2])
    for bad in [(x, 0.5, out), (x, 2**31, out), (x, 1, x[::-1]), (x.astype("f8"), 1, out), (x, 1)]:
        with pytest.raises(pk.LaunchError, match="declared: void") as found:
            scale.forall(6)(*bad)
        assert "given: (float" in str(found.value)


@simt.jit(["void(int32[:])", "void(float64[:])"])
def halve(x):
    i = simt.grid(1)
    if i < x.size:
        x[i] = x[i] / 2


def test_the_first_signature_that_fits(threads_backend):
    for dtype in (np.int32, np.float64):
        x = np.array([5, -3], dtype)
        halve.forall(2)(x)
        assert x.tolist() == ([2, -1] if dtype is np.int32 else [2.5, -1.5])
    with pytest.raises(pk.LaunchError, match="float32"):
        halve.forall(2)(np.zeros(2, np.float32))
    assert [repr(s) for s in halve.signatures] == ["(int32[:],)", "(float64[:],)"]


@simt.jit("float32(float32, int32)", device=True)
def shifted(x, by):
    return x + by * 0.1


def test_a_device_functions_signature_is_applied(threads_backend):
    @simt.jit
    def kernel(x, out):
        out[0] = shifted(x[0], x[1])

    x, out = np.array([0.1, 2.9]), np.zeros(1)
    kernel[1, 1](x, out)
    assert out[0] == np.float32(np.float32(0.1) + np.float32(np.int32(2) * np.float64(0.1)))


def test_a_signature_compiles_at_once():
    with pytest.raises(pk.CompileError, match="`missing` is not defined"):

        @simt.jit("void(float32[:])")
        def unknown(x):
            x[0] = missing  # noqa: F821

    with pytest.raises(pk.LaunchError, match="2 types, and the function 1 parameters"):
        simt.jit("void(float32[:], int32)")(lambda x: None)
    with pytest.raises(pk.LaunchError, match="kernels return nothing"):

        @simt.jit("int32(float32[:])")
        def gives(x):
            x[0] = 1


def test_options():
    simt.jit(lineinfo=True, opt=False, max_registers=32, cache=True, inline="always", link=[])
    with pytest.raises(pk.LaunchError, match="no option `chekc`"):
        simt.jit(chekc=True)
    with pytest.raises(pk.LaunchError, match="cannot be linked"):
        simt.jit(link=["a.cu"])


def test_members_of_numbas_dispatchers():
    assert scale.py_func is scale.python_function and scale.specialize() is scale
    (signature,) = scale.signatures
    assert scale.inspect_llvm()[signature].startswith("kernel @scale(")
    assert "parallel" in scale.inspect_asm(signature)

"""Arrays of others as arguments: read in place, never copied; results in the caller's library."""

import array
import ctypes
import gc
import os
import subprocess
import sys

import numpy as np
import picokernel as pk
import pytest
from fake_tensor import Fake, FakeExchanged, FakeOfBefore, Plain, alive
from oracle import assert_same

FAKES = [Fake, FakeOfBefore, FakeExchanged]


@pk.kernel
def fma(a, b, c):
    return a * b + c


@pk.kernel
def store(x, o):
    o[...] = x * 2


@pk.kernel
def add_one(x):
    x += 1
    return x


@pk.kernel
def both(x):
    return x + 1, x * 2.0


def refused(call, *texts):
    with pytest.raises(pk.LaunchError) as caught:
        call()
    for text in texts:
        assert text in str(caught.value), str(caught.value)


def of(result):
    return result.array if isinstance(result, Plain) else result


@pytest.mark.parametrize("fake", FAKES)
def test_tensors_are_read_and_written_in_place(fake):
    before = alive()
    for dtype in (
        "?",
        "i1",
        "i2",
        "i4",
        "i8",
        "u1",
        "u2",
        "u4",
        "u8",
        "f2",
        "f4",
        "f8",
        "c8",
        "c16",
    ):
        x, y = np.arange(6).astype(dtype), np.ones(6, dtype)
        for _ in range(2):  # planned, and found again
            result = fma(fake(x), fake(y), fake(x))
            assert type(result) is (np.ndarray if fake is FakeOfBefore else fake)
            assert_same(of(result), x * y + x)
            o = fake(np.zeros(6, dtype))
            assert fma(fake(x), fake(y), c=fake(x), out=o) is o
            assert_same(o.array, x * y + x)
    o = fake(np.zeros(6))
    assert store(fake(np.arange(6.0)), o) is None
    assert_same(o.array, np.arange(6.0) * 2)
    assert add_one(o) is o
    assert_same(o.array, np.arange(6.0) * 2 + 1)
    result = o = None
    gc.collect()
    assert alive() == before


@pytest.mark.parametrize("fake", FAKES)
def test_layouts(fake, backend):
    x = np.arange(24.0, dtype=np.float32).reshape(4, 6)
    empty, zero = np.empty((0, 3)), np.array(2.5)
    for a in (x, x.T, np.asfortranarray(x), x[::2, ::-1], x[1:, 2], empty, zero):
        assert_same(of(fma(fake(a), 2, 1, backend=backend)), a * 2 + 1)
    assert_same(of(fma(fake(x, no_strides=True), fake(x, byte_offset=8), 1)), x * x + 1)
    result = fma(fake(zero), 2, 1)
    if fake is not FakeOfBefore:
        assert result.array.shape == ()  # an array of the library, not a NumPy scalar
    unaligned = np.zeros(25, "i1")[1:].view(np.float64)
    store(fake(np.arange(3.0)), fake(unaligned))
    assert_same(unaligned, np.arange(3.0) * 2)


@pytest.mark.parametrize("fake", [Fake, FakeExchanged])
def test_results_and_options(fake):
    x = np.arange(4)
    first, second = both(fake(x))
    assert type(first) is type(second) is fake
    assert_same(first.array, x + 1)
    assert_same(second.array, x * 2.0)
    outs = fake(np.zeros(4, int)), None
    first, second = both(fake(x), out=outs)
    assert first is outs[0] and type(second) is fake
    assert_same(first.array, x + 1)
    number = np.array(3)  # 0-d: stands beside anything
    assert type(fma(fake(x), number, np.float64(1))) is fake
    assert fma.source("numpy", fake(x), 2, 1) == fma.source("numpy", x, 2, 1)
    with pk.profile() as p:
        fma(fake(np.arange(7)), 2, 1)
    assert not any("copy" in e.name for e in p.events)


def test_large_results_keep_their_memory():
    result = fma(Fake(np.ones(1 << 19)), 2, 1)
    fma(Fake(np.ones(1 << 19)), 5, 5)
    assert_same(result.array, np.full(1 << 19, 3.0))


@pytest.mark.parametrize("fake", FAKES)
def test_what_tensors_cannot_be(fake):
    x, name = np.arange(4.0), fake.__name__
    what = f"is a fake_tensor.{name}"
    refused(lambda: fma(fake(x, device=2), 1, 2), "argument 1 'a' of kernel 'fma'", what)
    refused(lambda: fma(fake(x, device=2), 1, 2), what + " on a CUDA device", "no cuda backend")
    refused(lambda: fma(fake(x, device=8), 1, 2), what + " on a Metal device", "CPU")
    refused(lambda: fma(fake(x, device=99), 1, 2), "a device of DLPack's type 99")
    refused(lambda: fma(fake(x, code=7, bits=8), 1, 2), what + " of dtype fake32", "float32 first")
    refused(lambda: fma(fake(x, lanes=4), 1, 2), " of dtype fake32")
    refused(lambda: fma(1, 2, c=fake(x, device=2)), "argument 3 'c' of kernel 'fma'")
    refused(lambda: fma(x, 1, 2, out=fake(x, device=2)), "out of kernel 'fma'")
    refused(lambda: fma(fake(x), 1, 2, fake(x)), "takes 3 positional arguments, 4 were given")
    refused(lambda: fma(fake(x), 1), "misses argument 3 'c'")
    assert_same(of(fma(fake(x, device=3), 1, 2)), x + 2)  # pinned memory is the CPU's


@pytest.mark.parametrize("fake", [Fake, FakeExchanged])
def test_flags_and_errors(fake):
    x = np.arange(4.0)
    assert_same(fma(fake(x, flags=1), 1, 2).array, x + 2)
    refused(
        lambda: store(x=fake(x), o=fake(x, flags=1)), "writes argument 2 'o', which is read-only"
    )
    error = BufferError("it is elsewhere.\nmore")
    reason = "it is elsewhere" if fake is Fake else "it gives no reason"
    refused(lambda: fma(fake(x, error=error), 1, 2), f"cannot be read in place: {reason}\n", "hint")
    if fake is Fake:
        refused(lambda: fma(fake(x, error=error, device=2), 1, 2), "on a CUDA device")
        refused(lambda: fma(fake(x, major=2), 1, 2), "speaks DLPack 2")
        refused(lambda: fma(fake(x, flags=2), 1, 2), "a copy of itself")


def test_two_libraries():
    x = np.arange(4.0)

    class Other(Fake):
        __module__ = "other.arrays"

    for call in (
        lambda: fma(Fake(x), Other(x), 1),
        lambda: fma(Fake(x), b=Other(x), c=1),
        lambda: both(Fake(x), out=(None, Other(x))),
    ):
        refused(call, "is a fake_tensor.Fake", "a other.arrays.Other", "of one library")
    refused(
        lambda: fma(Fake(x), x, 1),
        "argument 1 'a' is a fake_tensor.Fake, argument 2 'b' of kernel 'fma'",
        "a numpy.ndarray",
    )
    refused(lambda: fma(memoryview(x), Fake(x), 1), "is a memoryview")
    assert_same(fma(memoryview(x), x, 1), x * x + 1)  # buffers are NumPy's


def test_buffers(backend):
    numbers = array.array("d", [1, 2, 3])
    for buffer in (numbers, memoryview(numbers), (ctypes.c_double * 3)(1, 2, 3)):
        got = fma(buffer, 2, 1, backend=backend)
        assert type(got) is np.ndarray
        assert_same(got, np.array([3.0, 5.0, 7.0]))
    assert store(numbers, numbers, backend=backend) is None
    assert numbers.tolist() == [2, 4, 6]
    assert add_one(numbers, backend=backend) is numbers
    text = bytearray(b"abc")
    add_one(text, backend=backend)
    assert text == b"bcd"
    text.append(1)  # nothing holds the buffer any more
    assert_same(fma(memoryview(b"abc"), 1, 1), np.frombuffer(b"bcd", np.uint8))
    spaced = memoryview(np.arange(12.0).reshape(3, 4).T[::2])
    assert_same(fma(spaced, 2, 1, backend=backend), np.asarray(spaced) * 2 + 1)


def test_what_buffers_cannot_be():
    refused(lambda: add_one(memoryview(b"abc")), "which is read-only")
    record = memoryview(np.ones(3, "f4,i4"))
    refused(lambda: fma(record, 1, 2), "argument 1 'a'", "has dtype [('f0', '<f4'), ('f1', '<i4')]")
    swapped = memoryview(np.ones(3, ">f4" if sys.byteorder == "little" else "<f4"))
    refused(lambda: fma(swapped, 1, 2), "in foreign byte order", "newbyteorder")
    refused(lambda: fma([1, 2], 1, 2), "is a list", "np.asarray")


class Interface:
    def __init__(self, array, **changes):
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, **changes}


class Convertible:
    """As pandas does: a view, or an error where a copy would be needed."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        if not isinstance(self.array, np.ndarray):
            if copy is False:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            return np.array(self.array)
        return self.array.view()


Convertible.__module__ = "pandas.fake"


@pytest.mark.parametrize("wrapped", [Interface, Convertible])
def test_array_likes(wrapped):
    x = np.arange(6.0)
    got = fma(wrapped(x), wrapped(x[::-1]), 1)
    assert type(got) is np.ndarray
    assert_same(got, x * x[::-1] + 1)
    like = wrapped(x)
    assert add_one(like) is like
    assert_same(x, np.arange(6.0) + 1)


def test_what_array_likes_cannot_be():
    pointer = np.ones(3).__array_interface__["data"][0]
    refused(lambda: add_one(Interface(np.ones(3), data=(pointer, True))), "which is read-only")
    refused(lambda: fma(Interface(np.ones(3), shape="x"), 1, 2), "cannot be read in place")
    refused(
        lambda: fma(Convertible([1, None]), 1, 2),
        "is a pandas.fake.Convertible, which cannot be read in place: Unable to avoid copy",
        "x.to_numpy(dtype=np.float64, na_value=np.nan)",
    )
    refused(lambda: fma(Convertible(np.array([None])), 1, 2), "of Python objects", "to_numpy")

    class OnDevice:
        __cuda_array_interface__ = ()

    refused(lambda: fma(OnDevice(), 1, 2), "OnDevice on a CUDA device", "copy it to the CPU")


def test_torch():
    torch = pytest.importorskip("torch")
    a, b, c = (torch.arange(6.0).reshape(2, 3) + i for i in range(3))
    for _ in range(2):
        assert torch.equal(fma(a, b, c), a * b + c)
    assert torch.equal(fma(a.T, b.T, 1), a.T * b.T + 1)
    o = torch.zeros(2, 3)
    assert fma(a, b, c, out=o) is o and torch.equal(o, a * b + c)
    store(a, o)
    assert torch.equal(o, a * 2)
    assert fma(torch.tensor(2), 3, 1).shape == () and fma(torch.empty(0, 3), 1, 1).shape == (0, 3)
    assert torch.equal(fma(torch.tensor([True, False]), True, False), torch.tensor([True, False]))
    assert fma(a, 1, 1).dtype == torch.float32 and fma(a, 1, c.double()).dtype == torch.float64
    assert torch.equal(fma(torch.nn.Parameter(a, requires_grad=False), 1, 1), a + 1)
    for dtype in (torch.float16, torch.bfloat16, torch.complex64, torch.uint16):
        assert torch.equal(fma(a.to(dtype), 2, 1), (a * 2 + 1).to(dtype))
    refused(lambda: fma(torch.nn.Parameter(a), 1, 1), "requires grad", "x.detach()")
    refused(lambda: fma(a.to("meta"), 1, 1), "meta", "x.to_dense().cpu()")
    refused(lambda: fma(a.to_sparse(), 1, 1), "cannot be read in place", "x.to_dense().cpu()")
    refused(
        lambda: fma(torch.conj(torch.tensor([1j])).imag, 1, 1), "x.resolve_conj().resolve_neg()"
    )
    refused(lambda: fma(a, b.numpy(), c), "is a torch.Tensor", "a numpy.ndarray")
    if torch.cuda.is_available():
        refused(lambda: fma(a.cuda(), 1, 1), "on a CUDA device", "x.cpu()")


def test_jax():
    jnp = pytest.importorskip("jax.numpy")
    import jax

    a, b, c = (jnp.arange(6, dtype=jnp.float32).reshape(2, 3) + i for i in range(3))
    for _ in range(2):
        got = fma(a, b, c)
        assert isinstance(got, jax.Array) and got.dtype == jnp.float32
        assert_same(np.asarray(got), np.asarray(a * b + c))
    assert isinstance(fma(jnp.float32(2), 1, 1), jax.Array)
    refused(lambda: store(a, b), "writes argument 2 'o', which is read-only", "jax")
    refused(lambda: fma(a, np.asarray(b), c), "is a jax.Array", "a numpy.ndarray")
    refused(lambda: jax.jit(lambda x: fma(x, 1, 1))(a), "jax.pure_callback")
    # bfloat16 has no buffer format: it comes and goes by DLPack.
    assert fma(jnp.ones(3, jnp.bfloat16), 1, 1).dtype == jnp.bfloat16


def test_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "n": [1, 2, 3], "s": ["a", "b", "c"]})
    assert_same(fma(frame["x"], frame["n"], 1), np.array([2.0, 5.0, 10.0]))
    refused(lambda: fma(frame["s"], 1, 1), "argument 1 'a'", "to_numpy")
    refused(lambda: fma(pd.Series([1, None], dtype="Int64"), 1, 1), "argument 1 'a'", "to_numpy")
    refused(lambda: fma(frame, 1, 1), "argument 1 'a'", "to_numpy")


def test_results_are_dropped_by_other_threads_and_at_exit():
    """Other libraries may drop a result at exit, or on a thread of theirs."""
    code = """
import ctypes, threading, numpy as np, picokernel as pk
from fake_tensor import Fake, _api, Versioned
@pk.kernel
def f(x): return x + 1
kept = []
class Keeper(Fake):
    @classmethod
    def from_dlpack(cls, x):
        capsule = x.__dlpack__(max_version=(1, 3))
        kept.append(_api.PyCapsule_GetPointer(capsule, b"dltensor_versioned"))
        ctypes.pythonapi.PyCapsule_SetDestructor(ctypes.py_object(capsule), None)
        return cls(np.zeros(1))
f(Keeper(np.ones(3))), f(Keeper(np.ones(3)))
def drop(address):
    tensor = Versioned.from_address(address)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(tensor.deleter)(address)
t = threading.Thread(target=drop, args=[kept[0]]); t.start(); t.join()
"""
    here = os.path.dirname(__file__)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *sys.path])}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)

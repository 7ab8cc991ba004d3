"""pk.empty and pk.trim."""

import gc
import threading

import numpy as np
import picokernel as pk
import pytest


@pk.kernel
def fma(a, b, c):
    return a * b + c


@pytest.mark.parametrize("shape", [(), 5, (3, 4), (1 << 20,), (0, 3), np.array([2, 3])])
@pytest.mark.parametrize("dtype", [None, "f4", np.int8, bool, np.complex64, "f4,i4"])
def test_empty(shape, dtype):
    x, want = pk.empty(shape, dtype), np.empty(shape, dtype)
    assert type(x) is np.ndarray and (x.dtype, x.shape) == (want.dtype, want.shape)
    assert x.flags == want.flags or not x.flags.owndata
    assert x.flags.c_contiguous and x.flags.writeable and x.flags.aligned
    if x.size:
        assert x.ctypes.data % 4096 == 0
        x[...] = np.zeros((), dtype)
    if x.nbytes >= 4 << 20:
        assert x.ctypes.data % (2 << 20) == 0


def test_empty_of_other_types():
    assert pk.empty(3, object).tolist() == [None] * 3
    assert pk.empty(3, "(2,)f4").shape == (3, 2)
    assert pk.empty(3, "S").dtype == np.empty(3, "S").dtype


def test_empty_refuses():
    for bad in (-1, (3, -1), (1 << 40, 1 << 40)):
        with pytest.raises(ValueError, match=r"negative|too big"):
            pk.empty(bad)
    with pytest.raises(TypeError):
        pk.empty(2.5)
    with pytest.raises(TypeError):
        pk.empty(3, "no type")
    with pytest.raises(MemoryError):
        pk.empty(1 << 60, "i1")


def test_kernels_write_into_empty_arrays(backend):
    o = pk.empty(1000)
    assert fma(np.ones(1000), 2, 1, out=o, backend=backend) is o
    assert (o == 3).all()


def test_trim():
    pk.trim()
    address = pk.empty(1 << 20, "i1").ctypes.data
    x = pk.empty(1 << 20, "i1")
    assert x.ctypes.data == address  # from the pool
    x[...] = 7
    del x
    large = fma(np.ones(1 << 18), 2, 1)
    assert pk.trim() >= 1 << 20
    assert pk.trim() == 0
    assert (large == 3).all()
    del large
    gc.collect()
    assert pk.trim() >= 1 << 21


def test_trim_reaches_other_threads():
    pk.trim()
    filled, done = threading.Event(), threading.Event()

    def keep():
        pk.empty(1 << 20, "i1")
        filled.set()
        done.wait()

    thread = threading.Thread(target=keep)
    thread.start()
    filled.wait()
    assert pk.trim() >= 1 << 20
    done.set()
    thread.join()

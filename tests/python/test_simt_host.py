"""Host code of Numba's CUDA target: arrays, streams, events, devices, reductions."""

import numpy as np
import picokernel as pk
import pytest
from picokernel import simt as cuda


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def test_arrays_of_the_device_are_copies(threads_backend):
    host = np.arange(5, dtype=np.float32)
    device = cuda.to_device(host)
    add_one.forall(5)(device)
    assert host.tolist() == [0, 1, 2, 3, 4]
    copy = device.copy_to_host()
    assert type(copy) is np.ndarray and copy.tolist() == [1, 2, 3, 4, 5]
    assert device.copy_to_host(host) is host and host.tolist() == copy.tolist()
    device.copy_to_device(np.zeros(5, np.float32))
    add_one.forall(2)(device[1:3])
    assert device.copy_to_host().tolist() == [0, 1, 1, 0, 0]
    assert [part.size for part in device.split(2)] == [2, 2, 1]
    with pytest.raises(pk.LaunchError, match="float64"):
        device.copy_to_device(np.zeros(5))
    with pytest.raises(pk.LaunchError, match=r"\(4,\)"):
        device.copy_to_host(np.zeros(4, np.float32))


def test_making_arrays():
    x = cuda.device_array((3, 4), np.int32, order="F")
    assert (x.shape, x.dtype) == ((3, 4), np.int32) and x.is_f_contiguous()
    like = cuda.device_array_like(x)
    assert like.strides == x.strides and like.is_f_contiguous() and not like.is_c_contiguous()
    assert x.reshape(12, order="F").shape == (12,) and x.ravel().nbytes == x.alloc_size
    assert cuda.is_cuda_array(x.T) and not cuda.is_cuda_array(np.zeros(3))
    assert type(cuda.pinned_array(3)) is np.ndarray and cuda.mapped_array(3).dtype == np.float64
    not_filled = cuda.to_device(np.ones(3), copy=False)
    assert not_filled.shape == (3,)
    assert (
        cuda.to_device(np.ones(3), to=not_filled) is not_filled and not_filled.tolist() == [1] * 3
    )
    own = np.zeros(3)
    cuda.as_cuda_array(own)[0] = 1
    assert own[0] == 1
    with pytest.raises(pk.LaunchError, match="a list is no array"):
        cuda.as_cuda_array([1])


def test_streams_and_events():
    stream, seen = cuda.stream(), []
    x = cuda.to_device(np.zeros(3), stream=stream)
    start, end = cuda.event(), cuda.event()
    with pytest.raises(pk.LaunchError, match="has no time"):
        start.elapsed_time(end)
    start.record(stream)
    with stream.auto_synchronize():
        add_one[1, 32, stream](x)
    end.record(stream)
    end.synchronize()
    stream.add_callback(lambda *words: seen.append(words[2]), 7)
    stream.synchronize()
    cuda.synchronize()
    assert x.copy_to_host(stream=stream).tolist() == [1, 1, 1] and seen == [7]
    assert cuda.event_elapsed_time(start, end) == start.elapsed_time(end) > 0 and end.query()
    with cuda.pinned(np.zeros(2)) as pinned, cuda.defer_cleanup():
        assert pinned.size == 2


def test_devices(capsys):
    assert cuda.is_available() and len(cuda.gpus) == len(cuda.list_devices()) == 1
    with cuda.gpus[0]:
        device = cuda.get_current_device()
    assert device.id == 0 and device.WARP_SIZE == 32 and device.MULTIPROCESSOR_COUNT >= 1
    free, total = cuda.current_context().get_memory_info()
    assert 0 < free <= total
    assert cuda.select_device(0) is device
    with pytest.raises(pk.LaunchError, match="no device 1"):
        cuda.select_device(1)
    assert cuda.detect() and "Found 1 device" in capsys.readouterr().out


total = cuda.reduce(lambda a, b: a + b)


@cuda.reduce
def largest(a, b):
    return a if a > b else b


@pytest.mark.parametrize("n", [0, 1, 5, 1000, 40_000])
def test_reductions(threads_backend, n):
    if threads_backend == "ref" and n > 1000:
        pytest.skip("interpreted")
    x = np.arange(n) % 1001
    assert total(x) == x.sum() and total(x, init=5) == x.sum() + 5
    assert total(x, size=n // 2) == x[: n // 2].sum()
    assert largest(x, init=-1) == (x.max() if n else -1)
    res = cuda.device_array(1, np.int64)
    assert total(cuda.to_device(x), res=res) is None and res[0] == x.sum()
    with pytest.raises(pk.LaunchError, match="2 dimensions"):
        total(np.zeros((2, 2)))


def test_forall_takes_the_size_of_blocks(threads_backend):
    seen = np.zeros(1, np.int64)

    @cuda.jit
    def blocks(seen):
        if cuda.grid(1) == 0:
            seen[0] = cuda.blockDim.x

    blocks.forall(100, tpb=64)(seen)
    assert seen[0] == 64
    blocks.configure(2, 16)(seen)
    assert seen[0] == 16
    with pytest.raises(pk.LaunchError, match="forall"):
        blocks.forall(-1)

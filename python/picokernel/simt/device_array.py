"""Arrays and devices, as host code for Numba's CUDA target handles them.

Kernels of threads run where NumPy's memory is, so that an array of the device is an array of NumPy's
of its own: what `to_device` copies stays apart from what it was copied from, as on a GPU, and tests of
host code mean something."""

import contextlib
import os
import time

import numpy as np

from .. import _core
from ..errors import LaunchError


class DeviceArray(np.ndarray):
    """An array of the device. `copy_to_host()` gives a NumPy array, `copy_to_device(x)` overwrites it."""

    def copy_to_host(self, ary=None, stream=0):
        """A copy, or `ary` with the elements copied into it."""
        if ary is None:
            return np.array(self, subok=False)
        _require_same(self, ary)
        np.copyto(ary, self)
        return ary

    def copy_to_device(self, ary, stream=0):
        _require_same(self, np.asarray(ary))
        np.copyto(self, ary)

    def split(self, section, stream=0):
        """Arrays of `section` elements each, the last one of what is left."""
        for begin in range(0, self.size, section):
            yield self[begin : begin + section]

    def bind(self, stream=0):
        return self

    def is_c_contiguous(self):
        return bool(self.flags["C_CONTIGUOUS"])

    def is_f_contiguous(self):
        return bool(self.flags["F_CONTIGUOUS"])

    @property
    def alloc_size(self):
        return self.nbytes


_core._read_as_array(DeviceArray)


def _require_same(device, host):
    if (device.shape, device.dtype) != (host.shape, host.dtype):
        raise LaunchError(
            f"the array of the device is {device.dtype} {device.shape}, the host's {host.dtype} {host.shape}\n"
            "  hint: both have the same dtype and shape"
        )


def to_device(obj, stream=0, copy=True, to=None):
    """A copy of an array, as an array of the device; with `copy=False` one that is not filled. `to` is
    one that exists, to copy into."""
    array = np.asarray(obj)
    if to is None:
        to = device_array_like(array)
    if copy:
        to.copy_to_device(array)
    return to


def device_array(shape, dtype=np.float64, strides=None, order="C", stream=0):
    """An array of the device, not filled."""
    if strides is not None:
        return np.ndarray.__new__(DeviceArray, shape, dtype, strides=strides)
    return np.empty(shape, dtype, order).view(DeviceArray)


def device_array_like(ary, stream=0):
    return np.empty_like(ary, subok=False).view(DeviceArray)


def pinned_array(shape, dtype=np.float64, strides=None, order="C"):
    """An array of the host's: all of them can be used by kernels."""
    return np.empty(shape, dtype, order)


def mapped_array(shape, dtype=np.float64, strides=None, order="C", **options):
    return device_array(shape, dtype, strides, order)


managed_array = mapped_array


def pinned_array_like(ary):
    return np.empty_like(ary, subok=False)


mapped_array_like = device_array_like


def is_cuda_array(obj):
    return isinstance(obj, DeviceArray)


def as_cuda_array(obj, sync=True):
    """An array of the device as it is; raises LaunchError for arrays of GPUs."""
    if isinstance(obj, DeviceArray):
        return obj
    if isinstance(obj, np.ndarray):
        return obj.view(DeviceArray)
    raise LaunchError(
        f"a {type(obj).__name__} is no array of this device, which has NumPy's memory\n"
        "  hint: copy it to the host, and pass the NumPy array"
    )


# ---- Order: a launch is over when the call returns


class Stream:
    """What comes in a stream is done in order; here all of it is done when the call returns."""

    handle = 0

    def synchronize(self):
        pass

    @contextlib.contextmanager
    def auto_synchronize(self):
        yield self

    def add_callback(self, callback, arg=None):
        callback(self, 0, arg)

    def __bool__(self):
        return False


def stream():
    return Stream()


default_stream = legacy_default_stream = per_thread_default_stream = stream


def synchronize():
    """All launches are over when they return."""


class Event:
    """A point in time."""

    def __init__(self, timing=True):
        self._time = None

    def record(self, stream=0):
        self._time = time.perf_counter()

    def query(self):
        return True

    def synchronize(self):
        pass

    def wait(self, stream=0):
        pass

    def elapsed_time(self, end):
        """Milliseconds from this event to another one."""
        if self._time is None or end._time is None:
            raise LaunchError("an event has no time\n  hint: event.record() where it happens")
        return 1e3 * (end._time - self._time)


def event(timing=True):
    return Event(timing)


def event_elapsed_time(start, end):
    return start.elapsed_time(end)


@contextlib.contextmanager
def pinned(*arrays):
    yield arrays if len(arrays) != 1 else arrays[0]


@contextlib.contextmanager
def mapped(*arrays, **options):
    views = tuple(a.view(DeviceArray) for a in arrays)
    yield views if len(views) != 1 else views[0]


@contextlib.contextmanager
def defer_cleanup():
    yield


# ---- Devices


class Device:
    """The processor, in the words of Numba's devices."""

    id = 0
    name = "picokernel on this machine's CPU"
    compute_capability = (0, 0)
    uuid = "CPU-0"
    WARP_SIZE = 32
    MAX_THREADS_PER_BLOCK = MAX_BLOCK_DIM_X = MAX_BLOCK_DIM_Y = MAX_BLOCK_DIM_Z = 1024
    MAX_GRID_DIM_X = MAX_GRID_DIM_Y = MAX_GRID_DIM_Z = 2**31 - 1
    MAX_SHARED_MEMORY_PER_BLOCK = 1 << 20

    @property
    def MULTIPROCESSOR_COUNT(self):
        return _core.num_threads()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def __repr__(self):
        return f"<device 0: {self.name}>"

    def reset(self):
        pass


class Context:
    device = Device()

    def get_memory_info(self):
        """Bytes that are free, and all of them."""
        page = os.sysconf("SC_PAGE_SIZE")
        return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")

    def synchronize(self):
        pass

    def reset(self):
        pass


gpus = [Context.device]


def list_devices():
    return gpus


def is_available():
    """Kernels of threads run everywhere."""
    return True


def get_current_device():
    return Context.device


def current_context(device=0):
    return Context()


def select_device(device_id):
    if device_id != 0:
        raise LaunchError(f"there is no device {device_id}\n  there is 0, this machine's processor")
    return Context.device


def close():
    pass


def detect():
    print(f"Found 1 device: {Context.device.name}")
    return True


def profile_start():
    """`picokernel.profile` records launches."""


def profile_stop():
    pass


@contextlib.contextmanager
def profiling():
    yield


__all__ = [
    "Context",
    "Device",
    "DeviceArray",
    "Event",
    "Stream",
    "as_cuda_array",
    "close",
    "current_context",
    "default_stream",
    "defer_cleanup",
    "detect",
    "device_array",
    "device_array_like",
    "event",
    "event_elapsed_time",
    "get_current_device",
    "gpus",
    "is_available",
    "is_cuda_array",
    "legacy_default_stream",
    "list_devices",
    "managed_array",
    "mapped",
    "mapped_array",
    "mapped_array_like",
    "per_thread_default_stream",
    "pinned",
    "pinned_array",
    "pinned_array_like",
    "profile_start",
    "profile_stop",
    "profiling",
    "select_device",
    "stream",
    "synchronize",
    "to_device",
]

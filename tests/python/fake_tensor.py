"""Exporters of DLPack tensors made of ctypes: every form of the protocol, and every way to get it wrong."""

import ctypes

import numpy as np

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Old(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


_CODES = {"b": 6, "i": 0, "u": 1, "f": 2, "c": 5}
_alive = {}  # address of the managed tensor -> what it needs


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(address):
    del _alive[address]


def alive():
    """How many exported tensors nobody has given back."""
    return len(_alive)


def _managed(kind, array, settings):
    managed = kind()
    t = managed.tensor
    t.data = array.ctypes.data - settings.get("byte_offset", 0)
    t.byte_offset = settings.get("byte_offset", 0)
    t.device_type = settings.get("device", 1)
    t.ndim = array.ndim
    t.code = settings.get("code", _CODES[array.dtype.kind])
    t.bits = settings.get("bits", 8 * array.dtype.itemsize)
    t.lanes = settings.get("lanes", 1)
    t.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    if not settings.get("no_strides"):
        steps = [s // array.dtype.itemsize for s in array.strides]
        t.strides = (ctypes.c_int64 * array.ndim)(*steps)
    managed.deleter = ctypes.cast(_delete, ctypes.c_void_p).value
    if kind is Versioned:
        managed.major, managed.minor = settings.get("major", 1), 3
        managed.flags = settings.get("flags", 0)
    address = ctypes.addressof(managed)
    _alive[address] = (managed, array)
    return address


class Plain:
    """Has memory, and no way to hand it over."""

    def __init__(self, array, **settings):
        self.array = np.asarray(array)
        self.settings = settings

    dtype = "fake32"


class Fake(Plain):
    """`__dlpack__` of today; results come back as Fake."""

    def __dlpack_device__(self):
        return (self.settings.get("device", 1), 0)

    def __dlpack__(self, *, max_version=None, copy=None):
        assert max_version == (1, 3) and copy is False
        if error := self.settings.get("error"):
            raise error
        address = _managed(Versioned, self.array, self.settings)
        return _api.PyCapsule_New(address, b"dltensor_versioned", None)

    def __array_namespace__(self):
        return type(self)

    @classmethod
    def from_dlpack(cls, x):
        return cls(np.from_dlpack(x))


class FakeOfBefore(Plain):
    """`__dlpack__` before versions; results are NumPy's."""

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, stream=None):
        return _api.PyCapsule_New(_managed(Old, self.array, self.settings), b"dltensor", None)


_Out = ctypes.POINTER(ctypes.c_void_p)


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, _Out)
def _from_object(fake, out):
    if fake.settings.get("error"):
        return -1  # a callback of ctypes cannot set an error
    out[0] = _managed(Versioned, fake.array, fake.settings)
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _Out)
def _to_object(address, out):
    capsule = _api.PyCapsule_New(address, b"dltensor_versioned", None)

    class Holder:
        def __dlpack__(self, **_):
            return capsule

        def __dlpack_device__(self):
            return (1, 0)

    fake = FakeExchanged(np.from_dlpack(Holder()))
    _api.Py_IncRef(ctypes.py_object(fake))
    out[0] = id(fake)
    return 0


class _Api(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p),
        ("borrow_from_object", ctypes.c_void_p),
        ("current_stream", ctypes.c_void_p),
    ]


_functions = _Api(
    major=1,
    minor=3,
    from_object=ctypes.cast(_from_object, ctypes.c_void_p).value,
    to_object=ctypes.cast(_to_object, ctypes.c_void_p).value,
)
_CAPSULE = b"dlpack_exchange_api"  # the capsule keeps a pointer to it
_newer = _Api(major=2, previous=ctypes.addressof(_functions))


class FakeExchanged(Plain):
    """DLPack's C functions, found behind those of a newer version."""

    __dlpack_c_exchange_api__ = _api.PyCapsule_New(ctypes.addressof(_newer), _CAPSULE, None)

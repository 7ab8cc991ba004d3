"""Types under Numba's names, and signatures of them: `void(float32[:], int32)`.

A type converts numbers, here and in kernels: `int32(x)`. It is a dtype for NumPy, too. Indexed by
slices it is the type of arrays: float32[:] of one dimension, float32[:, ::1] of two in C order,
float32[::1, :] in Fortran order."""

import numpy as np

from ..errors import CompileError

_LETTERS = {"b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64"} | {
    "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
    "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
}  # fmt: skip
_WORDS = {
    "boolean": "bool", "bool_": "bool", "byte": "uint8", "char": "int8", "uchar": "uint8",
    "short": "int16", "ushort": "uint16", "intc": "int32", "uintc": "uint32", "int_": "int64",
    "uint": "uint64", "long_": "int64", "ulong": "uint64", "longlong": "int64",
    "ulonglong": "uint64", "intp": "int64", "uintp": "uint64", "ssize_t": "int64",
    "size_t": "uint64", "float_": "float32", "double": "float64",
}  # fmt: skip


class Type:
    """The type of a number."""

    def __init__(self, name):
        self.name = name
        self.dtype = np.dtype(name)

    def __repr__(self):
        return self.name

    def __eq__(self, other):
        return isinstance(other, Type) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __call__(self, *arguments):
        if arguments and all(isinstance(a, (Type, Array)) for a in arguments):
            return Signature(self, arguments)
        return self.dtype.type(*arguments)

    def __getitem__(self, index):
        slices = index if isinstance(index, tuple) else (index,)
        whole, dense = slice(None), slice(None, None, 1)
        if not all(s in (whole, dense) for s in slices) or slices[1:-1].count(dense):
            raise CompileError(
                f"{self} with these indices is no type of arrays\n"
                "  hint: float32[:], float32[:, ::1] in C order, float32[::1, :] in Fortran order"
            )
        return Array(
            self, len(slices), "C" if slices[-1] == dense else "F" if slices[0] == dense else "A"
        )


class Array:
    """The type of an array: its elements', how many dimensions, and whether it is in C order ("C"), in
    Fortran order ("F") or in any ("A")."""

    def __init__(self, dtype, ndim, layout="A"):
        self.dtype, self.ndim, self.layout = dtype, ndim, layout

    def __repr__(self):
        first = "::1" if self.layout == "F" else ":"
        last = "::1" if self.layout == "C" else first if self.ndim == 1 else ":"
        return f"{self.dtype}[{', '.join([first, *[':'] * (self.ndim - 2), last][-self.ndim :])}]"

    def __eq__(self, other):
        return isinstance(other, Array) and repr(self) == repr(other)

    def __hash__(self):
        return hash(repr(self))

    def takes(self, array):
        """Whether an array has this type."""
        flags = getattr(array, "flags", None)
        return (
            flags is not None
            and (array.dtype, array.ndim) == (self.dtype.dtype, self.ndim)
            and (self.layout != "C" or flags["C_CONTIGUOUS"])
            and (self.layout != "F" or flags["F_CONTIGUOUS"])
        )


class Void:
    """What kernels return."""

    name = "void"

    def __repr__(self):
        return "void"

    def __call__(self, *arguments):
        return Signature(self, arguments)


class Signature:
    """What a function takes, and gives."""

    def __init__(self, return_type, args):
        self.return_type, self.args = return_type, tuple(args)

    def __repr__(self):
        return f"{self.return_type}({', '.join(map(repr, self.args))})"


void = Void()
none = void
_NUMBERS = {name: Type(name) for name in dict.fromkeys(_LETTERS.values())}
NAMES = _NUMBERS | {a: _NUMBERS[b] for a, b in (_LETTERS | _WORDS).items()}
del NAMES["bool"]  # Python's, in modules that import all names
NAMES |= {"void": void, "none": void}
globals().update(NAMES)
__all__ = sorted(NAMES)


def signature_of(given):
    """A Signature of "void(float32[:], int32)", of such a call, or of a tuple of types: ours, NumPy's
    or Numba's. Raises CompileError."""
    if isinstance(given, str):
        try:
            value = eval(given, {"__builtins__": {}}, NAMES)
        except CompileError:
            raise
        except Exception as error:
            raise CompileError(
                f"the signature {given!r} cannot be read: {error}\n"
                '  hint: "void(float32[:], int32)", "float64(float64, float64)" of a device function'
            ) from None
        given = value
    if isinstance(given, Signature):
        return Signature(given.return_type, map(type_of, given.args))
    if hasattr(given, "args") and hasattr(given, "return_type"):  # Numba's
        result = given.return_type
        return Signature(
            void if str(result) in ("void", "none", "None") else type_of(result),
            map(type_of, given.args),
        )
    if isinstance(given, (tuple, list)):
        return Signature(void, map(type_of, given))
    if isinstance(given, (Type, Array)):
        return Signature(void, (given,))
    raise CompileError(
        f"{given!r} is no signature\n"
        '  hint: "void(float32[:], int32)", or a tuple of types: (float32[:], int32)'
    )


def type_of(given):
    """One of our types, for one of NumPy's or Numba's. Raises CompileError."""
    if isinstance(given, (Type, Array)):
        return given
    if hasattr(given, "layout") and hasattr(given, "ndim"):
        return Array(type_of(given.dtype), given.ndim, given.layout)
    try:
        name = (
            str(given) if isinstance(given, str) or not _is_numpy(given) else np.dtype(given).name
        )
    except TypeError:
        name = str(given)
    if name in NAMES or name == "bool":
        return NAMES["boolean" if name == "bool" else name]
    raise CompileError(
        f"{given!r} is no type of kernels\n  hint: numbers such as float32, arrays such as float32[:]"
    )


def _is_numpy(given):
    return isinstance(given, np.dtype) or (
        isinstance(given, type) and issubclass(given, np.generic)
    )

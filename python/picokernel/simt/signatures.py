"""What a kernel's signatures allow: arguments of a launch against declared types."""

import numpy as np

from ..errors import LaunchError
from .types import Array


def kind_of(argument):
    """An argument's type as text: "float32[:, ::1]", "Python int"."""
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        layout = "C" if flags["C_CONTIGUOUS"] else "F" if flags["F_CONTIGUOUS"] else "A"
        return repr(Array(argument.dtype, argument.ndim, layout))
    if isinstance(argument, np.generic):
        return argument.dtype.name
    return f"Python {type(argument).__name__}"


def _number(argument, type):
    """The number as its declared type, or None if it is none: integers have to fit, and a float becomes
    no integer."""
    if isinstance(argument, np.ndarray) and argument.ndim == 0:
        argument = argument[()]
    if not isinstance(argument, (bool, int, float, complex, np.generic)):
        return None
    kind, given = type.dtype.kind, np.asarray(argument).dtype.kind
    order = "buifc"
    if given not in order or order.index(given) > order.index("i" if kind == "u" else kind):
        return None
    if kind in "ui":
        limits = np.iinfo(type.dtype)
        if not limits.min <= int(argument) <= limits.max:
            return None
    return type.dtype.type(argument)


def _converted(arguments, signature):
    if len(arguments) != len(signature.args):
        return None
    converted = []
    for argument, type in zip(arguments, signature.args, strict=True):
        if isinstance(type, Array):
            value = argument if type.takes(argument) else None
        else:
            value = _number(argument, type)
        if value is None:
            return None
        converted.append(value)
    return tuple(converted)


def apply(name, signatures, arguments):
    """The arguments for the first signature that takes them, numbers converted. Raises LaunchError."""
    for signature in signatures:
        converted = _converted(arguments, signature)
        if converted is not None:
            return converted
    declared = "\n".join(f"  declared: {s}" for s in signatures)
    raise LaunchError(
        f"the arguments of kernel '{name}' do not have the declared types\n"
        f"  given: ({', '.join(map(kind_of, arguments))})\n{declared}\n"
        "  hint: leave the signature out to have the kernel compiled for what it is given"
    )


def examples(signature):
    """Arguments of these types, to compile a kernel before it is launched."""

    def of(type):
        if not isinstance(type, Array):
            return type.dtype.type(1)
        shape = (2,) * type.ndim
        if type.layout == "A":
            return np.zeros((4,) * type.ndim, type.dtype.dtype)[(slice(None, None, 2),) * type.ndim]
        return np.zeros(shape, type.dtype.dtype, order=type.layout)

    return tuple(map(of, signature.args))

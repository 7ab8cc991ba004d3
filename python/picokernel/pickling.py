"""Kernels in other processes: what pickles of them hold, and Dask's tokens.

A kernel that the other side can import goes by name, as functions do. Others (closures, lambdas,
what is defined in a notebook or script) go as bytecode with the values that it captures. Nothing
compiled is in a pickle: the other side compiles, or finds the kernel in its cache.
"""

import enum
import hashlib
import importlib
import marshal
import pickle
import sys
import types
from importlib.util import MAGIC_NUMBER

import numpy as np

from . import _core
from .captures import _GLOBALS, _names, absent, captures
from .errors import CompileError, LaunchError


def reduced(kernel):
    if _importable(kernel, kernel):
        return kernel.__qualname__
    function, options = kernel.__wrapped__, kernel._options
    if _importable(function, function):
        return type(kernel), (function, *options)
    try:
        captures([kernel])
    except (CompileError, LaunchError) as error:
        text = str(error).partition("\n")[0]
        raise pickle.PicklingError(
            f"kernel '{kernel.__name__}' cannot be pickled: {text}\n"
            "  it is not an attribute of a module, so it goes with what it captures"
        ) from error
    memo = {}
    made = _parts(function, memo), type(kernel), options
    return _made_kernel, made, _state(function, memo), None, None, _fill_kernel


class _ByValue:
    """A function that the other side cannot import; becomes one when it is loaded."""

    def __init__(self, function, memo):
        self.function, self.memo = function, memo

    def __reduce__(self):
        state = _state(self.function, self.memo)
        return _made_function, _parts(self.function, self.memo), state, None, None, _fill


class _Module:
    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return importlib.import_module, (self.name,)


def _importable(thing, value):
    if thing.__module__ in (None, "__main__", "__mp_main__"):
        return False
    found = sys.modules.get(thing.__module__)
    for name in thing.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def _sent(value, memo):
    """What goes in the place of a captured value."""
    if isinstance(value, types.ModuleType):
        return _Module(value.__name__)
    if isinstance(value, types.FunctionType) and not _importable(value, value):
        return memo.setdefault(id(value), _ByValue(value, memo))
    return tuple(_sent(v, memo) for v in value) if type(value) is tuple else value


def _parts(function, memo):
    names = (function.__name__, function.__qualname__, function.__module__, function.__doc__)
    defaults = _sent(function.__defaults__, memo), function.__kwdefaults__
    return marshal.dumps(function.__code__), MAGIC_NUMBER, names, defaults


def _state(function, memo):
    """Globals and cells, which may lead back to the function; an empty cell is an empty tuple."""
    scope, cells = function.__globals__, []
    used = dict.fromkeys(name for name, *_ in _names(function.__code__, _GLOBALS))
    for cell in function.__closure__ or ():
        try:
            cells.append((_sent(cell.cell_contents, memo),))
        except ValueError:
            cells.append(())
    return {name: _sent(scope[name], memo) for name in used if name in scope}, cells


def _made_function(code, magic, names, defaults):
    if magic != MAGIC_NUMBER:
        raise pickle.UnpicklingError(
            f"the kernel or function '{names[1]}' was pickled by another version of Python\n"
            "  bytecode is not portable: put it in a module, which goes by name"
        )
    code = marshal.loads(code)
    scope = {"__name__": names[2], "__builtins__": __builtins__}
    cells = tuple(types.CellType() for _ in code.co_freevars)
    function = types.FunctionType(code, scope, names[0], None, cells)
    function.__qualname__, function.__module__, function.__doc__ = names[1:]
    function.__defaults__, function.__kwdefaults__ = defaults
    return function


def _made_kernel(parts, cls, options):
    return cls(_made_function(*parts), *options)


def _fill(function, state):
    scope, cells = state
    function.__globals__.update(scope)
    for cell, content in zip(function.__closure__ or (), cells, strict=True):
        if content:
            cell.cell_contents = content[0]


def _fill_kernel(kernel, state):
    _fill(kernel.__wrapped__, state)


def token(kernel):
    """Equal in all processes of one version of Python for equal code, options and captured values."""
    digest = hashlib.sha256()

    def add(*parts):
        digest.update(repr(parts).encode())

    def add_code(code):
        add(code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_argcount)
        add(code.co_posonlyargcount, code.co_kwonlyargcount, code.co_exceptiontable)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                add_code(constant)
            else:
                add_value(constant)

    def add_value(value):
        add(type(value).__module__, type(value).__qualname__)
        if isinstance(value, types.FunctionType):
            add_function(value)
        elif isinstance(value, _core.KernelBase):
            add(value._options)
            add_function(value.__wrapped__)
        elif isinstance(value, np.ndarray):
            add(value.dtype.str, value.shape, value.tobytes())
        elif isinstance(value, np.generic):
            add(value.dtype.str, value.tobytes())
        elif isinstance(value, enum.Enum):
            add(value.name)
        elif isinstance(value, tuple):
            add(len(value))
            for item in value:
                add_value(item)
        elif isinstance(value, frozenset):
            add(sorted(map(repr, value)))
        elif isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
            add(getattr(value, "__module__", None), value.__name__)
        elif value is not absent:
            add(value)

    seen = {}

    def add_function(function):
        known = function in seen
        add(seen.setdefault(function, len(seen)))
        if known:
            return
        add_code(function.__code__)
        for value in (function.__defaults__, *sorted((function.__kwdefaults__ or {}).items())):
            add_value(value)

    add_value(kernel)
    watches, _, _ = captures([kernel])
    for _, _, value, name in watches:
        add(name)
        add_value(value)
    return "picokernel.Kernel", digest.hexdigest()

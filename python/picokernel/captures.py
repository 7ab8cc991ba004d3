"""What a kernel's function reaches beside its arguments: globals, closure cells, and attributes of
modules and classes, in it and in the Python functions that it calls.

A call compares the objects found here with what it finds then; a difference traces again. Modules
and functions of installed packages are constants.
"""

import contextlib
import dis
import enum
import functools
import importlib.util
import os
import sys
import types

import numpy as np

from . import _core
from .errors import CompileError, LaunchError, at_line

_ABSENT = object()
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_CELLS = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_CLOSURE", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_CONSTANTS = (type(None), bool, int, str, bytes, type(...))
_FUNCTIONS = (
    *(type, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType),
    *(types.GenericAlias, np.ufunc, type(np.sum), _core.KernelBase),
)
_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_PACKAGE = os.path.dirname(os.path.realpath(__file__)) + os.sep
_PREFIXES = (os.path.dirname(os.path.realpath(os.__file__)) + os.sep, _PACKAGE)


class Same:
    """A key that compares by identity and keeps its object alive."""

    __slots__ = ("object",)

    def __init__(self, object):
        self.object = object

    def __eq__(self, other):
        return isinstance(other, Same) and self.object is other.object

    def __hash__(self):
        return id(self.object)


def freeze(value, what="an argument"):
    """A hashable stand-in for a value that is fixed while tracing: equal only if the same code
    would be traced. Raises LaunchError for values that may change."""
    if isinstance(value, enum.Enum):
        return Same(value)
    if isinstance(value, float):
        return (type(value), value.hex())
    if isinstance(value, np.generic):
        return (type(value), value.tobytes())
    if isinstance(value, (complex, np.dtype)):
        return (type(value), repr(value))
    if isinstance(value, _CONSTANTS):
        return (type(value), value)
    if isinstance(value, slice):
        return (slice, freeze((value.start, value.stop, value.step), what))
    if isinstance(value, (tuple, frozenset)):
        items = [freeze(x, what) for x in value]
        return (type(value), frozenset(items) if isinstance(value, frozenset) else tuple(items))
    if isinstance(value, _FUNCTIONS):
        return Same(value)
    raise LaunchError(
        f"{what} is a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
        + "\n  kernels take arrays, numbers, and as constants: bool, str, None, dtypes,"
        " functions and tuples of these"
        + ("\n  make an array of it by np.asarray" if isinstance(value, list) else "")
    )


def functions_in(values):
    """The Python functions, kernels and users' classes among values and in tuples of them."""
    for value in values:
        if isinstance(value, tuple):
            yield from functions_in(value)
        elif isinstance(value, type):
            if not _installed(value):
                yield value
        elif isinstance(value, (types.FunctionType, _core.KernelBase)):
            yield value


def captures(roots):
    """(watches, key, arrays) of these functions. A watch is (container, name, object, text): a dict
    and a key, a cell and None, or an object and its attribute's name; object is absent if nothing
    is there. `arrays` are the numbers of the watches whose object is an array, each array once."""
    walk = _Walk()
    for root in roots:
        walk.root(root, getattr(root, "__name__", ""), None)
    arrays, numbers, key = [], {}, [Same(root) for root in roots[1:]]
    for i, (_, _, value, name) in enumerate(walk.watches):
        if isinstance(value, np.ndarray):
            if id(value) not in numbers:
                numbers[id(value)] = len(arrays)
                arrays.append(i)
            key.append((name, numbers[id(value)]))
        elif value is _ABSENT or isinstance(value, (types.ModuleType, property)):
            key.append((name, Same(value)))
        else:
            key.append((name, freeze(value)))
    return walk.watches, tuple(key), arrays


absent = _ABSENT


def with_arrays(function, replacements, memo=None):
    """The function with captured arrays replaced: a dict from id(array) to what stands for it."""
    memo = {} if memo is None else memo
    if isinstance(function, type):
        return function
    if id(function) in memo:
        return memo[id(function)]
    if isinstance(function, _core.KernelBase):
        inner = with_arrays(function.__wrapped__, replacements, memo)
        memo[id(function)] = result = functools.partial(function.inline, inner)
        return result
    code = function.__code__
    scope = dict(function.__globals__)
    cells = tuple(types.CellType() for _ in code.co_freevars)
    result = types.FunctionType(code, scope, function.__name__, function.__defaults__, cells)
    result.__kwdefaults__ = function.__kwdefaults__
    memo[id(function)] = result

    def replaced(value):
        if isinstance(value, np.ndarray):
            return replacements.get(id(value), value)
        if isinstance(value, (types.FunctionType, _core.KernelBase)) and not _installed(value):
            return with_arrays(value, replacements, memo)
        return tuple(map(replaced, value)) if type(value) is tuple else value

    for name in {name for name, *_ in _names(code, _GLOBALS)} & scope.keys():
        scope[name] = replaced(scope[name])
    for new, old in zip(cells, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # an empty cell stays empty
            new.cell_contents = replaced(old.cell_contents)
    return result


class _Walk:
    def __init__(self):
        self.watches = []
        self.seen = set()

    def root(self, value, name, place):
        if isinstance(value, type):
            self.whole(value, name, place or (None, 0, 0, 0))
        else:
            self.function(_python_function(value))

    def function(self, function):
        if function is None or id(function) in self.seen or _installed(function):
            return
        self.seen.add(id(function))
        code = function.__code__
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            if isinstance(value, type):
                place = (code.co_filename, code.co_firstlineno, 0, 0)
                self.reached(value, (), value.__name__, place)
        for name, _, place in _names(code, ("IMPORT_NAME",)):
            if not _installed_package(name.partition(".")[0]):
                hint = f"import '{name}' at the top of the file: there, changes of it are seen"
                message = f"the kernel imports '{name}' while it is traced"
                raise at_line(CompileError, message, place, [hint])
        for name, chain, place in _names(code, _GLOBALS):
            scope = function.__globals__
            value = scope.get(name, _ABSENT)
            self.watch(scope, name, value, chain, place)
            if value is _ABSENT:
                self.reached(getattr(_builtins(scope), name, _ABSENT), chain, name, place)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        for name, chain, place in _names(code, _CELLS):
            if (cell := cells.get(name)) is not None:
                try:
                    value = cell.cell_contents
                except ValueError:
                    value = _ABSENT
                self.watch(cell, None, value, chain, place, name)

    def watch(self, container, name, value, chain, place, shown=None):
        shown = shown or name
        if not any(c is container and n == name for c, n, *_ in self.watches):
            self.watches.append((container, name, value, shown))
        self.reached(value, chain, shown, place)

    def reached(self, value, chain, name, place):
        """What the kernel's code can do with a value that it reached under this name."""
        if isinstance(value, (types.ModuleType, type)):
            if _installed(value):
                return
            if chain:
                self.attribute(value, chain, name, place)
            elif isinstance(value, type):
                self.whole(value, name, place)
            else:
                hint = f"read what is needed where it is used, as in '{name}.rate'"
                message = f"the kernel hands the module '{name}' on, and its names may change"
                raise at_line(CompileError, message, place, [hint])
            return
        for function in functions_in((value,)):
            self.root(function, name, place)
        if chain and isinstance(value, types.FunctionType) and chain[0] in vars(value):
            self.attribute(value, chain, name, place)
        if value is _ABSENT or isinstance(value, np.ndarray):
            return
        try:
            freeze(value)
        except LaunchError:
            hint = f"pass what it holds as an argument: '{name}' may change between calls"
            if isinstance(value, (list, set)):
                hint = f"make '{name}' a tuple if it is constant, or an array"
            message = f"the kernel reads '{name}', a {type(value).__name__} from outside"
            raise at_line(CompileError, message, place, [hint]) from None

    def whole(self, cls, name, place):
        """A class that the code makes objects of or hands on: all that it and its bases hold."""
        if id(cls) in self.seen or issubclass(cls, enum.Enum):
            return
        self.seen.add(id(cls))
        for owner in (c for c in cls.__mro__ if not _installed(c)):
            for attribute, raw in list(vars(owner).items()):
                shown = f"{name}.{attribute}"
                if isinstance(raw, property):
                    self.watches.append((owner, attribute, raw, shown))
                    self.function(raw.fget)
                elif isinstance(raw, classmethod):  # reading it makes a new object each time
                    self.function(_python_function(raw.__func__))
                elif isinstance(raw, (types.FunctionType, staticmethod)):
                    self.watch(owner, attribute, getattr(owner, attribute), (), place, shown)
                elif not (attribute.startswith("__") or isinstance(raw, _SLOTS)):
                    self.watch(owner, attribute, raw, (), place, shown)

    def attribute(self, owner, chain, name, place):
        scope = vars(owner)
        module = isinstance(scope, dict)
        value = scope.get(chain[0], _ABSENT) if module else getattr(owner, chain[0], _ABSENT)
        name = f"{name}.{chain[0]}"
        if isinstance(value, np.ndarray):
            hint = "pass it as an argument, or give it a name of its own first"
            message = f"the kernel reads the array '{name}' of another module or class"
            raise at_line(CompileError, message, place, [hint])
        self.watch(scope if module else owner, chain[0], value, chain[1:], place, name)


def _python_function(value):
    if isinstance(value, _core.KernelBase):
        return value.__wrapped__
    return value if isinstance(value, types.FunctionType) else None


def _builtins(scope):
    found = scope.get("__builtins__", {})
    return found if isinstance(found, types.ModuleType) else types.SimpleNamespace(**found)


@functools.cache
def _installed_file(file):
    file = os.path.realpath(file)
    parts = file.split(os.sep)
    if file.startswith(_PACKAGE):  # its commands define kernels too
        return not parts[-1].startswith(("demo", "bench"))
    return file.startswith(_PREFIXES) or "site-packages" in parts or "dist-packages" in parts


def _installed(thing):
    """Belongs to an installed package, whose names are taken for constants."""
    if isinstance(thing, _core.KernelBase):
        return False
    if isinstance(thing, types.FunctionType):
        return _installed_file(thing.__code__.co_filename)
    module = thing if isinstance(thing, types.ModuleType) else sys.modules.get(thing.__module__)
    if module is None or module.__name__ == "__main__":
        return False
    if file := getattr(module, "__file__", None):
        return _installed_file(file)
    return module.__name__.partition(".")[0] in sys.stdlib_module_names


def _installed_package(name):
    if name in sys.stdlib_module_names:
        return True
    spec = importlib.util.find_spec(name) if name else None
    return spec is not None and bool(spec.origin) and _installed_file(spec.origin)


def _names(code, opnames):
    """(name, chain of attributes, place) of the names that code loads, functions in it included."""
    return _names_of(Same(code), opnames)


@functools.lru_cache(maxsize=64)
def _instructions(same):  # of one code object, several kinds of names are asked for: it takes long
    return [i for i in dis.get_instructions(same.object) if i.opname != "CACHE"]


@functools.lru_cache(maxsize=1024)
def _names_of(same, opnames):
    code = same.object
    found = []
    instructions = _instructions(same) if code.co_names or code.co_freevars else ()
    for n, instruction in enumerate(instructions):
        if instruction.opname not in opnames:
            continue
        chain = []
        for following in instructions[n + 1 :]:
            if following.opname not in _ATTRIBUTES:
                break
            chain.append(following.argval)
        p = instruction.positions
        place = (code.co_filename, p.lineno or code.co_firstlineno, (p.col_offset or 0) + 1, 0)
        found.append((instruction.argval, tuple(chain), place))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _names(constant, opnames)
    return tuple(found)

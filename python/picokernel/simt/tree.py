"""The syntax tree of a function as tuples, for the core, with the names of Python looked up."""

import ast
import builtins
import functools
import inspect
import types

import numpy as np

from .. import _core
from ..errors import CompileError, at_line
from .types import Type

# Nodes that the core looks into; of others it knows the kind.
_KNOWN = frozenset(
    [
        "Name",
        "Attribute",
        "Subscript",
        "Tuple",
        "BinOp",
        "UnaryOp",
        "BoolOp",
        "Compare",
        "IfExp",
        "Slice",
        "Call",
        "keyword",
        "Assign",
        "AugAssign",
        "AnnAssign",
        "Expr",
        "If",
        "For",
        "While",
        "Break",
        "Continue",
        "Return",
        "Pass",
    ]
)
_SKIPPED = {"ctx", "type_comment", "annotation", "simple", "kind"}
_OPERATORS = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
_MISSING = object()
_NOWHERE = (0, 0, 0)


class Intrinsic:
    """Something that has a meaning in kernels alone, by its name in this package."""

    def __init__(self, name, doc="", **members):
        self.__doc__ = doc
        self.name = name
        for member in members.items():
            setattr(self, *member)

    def __call__(self, *args, **kwargs):
        raise TypeError(f"simt.{self.name} is for kernels: functions with @simt.jit")

    def __repr__(self):
        return f"<simt.{self.name}>"


def program_of(function):
    """What the core compiles, and what that depends on: the tuple of functions, the kernel first, the
    arrays from outside that are its last parameters, and a list of (container, name, object found
    there)."""
    walker = _Program()
    walker.number_of(function)
    for f, signature in walker.functions:  # grows while it is walked
        walker.trees.append(_Function(walker, f).tree(signature))
    name, file, place, parameters, body, _ = walker.trees[0]
    captured = tuple(walker.captured.values())
    kernel = (name, file, place, (*parameters, *walker.captured), body, len(captured))
    return (kernel, *walker.trees[1:]), tuple(map(_read_only, captured)), walker.reads


def _read_only(array):
    view = array.view()
    view.flags.writeable = False
    return view


def unchanged(reads):
    """The same objects are found everywhere."""
    for container, name, value in reads:  # a loop: all() of a generator takes twice as long
        if (
            container.get(name) if type(container) is dict else _found(container, name)
        ) is not value:
            return False
    return True


def _found(container, name):
    if isinstance(container, dict):
        return container.get(name, _MISSING)
    if isinstance(container, types.CellType):
        try:
            return container.cell_contents
        except ValueError:
            return _MISSING
    return getattr(container, name, _MISSING)


class _Program:
    def __init__(self):
        self.functions, self.trees, self.reads = [], [], []
        self.captured = {}  # by the parameter's name

    def number_of(self, function, signature=None):
        if (function, signature) not in self.functions:
            self.functions.append((function, signature))
        return self.functions.index((function, signature))

    def captured_as(self, array, name):
        """The name of the parameter that the array is."""
        for known, other in self.captured.items():
            if other is array:
                return known
        own = {n for f, _ in self.functions for n in f.__code__.co_varnames}
        while name in self.captured or name in own:
            name += "_"
        self.captured[name] = array
        return name


class _Function:
    def __init__(self, program, function):
        self.program = program
        self.function = function
        self.code = function.__code__
        self.file = self.code.co_filename
        self.names = set(self.code.co_varnames) | set(self.code.co_cellvars)
        self.cells = dict(zip(self.code.co_freevars, function.__closure__ or (), strict=True))

    def tree(self, signature):
        """`signature`: what parameters and the result are converted to, or None."""
        place = (self.code.co_firstlineno, 1, 0)
        node = self._definition(place)
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            self._fail(
                node,
                f"the parameters of `{node.name}` are not all plain names",
                "functions of kernels have neither defaults nor * nor keyword-only parameters",
            )
        names = tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args))
        self.result = getattr(signature, "return_type", None)
        where = self._place(node)
        converted = [
            ("Assign", "", where, (_block([_name(n, where)]), _cast(t, _name(n, where), where)))
            for n, t in zip(names, signature.args if signature else (), strict=bool(signature))
            if isinstance(t, Type)
        ]
        return (node.name, self.file, where, names, (*converted, *self._fields(node.body)), 0)

    def _definition(self, place):
        try:
            lines, first = inspect.getsourcelines(self.function)
        except (OSError, TypeError):
            lines, first = [], 1
        source = "".join(lines)
        indented = source[:1].isspace()
        try:
            module = ast.parse("if 1:\n" + source if indented else source)
        except SyntaxError:
            module = ast.Module([], [])
        ast.increment_lineno(module, first - 1 - indented)
        self.lines, self.first = lines, first
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and node.name == self.function.__name__:
                return node
            if isinstance(node, ast.Lambda) and self._is_own(node):
                made = ast.FunctionDef("<lambda>", node.args, [ast.Return(node.body)])
                return ast.fix_missing_locations(ast.copy_location(made, node))
        raise at_line(
            CompileError,
            f"the source of `{self.function.__name__}` cannot be read",
            (self.file, *place),
            ["kernels are compiled from their source: a `def` in a file or a notebook's cell"],
        )

    def _is_own(self, node):
        """Lines may hold several lambdas."""
        code = compile(ast.Expression(node), "", "eval").co_consts[0]
        return (code.co_code, code.co_varnames) == (self.code.co_code, self.code.co_varnames)

    def _place(self, node):
        """Columns count characters, where ast counts bytes."""
        line = getattr(node, "lineno", 0)
        if not line:
            return _NOWHERE
        text = self.lines[line - self.first].encode()
        column = len(text[: node.col_offset].decode()) + 1
        same = node.end_lineno == line
        return (line, column, len(text[: node.end_col_offset].decode()) + 1 if same else 0)

    def _fail(self, node, message, hint):
        raise at_line(CompileError, message, (self.file, *self._place(node)), [f"hint: {hint}"])

    def _fields(self, nodes):
        return tuple(self._node(n) for n in nodes)

    def _node(self, n):
        kind = type(n).__name__
        if isinstance(n, list):
            return ("Block", "", _NOWHERE, self._fields(n))
        if n is None:
            return ("Nothing", "", _NOWHERE, ())
        if isinstance(n, str):
            return ("Text", n, _NOWHERE, ())
        if isinstance(n, _OPERATORS):
            return ("Text", kind, _NOWHERE, ())
        where = self._place(n)
        if isinstance(n, ast.Constant):
            return self._meaning(n.value, n, where)
        if isinstance(n, (ast.Name, ast.Attribute)):
            value = self._look_up(n)
            if value is not _MISSING:
                return self._meaning(value, n, where)
        if isinstance(n, ast.Name):
            return ("Name", n.id, where, ())
        if isinstance(n, ast.Assert):
            message = "" if n.msg is None else self._literal(n.msg)
            return ("Assert", message, where, (self._node(n.test),))
        if isinstance(n, ast.Raise):
            return self._raise(n, where)
        if isinstance(n, ast.Return) and n.value and isinstance(self.result, Type):
            return ("Return", "", where, (_cast(self.result, self._node(n.value), where),))
        if isinstance(n, ast.Tuple):
            return ("Tuple", "", where, self._fields(n.elts))
        fields = [f for f in n._fields if f not in _SKIPPED] if kind in _KNOWN else []
        return (kind, "", where, self._fields(getattr(n, f) for f in fields))

    def _literal(self, n):
        try:
            return str(ast.literal_eval(n))
        except (ValueError, TypeError):
            self._fail(
                n, "this text is not a constant", "write it out: the launch says which thread"
            )

    def _raise(self, n, where):
        named, arguments = n.exc, []
        if isinstance(named, ast.Call):
            named, arguments = named.func, named.args
        kind = self._look_up(named) if isinstance(named, (ast.Name, ast.Attribute)) else _MISSING
        if not (isinstance(kind, type) and issubclass(kind, Exception)) or (
            getattr(builtins, kind.__name__, None) is not kind
        ):
            self._fail(n, "kernels raise Python's own exceptions", 'raise ValueError("negative")')
        message = ", ".join(map(self._literal, arguments))
        return ("Raise", kind.__name__, where, (("Text", message, _NOWHERE, ()),))

    def _look_up(self, n):
        """The Python object that a name or an attribute is, unless the function computes it."""
        if isinstance(n, ast.Attribute):
            base = (
                self._look_up(n.value)
                if isinstance(n.value, (ast.Name, ast.Attribute))
                else _MISSING
            )
            if base is _MISSING or isinstance(base, np.ndarray):
                return _MISSING
            value = getattr(base, n.attr, _MISSING)
            if value is _MISSING:
                name = getattr(base, "__name__", type(base).__name__)
                self._fail(n, f"`{name}` has no attribute `{n.attr}`", "see its documentation")
            if isinstance(base, types.ModuleType) and base.__name__.split(".")[0] in _CONSTANT:
                return value
            self.program.reads.append((base, n.attr, value))
            return value
        if n.id in self.names:
            return _MISSING
        if n.id in self.cells:
            container = self.cells[n.id]
        else:
            container = self.function.__globals__
            if n.id not in container and hasattr(builtins, n.id):
                return getattr(builtins, n.id)
        value = _found(container, n.id)
        if value is _MISSING:
            self._fail(n, f"`{n.id}` is not defined", "assign it before, or pass it as an argument")
        self.program.reads.append((container, n.id, value))
        return value

    def _meaning(self, value, n, where):
        if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
            kind = next(t for t in (bool, int, float) if isinstance(value, t))
            return ("Number", kind.__name__, where, _digits(value))
        if isinstance(value, np.generic) and value.dtype.name in _core.dtype_names:
            return ("Number", value.dtype.name, where, _digits(value.item()))
        if value is None:
            return ("Nothing", "", where, ())
        if isinstance(value, tuple):
            return ("Tuple", "", where, tuple(self._meaning(v, n, where) for v in value))
        if isinstance(value, str):
            return ("Constant", "", where, ())
        if isinstance(value, np.ndarray):
            name = n.id if isinstance(n, ast.Name) else getattr(n, "attr", "array")
            return ("Captured", self.program.captured_as(value, name), where, ())
        if isinstance(value, Intrinsic):
            return ("Object", f"simt.{value.name}", where, ())
        python = getattr(value, "python_function", value)
        module = (getattr(python, "__module__", None) or "").split(".")[0]
        own = python is not value or module not in _CONSTANT
        if isinstance(python, types.FunctionType) and own:
            signature = getattr(value, "parameter_types", lambda: None)()
            return ("Function", "", where, self.program.number_of(python, signature))
        return ("Object", _object_name(value), where, ())


def _block(nodes):
    return ("Block", "", _NOWHERE, tuple(nodes))


def _name(text, where):
    return ("Name", text, where, ())


def _cast(type, value, where):
    """A call of the type."""
    return (
        "Call",
        "",
        where,
        (("Object", _object_name(type), where, ()), _block([value]), _block([])),
    )


_CONSTANT = ("numpy", "math", "picokernel", "numba", "builtins")


def _digits(value):
    return value.hex() if isinstance(value, float) else str(value)


@functools.singledispatch
def _object_name(value):
    """By which the core knows it: "numpy.sqrt", "math.pi", "builtins.len", "dtype.float32"."""
    name = getattr(value, "__name__", None) or type(value).__name__
    module = (getattr(value, "__module__", None) or "").split(".")[0]
    numba_type = module == "numba" or type(value).__module__.startswith("numba.")
    if numba_type and str(value) in _core.dtype_names:
        return f"dtype.{value}"
    return f"{'numpy' if module == 'picokernel' else module or 'an object'}.{name}"


@_object_name.register
def _(value: Type):
    return f"dtype.{value.name}"


@_object_name.register
def _(value: np.ufunc):
    return f"numpy.{value.__name__}"


@_object_name.register
def _(value: np.dtype):
    return f"dtype.{value.name}" if value.name in _core.dtype_names else f"numpy.{value.name}"


@_object_name.register
def _(value: type):
    if issubclass(value, np.generic):
        return _object_name(np.dtype(value))
    if value.__module__ == "ml_dtypes" and value.__name__ in _core.dtype_names:
        return f"dtype.{value.__name__}"
    return f"{value.__module__.split('.')[0]}.{value.__name__}"


@_object_name.register
def _(value: np.ndarray):
    return "the array of a global or closure"

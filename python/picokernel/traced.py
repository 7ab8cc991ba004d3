"""Arrays inside a trace: what a kernel's function computes with while it is being traced.

The meaning of every operation is the core's (`_core.Tracer`); here is only NumPy's syntax for it.
"""

import functools
import linecache
import os
import sys

import numpy as np

from . import _core
from .errors import CompileError, at_line

_SKIPPED = (
    os.path.dirname(np.__file__) + os.sep,
    os.path.join(os.path.dirname(__file__), "kernel.py"),
    os.path.join(os.path.dirname(__file__), "functions.py"),
    os.path.join(os.path.dirname(__file__), "numpy_functions.py"),
)
_FAR = 2**62  # beyond the end of every array
_NUMBERS = (bool, int, float, complex)
_WORDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex"}


class Trace:
    """One run of a kernel's function. Finds the user's place in the source for each operation."""

    def __init__(self, tracer, definition, first_captured, add_constant, fix_numbers):
        self.tracer = tracer
        self.first_captured = first_captured
        self.definition = definition
        self.starts_again = False
        self.add_constant = self._asking(add_constant)
        self.fix_numbers = self._asking(fix_numbers)
        self.constants = []
        self._lifted = {}
        self._places = {}

    def _asking(self, what):
        def ask(x):
            try:
                what(x)
            except _core.Retrace:
                self.starts_again = True
                raise

        return ask

    def here(self):
        """The place of the operation that the user's code is at: (file, line, column, end)."""
        frame = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            if code.co_filename != __file__ and not code.co_filename.startswith(_SKIPPED):
                break
            frame = frame.f_back
        if frame is None:
            return self.definition
        place = self._places.get((code, frame.f_lasti))
        if place is None:
            place = self._places[code, frame.f_lasti] = _place(code, frame.f_lasti)
        return place

    def end(self):
        """From here on, operations on what the trace left behind are errors."""
        self.tracer = _Ended(self)

    def value(self, x, where):
        """The core's value for what an operation met."""
        if isinstance(x, TracedArray):
            if x._trace is not self:
                raise _at(where, "a traced array of another call is used here", _ESCAPED)
            return x._value
        if isinstance(x, np.generic):  # first: np.float64 is a float too
            name = supported_dtype(x.dtype, where)
            return self.tracer.cast(_core.literal(x.item()), name, where)
        if isinstance(x, _NUMBERS):
            try:
                return _core.literal(x)
            except OverflowError:
                hint = "write it as a float if rounding is fine"
                raise _at(where, f"the integer {x} fits neither int64 nor uint64", hint) from None
        if isinstance(x, np.ndarray):
            return self._array(x, where)
        raise _at(
            where,
            f"a {type(x).__name__} meets a traced array here",
            "operands are arrays and numbers; make an array of it by np.asarray",
        )

    def hold(self, array, value):
        """Wherever this array itself is met, it is that argument."""
        self._lifted[id(array)] = (array, value)

    def _array(self, x, where):
        # An array that the function made or reached while it was traced: a hidden argument.
        if id(x) not in self._lifted:
            supported_dtype(x.dtype, where)
            for array, value in self.constants:
                if _same_array(x, array):
                    self.hold(x, value)
                    break
            else:
                self.add_constant(x)  # starts the trace again with one more hidden argument
        return self._lifted[id(x)][1]

    def apply(self, name, operands, where):
        values = [self.value(x, where) for x in operands]
        sources = frozenset().union(*(x._sources for x in operands if isinstance(x, TracedArray)))
        if name == "power" and isinstance(operands[1], TracedArray) and operands[1]._value.weak:
            # NumPy has rules of its own for some numbers.
            self.fix_numbers(operands[1]._sources)
            if operands[1].dtype.kind not in "fc":
                raise _at(
                    where,
                    "a size as exponent is known at run time only",
                    "convert it to an array's type, as in x ** n.astype(np.float64)",
                )
        result = TracedArray(self, self.tracer.apply(name, values, where))
        if sources and result._value.weak:
            result._sources = sources
        return result

    def store(self, target, x, where, same_kind):
        """target[...] = x, or an operation's result into `target` by out= or in place."""
        value = self.value(x, where)
        if target._owner is not None and target._owner >= self.first_captured:
            raise _at(where, "an array from outside is written here", _PASS)
        if target._whole is not None or target._halves:
            target._into_memory(where)
        if target._value.kind == "ref":
            store = self.tracer.store_out if same_kind else self.tracer.store
            store(target._value, value, where)
            return
        # No memory of the caller: the name's array takes a new value, its dtype and shape stay.
        old = target._value
        if same_kind and not value.weak:
            source, kept = _numpy_dtype(self.tracer.dtype(value)), target.dtype
            if not np.can_cast(source, kept, "same_kind"):
                raise _at(
                    where,
                    f"a {source} result cannot be stored into a {kept} array",
                    f"convert it first: .astype(np.{kept})",
                )
        value = self.tracer.cast(value, self.tracer.dtype(old), where)
        theirs, ours = self.tracer.shape(value, where), self.tracer.shape(old, where)
        grown = len(theirs) > len(ours) or any(
            a != 1 and b == 1 for a, b in zip(theirs[::-1], ours[::-1], strict=False)
        )
        if grown:
            raise _at(where, "the value stored here has more elements than its target")
        target._value = self.tracer.apply("where", [_core.literal(True), value, old], where)

    def finish(self, result):
        """(module, kind, slots): kind 0 returns nothing, 1 a value, 2 a tuple, 3 a list; a slot
        is the number of an output, or -1 - n where argument n itself is handed back."""
        where = self.definition
        kind = {type(None): 0, tuple: 2, list: 3}.get(type(result), 1)
        items = [result] if kind == 1 else list(result or ())
        values, slots, numbers = [], [], {}
        for x in items:
            if not isinstance(x, (TracedArray, np.ndarray, np.generic, *_NUMBERS)):
                raise _at(
                    where,
                    f"the kernel returns a {type(x).__name__}",
                    "return arrays, numbers, or a tuple of them",
                )
            if isinstance(x, TracedArray) and x._argument is not None:
                slots.append(-1 - x._argument)
                continue
            if id(x) not in numbers:
                numbers[id(x)] = len(values)
                values.append(self.value(x, where))
            slots.append(numbers[id(x)])
        module = self.tracer.finish(values, where)
        return module, kind, slots


class _Ended:
    def __init__(self, trace):
        self._trace = trace

    def __getattr__(self, name):
        raise _at(self._trace.here(), "a traced array of another call is used here", _ESCAPED)


@functools.cache
def _is_ascii(path):
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().isascii()
    except OSError:  # the cell of a notebook, say
        return False


@functools.lru_cache(4)  # a trace asks for one of them after the other
def _positions(code):
    return list(code.co_positions())


def _place(code, lasti):
    line, end_line, column, end_column = _positions(code)[lasti // 2]
    if not line:
        return (code.co_filename, code.co_firstlineno, 1, 0)
    if column is None:
        return (code.co_filename, line, 1, 0)
    # Positions count bytes. Decoding a whole file into lines takes longer than all of a trace.
    ascii = _is_ascii(code.co_filename)
    data = b"" if ascii else linecache.getline(code.co_filename, line).encode()
    if not data.isascii():
        column = len(data[:column].decode(errors="replace"))
        end_column = len(data[:end_column].decode(errors="replace"))
    return (code.co_filename, line, column + 1, end_column + 1 if end_line == line else 0)


def _at(where, message, *notes):
    return at_line(CompileError, message, where, notes)


_ESCAPED = "arrays of a trace live as long as the trace: return them instead of keeping them"


def _numpy_dtype(name):
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def supported_dtype(dtype, where):
    """The dtype's name, if kernels can compute with it."""
    try:
        dtype = np.dtype(dtype)
    except TypeError as error:
        supported = f"supported: {', '.join(_core.dtype_names)}"
        raise _at(where, f"{dtype!r} is no dtype: {error}", supported) from None
    if dtype.name not in _core.dtype_names or not dtype.isnative:
        name = dtype.name if dtype.isnative else f"{dtype.name} in foreign byte order"
        raise _at(
            where,
            f"dtype {name} is not supported",
            f"supported: {', '.join(_core.dtype_names)}",
        )
    return dtype.name


def _same_array(a, b):
    return a is b or (a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())


def _refused(name, message, hint):
    def method(self, *args, **kwargs):
        raise _at(self._trace.here(), message.format(type=self._describe()), hint)

    method.__name__ = name
    return method


class TracedArray:
    """An array or number whose value is known when the kernel runs."""

    __slots__ = (
        "_argument",
        "_halves",
        "_owner",
        "_part",
        "_sources",
        "_trace",
        "_value",
        "_whole",
    )
    __hash__ = None

    def __init__(self, trace, value, argument=None, sources=frozenset(), owner=None, part=None):
        self._trace = trace
        self._value = value
        self._argument = argument  # its number among the arguments, if it is one as a whole
        self._owner = argument if owner is None else owner  # the argument whose memory it shows
        self._part = part  # (array, key) that it was taken from
        self._sources = sources  # parameters whose Python numbers it was made from
        self._whole = None  # a computed complex array whose .real or .imag it is
        self._halves = None  # those taken from it, by name, while it has no memory

    def _describe(self):
        if self._value.weak:
            return f"number ({_WORDS[self.dtype.kind]})"
        return f"array ({self.dtype}, {self.ndim}-d)"

    def __repr__(self):
        if isinstance(self._trace.tracer, _Ended):
            return "<traced array of a call that has ended>"
        return f"<traced {self._describe()}>"

    @property
    def dtype(self):
        return _numpy_dtype(self._trace.tracer.dtype(self._value))

    @property
    def shape(self):
        """Sizes: ints where the trace fixes them, otherwise numbers known at run time."""
        trace = self._trace
        sizes = trace.tracer.shape(self._value, trace.here())
        return tuple(x if isinstance(x, int) else TracedArray(trace, x) for x in sizes)

    @property
    def ndim(self):
        return self._trace.tracer.ndim(self._value)

    @property
    def size(self):
        total = 1
        for n in self.shape:
            total = total * n
        return total

    @property
    def itemsize(self):
        return self.dtype.itemsize

    @property
    def T(self):
        return self.transpose()

    def transpose(self, *axes):
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        ndim, where = self.ndim, self._trace.here()
        order = [a + ndim if a < 0 else a for a in axes or ()] or list(range(ndim))[::-1]
        if sorted(order) != list(range(ndim)):
            raise _at(where, f"axes {axes} do not name each dimension of a {self._describe()} once")
        if order == list(range(ndim)):
            return self
        self._into_memory(where)
        value = self._trace.tracer.transpose(self._value, order, where)
        return TracedArray(self._trace, value, owner=self._owner)

    def _into_memory(self, where):
        """From here on, views share memory with what they are taken from."""
        if self._value.kind == "ref":
            return
        if self._whole is not None:
            self._whole._into_memory(where)
            return
        tracer = self._trace.tracer
        self._value = tracer.storage(self._value, where)
        for name, half in (self._halves or {}).items():
            half._value = getattr(tracer, name)(self._value, where)

    def _half(self, name):
        trace = self._trace
        if self._halves and name in self._halves:
            return self._halves[name]
        value = getattr(trace.tracer, name)(self._value, trace.here())
        half = TracedArray(trace, value, owner=self._owner)
        if self.dtype.kind == "c" and value.kind != "ref" and not self._is_number():
            half._whole = self
            self._halves = {**(self._halves or {}), name: half}
        return half

    @property
    def real(self):
        return self if self.dtype.kind != "c" else self._half("real")

    @real.setter
    def real(self, value):
        self._parts().real[...] = value

    @property
    def imag(self):
        return self._half("imag")

    @imag.setter
    def imag(self, value):
        if self.dtype.kind != "c":
            raise _at(self._trace.here(), f"a {self.dtype} array has no imaginary part to write")
        self._parts().imag[...] = value

    def _parts(self):
        if self._is_number():
            raise _at(self._trace.here(), "the parts of a number cannot be written")
        self._into_memory(self._trace.here())
        return self

    def conj(self):
        if self.dtype.kind != "c":
            return self
        return self._trace.apply("conjugate", (self,), self._trace.here())

    conjugate = conj

    def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
        where = self._trace.here()
        name = supported_dtype(dtype, where)
        if not np.can_cast(self.dtype, name, casting):
            raise _at(where, f"cannot cast {self.dtype} to {name} by casting={casting!r}")
        if not copy and name == self.dtype.name:
            return self
        return TracedArray(self._trace, self._trace.tracer.cast(self._value, name, where))

    def copy(self, order="C"):
        return self.astype(self.dtype)

    def clip(self, min=None, max=None, out=None):
        return np.clip(self, min, max, out=out)

    def round(self, decimals=0, out=None):
        return np.round(self, decimals, out=out)

    def fill(self, value):
        self[...] = value

    def __getitem__(self, key):
        indices = self._indices(key)
        if all(part == slice(None) or part is Ellipsis for part in indices):
            return self
        where = self._trace.here()
        value = self._view(indices, where)
        if self._trace.tracer.ndim(value) == 0 and Ellipsis not in indices:
            # An element is a number of its own, not a window on the array.
            return TracedArray(self._trace, self._trace.tracer.cast(value, self.dtype.name, where))
        return TracedArray(self._trace, value, owner=self._owner, part=(self, indices))

    def __setitem__(self, key, value):
        indices = self._indices(key)
        where = self._trace.here()
        if self._is_number():
            raise _at(where, "a number cannot be assigned to by index")
        whole = all(part == slice(None) or part is Ellipsis for part in indices)
        # `x[1:] += y` ends by storing the part, already written, into its own place.
        part = value._part if isinstance(value, TracedArray) else None
        if part is not None and part[0] is self and part[1] == indices:
            return
        if whole and value is self:
            return
        target = self
        if not whole:
            view = self._view(indices, where)
            target = TracedArray(self._trace, view, owner=self._owner)
        self._trace.store(target, value, where, same_kind=False)

    def _view(self, indices, where):
        self._into_memory(where)
        return self._trace.tracer.index(self._value, indices, where)

    def _indices(self, key):
        """The key as a list of slices of ints, ints, None and Ellipsis."""
        indices = []
        for part in key if isinstance(key, tuple) else (key,):
            if isinstance(part, slice):
                part = slice(*map(self._bound, (part.start, part.stop, part.step)))
            elif part is not None and part is not Ellipsis:
                part = self._bound(part)
            indices.append(part)
        if sum(part is not None and part is not Ellipsis for part in indices) > self.ndim:
            raise _at(self._trace.here(), f"too many indices for a traced {self._describe()}")
        return indices

    def _bound(self, x):
        if x is None or (isinstance(x, (int, np.integer)) and not isinstance(x, bool)):
            return x if x is None else max(min(int(x), _FAR), -_FAR)
        if isinstance(x, TracedArray) and x._value.weak and x.dtype.kind in "iu":
            self._trace.fix_numbers(x._sources)  # ints of the caller; sizes stay symbols
            return x._value
        raise _at(
            self._trace.here(),
            f"indexing a traced {self._describe()} by {_describe_key(x)} is not supported",
            "slices and indices are constants, ints of the caller or sizes; use pk.where instead of masks",
        )

    def _is_number(self):
        # NumPy's scalars and Python's numbers are no memory: they are rebound, never written.
        return self._value.kind != "ref" and self.ndim == 0

    def _in_place(self, name, other):
        trace = self._trace
        where = trace.here()
        result = trace.apply(name, (self, other), where)
        if self._is_number():
            return result
        trace.store(self, result, where, same_kind=True)
        return self

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **options):
        trace = self._trace
        where = trace.here()
        name = ufunc.__name__
        if method != "__call__":
            raise _at(where, f"np.{name}.{method} is not supported on traced arrays", _ELEMENTWISE)
        for option in options:
            if option == "where" or options[option] not in (None, "same_kind", "K", True):
                raise _at(
                    where,
                    f"np.{name} with {option}= is not supported on traced arrays",
                    "use pk.where for where=, and .astype for dtype=",
                )
        if name in OF_TWO_RESULTS:
            both = [
                _strong(trace, trace.apply(n, inputs, where), where) for n in OF_TWO_RESULTS[name]
            ]
            return tuple(
                _into(trace, r, o, where) for r, o in zip(both, out or (None, None), strict=True)
            )
        if name in OF_SCIPY and ufunc is getattr(sys.modules.get("scipy.special"), name, None):
            # Its loops are of float32 and float64.
            x = inputs[0] if isinstance(inputs[0], TracedArray) else np.asarray(inputs[0])
            weak = isinstance(x, TracedArray) and x._value.weak and x.dtype.kind != "b"
            given = type(x.dtype.type().item()) if weak else x.dtype
            inputs = [x.astype(ufunc.resolve_dtypes((given, None))[0])]
        elif getattr(np, name, None) is not ufunc and name != "clip":
            raise _at(where, f"the ufunc {name} is not NumPy's and cannot be traced", _ELEMENTWISE)
        result = _strong(trace, trace.apply(name, inputs, where), where)
        return _into(trace, result, out[0] if out else None, where)

    def __array_function__(self, function, types, args, kwargs):
        from .numpy_functions import FUNCTIONS

        handler = FUNCTIONS.get(function)
        if handler is None:
            where = self._trace.here()
            raise _at(
                where,
                f"np.{function.__name__} is not supported on traced arrays",
                _nearest(function.__name__),
            )
        return handler(self._trace, *args, **kwargs)

    def __getattr__(self, name):
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"traced arrays have no attribute {name!r}")
        raise _at(
            self._trace.here(), f"arrays' .{name} is not supported on traced arrays", _nearest(name)
        )

    def __pos__(self):
        return self._trace.apply("positive", (self,), self._trace.here())

    def __round__(self, digits=0):
        return self.round(digits or 0)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __bool__(self):
        where = self._trace.here()
        if self._value.weak:  # what compares sizes and ints of the caller is decided by this call
            self._trace.fix_numbers(self._sources)
            decided = self._trace.tracer.decide(self._value, where)
            if decided is not None:
                return decided
        raise _at(
            where,
            f"the truth of a traced {self._describe()} is known when the kernel runs, "
            "not while it is traced",
            "write pk.where(condition, x, y) instead of if, and & | ~ instead of and, or, not",
        )

    __len__ = _refused(
        "__len__", "len() of a traced {type} is known when the kernel runs", "use x.shape[0]"
    )
    __iter__ = _refused(
        "__iter__",
        "a traced {type} cannot be iterated over: its size is known when the kernel runs",
        "compute with the whole array",
    )
    __float__ = _refused(
        "__float__",
        "float() of a traced {type}: its value is known when the kernel runs",
        "use .astype(np.float64), and NumPy's functions instead of math's",
    )
    __int__ = _refused(
        "__int__",
        "int() of a traced {type}: its value is known when the kernel runs",
        "use .astype(np.int64)",
    )
    __complex__ = _refused(
        "__complex__",
        "complex() of a traced {type}: its value is known when the kernel runs",
        "use .astype(np.complex128)",
    )

    def __format__(self, spec):
        if not spec:
            return str(self)
        raise _at(
            self._trace.here(),
            f"a traced {self._describe()} cannot be formatted: its value is known when the kernel runs",
            "print what the kernel returns; f'{x}' without a format shows what is traced",
        )

    def __index__(self):
        if self._value.weak and self.dtype.kind in "iu":
            self._trace.fix_numbers(self._sources)  # starts the trace again if it is the caller's
        raise _at(
            self._trace.here(),
            f"a traced {self._describe()} as an index, a size or a range: "
            "its value is known when the kernel runs",
            "compute with whole arrays, and make new ones by np.zeros_like(x) and its kin; "
            "ints of the caller and constants may fix sizes",
        )

    __array__ = _refused(
        "__array__",
        "a traced {type} cannot become a NumPy array: its values are known when the kernel runs",
        "store into arguments and into arrays made by np.zeros_like(x) or by computing",
    )
    __contains__ = _refused(
        "__contains__", "`in` on a traced {type} needs its values", "compare and use pk.where"
    )
    __matmul__ = __rmatmul__ = __imatmul__ = _refused(
        "__matmul__",
        "matrix multiplication of a traced {type} is not supported",
        "kernels compute element by element: use np.matmul outside of the kernel",
    )


# NumPy's ufuncs with two results, and the core's functions that make one each.
OF_TWO_RESULTS = {
    "divmod": ("floor_divide", "remainder"),
    "frexp": ("frexp_mantissa", "frexp_exponent"),
    "modf": ("modf_fraction", "modf_whole"),
}
OF_SCIPY = ("erf", "erfc")
_PASS = "pass it as an argument, or make it by np.zeros_like(x): kernels write these"
_WHOLE = "kernels see whole arrays: pass the transposed array as an argument"
_ELEMENTWISE = "kernels compute element by element, by the functions that pk.functions() lists"


def _nearest(name):
    if hasattr(np, name):  # spelled right
        return _ELEMENTWISE
    import difflib

    from .numpy_functions import functions

    known = [*functions(), *(n for n in TracedArray.__dict__ if not n.startswith("_"))]
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else _ELEMENTWISE


def _describe_key(key):
    if isinstance(key, tuple):
        return "(" + ", ".join(map(_describe_key, key)) + ")"
    if isinstance(key, (TracedArray, np.ndarray)):
        return f"an array of {key.dtype}"
    if isinstance(key, slice):
        step = "" if key.step is None else f":{key.step!r}"
        parts = ("" if x is None else repr(x) for x in (key.start, key.stop))
        return ":".join(parts) + step
    return repr(key)


def _strong(trace, result, where):
    """A ufunc makes a NumPy scalar of Python numbers, an operator does not."""
    if not result._value.weak:
        return result
    return TracedArray(trace, trace.tracer.cast(result._value, result.dtype.name, where))


def _into(trace, result, out, where):
    """The result of an operation that may have an out=."""
    if out is None:
        return result
    if not isinstance(out, TracedArray):
        raise _at(where, "an array from outside is written here", _PASS)
    if out._is_number():
        raise _at(where, "out= is a number", "out= has to be an array")
    trace.store(out, result, where, same_kind=True)
    return out


def _operators():
    def binary(name):
        def method(self, other):
            return self._trace.apply(name, (self, other), self._trace.here())

        def reflected(self, other):
            return self._trace.apply(name, (other, self), self._trace.here())

        def in_place(self, other):
            return self._in_place(name, other)

        return method, reflected, in_place

    for operator, name in {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide",
        "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "and": "bitwise_and",
        "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
    }.items():  # fmt: skip
        for prefix, method in zip(("", "r", "i"), binary(name), strict=True):
            method.__name__ = f"__{prefix}{operator}__"
            setattr(TracedArray, method.__name__, method)
    for operator, name in {
        "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
        "ge": "greater_equal",
    }.items():  # fmt: skip
        setattr(TracedArray, f"__{operator}__", binary(name)[0])
    for operator, name in {"neg": "negative", "abs": "absolute", "invert": "invert"}.items():

        def unary(self, name=name):
            return self._trace.apply(name, (self,), self._trace.here())

        setattr(TracedArray, f"__{operator}__", unary)


_operators()

"""`@kernel`: functions of arrays, compiled when they are called. The call itself is in C++."""

import functools
import inspect
import os

from . import _core
from .captures import functions_in, with_arrays
from .errors import CompileError, LaunchError, at_line
from .traced import Trace, TracedArray


class Kernel(_core.KernelBase):
    """A function of arrays that is traced, compiled for a backend and run.

    Called with NumPy arrays (any rank and strides) and numbers, it returns what the function would
    return on NumPy. `out=` gives arrays for the results: one, or a tuple with None where a new
    array is wanted. `backend=` names the backend of this call. Raises CompileError (a SyntaxError
    at the kernel's line) if the function cannot be compiled, LaunchError (a ValueError) if the
    arguments do not fit; nothing is written then.

    Arrays of others are read and written in place, never copied: tensors of torch, jax and whatever
    speaks DLPack, if they are in the CPU's memory; buffers (memoryview, bytearray, array.array);
    columns of pandas and other array-likes. A call takes the arrays of one library, and its new
    arrays are that library's; numbers, NumPy scalars and 0-d arrays stand beside any. Buffers and
    array-likes count as NumPy's. Arrays of MLX run on backend mlx unless another is named: lazily,
    with lazy results, and with NumPy arrays beside them, which are copied. Arrays of jax are
    read-only.
    """

    def __init__(self, function, backend=None, accuracy=None, fastmath=False):
        code = getattr(function, "__code__", None)
        if code is None:
            raise LaunchError(f"@kernel takes a Python function, not a {type(function).__name__}")
        self._place = (code.co_filename, code.co_firstlineno, 1, 0)
        if accuracy not in (None, "strict", "fast"):
            raise LaunchError(
                f"accuracy={accuracy!r} of '{function.__name__}'\n"
                '  it is "strict", the default, or "fast": errors of up to 4 units in the last place'
                " where that is cheaper"
            )
        names, defaults, keyword_only = [], [], 0
        for p in inspect.signature(function).parameters.values():
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                raise at_line(
                    CompileError,
                    f"parameter '{p.name}' of '{function.__name__}' takes any number of arguments",
                    self._place,
                    ["a kernel's parameters are named one by one"],
                )
            keyword_only += p.kind == p.KEYWORD_ONLY
            names.append(p.name)
            defaults.append(() if p.default is p.empty else (p.default,))
        name = function.__name__ if function.__name__.isidentifier() else "kernel"
        self._options = (backend, accuracy, fastmath)
        fast = accuracy == "fast" or (accuracy is None and fastmath)
        super().__init__(name, names, defaults, keyword_only, self._place, backend, fast, fastmath)
        functools.update_wrapper(self, function)

    def __repr__(self):
        return f"<picokernel.Kernel {self.__qualname__}{inspect.signature(self.__wrapped__)}>"

    def _repr_html_(self):
        """For notebooks: what the kernel is, how it was called last, and the IR of the last call."""
        from html import escape

        file, line = self._place[:2]
        parts = [
            f"<code>{escape(f'{self.__qualname__}{inspect.signature(self.__wrapped__)}')}</code>",
            f" <small>kernel, {escape(os.path.basename(file))}:{line}</small>",
        ]
        if calls := self._recent_calls():
            head = "".join(f"<th>{escape(name)}</th>" for name in self.parameters)
            rows = "".join(
                f"<tr><td>{escape(backend)}</td>"
                + "".join(f"<td>{escape(text)}</td>" for text in texts)
                + "</tr>"
                for backend, texts in calls
            )
            parts.append(f"<table><tr><th>backend</th>{head}</tr>{rows}</table>")
            parts.append(f"<pre>{escape(self.ir())}</pre>")
        live = ", ".join(name for name, reason in _core.backends().items() if not reason)
        parts.append(f"<small>backends: {escape(live)}</small>")
        return f"<div>{''.join(parts)}</div>"

    def __reduce__(self):
        from .pickling import reduced

        return reduced(self)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self  # as functions are

    def __dask_tokenize__(self):
        from .pickling import token

        return token(self)

    def __get__(self, instance, owner=None):
        if instance is not None:
            raise LaunchError(
                f"the kernel '{self.__name__}' is used as a method of {type(instance).__name__}\n"
                "  define it outside of the class, or wrap it in staticmethod"
            )
        return self

    def inline(self, function, *args, out=None, backend=None, **kwargs):
        """The call of this kernel inside the trace of another; `function` is what it wraps."""
        result = function(*args, **kwargs)
        if out is None:
            return result
        if isinstance(out, tuple) != isinstance(result, (tuple, list)):
            raise LaunchError(f"out= of '{self.__name__}' does not match what it returns")
        if not isinstance(out, tuple):
            out[...] = result
            return out
        for array, value in zip(out, result, strict=True):
            if array is not None:
                array[...] = value
        return tuple(v if o is None else o for o, v in zip(out, result, strict=True))

    def ir(self, level=None, *args, **kwargs):
        """The IR's text. Level "graph" (the default) is the kernel as traced; "kernel" is what its
        backend compiled. For these arguments, or the last call's; before any call for 1-d float32
        arrays, except where a parameter has a default or is annotated `int`, `float` or with a
        NumPy type, which then is the element type.
        """
        plan = self._plan_for(None, args, kwargs)
        if level not in (None, "graph", "kernel"):
            raise LaunchError(f"there is no IR level {level!r}\n  levels: 'graph', 'kernel'")
        return plan.emitted if level == "kernel" else plan.graph

    def source(self, backend, *args, **kwargs):
        """What `backend` runs, as text: Python for "numpy" and "mlx", LLVM IR and assembly for
        "llvm" and "asm", C11 for "c", our IR for "cpu" and "ref"; for "obj" an object file's bytes.
        For which arguments: see `ir`. The backend need not be able to run here."""
        return self._plan_for(backend, args, kwargs).source

    def explain(self, *args, **kwargs):
        """Where the time of this call would go on each live backend, and when another one would win: an
        `Explanation`, to print. Nothing is run. Times are predicted from what the kernel does and from this
        machine's ceilings, which are measured once (up to two seconds) and kept on disk."""
        from .explain import Explanation

        if not (args or kwargs):
            args, kwargs = self._examples()
        return Explanation(self, args, kwargs)

    def show_ir(self):
        """Prints `ir()`."""
        print(self.ir(), end="")

    def lower(self, *arrays):
        """The source for these arrays in the kernel's backend if it prints one, else NumPy's."""
        backend = self.default_backend
        return self.source(backend if backend in ("numpy", "mlx") else "numpy", *arrays)

    def run_profiled(self, *arrays, n_repeats=5):
        """Calls the kernel `n_repeats` times and returns the profile; `.save(path)` writes it."""
        from .profiler import Profiler

        with Profiler() as profile:
            for _ in range(n_repeats):
                self(*arrays)
        return profile

    def _plan_for(self, backend, args, kwargs):
        if not (args or kwargs) and (plan := self._last_plan(backend)) is not None:
            return plan
        if not (args or kwargs):
            args, kwargs = self._examples()
        return self._plan(backend, args, kwargs)

    def _examples(self, array=None):
        """Arguments to call it with, positional and by keyword; `array` makes one of a dtype."""
        import numpy as np

        array = array or (lambda dtype: np.empty(1024, dtype))
        args, kwargs = [], {}
        hints = inspect.get_annotations(self.__wrapped__, eval_str=False)
        for p in inspect.signature(self.__wrapped__).parameters.values():
            hint = hints.get(p.name)
            if p.default is not p.empty:
                example = p.default
            elif hint in (int, float):
                example = hint(1)
            else:
                scalar = isinstance(hint, type) and issubclass(hint, np.generic)
                example = array(hint if scalar else np.float32)
            if p.kind == p.KEYWORD_ONLY:
                kwargs[p.name] = example
            else:
                args.append(example)
        return tuple(args), kwargs

    def _trace(self, tracer, values, hidden):
        """Runs the function on traced arrays. `values`: per parameter the core's value, or the
        constant itself; `hidden`: (array, value, is constant) of captured arrays and of
        arrays that an earlier try met as constants. Called by the core with the interpreter locked.
        """
        dynamic = sum(isinstance(value, _core.Value) for value in values)
        trace = Trace(tracer, self._place, dynamic, self._add_constant, self._fix_numbers)
        args, number = [], 0
        for i, value in enumerate(values):
            if isinstance(value, _core.Value):
                sources = frozenset([i] if value.weak else [])
                value = TracedArray(trace, value, number, sources)
                number += 1
            args.append(value)
        arrays = {}
        for array, value, constant in hidden:
            if constant:
                trace.constants.append((array, value))
            else:
                arrays[id(array)] = TracedArray(trace, value, number)
                trace.hold(array, value)
            number += 1
        function = self.__wrapped__
        if arrays:
            function = with_arrays(function, arrays)
            args = [with_arrays(a, arrays) if list(functions_in([a])) == [a] else a for a in args]
        keyword_only = function.__code__.co_kwonlyargcount
        names = self.parameters[len(args) - keyword_only :]
        kwargs = dict(zip(names, args[len(args) - keyword_only :], strict=True))
        try:
            result = function(*args[: len(args) - keyword_only], **kwargs)
            # The function's own `except:` may have caught the signal.
            if trace.starts_again:
                raise _core.Retrace
            return trace.finish(result)
        except Exception:
            if trace.starts_again:
                raise _core.Retrace from None
            raise
        finally:
            trace.end()


def kernel(function=None, /, *, backend=None, accuracy=None, fastmath=False):
    """Makes a Kernel of a function of arrays: `@kernel`, or `@kernel(backend="numpy")`.

    The function's parameters are named one by one; defaults and keyword-only ones are fine. It
    computes with NumPy's elementwise functions, stores into arguments (`o[...] = x`, `x += y`), and
    returns arrays, numbers, a tuple or list of them, or nothing. Arrays are of any rank; floats and
    ints passed to it are values of the call, bool, str, None, dtypes, functions and tuples are
    constants.

    `accuracy="fast"` allows errors of 4 units in the last place in exp, sin, `**` and their kin where
    that is cheaper than the default, "strict"; special values do not change. docs/accuracy.md has the
    errors of both. `fastmath=True` allows what changes last digits elsewhere too, on backends that
    compile: `x * y + z` rounded once, products with 1 / c for quotients by constants; its default
    accuracy is "fast". Infinities, NaN and signed zeros keep their meaning: `isnan` holds. A kernel
    that another one calls has both of that one.

    Raises CompileError if it takes `*args` or `**kwargs`, LaunchError if there is no such backend,
    if it cannot run here, or no such accuracy.
    """
    if function is None:
        return functools.partial(kernel, backend=backend, accuracy=accuracy, fastmath=fastmath)
    return Kernel(function, backend, accuracy, fastmath)

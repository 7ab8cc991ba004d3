"""NumPy's functions that are no ufuncs, on traced arrays; and the names of all that trace."""

import math

import numpy as np

from . import _core
from .traced import OF_SCIPY, OF_TWO_RESULTS, TracedArray, _at, _into, supported_dtype


def _where(trace, condition, *choices):
    if len(choices) != 2:
        raise _at(
            trace.here(),
            "np.where with one argument finds indices",
            "write pk.where(condition, x, y)",
        )
    return trace.apply("where", (condition, *choices), trace.here())


def _clip(trace, a, a_min=None, a_max=None, out=None, *, min=None, max=None):
    where = trace.here()
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if low is None and high is None:
        result = trace.apply("positive", (a,), where)
    elif low is None or high is None:
        name, bound = ("minimum", high) if low is None else ("maximum", low)
        result = trace.apply(name, (a, bound), where)
    else:
        result = trace.apply("clip", (a, low, high), where)
    return _into(trace, result, out, where)


def _round(trace, a, decimals=0, out=None):
    """As NumPy does it: scaled by a float, and in the type of out= from then on."""
    where = trace.here()
    if not isinstance(decimals, (int, np.integer)):
        raise _at(
            where,
            f"the number of decimals is a {type(decimals).__name__}",
            "it has to be a constant integer",
        )
    integer = a.dtype.kind in "iu"
    if decimals >= 0 and (integer or decimals == 0):
        return _into(trace, trace.apply("positive" if integer else "rint", (a,), where), out, where)
    # A product as NumPy has it: above 1e22 it is rounded at each step.
    factor = math.prod([10.0] * min(abs(int(decimals)), 400))
    there, back = ("multiply", "true_divide") if decimals > 0 else ("true_divide", "multiply")
    scaled = trace.apply(there, (a, factor), where)
    if out is not None:
        _into(trace, scaled, out, where)
        scaled = out
    rounded = trace.apply(back, (trace.apply("rint", (scaled,), where), factor), where)
    if out is None and integer:
        rounded = TracedArray(trace, trace.tracer.cast(rounded._value, a.dtype.name, where))
    return _into(trace, rounded, out, where)


def _nan_to_num(trace, x, copy=True, nan=0.0, posinf=None, neginf=None):
    where = trace.here()
    if x.dtype.kind == "c":
        result = x if not copy else x.copy()
        for part in (result.real, result.imag):
            part[...] = _nan_to_num(trace, part, True, nan, posinf, neginf)
        return result
    result = x.copy()
    if x.dtype.kind == "f":
        limits = np.finfo(x.dtype)
        largest = limits.max if posinf is None else posinf
        smallest = limits.min if neginf is None else neginf
        for found, replacement in (
            (np.isnan(x), nan),
            (_is_infinity(trace, x, False), largest),
            (_is_infinity(trace, x, True), smallest),
        ):
            chosen = trace.tracer.cast(trace.value(replacement, where), x.dtype.name, where)
            result = np.where(found, TracedArray(trace, chosen), result)
    return result if copy else _into(trace, result, x, where)


def _is_infinity(trace, x, negative, out=None):
    where = trace.here()
    sign = trace.apply("signbit", (x,), where)
    if not negative:
        sign = trace.apply("logical_not", (sign,), where)
    infinite = trace.apply("isinf", (x,), where)
    return _into(trace, trace.apply("logical_and", (infinite, sign), where), out, where)


def _is_python_number(x):
    """Weak in promotion, traced or not."""
    return x._value.weak if isinstance(x, TracedArray) else type(x) in (bool, int, float, complex)


def _isclose(trace, a, b, rtol=1.0e-5, atol=1.0e-8, equal_nan=False):
    # b is the one with a type: magnitudes are its own, and MIN has none as an integer.
    if _is_python_number(b):
        b = b * 1.0
    elif isinstance(b, (TracedArray, np.ndarray, np.generic)):
        b = b.astype(np.result_type(b.dtype, 1.0))
    close = (abs(a - b) <= atol + rtol * abs(b)) & np.isfinite(b) | (a == b)
    return close | np.isnan(a) & np.isnan(b) if equal_nan else close


def _sinc(trace, x):
    x = np.pi * x
    y = np.where(x, x, np.finfo(x.dtype).eps)
    return np.sin(y) / y


def _select(trace, condlist, choicelist, default=0):
    where = trace.here()
    if len(condlist) != len(choicelist):
        raise _at(where, "np.select takes as many choices as conditions")
    result = default
    # Of a traced Python number, any number of its kind will do.
    types = [
        x if not hasattr(x, "dtype") else x.dtype.type().item() if _is_python_number(x) else x.dtype
        for x in (*choicelist, default)
    ]
    dtype = np.result_type(*types)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        if getattr(condition, "dtype", None) != np.bool_:
            raise _at(where, "the conditions of np.select have to be arrays of bool")
        result = trace.apply("where", (condition, choice, result), where)
    return result.astype(dtype)


def _piecewise(trace, x, condlist, funclist, *args, **kw):
    where = trace.here()
    if not isinstance(condlist, (list, tuple)):
        condlist = [condlist]
    conditions = [trace.apply("not_equal", (c, False), where) for c in condlist]
    if len(funclist) == len(conditions) + 1:
        any_of_them = conditions[0]
        for c in conditions[1:]:
            any_of_them = any_of_them | c
        conditions.append(~any_of_them)
    if len(funclist) != len(conditions):
        raise _at(where, "np.piecewise takes a function for each condition, and one for the rest")
    result = np.zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        value = function(x, *args, **kw) if callable(function) else function
        value = trace.tracer.cast(trace.value(value, where), x.dtype.name, where)
        result = np.where(condition, TracedArray(trace, value), result)
    return result


def _full_like(trace, a, fill_value, dtype=None, order="K", subok=True, shape=None):
    where = trace.here()
    if shape is not None:
        raise _at(
            where,
            "another shape= is not supported on traced arrays",
            "arrays have the shape of an argument or of a result",
        )
    value = trace.tracer.cast(
        trace.value(fill_value, where),
        supported_dtype(a.dtype if dtype is None else dtype, where),
        where,
    )
    like = trace.tracer.cast(trace.value(a, where), trace.tracer.dtype(value), where)
    # The shape comes from the array that is not chosen.
    filled = trace.tracer.apply("where", [_core.literal(True), value, like], where)
    return TracedArray(trace, filled)


def _angle(trace, z, deg=False):
    where = trace.here()
    # 0 as a number: it has no part in the type.
    imag = z.imag if z.dtype.kind == "c" else 0
    angle = trace.apply("arctan2", (imag, z.real), where)
    return trace.apply("multiply", (angle, 180 / np.pi), where) if deg else angle


def _copyto(trace, dst, src, casting="same_kind", where=True):
    if where is not True or casting not in ("same_kind", "unsafe"):
        raise _at(
            trace.here(),
            "np.copyto with where= or another casting= is not supported",
            "write dst[...] = pk.where(mask, src, dst)",
        )
    _into(trace, _full_like(trace, dst, src), dst, trace.here())


FUNCTIONS = {
    np.where: _where,
    np.clip: _clip,
    np.round: _round,
    np.around: _round,
    np.fix: lambda trace, x, out=None: _into(
        trace, trace.apply("trunc", (x,), trace.here()), out, trace.here()
    ),
    np.nan_to_num: _nan_to_num,
    np.isposinf: lambda trace, x, out=None: _is_infinity(trace, x, False, out),
    np.isneginf: lambda trace, x, out=None: _is_infinity(trace, x, True, out),
    np.isclose: _isclose,
    np.sinc: _sinc,
    np.select: _select,
    np.piecewise: _piecewise,
    np.real: lambda trace, val: val.real,
    np.imag: lambda trace, val: val.imag,
    np.angle: _angle,
    np.full_like: _full_like,
    np.zeros_like: lambda trace, a, *args, **kw: _full_like(trace, a, 0, *args, **kw),
    np.ones_like: lambda trace, a, *args, **kw: _full_like(trace, a, 1, *args, **kw),
    np.copy: lambda trace, a, order="K", subok=False: a.copy(),
    np.copyto: _copyto,
    np.shape: lambda trace, a: a.shape,
    np.ndim: lambda trace, a: a.ndim,
    np.size: lambda trace, a, axis=None: a.size if axis is None else a.shape[axis],
}


def functions():
    """Names of NumPy's functions that traced arrays support, sorted."""
    of_numpy = (n for n in _core.known_ufuncs if n not in OF_SCIPY)
    return sorted({*of_numpy, *OF_TWO_RESULTS, *(f.__name__ for f in FUNCTIONS)})

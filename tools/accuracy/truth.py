"""Exact values, and how far results are from them.

float32 is measured against the C library's float64 functions; float64 against its long double ones,
whose last bit is worth 2^-11 of float64's, and the largest errors again against MPFR."""

import ctypes
import pathlib

import gmpy2
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = {np.float32: "f32", np.float64: "f64"}
_SUFFIXES = {"f32": "f", "f64": "", "f80": "l"}
_WIDER = {np.float32: ("f64", np.float64), np.float64: ("f80", np.longdouble)}


class _Worst(ctypes.Structure):
    _fields_ = [
        ("error", ctypes.c_double), ("at", ctypes.c_int64),
        ("wrong", ctypes.c_int64), ("wrong_at", ctypes.c_int64),
    ]  # fmt: skip


def _libraries():
    if np.finfo(np.longdouble).nmant != 63:
        raise ImportError("long double has to have 64 bits, as on x86-64")
    path = ROOT / "build/libaccuracy.so"
    if not path.exists():
        raise ImportError(f"{path} is missing: make build")
    return ctypes.CDLL(str(path)), ctypes.CDLL("libm.so.6")


_own, _libm = _libraries()


def _pointer(array):
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def _mapped(name, to, arrays, result):
    symbol = name + _SUFFIXES[to]
    function = getattr(_libm, symbol, None) or getattr(_own, symbol)
    loop = getattr(_own, f"map{len(arrays)}_{NAMES[arrays[0].dtype.type]}_{to}")
    pointer = ctypes.cast(function, ctypes.c_void_p)
    loop(pointer, *map(_pointer, arrays), _pointer(result), ctypes.c_int64(len(result)))
    return result


def libm(function, arrays, out):
    """The C library's function of that very type."""
    return _mapped(function.libm, NAMES[out.dtype.type], arrays, out)


def exact(function, arrays):
    """The values in the next wider type."""
    name, dtype = _WIDER[arrays[0].dtype.type]
    result = np.empty(len(arrays[0]), dtype)
    return _mapped(function.libm or function.name, name, arrays, result)


def worst(got, want):
    """(error, index, number of results that are wrong in kind, index of the first such)"""
    result = _Worst()
    loop = getattr(_own, f"worst_{NAMES[got.dtype.type]}")
    loop(_pointer(got), _pointer(want), ctypes.c_int64(len(got)), ctypes.byref(result))
    return result.error, result.at, result.wrong, result.wrong_at


def mpfr(function, x):
    """The value at a tuple of floats, to 200 bits."""
    with gmpy2.context(precision=200, emin=-(1 << 30), emax=1 << 30):
        x = [gmpy2.mpfr(float(v)) for v in x]
        return x[0] ** x[1] if function.mpfr == "pow" else getattr(gmpy2, function.mpfr)(*x)


def error_by_mpfr(function, x, got):
    """Of one float64 result that is right in kind."""
    with gmpy2.context(precision=200, emin=-(1 << 30), emax=1 << 30):
        want = mpfr(function, x)
        past = gmpy2.exp2(1024)
        if np.isinf(got) and abs(want) >= past:
            return 0.0
        got = gmpy2.sign(want) * past if np.isinf(got) else gmpy2.mpfr(float(got))
        exponent = gmpy2.get_exp(want) - 1 if want != 0 else -1022
        unit = gmpy2.exp2(min(max(exponent, -1022), 1023) - 52)
        return float(abs(got - want) / unit)


def distrust(function, arrays):
    """By how much `exact` differs from MPFR on these, in units in the last place of float64."""
    want = exact(function, arrays)
    furthest = 0.0
    for i, x in enumerate(zip(*arrays, strict=True)):
        high = np.float64(want[i])
        if not np.isfinite(high) or high == 0:
            continue
        with gmpy2.context(precision=200, emin=-(1 << 30), emax=1 << 30):
            mantissa, exponent = np.frexp(want[i])
            upper = np.float64(mantissa)
            ours = gmpy2.mpfr(float(upper)) + gmpy2.mpfr(float(mantissa - upper))
            difference = abs(ours * gmpy2.exp2(int(exponent)) - mpfr(function, x))
            furthest = max(furthest, float(difference / gmpy2.exp2(max(int(exponent), -1021) - 53)))
    return furthest

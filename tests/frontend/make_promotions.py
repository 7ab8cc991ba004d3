"""Writes promotions.txt: the dtypes of NumPy's results, the oracle of promotions_test.cpp.

One line a ufunc: its name, then a row for each first operand, with a letter for each second one
(unary ufuncs: one row). A letter is a type's place in DTYPES, or - where NumPy refuses, or gives a
complex result that is not supported. Operands: the types in order, then (binary only) a Python int,
a Python float and a Python complex.
Run `python tests/frontend/make_promotions.py` when the list of ufuncs or NumPy has changed.
"""

import pathlib
import warnings

import numpy as np

# fmt: off
DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]
COMPLEX = {
    "add", "subtract", "multiply", "divide", "power", "negative", "positive", "absolute",
    "conjugate", "square", "reciprocal", "exp", "log", "sqrt", "equal", "not_equal", "isnan", "isinf",
    "isfinite", "where", "logical_and", "logical_or", "logical_xor", "logical_not",
}
UNARY = [
    "negative", "positive", "absolute", "sign", "square", "reciprocal", "sqrt", "exp", "log",
    "sin", "cos", "tanh", "exp2", "expm1", "log2", "log10", "log1p", "cbrt", "tan", "arcsin",
    "arccos", "arctan", "sinh", "cosh", "arcsinh", "arccosh", "arctanh", "fabs", "rint", "floor",
    "ceil", "trunc", "degrees", "radians",
    "isnan", "isinf", "isfinite", "signbit", "invert", "logical_not", "conjugate", "spacing",
    "bitwise_count",
]
BINARY = [
    "add", "subtract", "multiply", "true_divide", "floor_divide", "remainder", "power",
    "float_power", "heaviside", "arctan2", "hypot", "logaddexp", "logaddexp2",
    "nextafter", "fmod", "gcd", "lcm", "ldexp", "minimum", "maximum", "fmin", "fmax", "copysign",
    "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "bitwise_and",
    "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "logical_and", "logical_or",
    "logical_xor",
]
# fmt: on


def letter(function, *operands):
    if function.__name__ not in COMPLEX and any(np.iscomplexobj(x) for x in operands):
        return "-"
    try:
        name = np.asarray(function(*operands)).dtype.name
    except TypeError:
        return "-"
    return "0123456789abcd"[DTYPES.index(name)]


def where(a, b):
    return np.where(np.array([True]), a, b)


def clip(a, b):
    return np.clip(a, b, b)


def main():
    warnings.simplefilter("ignore")
    arrays = [np.ones(1, d) for d in DTYPES]
    operands = [*arrays, 3, 3.5, 3.5j]  # not 2: power has a loop of its own for it
    lines = [f"{name} {''.join(letter(getattr(np, name), a) for a in arrays)}" for name in UNARY]
    binary = [(name, getattr(np, name)) for name in BINARY] + [("where", where), ("clip", clip)]
    for name, function in binary:
        # Two Python numbers are not traced: Python itself computes them.
        rows = (
            "".join(
                "." if min(i, j) >= len(DTYPES) else letter(function, a, b)
                for j, b in enumerate(operands)
            )
            for i, a in enumerate(operands)
        )
        lines.append(f"{name} {' '.join(rows)}")
    pathlib.Path(__file__).with_name("promotions.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

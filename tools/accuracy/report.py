"""The table, docs/results/accuracy.json, and the page made of it, docs/accuracy.md."""

import importlib.metadata
import json
import math
import pathlib
import platform

import numpy as np
from functions import FUNCTIONS

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs/results/accuracy.json"
PAGE = ROOT / "docs/accuracy.md"
NAMES = {np.float32: "f32", np.float64: "f64"}
COLUMNS = {
    "strict": "picokernel", "fast": '`accuracy="fast"`', "numpy": "NumPy", "libm": "C library", "mlx": "MLX",
}  # fmt: skip


def load():
    return json.loads(TABLE.read_text()) if TABLE.exists() else {"versions": {}, "functions": {}}


def entry(table, function, dtype):
    return table["functions"].get(function.name, {}).get(NAMES[dtype], {})


def _versions():
    found = {"glibc": platform.libc_ver()[1], "processor": _processor()}
    for name in ("numpy", "scipy", "mlx", "gmpy2"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def _processor():
    # NumPy chooses its functions by these.
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return "AVX-512" if " avx512dq" in flags else "AVX2" if " avx2" in flags else platform.machine()


def record(table, function, dtype, hashes, results, samples):
    table["versions"] = _versions()
    errors = {}
    for name, result in results.items():
        errors[name] = {
            "error": round(result.error, 4) if math.isfinite(result.error) else None,
            "at": [x.hex() for x in result.at] if result.at else None,
        }
        if result.wrong:
            errors[name]["wrong"] = [x.hex() for x in result.wrong_at]
    entry = {"samples": samples, "hash": hashes, "errors": errors}
    table["functions"].setdefault(function.name, {})[NAMES[dtype]] = entry


def write(table):
    order = [f.name for f in FUNCTIONS]
    table["functions"] = {n: table["functions"][n] for n in order if n in table["functions"]}
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
    PAGE.write_text(render(table))
    return 0


def _cell(dtype, errors, name):
    if name not in errors:
        return "–"
    error = errors[name]["error"]
    text = f"{error:.2f}" if error < 1000 else f"{error:.1e}".replace("e+0", "e").replace("e+", "e")
    if "wrong" in errors[name]:
        text += " *"
    if name in ("strict",) and errors[name]["at"]:
        text += f" at {_arguments(dtype, errors[name]['at'])}"
    return text


def _arguments(dtype, hexes):
    return ", ".join(str(dtype(float.fromhex(h))) for h in hexes)


def _rows(table, dtype):
    yield "| | " + " | ".join(COLUMNS.values()) + " |"
    yield "|---" * (len(COLUMNS) + 1) + "|"
    for f in FUNCTIONS:
        if errors := entry(table, f, dtype).get("errors"):
            cells = (_cell(dtype, errors, name) for name in COLUMNS)
            samples = entry(table, f, dtype)["samples"]
            some = samples and dtype == np.float32 and f.operands == 1
            mark = f" (2^{math.log2(samples):.0f} arguments)" if some else ""
            yield f"| {f.name}{mark} | " + " | ".join(cells) + " |"


def _wrong(table):
    for f in FUNCTIONS:
        for dtype in NAMES:
            for name, e in entry(table, f, dtype).get("errors", {}).items():
                if "wrong" in e:
                    x = _arguments(dtype, e["wrong"])
                    yield f"{COLUMNS[name]}'s {f.name}({x}) of {np.dtype(dtype).name}"


def render(table):
    v = table["versions"]
    peers = f"NumPy {v.get('numpy')} (erf, erfc: SciPy {v.get('scipy')}), glibc {v.get('glibc')}"
    peers += f", MLX {v.get('mlx')} on its CPU" if v.get("mlx") else ""
    wrong = "; ".join(_wrong(table))
    return f"""# Accuracy

The largest error of each mathematical function, in units in the last place (ULP): |computed − exact| divided by the distance of
floats at the exact value, the least subnormal among subnormals; an infinity instead of a finite number counts as the next power of
two. 0.5 is the best possible. picokernel's functions are arithmetic that every backend with kernels runs alike, so its columns hold
on every machine, in every vector width and for every backend but numpy and mlx, bit for bit; those of others hold for
{peers}, on an {v.get("processor")} processor.

Made by `make accuracy`, which measures what has changed; `python tools/accuracy check`, a part of CI, fails if an expansion is
not the one that was measured, or exceeds its error on 2^22 arguments.

## float32
Unary functions: all 2^32 arguments where the name says nothing else, the peers one of 16, against float64; so many evenly spread over
all bit patterns where it does. Others: 2^26 pairs of all magnitudes, results of all magnitudes.

{chr(10).join(_rows(table, np.float32))}

## float64
2^26 arguments each: all exponents, densely where the function bends, near its special points, for sin, cos and tan also those floats of
each exponent that come nearest to multiples of π/2. Against 64-bit long doubles, the largest errors again against MPFR.

{chr(10).join(_rows(table, np.float64))}

\\* Special values differ from C99's in places, such as {wrong or "none"}.

float16 and bfloat16 compute in float32 and round once: within 0.51 ULP of their own.
"""

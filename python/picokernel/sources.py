"""Opening the Python source that the numpy and mlx backends print."""

import linecache
import threading

import numpy as np

SCRATCH_CAP = 64 << 20  # bytes that one opened kernel keeps for reuse, per thread


def opened(text, entry, backend, stamp=None, lines=()):
    """The function `entry` of a printed source. With `stamp`, its instrumented twin: `stamp()` runs
    before the first of these lines (numbers from 1) and after each of them."""
    name = f"<picokernel {backend} {entry}>"
    if stamp is not None:
        text = _instrumented(text, lines)
        name = f"<picokernel {backend} {entry}, profiled>"
    known = linecache.cache.get(name)
    if known is not None and known[2] != text.splitlines(True):
        name = f"{name[:-1]} {len(linecache.cache)}>"
    # Tracebacks show the printed lines.
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"np": np, "scratch": _scratch_pool(), "_s": stamp}
    if "ml_dtypes." in text:
        import ml_dtypes

        space["ml_dtypes"] = ml_dtypes
    if backend == "mlx":
        import mlx.core

        space["mx"] = mlx.core
    exec(compile(text, name, "exec"), space)
    return space[entry]


def _instrumented(text, lines):
    numbers = set(lines)
    result = []
    for number, line in enumerate(text.splitlines(), 1):
        indent = line[: len(line) - len(line.lstrip())]
        if lines and number == lines[0]:
            result.append(f"{indent}_s()")
        result.append(line)
        if number in numbers:
            result.append(f"{indent}_s()")
    return "\n".join(result) + "\n"


def _scratch_pool():
    local = threading.local()

    def scratch(i, shape, dtype):
        """An array of undefined content: the i-th that a call asks for."""
        kept = local.__dict__
        last = kept.get(i)
        if last is not None and last[0] == shape and last[1] is dtype:
            return last[2]
        array = np.empty(shape, dtype)
        kept.pop(i, None)
        if sum(x[2].nbytes for x in kept.values()) + array.nbytes <= SCRATCH_CAP:
            kept[i] = (shape, dtype, array)
        return array

    return scratch

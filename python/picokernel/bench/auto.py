"""`bench auto`: the backend that backend="auto" takes, against the best one, on kernels and sizes that the ceilings
were not measured with."""

import contextlib
import statistics
import time

import numpy as np

from .. import _core
from ..ceilings import CANDIDATES
from ..errors import CompileError, LaunchError
from ..kernel import Kernel
from .tables import Section, Table, size_text, time_of

SIZES = (100, 1000, 10**4, 10**5, 10**6, 4 * 10**6)


def _axpy(x, y):
    return 2.5 * x + y


def _norm(x, y):
    return np.sqrt(x * x + y * y)


def _polynomial(x):
    s = x * 0.1 + 1
    for c in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        s = s * x + c
    return s


def _logistic(x):
    return 1 / (1 + np.exp(-x))


def _clipped(x, y):
    return np.where(x > y, np.minimum(x, 0.75), np.maximum(y, 0.25))


def _waves(x, y):
    return np.sin(x) * np.cos(y) + np.log(x + 1)


def _powers(x, y):
    return (x + 0.5) ** y - np.tanh(x)


def _integers(i, j):
    return (i * 3 + j) // 7 - (i & j)


_KERNELS = [
    (function, dtype)
    for function in (_axpy, _norm, _polynomial, _logistic, _clipped, _waves, _powers)
    for dtype in ("float32", "float64")
] + [(_integers, "int64"), (_integers, "int32")]


def _seconds(call):
    call(), call()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - begin < 5e-3 and len(times) < 200):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def auto(sizes=None, backends=CANDIDATES, say=print):
    """Figures: a list of dicts, one per kernel and size."""
    say(f"auto: {len(_KERNELS)} kernels")
    names = [n for n in CANDIDATES if _core.backends()[n] == "" and n in backends]
    rng = np.random.default_rng(0)
    figures = []
    for function, dtype in _KERNELS:
        for n in sizes or SIZES:
            count = function.__code__.co_argcount
            args = [(rng.random(n) * 8).astype(dtype) for _ in range(count)]
            figures.append(_case(function, args, names))
    return figures


def _case(function, args, names):
    def seconds(kernel):
        return _seconds(lambda: kernel(*args, out=out))

    times, out = {}, Kernel(function)(*args)
    for name in names:
        with contextlib.suppress(CompileError, LaunchError):
            times[name] = seconds(Kernel(function, name))
    chosen, best = Kernel(function, "auto"), Kernel(function, min(times, key=times.get))
    for _ in range(40):
        chosen(*args, out=out)
    # Against the drift of a shared machine: the best one again, in turn with it.
    pairs = [(seconds(chosen), seconds(best)) for _ in range(3)]
    mine, least = (statistics.median(p) for p in zip(*pairs, strict=True))
    took = chosen._recent_calls()[0][0]
    cost = chosen.explain(*args, out=out).costs[took]
    return {
        "kernel": function.__name__[1:],
        "dtype": str(args[0].dtype),
        "elements": args[0].size,
        "seconds": times,
        "auto": mine,
        "of_best": mine / least,
        "took": took,
        "predicted": cost.seconds,
        "bound": cost.bound,
        "off": cost.seconds / mine,
    }


def sections(figures):
    names = [n for n in CANDIDATES if any(n in f["seconds"] for f in figures)]
    rows = []
    for f in figures:
        times = [time_of(f["seconds"][b]) if b in f["seconds"] else "-" for b in names]
        chosen = [time_of(f["auto"]), f"{f['of_best']:.2f}", f["took"]]
        off = [f"{f['off']:.2f}", f["bound"]]
        rows.append([f["kernel"], f["dtype"], size_text(f["elements"]), *times, *chosen, *off])
    head = ["kernel", "type", "n", *names, "auto", "of the best", "takes", "predicted", "bound"]
    about = 'What `backend="auto"` takes, against the best backend; predicted as a multiple of measured.'
    return [Section("Choice of the backend", about, [Table(head, rows, left=2)], summary(figures))]


def summary(figures):
    """The sentences that follow."""
    ratios = [f["of_best"] for f in figures]
    bound = [max(f["off"], 1 / f["off"]) for f in figures if f["bound"] == "memory"]
    lines = [
        f"`auto` costs {statistics.mean(ratios):.3f} of the best backend's time on average, "
        f"{max(ratios):.2f} at most, over {len(ratios)} cases."
    ]
    if bound:
        lines.append(
            f"Memory-bound predictions are off by a factor of {statistics.median(bound):.2f} (median), "
            f"{max(bound):.2f} at most, over {len(bound)} cases."
        )
    return lines

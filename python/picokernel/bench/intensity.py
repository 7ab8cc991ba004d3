"""`bench intensity`: operations per byte of memory, swept, on every backend: a roofline."""

import statistics

from ..ceilings import ceilings
from . import charts, verdicts
from .duel import Contender, rounds_of, running
from .memory import fit_sizes
from .tables import Section, Table, number, size_text

SIZES = (10**7,)
# Operations per element of the kernel; it reads and writes 8 bytes an element, 16 if there are none.
OPERATIONS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_BYTES = 100  # per element, while all contenders hold their arrays and one of them runs
_MOST_S = (
    1.0  # a kernel of more operations is left out once a call took that long: the curve is flat
)
_LANES = 4  # independent chains of operations, so that none waits for the one before

_SETUP = """
import numpy as np, picokernel as pk
from picokernel.bench.intensity import function
n = {n}
x, y = (np.random.default_rng(i).random(n, dtype=np.float32) for i in range(2))
o, q = np.zeros_like(x), np.zeros_like(x)
made = {{}}
def made_once(k):
    if k not in made: made[k] = pk.kernel(function(k), backend={backend!r})
    return made[k]
def run(k):
    if k: made_once(k)(x, out=o)
    else: made_once(k)(x, y, o, q)
"""
_ARRAYS = """
import mlx.core as mx
X, Y = map(mx.array, (x, y))
mx.eval(X, Y)
def run(k):
    global o, q
    o = q = None
    if k: o = made_once(k)(X)
    else:
        o, q = mx.zeros(n), mx.zeros(n)
        made_once(k)(X, Y, o, q)
    mx.eval([v for v in (o, q) if v is not None])
"""
# Samples from all over, both ends among them: of long kernels NumPy takes seconds for all elements. On
# MLX's arrays a machine's compiler may fuse operations.
_CHECK = """
result = np.asarray(o)
for i in [*range(0, n, max(1 << 16, n // 16)), max(0, n - (1 << 16))]:
    s = slice(i, i + (1 << 16))
    want = np.zeros_like(x[s])
    if k: want = function(k)(x[s])
    else: function(k)(x[s], y[s], want, want.copy())
    assert np.allclose(result[s], want, 1e-4), "wrong results"
del result
"""


def function(operations):
    """A function of float32 arrays that does so many multiplications and additions an element, on one
    array in and one out. With 0: one multiplication beside a copy, on two arrays in and two out."""
    if not operations:

        def twice(x, y, o, q):
            o[...] = x * 1.5
            q[...] = y

        return twice
    lanes = _LANES if operations >= 2 * _LANES else 1
    left = operations - (lanes - 1)
    lines = [f"v{lane} = x * {0.75 + lane / 64}" for lane in range(lanes)]
    # The values stay near 1: each addition takes the place of what the multiplication took.
    for i in range(lanes, left):
        step = "+ 0.25" if i // lanes % 2 else "* 0.75"
        lines.append(f"v{i % lanes} = v{i % lanes} {step}")
    lines.append("return " + " + ".join(f"v{lane}" for lane in range(lanes)))
    names = {}
    exec("def f(x):\n    " + "\n    ".join(lines), names)
    return names["f"]


def per_byte(operations):
    return operations / 8 if operations else 1 / 16


def intensity(sizes=None, backends=("numpy", "cpu", "mlx"), repeats=3, say=print):
    """Figures: "sizes": size -> contender -> operations per element -> seconds of each round; "ceilings":
    backend -> [bytes a second, FLOP/s], as `picokernel.ceilings` has them, of those that fuse."""
    found, note = fit_sizes(sizes or SIZES, _BYTES)
    if note:
        say(note)
    figures = {"ceilings": _ceilings(backends), "sizes": {}}
    for n in found:
        say(f"intensity: {len(OPERATIONS)} kernels, n = {n:,}")
        setups = {name: _SETUP.format(n=n, backend=name) for name in backends}
        if "mlx" in backends:
            setups["mlx, its arrays"] = setups["mlx"] + _ARRAYS
        contenders = [
            Contender(name, setup, "run(k)", _CHECK, points=OPERATIONS, most_s=_MOST_S)
            for name, setup in setups.items()
        ]
        with running(contenders, starters=1) as processes:
            times = rounds_of(processes, repeats)
        figures["sizes"][str(n)] = {
            name: {str(k): rounds for k, rounds in by_k.items()} for name, by_k in times.items()
        }
    return figures


def _ceilings(backends):
    rates = {name: r for name, r in ceilings().backends.items() if name in backends and r.fused}
    return {name: [r.bandwidth()[-1][1], r.peak()] for name, r in rates.items()}


def curves_of(n, by_contender):
    """contender -> operations per byte -> FLOP/s, of the medians."""
    return {
        name: {
            per_byte(int(k)): n * max(int(k), 1) / statistics.median(rounds)
            for k, rounds in by_k.items()
        }
        for name, by_k in by_contender.items()
    }


def sections(figures):
    found = []
    for n, by_contender in figures["sizes"].items():
        curves = curves_of(int(n), by_contender)
        rows = []
        for k in sorted({int(k) for by_k in by_contender.values() for k in by_k}):
            cells = [_cell(int(n), k, by_k.get(str(k))) for by_k in by_contender.values()]
            rows.append([_intensity_text(k), *cells])
        head = ["operations a byte", *(f"{name}, GFLOP/s (GB/s)" for name in by_contender)]
        found.append(
            Section(
                f"Intensity: operations per byte of memory, n = {size_text(int(n))}",
                "One float32 array in, one out, more and more multiplications and additions between them, none "
                "fused with another. Medians, and in brackets how far the rounds are apart: (highest - lowest) "
                "/ median. A curve ends where a call took over 0.5 s.",
                [Table(head, rows)],
                verdicts.intensity(curves),
                charts.later("by_intensity", curves, figures["ceilings"]),
            )
        )
    return found


def _intensity_text(operations):
    value = per_byte(operations)
    return f"1/{round(1 / value)}" if value < 1 else f"{value:.0f}"


def _cell(n, operations, rounds):
    if rounds is None:
        return "-"
    seconds = statistics.median(rounds)
    flops = n * max(operations, 1) / seconds
    apart = (max(rounds) - min(rounds)) / seconds
    return f"{number(flops / 1e9)} ({number(flops / per_byte(operations) / 1e9)}) [{100 * apart:.0f} %]"

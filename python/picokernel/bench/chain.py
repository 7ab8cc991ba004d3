"""`bench chain`: N steps x = x*b + c, and from which N on one way of running them beats another."""

import statistics
from dataclasses import dataclass

from . import charts, verdicts
from .duel import Contender, rounds_of, running
from .fits import crossover, fit
from .memory import fit_sizes
from .tables import Section, Table, number, size_text

SIZES = (10**8,)
STEPS = (1, 2, 4, 8, 16)
BASE = "NumPy in place"
_BYTES = 128  # per element, while all contenders hold their arrays and one of them runs
_MOST_S = 5.0  # a longer chain is left out once a call took that long
_LEAST_STEPS = 3  # which a fit takes

_SETUP = """
import numpy as np
n = {n}
rng = np.random.default_rng(0)
x, b, c = (rng.random(n, dtype=np.float32) for _ in range(3))
o = np.zeros(n, np.float32)
def kernel_of(k, backend):
    import picokernel as pk
    names = {{}}
    exec("def chain(x, b, c):\\n" + "    x = x * b + c\\n" * k + "    return x", names)
    return pk.kernel(names["chain"], backend=backend)
made = {{}}
def made_once(k, make):
    if k not in made: made[k] = make(k)
    return made[k]
"""
_MLX = """
import mlx.core as mx
def lazy(k, x, b, c):
    for _ in range(k): x = mx.add(mx.multiply(x, b), c)
    return x
def moved(f):
    v = f(mx.array(x), mx.array(b), mx.array(c))
    mx.eval(v)
    o[...] = np.asarray(v)
small = [mx.array(np.ones(8, np.float32)) for _ in range(3)]
mx.eval(small)
def primitives(v):
    import io
    text = io.StringIO()
    mx.export_to_dot(text, v)
    return text.getvalue().count("rectangle")
"""
_DEVICE = """
X, B, C = map(mx.array, (x, b, c))
mx.eval(X, B, C)
del x, b, c, o
o = None
def inputs(s): return [np.asarray(v[s]) for v in (X, B, C)]
def evaluate(v):
    global o
    o = None
    mx.eval(v)
    o = v
"""
# In parts, so that it needs no memory. Some contenders fuse operations, which rounds once less.
_CHECK = """
result = np.asarray(o)
for i in range(0, n, 1 << 20):
    s = slice(i, i + (1 << 20))
    want, *by = inputs(s) if "inputs" in globals() else (x[s], b[s], c[s])
    for _ in range(k): want = want * by[0] + by[1]
    assert np.allclose(result[s], want, 1e-5), "wrong results"
del result
"""
_NUMPY = """
def in_place(k):
    np.multiply(x, b, out=o)
    np.add(o, c, out=o)
    for _ in range(k - 1):
        np.multiply(o, b, out=o)
        np.add(o, c, out=o)
"""
_TRANSPARENT = """
step = kernel_of(1, {backend!r})
def transparent(k):
    step(x, b, c, out=o)
    for _ in range(k - 1): step(o, b, c, out=o)
"""
_NUMBA = """
import numba as nb
from numba import prange
@nb.njit(parallel=True)
def fused(x, b, c, o, k):
    for i in prange(o.size):
        v = x[i]
        for _ in range(k): v = v * b[i] + c[i]
        o[i] = v
"""
_JAX = """
import jax
X, B, C = map(jax.numpy.asarray, (x, b, c))
def chain(k): return jax.jit(lambda x, b, c: [x := x * b + c for _ in range(k)][-1])
def fused(k):
    global o
    o = made_once(k, chain)(X, B, C).block_until_ready()
"""
_STEPS = """
step = kernel_of(1, "mlx")
def steps(k, v, b, c):
    for _ in range(k): v = step(v, b, c)
    return v
"""
_COMPILED = "made_once(k, lambda k: mx.compile(lambda x, b, c: lazy(k, x, b, c)))"
_ONE_KERNEL = "made_once(k, lambda k: kernel_of(k, 'mlx'))"


@dataclass(frozen=True)
class Row:
    """A way of running the chain: whose it is, what it is, its Python and the call that runs k steps.
    `graph` is an MLX array of which the primitives are counted."""

    backend: str
    about: str
    code: str
    call: str
    graph: str = ""


ROWS = {
    BASE: Row("numpy", "two `out=` ufuncs a step, on one array", _NUMPY, "in_place(k)"),
    "fused cpu": Row(
        "cpu",
        "our kernel of all N steps, one pass",
        "",
        "made_once(k, lambda k: kernel_of(k, 'cpu'))(x, b, c, out=o)",
    ),
    "transparent": Row(
        "mlx",
        "our kernel of one step, N calls, each from NumPy to MLX and back",
        _TRANSPARENT.format(backend="mlx"),
        "transparent(k)",
    ),
    "lazy, moved once": Row(
        "mlx",
        "MLX's own operations, inputs moved once, one eval, the result moved back",
        _MLX,
        "moved(lambda *v: lazy(k, *v))",
        "lazy(k, *small)",
    ),
    "compiled, moved once": Row(
        "mlx",
        "the same under `mx.compile`",
        _MLX,
        f"moved({_COMPILED})",
        f"{_COMPILED}(*small)",
    ),
    "MLX arrays": Row(
        "mlx",
        "our kernel of one step, N calls on arrays that stay on MLX, one eval",
        _MLX + _STEPS + _DEVICE,
        "evaluate(steps(k, X, B, C))",
        "steps(k, *small)",
    ),
    "MLX arrays, one kernel": Row(
        "mlx",
        "our kernel of all N steps on arrays that stay on MLX",
        _MLX + _DEVICE,
        f"evaluate({_ONE_KERNEL}(X, B, C))",
        f"{_ONE_KERNEL}(*small)",
    ),
}
PEERS = {
    "numba, fused": Row("", "one parallel loop of all N steps", _NUMBA, "fused(x, b, c, o, k)"),
    "jax, its arrays": Row("", "`jax.jit` of all N steps", _JAX, "fused(k)"),
}


def chain(
    sizes=None, steps=None, backends=("numpy", "cpu", "mlx"), repeats=3, peers=False, say=print
):
    """Figures: size -> "seconds": row -> steps -> seconds of each round; "primitives": row -> steps ->
    how many MLX runs."""
    found, note = fit_sizes(sizes or SIZES, _BYTES)
    if note:
        say(note)
    rows = {k: row for k, row in ROWS.items() if row.backend in backends} | (PEERS if peers else {})
    figures = {}
    for n in found:
        say(f"chain: {len(rows)} rows, n = {n:,}")
        contenders = [_contender(name, row, n, steps or STEPS) for name, row in rows.items()]
        with running(contenders, starters=1) as processes:
            seconds = rounds_of(processes, repeats)
            counts = {p.name: _primitives(p, rows[p.name].graph) for p in processes}
        figures[str(n)] = {
            "seconds": {name: _by_text(points) for name, points in seconds.items()},
            "primitives": {name: _by_text(counted) for name, counted in counts.items() if counted},
        }
    return figures


def _by_text(points):
    """As JSON has it."""
    return {str(k): value for k, value in points.items()}


def _primitives(process, graph):
    return {
        k: process.value(f"(lambda k: primitives({graph}))({k})") for k in process.first_s if graph
    }


def _contender(name, row, n, steps):
    return Contender(
        name,
        _SETUP.format(n=n) + row.code,
        row.call,
        _CHECK,
        points=tuple(steps),
        most_s=_MOST_S,
        least_points=_LEAST_STEPS,
    )


def sections(figures):
    return [_section(int(n), at) for n, at in figures.items()]


def lines_of(seconds):
    """row -> fits.Line through the medians in seconds by N, of those with two lengths or more."""
    points = {
        name: [(int(k), statistics.median(rounds)) for k, rounds in by_k.items()]
        for name, by_k in seconds.items()
    }
    return {name: fit(of_row) for name, of_row in points.items() if len(of_row) > 1}


def _section(n, at):
    seconds, counts = at["seconds"], at["primitives"]
    steps = sorted({int(k) for by_k in seconds.values() for k in by_k})
    rows = [
        [name, *(_cell(by_k.get(str(k))) for k in steps), _counted(counts.get(name), steps)]
        for name, by_k in seconds.items()
    ]
    head = ["ms", *(f"N = {k}" for k in steps), f"MLX primitives, N = {steps[0]} .. {steps[-1]}"]
    lines = lines_of(seconds)
    fits, sentences = [], []
    for name, line in lines.items():
        about = (ROWS | PEERS)[name].about
        if BASE in lines and name != BASE:
            crossing = crossover(lines[BASE], line)
            sentences.append(verdicts.chain(name, BASE, line, crossing))
        fits.append(
            [
                name,
                about,
                _plus_minus(line.slope, line.slope_error),
                _plus_minus(line.intercept, line.intercept_error),
            ]
        )
    tables = [Table(head, rows)]
    if fits:
        tables.append(Table(["row", "what it is", "ms a step", "ms once"], fits, left=2))
    section = Section(
        f"Chain of N steps x = x*b + c, n = {size_text(n)}",
        "Median (lowest .. highest round). Lines by least squares through the medians, ± one standard error; "
        "intervals are of 95 %. A row ends where a chain took over 5 s.",
        tables,
        sentences,
    )
    medians = {
        name: {int(k): statistics.median(rounds) for k, rounds in by_k.items()}
        for name, by_k in seconds.items()
    }
    section.chart = charts.later("by_steps", medians, lines)
    return section


def _plus_minus(value, error):
    return (
        f"{number(value * 1e3)} ± {number(error * 1e3, 2)}" if error < 1e9 else number(value * 1e3)
    )


def _counted(counts, steps):
    if not counts:
        return "-"
    return " .. ".join(str(counts[str(k)]) for k in (steps[0], max(map(int, counts))))


def _cell(rounds):
    if rounds is None:
        return "-"
    low, middle, high = (f(rounds) * 1e3 for f in (min, statistics.median, max))
    return f"{number(middle)} ({number(low)} .. {number(high)})"

"""`bench mlx`: a*b+c on arrays of MLX, evaluated: its operations, `mx.compile`, and what a kernel runs."""

import statistics

from .. import _core
from .duel import Contender, duel, ratio
from .tables import Section, Table, number, size_text

SIZES = (10**3, 10**5, 10**7)
_TITLE = "Arrays of MLX: a*b+c, float32, evaluated"
_ABOUT = (
    "Arrays of MLX in, an evaluated array out: median (lowest .. highest round), a process each, results "
    "checked. The kernel runs as native code in MLX's graph or, without the bridge, as its printed source "
    "under `mx.compile`. Ratios are medians over rounds. MLX's cache of buffers has 32 MiB by default."
)
_CALL = "mx.eval(f(a, b, c))"

_SETUP = """
import mlx.core as mx, numpy as np
{cache}
rng = np.random.default_rng(0)
a, b, c = (mx.array(rng.random({n}, dtype=np.float32)) for _ in range(3))
mx.eval(a, b, c)
def plain(a, b, c): return a * b + c
"""
_CHECK = """
o = f(a, b, c)
mx.eval(o)
assert np.allclose(np.asarray(o), np.asarray(a) * np.asarray(b) + np.asarray(c), 1e-6), "wrong results"
del o
"""
_KERNEL = "import picokernel as pk\nf = pk.kernel(plain)\n"
_NO_BRIDGE = """
from picokernel import mlx_bridge
def library(anew=False): raise mlx_bridge.BridgeError("not here")
mlx_bridge.library = library
"""
ROWS = {
    "MLX's operations": "f = plain\n",
    "mx.compile": "f = mx.compile(plain)\n",
    "kernel": _KERNEL,
    "kernel, no bridge": _NO_BRIDGE + _KERNEL,
}
CACHES = {"default": "", "2 GiB": f"mx.set_cache_limit({2 << 30})"}
BARS = {"default": 3.0, "2 GiB": 1.2}  # times as fast as mx.compile
BAR_AT = 10**7


def on_mlx(sizes=None, repeats=9, say=print):
    """Figures: n -> MLX's cache -> row -> seconds of each round. Nothing where MLX is not live."""
    if reason := _core.backends().get("mlx", "not built"):
        say(f"mlx: {reason}")
        return {}
    figures = {}
    for n in sizes or SIZES:
        say(f"mlx: {len(ROWS)} ways of a*b+c, {len(CACHES)} caches, n = {n:,}")
        contenders = [
            Contender(f"{row}: {cache}", _SETUP.format(n=n, cache=limit) + code, _CALL, _CHECK)
            for cache, limit in CACHES.items()
            for row, code in ROWS.items()
        ]
        times = duel(contenders, repeats)
        figures[str(n)] = {
            cache: {row: times[key] for row in ROWS if (key := f"{row}: {cache}") in times}
            for cache in CACHES
        }
    return figures


def sections(figures):
    if not figures:
        return [Section(_TITLE, "MLX is not live here.")]
    rows, sentences = [], []
    for n, caches in figures.items():
        for cache, times in caches.items():
            faster = {
                row: ratio(times, row, ["mx.compile"])
                for row in ("kernel", "kernel, no bridge")
                if row in times
            }
            cells = [_cell(times.get(row)) for row in ROWS]
            rows.append([size_text(int(n)), cache, *cells, *map(_ratio, faster.values())])
            if int(n) == BAR_AT and faster.get("kernel"):
                sentences.append(
                    f"n = {size_text(BAR_AT)}, {cache} cache: {number(faster['kernel'])} times as fast as "
                    f"`mx.compile`; at least {BARS[cache]:g} is the bar, "
                    + ("met." if faster["kernel"] >= BARS[cache] else "missed.")
                )
    ratios = ["`mx.compile` / kernel", "`mx.compile` / no bridge"]
    head = ["n", "MLX's cache", *(f"{row}, us" for row in ROWS), *ratios]
    return [Section(_TITLE, _ABOUT, [Table(head, rows, left=2)], sentences)]


def _cell(rounds):
    if not rounds:
        return "-"
    low, middle, high = (number(f(rounds) * 1e6) for f in (min, statistics.median, max))
    return f"{middle} ({low} .. {high})"


def _ratio(value):
    return "-" if value is None else f"{value:.2f}"

"""`bench elementwise`: float32 a*b+c by size, NumPy arrays in and out."""

import contextlib
import os
import tempfile

from .ceiling import build_ceiling
from .duel import Contender, duel, medians, ratio

_DATA = """
import numpy as np
rng = np.random.default_rng(0)
a, b, c = (rng.random({n}, dtype=np.float32) for _ in range(3))
o = np.zeros({n}, np.float32)
"""
_CHECK = "assert np.allclose(o, a * b + c, rtol=1e-6)"  # peers may fuse the two operations
_OURS = """
import picokernel as pk
@pk.kernel
def f(a, b, c): return a * b + c
f = f
"""
_NUMBA = """
import numba as nb
@nb.njit(parallel={parallel}, fastmath={{"reassoc", "nsz", "arcp", "contract", "afn"}})
def f(a, b, c, o):
    for i in {range}(a.size): o[i] = a[i] * b[i] + c[i]
"""
_CEILING = """
import ctypes
fma = ctypes.CDLL({path!r}).fma_ceiling
fma.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_size_t, ctypes.c_int]
q = (*(x.ctypes.data for x in (a, b, c, o)), {n}, {threads})
"""
NUMBA = ("numba serial", "numba parallel")
CEILING = "C, streaming"


def _contenders(n, backends, peers, ceiling):
    data = _DATA.format(n=n)
    ours = [
        Contender(
            b,
            data + _OURS,
            f"f(a, b, c, out=o, backend={b!r})" if b != "cpu" else "f(a, b, c, out=o)",
            _CHECK,
        )
        for b in backends
    ]
    if not peers:
        return ours
    serial = data + _NUMBA.format(parallel=False, range="range")
    parallel = data + _NUMBA.format(parallel=True, range="nb.prange")
    scratch = "\ndef f():\n    t = np.multiply(a, b)\n    np.add(t, c, out=o)\n"
    jitted = "\nimport jax\nf = jax.jit(lambda a, b, c: a * b + c)\n"
    others = [
        Contender("NumPy, scratch", data + scratch, "f()", _CHECK),
        Contender(NUMBA[0], serial, "f(a, b, c, o)", _CHECK),
        Contender(NUMBA[1], parallel, "f(a, b, c, o)", _CHECK),
        Contender(
            "numexpr", data + "\nimport numexpr as ne\n", "ne.evaluate('a*b+c', out=o)", _CHECK
        ),
        Contender("jax", data + jitted, "np.copyto(o, np.asarray(f(a, b, c)))", _CHECK),
    ]
    if ceiling:
        text = data + _CEILING.format(path=ceiling, n=n, threads=os.cpu_count())
        others.append(Contender(CEILING, text, "fma(*q)", _CHECK))
    return ours + others


def elementwise(sizes=None, backends=None, rounds=9, peers=False):
    """Prints a row per size. Gives the figures: size -> contender -> seconds of each round."""
    import picokernel as pk

    live = [name for name, why_not in pk.backends().items() if not why_not]
    wanted = backends or [b for b in ("numpy", "cpu", "mlx") if b in live]
    for name in wanted:
        if name not in live:
            raise pk.LaunchError(f"backend {name} is not live here\n  live: {', '.join(live)}")
    figures = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack():
        ceiling = build_ceiling(folder) if peers else None
        for n in sizes or [10**k for k in range(3, 9)]:
            some = [b for b in wanted if b != "ref" or n <= 10**5]
            times = duel(
                _contenders(n, some, peers, ceiling), rounds if n < 10**8 else min(rounds, 5)
            )
            figures[str(n)] = times
            _print_row(n, times, some)
    return figures


def _print_row(n, times, ours):
    print(f"\na*b+c float32, n = {n:,}: microseconds per call, median (lowest .. highest round)")
    middle = medians(times)
    best = min(middle.values())
    for name in sorted(middle, key=middle.get):
        low, high = min(times[name]) * 1e6, max(times[name]) * 1e6
        mark = "*" if name in ours else " "
        print(
            f" {mark}{name:<16}{middle[name] * 1e6:>12.2f}  ({low:.2f} .. {high:.2f})  {middle[name] / best:.2f}x"
        )
    if "cpu" in times:
        for label, others in (("the better numba", NUMBA), (CEILING, (CEILING,))):
            value = ratio(times, "cpu", others)
            if value is not None:
                print(f"  cpu against {label}: {value:.2f}x", flush=True)

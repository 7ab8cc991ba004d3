"""`picokernel demo`: the first experiment, on this machine, with the printed sources and a trace."""

import os
import statistics
import time

import numpy as np

import picokernel as pk

SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)
REPEATS = 50


@pk.kernel
def fma(a, b, c):
    return a * b + c


def _median_ms(call, repeats):
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def _row(n, backends, rng):
    a, b, c = (rng.random(n, dtype=np.float32) for _ in range(3))
    expected = a * b + c
    times = {}
    for backend in backends:
        out = np.zeros_like(a)

        def call(backend=backend, out=out):
            return fma(a, b, c, out=out, backend=backend)

        call()
        call()
        if not np.array_equal(out, expected):
            raise pk.InternalError(f"{backend} gives wrong results at n = {n}")
        times[backend] = _median_ms(call, REPEATS)
    return times


def _table(backends):
    rng = np.random.default_rng(0)
    print(f"float32 a*b+c, NumPy arrays in and out, ms per call (medians of {REPEATS}, checked)\n")
    print(f"{'n':>8}" + "".join(f"{b:>11}" for b in backends) + "   winner")
    for n in SIZES:
        times = _row(n, backends, rng)
        best = min(times, key=times.get)
        worst = max(times, key=times.get)
        cells = "".join(f"{times[b]:>11.4f}" for b in backends)
        ratio = times[worst] / times[best]
        verdict = f"{best}, {ratio:.1f}x faster than {worst}" if best != worst else best
        print(f"{n:>8.0e}{cells}   {verdict}", flush=True)


def demo(folder="out"):
    """Prints the table and the sources and writes `folder`/demo.trace.json. Gives an exit status."""
    live = [name for name, why_not in pk.backends().items() if not why_not]
    backends = [b for b in ("numpy", "cpu", "mlx") if b in live]
    for name in ("numpy", "cpu", "mlx"):
        if name not in live:
            print(f"{name} is not live: {pk.backends().get(name, 'not built')}")
    _table(backends)

    for backend in ("numpy", "mlx"):
        print(f"\nfma for {backend}:\n\n{fma.source(backend, *_arrays(10**6))}", end="")

    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "demo.trace.json")
    arrays = _arrays(10**6)
    for backend in backends:
        fma(*arrays, backend=backend)
    with pk.profile(path):
        for backend in backends:
            for _ in range(3):
                fma(*arrays, backend=backend)
    print(f"\nA trace of three calls at n = 1e6 on each backend: {path}")
    print("Open it at https://ui.perfetto.dev (Open trace file); it stays on your machine.")
    return 0


def _arrays(n):
    rng = np.random.default_rng(1)
    return [rng.random(n, dtype=np.float32) for _ in range(3)]

"""`bench costs`: what surrounds a kernel: its first call, the import."""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from .tables import Section, Table, number

# Twenty kernels of different structure; prints the milliseconds of each first call.
_FIRST_CALLS = """
import time, numpy as np
{setup}
texts = [
    "a*b+c", "a+b", "a-b*c", "a*b*c", "(a+b)*(a-b)", "a*2.5+b", "-a+b/c", "np.sqrt(a)+b", "np.abs(a-b)",
    "np.minimum(a,b)+c", "np.maximum(a,b)*c", "np.where(a>b,a,c)", "a*a+b*b+c*c", "a/(b+1.0)",
    "np.floor(a*8.0)", "(a>b)", "a*b+b*c+c*a", "np.where(a>0.5,b*c,b+c)", "1.0/(1.0+a*a)", "a+b+c+a*b*c",
]
a, b, c = (np.random.default_rng(0).random(1000, dtype=np.float32) + 0.25 for _ in range(3))
def make(text):
    names = dict(globals())
    exec("def f(a, b, c): return " + text, names)
    return wrap(names["f"])
make("a*b-c*c")(a, b, c)  # a warm process
times = []
for text in texts:
    f = make(text)
    begin = time.perf_counter()
    f(a, b, c)
    times.append((time.perf_counter() - begin) * 1e3)
print(*times)
"""
_IMPORT = "import time, numpy; t = time.perf_counter(); import {module}; print((time.perf_counter() - t) * 1e3)"

# A process of its own: what a user waits for at the first call when an earlier process has compiled.
_ON_DISK = """
import time, numpy as np
{setup}
def f(a, b, c): return a * b + c
a, b, c = (np.random.default_rng(i).random(1000, dtype=np.float32) for i in range(3))
time.sleep(0.1)  # the threads of NumPy's BLAS spin for a while
f = wrap(f)
begin = time.perf_counter()
result = f(a, b, c)
print((time.perf_counter() - begin) * 1e3)
assert np.allclose(result, a * b + c)
"""


def python(*command, **variables):
    """The numbers that a program prints. Nothing is on disk unless `variables` say so."""
    env = {**os.environ, "PICOKERNEL_CACHE_SIZE": "0", **variables}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=env)
    if done.returncode != 0:
        return None
    return [float(word) for word in done.stdout.split()]


def _first_calls(peers):
    setups = {"picokernel": "import picokernel as pk\nwrap = pk.kernel"}
    if peers:
        setups["numba"] = "import numba as nb\nwrap = nb.njit"
        setups["jax"] = (
            "import jax, jax.numpy\nwrap = lambda f: (lambda *x, g=jax.jit(f): g(*x).block_until_ready())"
        )
    figures = {}
    for name, setup in setups.items():
        code = _FIRST_CALLS.format(setup=setup)
        if name == "jax":
            code = code.replace(
                'def f(a, b, c): return " + text',
                'def f(a, b, c): return " + text.replace("np.", "jax.numpy.")',
            )
        figures[name] = python("-c", code) or []
    return figures


def _on_disk(rounds, peers):
    setups = {
        "picokernel": "import picokernel as pk\nwrap = pk.kernel",
        "picokernel, 1 thread": "import picokernel as pk\nwrap = pk.kernel\npk.set_num_threads(1)",
    }
    if peers:
        setups["numba, cache=True"] = "import numba as nb\nwrap = nb.njit(cache=True)"
    figures = {name: [] for name in setups}
    with tempfile.TemporaryDirectory() as folder:
        variables = {
            "PICOKERNEL_CACHE_DIR": os.path.join(folder, "kernels"),
            "PICOKERNEL_CACHE_SIZE": "",
            "NUMBA_CACHE_DIR": os.path.join(folder, "numba"),
        }
        for number, setup in enumerate(setups.values()):  # files: numba keeps those of files only
            Path(folder, f"{number}.py").write_text(_ON_DISK.format(setup=setup))
        for turn in range(rounds + 1):
            for number, name in enumerate(setups):
                time = python(os.path.join(folder, f"{number}.py"), **variables)
                if turn and time:  # the first one compiles
                    figures[name] += time
    return figures


def _imports(rounds):
    times = (python("-c", _IMPORT.format(module="picokernel")) for _ in range(rounds))
    return {"picokernel": [t[0] for t in times if t]}


def costs(repeats=7, peers=False, say=print):
    """Figures of each table: contender -> ms of each round."""
    say("costs: first calls, imports")
    return {
        "first call": _first_calls(peers),
        "first call, kernel on disk": _on_disk(repeats, peers),
        "import": _imports(repeats),
    }


_TITLES = {
    "first call": "First call of a new small kernel in a warm process, 20 of different structure",
    "first call, kernel on disk": "First call in a new process, a*b+c compiled by an earlier one",
    "import": "Import beyond NumPy's own",
}


def sections(figures):
    rows = []
    for key, title in _TITLES.items():
        for name, times in figures[key].items():
            cells = (
                [number(f(times)) for f in (statistics.median, min, max)] if times else ["-"] * 3
            )
            rows.append([title, name, *cells])
    tables = [Table(["ms", "of", "median", "lowest", "highest"], rows, left=2)]
    return [Section("What surrounds a kernel", "Each in processes of their own.", tables)]

"""`bench threads`: kernels of threads beside what else computes the same on this machine."""

import statistics
from pathlib import Path

from .. import simt
from ..errors import LaunchError
from .duel import Contender, duel, ratio
from .tables import Section, Table, number, time_of
from .thread_works import WORKS

KERNELS = Path(__file__).with_name("thread_kernels.py")
_IMPORT = "from picokernel import simt as cuda"
_SETUP = "import math\nimport numpy as np\nrng = np.random.default_rng(0)\nn = {n}\n{data}\n"
_OURS = "import picokernel as pk\nfrom picokernel.bench.thread_kernels import *\n"
_SIMULATOR = f"""
from pathlib import Path
text = Path({str(KERNELS)!r}).read_text()
assert {_IMPORT!r} in text
exec(text.replace({_IMPORT!r}, "from numba import cuda"))
"""
_SIMULATED = {"NUMBA_ENABLE_CUDASIM": "1"}
# Seconds that a launch and a first call may take, and are aimed at.
LAUNCH_BAR, FIRST_CALL_BAR = (1e-6, 0.35e-6), (20e-3, 10e-3)
SIMULATOR_BAR = 1000
_EMPTY = "a, b, c, d = (np.zeros(8, np.float32) for _ in range(4))\n"
# Of each kind of kernel one that no cache knows, in a process that has compiled another before.
_FIRST_CALLS = """
import tempfile, importlib.util
text = '''
from picokernel import simt as cuda
@cuda.jit
def f(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * {number} + y[i]
'''
x = np.ones(1000, np.float32)
folder = tempfile.mkdtemp()
def load(number):
    path = folder + f"/k{number}.py"
    with open(path, "w") as file: file.write(text.replace("{number}", str(number)))
    spec = importlib.util.spec_from_file_location(f"k{number}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f
kernels = iter([load(number) for number in range(2, 600)])
"""


def threads(names=(), repeats=5, peers=False, say=print):
    """Figures: row -> contender -> seconds of each round; peers and Numba's simulator only if asked for."""
    for name in names:
        if name not in (*WORKS, "costs"):
            raise LaunchError(
                f"nothing to measure is called {name!r}\n  there is {', '.join(WORKS)}, costs"
            )
    figures = {}
    for name in names or (*WORKS, "costs"):
        say(f"threads: {name}")
        if name == "costs":
            figures["launch"] = duel(
                [_contender("cpu", _EMPTY, "empty[1, 1](a, b, c, d)")], repeats
            )
            bound = _OURS + "bound = empty[1, 1]\n"
            figures["launch"] |= duel(
                [Contender("cpu, bound", _setup(8, _EMPTY) + bound, "bound(a, b, c, d)")], repeats
            )
            first = Contender(
                "cpu",
                _setup(8, _FIRST_CALLS) + _OURS,
                "next(kernels)[4, 256](x, np.zeros_like(x))",
                environment={"PICOKERNEL_CACHE_SIZE": "0"},
            )
            figures["first call"] = duel([first], repeats)
            continue
        work = WORKS[name]
        figures[name] = duel(_contenders(work, peers), repeats)
        if work.simulated and peers:
            say(f"threads: {name}, Numba's simulator")
            figures[f"{name}, n = {work.simulated:,}"] = duel(_simulated(work), 3)
    return figures


def _setup(n, data):
    return _SETUP.format(n=n, data=data)


def _contender(name, data, call, n=8, check="", backend=None):
    code = _OURS + (f"pk.use({backend!r}).__enter__()\n" if backend else "")
    return Contender(name, _setup(n, data) + code, call, check)


def _contenders(work, peers):
    made = [_contender("cpu", work.data, work.launch, work.n, work.check)]
    made += [
        _contender(backend, work.data, work.launch, work.n, work.check, backend)
        for backend in work.backends
        if simt.backends().get(backend) == ""
    ]
    for name, (code, call) in work.peers.items() if peers else ():
        made.append(Contender(name, _setup(work.n, work.data) + code, call, work.check))
    return made


def _simulated(work):
    n, check = work.simulated, "" if work.n == 2048 else work.check
    setup = _setup(n, work.data)
    return [
        Contender("cpu", setup + _OURS, work.launch, check),
        Contender("simulator", setup + _SIMULATOR, work.launch, check, _SIMULATED),
    ]


def sections(figures):
    rows, bars = [], []
    for name, times in figures.items():
        work = WORKS.get(name)
        title = f"{work.title}, n = {work.n:,}" if work else name
        for contender, rounds in times.items():
            low, middle, high = (time_of(f(rounds)) for f in (min, statistics.median, max))
            rows.append([title, contender, middle, low, high])
        bars += _verdicts(name, work, times)
    tables = [Table(["kernel", "contender", "median", "lowest", "highest"], rows, left=2)]
    if bars:
        head = ["kernel", "against", "measured", "must", "aim", ""]
        tables.append(Table(head, bars, left=2, title="Against bars"))
    return [Section("Kernels of threads", _ABOUT, tables)]


_ABOUT = (
    "Each contender is a process of its own whose result was checked; rounds go through them in turn. "
    "Times as fast: the fastest peer's time by ours, round by round, the median. The simulator is "
    "Numba's, on the same source."
)


def _verdicts(name, work, times):
    if "cpu" not in times:
        return []
    if name in ("launch", "first call"):
        must, aim = LAUNCH_BAR if name == "launch" else FIRST_CALL_BAR
        contender = "cpu, bound" if "cpu, bound" in times else "cpu"
        value = statistics.median(times[contender])
        met = "aim met" if value <= aim else "must met" if value <= must else "missed"
        return [[name, "-", time_of(value), f"<= {time_of(must)}", f"<= {time_of(aim)}", met]]
    lines = []
    for bar in work.bars if work else ():
        value = ratio(times, "cpu", bar.peers)
        if value is None:
            continue
        met = "aim met" if value >= bar.aim else "must met" if value >= bar.must else "missed"
        lines.append(
            [name, ", ".join(bar.peers), f"{number(value)} x", f"{bar.must}", f"{bar.aim}", met]
        )
    value = ratio(times, "cpu", ["simulator"])
    if value is not None:
        met = "must met" if value >= SIMULATOR_BAR else "missed"
        lines.append([name, "simulator", f"{number(value)} x", f"{SIMULATOR_BAR}", "-", met])
    return lines

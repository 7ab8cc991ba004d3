"""`bench profilers`: cProfile, pyinstrument and VizTracer beside `pk.profile`, on one script: what each costs, and
what each finds."""

import statistics
from importlib import util

from .duel import Contender, rounds_of, running
from .tables import Section, Table, number, size_text

SIZES = (1000, 100_000)  # pendulums: calls of some 10 us and more
_STEPS = {1000: 2000, 100_000: 100}
_SHOWN = 6  # of what a profiler finds

# `run(k)` runs the script under the profiler; `found()` gives [[what, seconds]] of the run before it, each
# without what it called.
_SCRIPT = """
from picokernel.bench.pendulums import main
def script(): main({backend!r}, {n}, {steps})
def named(function, file, line): return f"`{{function}}`, {{file.replace(chr(92), '/').rpartition('/')[2]}}:{{line}}"
"""
_TOOLS = {
    "none": """
def run(k): script()
def found(): return []
""",
    "`pk.profile`": """
import picokernel as pk
from collections import defaultdict
def run(k):
    global p
    with pk.profile() as p: script()
def found():
    times = defaultdict(int)
    for e in p.events:
        if e.phase == "X" and e.category not in ("call", "cache"):
            file, line, _ = e.args.get("location", "::").rsplit(":", 2)
            what = f"`{e.name}`" if file == "" else named(e.name, file, line)
            times[what if e.category == "op" else f"{what} ({e.category})"] += e.duration_ns
    return [[what, ns * 1e-9] for what, ns in times.items()]
""",
    "cProfile": """
import cProfile, pstats
def run(k):
    global p
    p = cProfile.Profile()
    p.runcall(script)
def found():
    return [[named(name, file, line), own] for (file, line, name), (_, _, own, _, _) in pstats.Stats(p).stats.items()]
""",
    "pyinstrument": """
from collections import defaultdict
from pyinstrument import Profiler
def run(k):
    global p
    p = Profiler()
    p.start()
    script()
    p.stop()
def found():
    times = defaultdict(float)
    def add(frame):
        own = frame.time - sum(child.time for child in frame.children)
        times[named(frame.function, frame.file_path or "", frame.line_no)] += own
        for child in frame.children: add(child)
    add(p.last_session.root_frame())
    return list(times.items())
""",
    "VizTracer": """
from collections import defaultdict
from viztracer import VizTracer
tracer = VizTracer(verbose=0, tracer_entries=5_000_000)
def run(k):
    tracer.clear()
    tracer.start()
    script()
    tracer.stop()
def found():
    tracer.parse()
    times, open_ = defaultdict(float), []
    spans = [e for e in tracer.data["traceEvents"] if e["ph"] == "X"]
    for e in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
        while open_ and open_[-1]["ts"] + open_[-1]["dur"] <= e["ts"]: open_.pop()
        if open_: times[open_[-1]["name"]] -= e["dur"] * 1e-6
        times[e["name"]] += e["dur"] * 1e-6
        open_.append(e)
    def shown(name):
        function, _, place = name.partition(" (")
        file, _, line = place.rstrip(")").rpartition(":")
        return named(function, file, line) if file else f"`{name}`"
    return [[shown(name), own] for name, own in times.items()]
""",
}
_NEEDED = {"pyinstrument": "pyinstrument", "VizTracer": "viztracer"}  # pip install picokernel[bench]


def profilers(sizes, backends, repeats, say):
    """Figures: "seconds": backend -> n -> profiler -> seconds of the script in each round; "found": backend ->
    profiler -> [what, share of the run], the largest first, of the most pendulums."""
    tools = [t for t in _TOOLS if t not in _NEEDED or util.find_spec(_NEEDED[t])]
    figures = {"seconds": {}, "found": {}, "missing": [t for t in _TOOLS if t not in tools]}
    for backend in backends:
        for n in sizes or SIZES:
            say(f"profilers: {backend}, {n} pendulums")
            script = _SCRIPT.format(backend=backend, n=n, steps=_STEPS.get(n, 100))
            contenders = [Contender(tool, script + _TOOLS[tool], "run(k)") for tool in tools]
            with running(contenders) as processes:
                times = rounds_of(processes, repeats)
                for process in processes:
                    rows = process.value("sorted(found(), key=lambda row: -row[1])")
                    whole = sum(seconds for _, seconds in rows)
                    shares = [[what, seconds / whole] for what, seconds in rows]
                    figures["found"].setdefault(backend, {})[process.name] = shares
            figures["seconds"].setdefault(backend, {})[str(n)] = {
                tool: rounds for tool, points in times.items() for rounds in points.values()
            }
    return figures


def _cost(times, tool):
    """How many times as long the script took, as the median over rounds."""
    return statistics.median(t / p for t, p in zip(times[tool], times["none"], strict=True))


def _costs(figures):
    rows = []
    for backend, by_size in figures["seconds"].items():
        for n, times in by_size.items():
            per_step = statistics.median(times["none"]) / _STEPS.get(int(n), 100)
            row = [backend, size_text(int(n)), number(per_step * 1e6)]
            rows.append(
                row + [f"{_cost(times, t):.2f}" if t in times else "-" for t in [*_TOOLS][1:]]
            )
    return Table(["backend", "pendulums", "µs a step, unprofiled", *[*_TOOLS][1:]], rows)


def _found(backend, by_tool):
    rows = []
    for tool, shares in by_tool.items():
        for what, share in shares[:_SHOWN]:
            rows.append([tool, what, f"{100 * share:.1f} %"])
    title = f"The largest parts of the time on {backend}, each without what it called"
    return Table(["profiler", "what", "share"], rows, left=2, title=title)


def sections(figures):
    tables = [_costs(figures)]
    tables += [_found(backend, by_tool) for backend, by_tool in figures["found"].items()]
    about = (
        "The script `bench/pendulums.py`, and how many times as long it takes under each profiler, with the start and end "
        "of the recording; a process each, interleaved rounds."
    )
    missing = [f"{tool} is not installed: `pip install picokernel[bench]`" for tool in figures["missing"]]
    return [Section("Profilers", about, tables, missing)]

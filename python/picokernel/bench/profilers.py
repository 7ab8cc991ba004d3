"""`bench profilers`: cProfile, pyinstrument and VizTracer beside `pk.profile`, on one script: what each costs, and
what each finds."""

import statistics
from importlib import util

from .costs import python
from .duel import Contender, rounds_of, running
from .tables import Section, Table, number, size_text, time_of

SIZES = (1000, 100_000)  # pendulums: calls of some 10 us and more
_PLAIN = "none"

# A profiler is a text: `run()` runs the script under it; `found()` gives [what, seconds without what it called]
# of the run before.
_SCRIPT = """
from picokernel.bench.pendulums import main
def script(): main({backend!r}, {n}, {steps})
def named(function, file, line): return f"`{{function}}`, {{file.rpartition('/')[2]}}:{{line}}"
def largest(parts): return sorted(parts, key=lambda part: -part[1])[:6]
tools = {{}}
for tool, text in {tools!r}.items():
    tools[tool] = {{"script": script, "named": named}}
    exec(text, tools[tool])
"""
_TOOLS = {
    _PLAIN: """
def run(): script()
def found(): return []
""",
    "`pk.profile`": """
import picokernel as pk
from collections import defaultdict
def run():
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
def run():
    global p
    p = cProfile.Profile()
    p.runcall(script)
def found():
    return [[named(name, file, line), own] for (file, line, name), (_, _, own, _, _) in pstats.Stats(p).stats.items()]
""",
    "pyinstrument": """
from collections import defaultdict
from pyinstrument import Profiler
def run():
    global p
    p = Profiler()
    p.start()
    script()
    p.stop()
def found():
    times = defaultdict(float)
    def add(frame):
        if frame.function == "[self]":
            times[named(frame.parent.function, frame.parent.file_path or "", frame.parent.line_no)] += frame.time
        elif not frame.children:
            times[named(frame.function, frame.file_path or "", frame.line_no)] += frame.time
        for child in frame.children: add(child)
    add(p.last_session.root_frame())
    return list(times.items())
""",
    "VizTracer": """
from collections import defaultdict
from viztracer import VizTracer
tracer = VizTracer(verbose=0, tracer_entries=5_000_000)
def run():
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
_NEEDED = {
    "pyinstrument": "pyinstrument",
    "VizTracer": "viztracer",
}  # pip install picokernel[bench]

# Ten multiplications in one kernel, profiled or not: the difference is the profiler's.
_EVENTS = """
import time, numpy as np, picokernel as pk
a, b = (np.random.default_rng(0).random(16, dtype=np.float32) for _ in range(2))
o = np.zeros(16, np.float32)
def body(k):
    names = {}
    exec("def f(a, b):\\n x = a\\n" + " x = x * b + a\\n" * k + " return x", names)
    return pk.kernel(names["f"], backend=BACKEND)
def per_call(f, profiled):
    def block():
        begin = time.perf_counter()
        for _ in range(400): f(a, b, out=o)
        return (time.perf_counter() - begin) / 400
    f(a, b, out=o)
    if not profiled: return min(block() for _ in range(9))
    with pk.profile():
        f(a, b, out=o)
        return min(block() for _ in range(9))
few, many = body(1), body(11)
extra = [per_call(f, True) - per_call(f, False) for f in (few, many)]
event = (extra[1] - extra[0]) / 20
print(event * 1e9, (extra[0] - 2 * event) * 1e9)
"""

# Calls of some 10 us and of 1 ms on a machine of these years; MLX needs more for any.
_CALL_SIZES = {
    "numpy": (30_000, 1_500_000),
    "cpu": (100_000, 4_000_000),
    "mlx": (1_000, 300_000),
}
_CALLS = """
import numpy as np, picokernel as pk
a, b, c = (np.random.default_rng(i).random({n}, dtype=np.float32) for i in range(3))
f = pk.kernel(lambda a, b, c: a * b + c, backend={backend!r})
f(a, b, c)
def plain():
    for _ in range({calls}): f(a, b, c)
def profiled():
    with pk.profile(): plain()
"""


def _events():
    """Nanoseconds of an event, and of a call beyond its events, on numpy."""
    return python("-c", "BACKEND = 'numpy'\n" + _EVENTS) or []


def _calls(backends, repeats):
    """Backend -> n -> seconds per call, plain and profiled, of each round."""
    figures = {}
    for backend, sizes in _CALL_SIZES.items():
        if backend not in backends:
            continue
        for n, calls in zip(sizes, (1000, 20), strict=True):
            setup = _CALLS.format(n=n, backend=backend, calls=calls)
            both = Contender("both", setup, "globals()[k]()", points=("plain", "profiled"))
            with running([both]) as processes:
                times = rounds_of(processes, repeats)["both"]
            figures.setdefault(backend, {})[str(n)] = {
                name: [t / calls for t in rounds] for name, rounds in times.items()
            }
    return figures


def _scripts(sizes, backends, repeats, say):
    """("seconds" of `profilers`, "found")."""
    tools = {tool: text for tool, text in _TOOLS.items() if tool not in _missing()}
    seconds, found = {}, {}
    for backend in backends:
        for n in sizes or SIZES:
            say(f"profilers: {backend}, {n} pendulums")
            setup = _SCRIPT.format(backend=backend, n=n, steps=_steps(n), tools=tools)
            # In one process: they start no threads, and the memory that it got is part of a step's time.
            contender = Contender("all", setup, "tools[k]['run']()", points=tuple(tools))
            with running([contender]) as processes:
                seconds.setdefault(backend, {})[str(n)] = rounds_of(processes, repeats)["all"]
                found[backend] = {
                    tool: processes[0].value(f"largest(tools[{tool!r}]['found']())")
                    for tool in tools
                }
    return seconds, found


def _steps(n):
    return max(10, min(10_000, 100_000_000 // n))


def _missing():
    return [tool for tool, package in _NEEDED.items() if util.find_spec(package) is None]


def profilers(sizes, backends, repeats, say):
    """Figures: "seconds": backend -> n -> profiler -> seconds of the script in each round; "found": backend ->
    profiler -> [what, seconds without what it called], the largest first, of the last n; "calls" and "events":
    what `pk.profile` costs, see there; "missing": profilers."""
    say("profilers: single calls")
    figures = {"calls": _calls(backends, repeats), "events": _events(), "missing": _missing()}
    scripted = [name for name in backends if name != "mlx"]
    figures["seconds"], figures["found"] = _scripts(sizes, scripted, repeats, say)
    return figures


def _times_as_long(times, tool, than):
    return statistics.median(t / p for t, p in zip(times[tool], times[than], strict=True))


def _of_calls(figures):
    rows = []
    for backend, sizes in figures["calls"].items():
        for n, times in sizes.items():
            middle = [time_of(statistics.median(times[name])) for name in ("plain", "profiled")]
            ratio = _times_as_long(times, "profiled", "plain")
            rows.append([backend, size_text(int(n)), *middle, f"{ratio:.3f}"])
    return Table(["`a*b+c` on", "elements", "a call", "in `pk.profile`", "times as long"], rows)


def _of_scripts(figures):
    tools = [tool for tool in _TOOLS if tool != _PLAIN]
    rows = []
    for backend, by_size in figures["seconds"].items():
        for n, times in by_size.items():
            step = statistics.median(times[_PLAIN]) / _steps(int(n))
            ratios = [
                f"{_times_as_long(times, t, _PLAIN):.2f}" if t in times else "-" for t in tools
            ]
            rows.append([backend, size_text(int(n)), time_of(step), *ratios])
    return Table(["the script on", "pendulums", "a step", *tools], rows)


def _of_found(backend, by_tool):
    rows = []
    for tool, parts in by_tool.items():
        for what, seconds in parts:
            rows.append([tool, what, time_of(seconds)])
    title = f"On {backend}: what takes most of the time, without what it calls"
    return Table(["profiler", "what", "time"], rows, left=2, title=title)


def sections(figures):
    tables = [_of_scripts(figures), _of_calls(figures)]
    tables += [_of_found(backend, by_tool) for backend, by_tool in figures["found"].items()]
    about = (
        "How many times as long `picokernel/bench/pendulums.py` takes under each profiler, with the start and the end of "
        "the recording, rounds in turn; then single calls in `pk.profile`."
    )
    sentences = [
        f"{tool} is not installed: `pip install picokernel[bench]`" for tool in figures["missing"]
    ]
    if figures["events"]:
        event, call = map(number, figures["events"])
        sentences.append(
            f"On numpy an event costs {event} ns, and a call {call} ns beyond its events."
        )
    return [Section("Profilers", about, tables, sentences)]

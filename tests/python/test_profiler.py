"""Profiles by line and as a page."""

import json
import linecache
import os
import re
import shutil
import subprocess
import sys
import types

import numpy as np
import perfetto
import picokernel as pk
import pytest
from picokernel import _core, ceilings, timeline
from picokernel.profiler import Profiler

X = np.ones(1000, np.float32)
EVIL = "</script><script>fail()</script><b>&amp;"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pk.kernel  # profiles know kernels by name: no other test has one of this
def profiled_fma(a, b, c):
    d = a * b  # </script>
    return d + c


DEFINED = profiled_fma.__wrapped__.__code__.co_firstlineno + 1  # below the decorator


def profile_of(*backends, calls=2):
    with pk.profile() as profile, pk.span(EVIL):
        for name in backends:
            for _ in range(calls):
                profiled_fma(X, X, X, backend=name)
    return profile


def section(text, kernel, backend):
    """{(line, what): (count, total)} of the table of one kernel on one backend; times as texts."""
    (found,) = re.findall(rf"^{kernel} on {re.escape(backend)}: .*\n((?:.+\n)+)", text, re.M)
    rows, line = {}, None
    for row in found.splitlines()[1:]:
        place, count, total, _, _, what = re.split(r"\s{2,}", row.strip(), maxsplit=5)
        line = line if row.startswith(" ") else place
        rows[line, what] = (int(count), total)
    return rows


def test_lines_of_printed_sources():
    rows = section(profile_of("numpy").lines(), "profiled_fma", "numpy")
    first, second = f"test_profiler.py:{DEFINED + 1}", f"test_profiler.py:{DEFINED + 2}"
    assert (f"test_profiler.py:{DEFINED}", "def profiled_fma(a, b, c):") in rows
    assert (first, "d = a * b  # </script>") in rows and (second, "return d + c") in rows
    source = profiled_fma.source("numpy", X, X, X).splitlines()
    for line, operation in ((first, "mul"), (second, "add")):
        (what,) = (what for place, what in rows if place == line and "np." in what)
        number, text, ir_op = re.fullmatch(r"(\d+): (.*)  # (.*)", what).groups()
        assert source[int(number) - 1].strip() == text
        assert rows[line, what][0] == 2 and f" = {operation} " in ir_op


def test_lines_sum_to_the_calls(backend):
    shown = profile_of(backend).lines()
    assert re.match(rf"profiled_fma on {backend}: 2 calls, ", shown)
    shares = [float(re.search(r" ([\d.]+) %", row)[1]) for row in shown.splitlines()[2:]]
    is_line = [not row.startswith(" ") for row in shown.splitlines()[2:]]
    for kind in (True, False):  # lines, and what ran for them
        parts = [s for s, line in zip(shares, is_line, strict=True) if line == kind]
        assert sum(parts) == pytest.approx(100, abs=0.06 * len(parts))
    rows = section(shown, "profiled_fma", backend)
    assert all(count == 2 for (_, what), (count, _) in rows.items() if what.startswith("def "))
    launches = [place for place, what in rows if what == "profiled_fma"]
    assert launches == ([f"test_profiler.py:{DEFINED}"] if backend in ("cpu", "ref") else [])


def test_lines_of_a_cell_and_of_kernels_with_one_name():
    def defined(file, text):
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), space := {"pk": pk})
        return space["in_a_cell"]

    files = "<ipython-input-1-ab>", "<ipython-input-2-ab>"
    try:
        one = defined(files[0], "@pk.kernel\ndef in_a_cell(x):\n    return x + 1  # one\n")
        with pk.profile() as profile:
            one(X, backend="cpu")
        assert "  def in_a_cell(x):\n" in profile.lines()

        two = defined(files[1], "@pk.kernel\ndef in_a_cell(x):\n    return x + 2  # two\n")
        with pk.profile() as profile:
            for kernel in (one, two):
                kernel(X, backend="numpy")
                kernel(X, backend="cpu")
        shown = profile.lines()
        for file, number in zip(files, ("one", "two"), strict=True):
            assert shown.count(f", {file}\n") == 2  # a table for each backend
            assert re.search(rf"1 call, .* us, {file}\n(.+\n)+.*  # {number}\n", shown), shown
    finally:
        for file in files:
            linecache.cache.pop(file, None)


def test_merged_profiles_and_empty_ones():
    merged = Profiler.merge(profile_of("cpu"), profile_of("cpu", "numpy"), name="again")
    shown = merged.lines()
    for process in ("cpu", "cpu (again)", "numpy"):
        assert section(shown, "profiled_fma", process)
    with pk.profile() as profile:
        pass
    assert profile.lines() == ""


def data_of(path):
    (text,) = re.findall(
        r'<script id="data" type="application/json">(.*?)</script>', path.read_text()
    )
    return json.loads(text)


def test_page(tmp_path, backend):
    path = tmp_path / "p.html"
    profile = profile_of(backend)
    profile.to_html(path)
    text = path.read_text()
    assert text.lower().count("<script") == text.lower().count("</script") == 2
    assert "fail()</script>" not in text and "@@" not in text
    assert "def profiled_fma(a, b, c):" in text and "&lt;/script&gt;" in text
    data = data_of(path)
    spans = [e for e in profile.events if e.phase in "Xi"]
    assert [data["names"][row[1]] for row in data["events"]] == [e.name for e in spans]
    assert [row[3:5] for row in data["events"]] == [[e.begin_ns, e.duration_ns] for e in spans]
    assert EVIL in data["names"] and f"{backend} · main" in data["tracks"]
    assert os.listdir(tmp_path) == ["p.html"]
    with pytest.raises(pk.Error, match=r"no-folder.p\.html' cannot be written"):
        profile.to_html(tmp_path / "no-folder" / "p.html")


def test_page_says_what_it_leaves_out(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline, "MOST_EVENTS", 3)
    profile = profile_of("numpy")
    profile.to_html(tmp_path / "p.html")
    spans = sorted((e.duration_ns for e in profile.events if e.phase in "Xi"), reverse=True)
    assert (
        sorted((row[4] for row in data_of(tmp_path / "p.html")["events"]), reverse=True)
        == spans[:3]
    )
    assert f"The 3 longest of {len(spans):,} events;" in (tmp_path / "p.html").read_text()


# Before the page's own script and after it: what it asks for and what goes wrong is kept for the dump.
WATCH = """<script>const wrong = [];
addEventListener("error", e => wrong.push(e.message));
addEventListener("securitypolicyviolation", e => wrong.push(e.blockedURI));</script>"""
USE = """<script>
const state = () => [canvas.dataset.drawn, canvas.width, canvas.height];
const shown = state(), box = canvas.getBoundingClientRect();
const colours = new Set(new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer));
const lane = lanes[lanes.length - 1], target = lane.rows[0][0];
const at = { clientX: box.left + ((target.begin + target.end) / 2 - from) / (to - from) * box.width,
  clientY: box.top + lane.top + 5, bubbles: true };
canvas.dispatchEvent(new MouseEvent("mousemove", at));
const before = to - from;
canvas.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: -400, cancelable: true }));
const out = document.createElement("pre");
out.id = "result";
out.textContent = JSON.stringify({ wrong, shown, colours: colours.size, tip: tip.textContent, zoom: before / (to - from),
  requests: performance.getEntriesByType("resource").map(e => e.name) });
document.body.append(out);</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")
def test_page_in_a_browser(tmp_path):
    path = tmp_path / "p.html"
    profile_of("cpu", "numpy").to_html(path)
    text = path.read_text().replace("<head>", "<head>" + WATCH).replace("</body>", USE + "</body>")
    path.write_text(text)
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    words = [CHROMIUM, *options, f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.S)
    assert found, done.stderr[-2000:]
    result = json.loads(found[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
    assert result["wrong"] == [] and result["requests"] == []
    assert int(result["shown"][0]) > 5 and result["colours"] > 5
    assert result["tip"].startswith("profiled_fma\ncall, ") and "elements: 1000" in result["tip"]
    assert result["zoom"] == pytest.approx(np.e)


@pk.kernel
def stores_to_slices(x, b, o):
    o[...] = x * b
    o[1:-1] += x[:-2]
    o[0] = 0
    return o - x


@pk.kernel
def several_results(x, b):
    s = x + b
    return s, np.where(s > 0, x, b), s % 3


@pk.kernel
def casts_and_numbers(x, i, n):
    return np.sqrt(i) + x * (n - 2)


I32 = np.arange(1, 1001, dtype=np.int32)
PRINTED = {
    "results": (several_results, (I32, I32[::-1].copy())),
    "floats": (several_results, (X, X)),
    "stores": (stores_to_slices, (X, X, X.copy())),
    "casts": (casts_and_numbers, (X, I32, 7)),
    "one": (profiled_fma, (X, X, X)),
}
# What a printed function does, and the operation of the IR that it may stand for.
FUNCTIONS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "sqrt": "sqrt", "remainder": "mod",
    "greater": "gt", "where": "select", "scratch": "scratch", "asarray": "write",
}  # fmt: skip
OPERATORS = {"add": "+", "mul": "*", "mod": "%", "sqrt": "np.sqrt", "gt": ">", "select": "where"}


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("case", PRINTED)
@pytest.mark.parametrize("name", ["numpy", "mlx"])
def test_an_event_for_each_printed_operation(name, case, split):
    if pk.backends()[name]:
        pytest.skip(pk.backends()[name])
    kernel, args = PRINTED[case]
    lines = kernel.source(name, *args).splitlines()
    with pk.profile(split=split) as profile:
        kernel(*args, backend=name)
        kernel(*args, backend=name)
    events = [e for e in profile.events if "line" in e.args]
    operations = [n for n in range(2, len(lines) + 1) if lines[n - 1].strip()]
    assert [e.args["line"] for e in events] == operations * 2
    for e in events:
        assert e.name == e.args["source"] == lines[e.args["line"] - 1].strip()
        lazy = e.category == "op_lazy" or (split and name == "mlx" and e.category == "op")
        kinds = {"mx.array(": "h2d", "mx.asarray(": "h2d", "mx.eval(": "sync"}
        kinds |= {"np.asarray(": "d2h", "scratch(": "alloc"}
        kind = next((k for text, k in kinds.items() if text in e.name), "op")
        assert e.category == kind or (name == "mlx" and lazy)  # mx.array makes numbers, too
        if e.category == "sync":  # of all the lines
            assert "ir_op" not in e.args and "location" not in e.args
            continue
        (operation,) = re.findall(r"^(?:%\w+ = )?(\w+)", e.args["ir_op"])
        function = re.search(r"(?:np|mx)\.(\w+)\(|(scratch)\(", e.name)
        wanted = FUNCTIONS.get(function and (function[1] or function[2]))
        if "mx.asarray(" in e.name:
            wanted = "read"
        assert wanted in (None, operation)
        file, line, _ = e.args["location"].rsplit(":", 2)
        text = linecache.getline(file, int(line))
        code = kernel.__wrapped__.__code__
        assert file == __file__ and code.co_firstlineno < int(line) <= code.co_firstlineno + 5
        if operation in OPERATORS and "%" not in text:  # a remainder is made of many operations
            assert OPERATORS[operation] in text or (operation == "add" and "+=" in text)


def test_a_path_in_no_folder_is_refused_at_once(tmp_path):
    with pytest.raises(pk.Error, match="cannot be written: there is no folder"):
        pk.profile(tmp_path / "none/t.json")


def test_copies_say_what_they_cost():
    if pk.backends()["mlx"]:
        pytest.skip(pk.backends()["mlx"])
    x = np.ones((500, 600), np.float32).T  # not lent
    profiled_fma(x, x, x, backend="mlx")
    with pk.profile() as profile:
        profiled_fma(x, x, x, backend="mlx")
    copies = [e for e in profile.events if e.category in ("h2d", "d2h")]
    assert [e.category for e in copies] == ["h2d", "h2d", "h2d", "d2h"]
    for e in copies:
        assert e.args["bytes"] == x.nbytes
        assert e.args["GB/s"] == pytest.approx(x.nbytes / e.duration_ns)
        assert e.args["page_faults"] >= 0


def test_fresh_memory_faults(backend):
    x = np.ones(1_000_000, np.float32)
    profiled_fma(x, x, x, backend=backend)
    pk.trim()
    with pk.profile() as profile:
        profiled_fma(x, x, x, backend=backend)
    (output,) = (e for e in profile.events if e.name == "output")
    assert output.category == "alloc" and output.args["bytes"] == x.nbytes
    assert output.args["page_faults"] >= 0 and output.args["GB/s"] > 0
    held = [e.args["value"] for e in profile.events if e.name == "memory held"]
    assert held[-1] >= x.nbytes


def test_phases_sum_to_their_calls(backend):
    profile = profile_of(backend, calls=5)
    spans = [e for e in profile.events if e.phase == "X"]
    for call in (e for e in spans if e.category == "call"):
        end, phases, covered = call.begin_ns + call.duration_ns, 0, call.begin_ns
        for e in spans:
            inside = (e.pid, e.tid) == (call.pid, call.tid) and call.begin_ns <= e.begin_ns < end
            if inside and e is not call and e.begin_ns >= covered:
                assert e.begin_ns == covered or e.duration_ns == 0
                covered = e.begin_ns + e.duration_ns
                phases += e.duration_ns
        assert phases == call.duration_ns


def test_split_is_the_same_result_and_says_so(tmp_path):
    if pk.backends()["mlx"]:
        pytest.skip(pk.backends()["mlx"])
    for kernel, args in PRINTED.values():
        plain = kernel(*args, backend="mlx")
        with pk.profile(split=True):
            again = kernel(*args, backend="mlx")
        np.testing.assert_array_equal(plain, again)
    with pk.profile(tmp_path / "t.json", split=True) as profile:
        profiled_fma(X, X, X, backend="mlx")
    operations = [e for e in profile.events if e.category == "op"]
    assert [e.name.split("(")[0] for e in operations] == ["v2 = mx.multiply", "v4 = mx.add"]
    assert all(e.args["GB/s"] > 0 for e in operations)
    first = profile.table().splitlines()[0]
    assert first.startswith("intrusive, split: every MLX operation was evaluated")
    about = json.loads((tmp_path / "t.json").read_text())["otherData"]
    assert about["intrusive"].startswith("split: ")
    with pk.profile() as profile:
        profiled_fma(X, X, X, backend="mlx")
    assert not profile.table().startswith("intrusive")
    assert [e.category for e in profile.events if "mx.add" in e.name] == ["op_lazy"]


def test_metal_capture(tmp_path, monkeypatch):
    with pytest.raises(
        pk.LaunchError, match="metal_capture records what a Mac's GPU does for MLX, and"
    ):
        pk.profile(metal_capture=tmp_path / "t.gputrace")
    asked = []
    core = types.ModuleType("mlx.core")
    core.metal = types.SimpleNamespace(
        is_available=lambda: False,
        start_capture=asked.append,
        stop_capture=lambda: asked.append("stop"),
    )
    core.cpu, core.default_device = "cpu", lambda: types.SimpleNamespace(type="gpu")
    monkeypatch.setitem(sys.modules, "mlx", types.ModuleType("mlx"))
    monkeypatch.setitem(sys.modules, "mlx.core", core)
    with pytest.raises(pk.LaunchError, match=r"and this MLX has no Metal\n  hint: leave it out"):
        pk.profile(metal_capture=tmp_path / "t.gputrace")
    core.metal.is_available = lambda: True
    with pk.profile(metal_capture=tmp_path / "t.gputrace") as profile:
        assert asked == [str(tmp_path / "t.gputrace")]
    profile.stop()
    assert asked[1:] == ["stop"]
    with pytest.raises(ZeroDivisionError), pk.profile(metal_capture=tmp_path / "t.gputrace"):
        1 / 0
    assert asked[3:] == ["stop"]

    def fails(path):
        raise RuntimeError("[metal::start_capture] Failed to start: no layer")

    core.metal.start_capture = fails
    with pytest.raises(pk.LaunchError, match=r"no layer\n  hint: .*MTL_CAPTURE_ENABLED=1"):
        pk.profile(metal_capture=tmp_path / "t.gputrace")


@pk.kernel
def counted(a, b):
    return np.sqrt(a * b) + a  # three operations


def test_kernels_say_what_they_did(backend):
    counted(X, X, backend=backend)
    ceilings.tell_profiles()
    _core._set_ceiling(backend, [(1, 50.0)], 100.0)
    try:
        with pk.profile() as profile:
            counted(X, X, backend=backend)
        table = profile.table()
    finally:
        _core._set_ceiling(backend, [], 0.0)
    runs = [e for e in profile.events if e.category in ("op", "launch") and "operations" in e.args]
    if backend != "mlx":  # there they are lazy: their rates would be those of building a graph
        assert sum(e.args["operations"] for e in runs) == 3 * X.size
        assert "of ceiling" in table.splitlines()[0]
    for e in runs:
        ns, args = e.duration_ns, e.args
        assert args["location"].startswith(__file__)
        assert args["GB/s"] == pytest.approx(args["bytes"] / ns)
        assert args["GFLOP/s"] == pytest.approx(args["operations"] / ns)
        memory, compute = args["GB/s"] / 50, args["GFLOP/s"] / 100
        assert args["% of ceiling"] == pytest.approx(100 * max(memory, compute))
        assert args["ceiling"] == ("memory" if memory >= compute else "compute")
    launches = [e for e in runs if e.category == "launch"]
    assert [e.args["bytes"] for e in launches] == [3 * X.nbytes] * (backend in ("cpu", "ref"))


_SHARES = """
import sys, numpy as np, picokernel as pk
from picokernel import ceilings
if sys.argv[1] == "measure":
    ceilings.ceilings()
    sys.exit()
def never(*_): raise AssertionError("measured in a profile")
ceilings.measure = never
f, x = pk.kernel(lambda x: x + x, backend="cpu"), np.ones(300_000, np.float32)
f(x)
with pk.profile() as p: f(x)
assert "mlx.core" not in sys.modules
(launch,) = (e for e in p.events if e.category == "launch" and e.name != "chunks")
print("% of ceiling" in launch.args, launch.args.get("% of ceiling", 0) > 0)
"""


def test_shares_are_of_ceilings_that_were_measured_before(tmp_path, monkeypatch):
    monkeypatch.setenv("PICOKERNEL_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("PICOKERNEL_CACHE_SIZE", raising=False)

    def run(what):
        words = [sys.executable, "-c", _SHARES, what]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    assert run("use") == "False False"
    run("measure")
    assert run("use") == "True True"


@pytest.mark.skipif(bool(pk.backends()["mlx"]), reason="MLX is not live here")
def test_arrows_into_mlx(tmp_path):
    import mlx.core as mx

    if mx.default_device() != mx.Device(mx.cpu):
        pytest.skip("MLX computes on a GPU here")
    a = mx.array(X)
    mx.eval(profiled_fma(a, a, a))
    with pk.profile(tmp_path / "t.json") as profile:
        one = profiled_fma(a, a, a)
        two = profiled_fma(one, a, a)
        with pk.span("evaluate"):
            mx.eval(two)
        mx.synchronize()
    events = profile.events
    of = {
        c: [e for e in events if e.category == c] for c in ("call", "op_lazy", "device", "launch")
    }
    if not of["device"]:
        pytest.skip("there is no bridge into MLX here")
    assert all(len(found) == 2 for found in of.values()), of
    assert {e.process for found in of.values() for e in found} == {"mlx"}
    (evaluate,) = (e for e in events if e.name == "evaluate")
    for runs, launch in zip(of["device"], of["launch"], strict=True):
        assert runs.tid == launch.tid != of["call"][0].tid and "bytes" not in runs.args
        assert runs.begin_ns <= launch.begin_ns
        assert launch.begin_ns + launch.duration_ns <= runs.begin_ns + runs.duration_ns
        assert launch.args["bytes"] == 4 * X.nbytes and launch.args["operations"] == 2 * X.size
        assert evaluate.begin_ns < runs.begin_ns
    # Each arrow begins in the call that enqueued the run.
    starts = [e for e in events if e.phase == "s" and e.name == "runs in"]
    ends = {e.flow: e for e in events if e.phase == "f" and e.name == "runs in"}
    assert len(starts) == len(ends) == 2
    for start, lazy, runs in zip(starts, of["op_lazy"], of["device"], strict=True):
        assert lazy.begin_ns <= start.begin_ns <= lazy.begin_ns + lazy.duration_ns
        end = ends[start.flow]
        assert end.tid == runs.tid and end.begin_ns >= runs.begin_ns
    rows = section(profile.lines(), "profiled_fma", "mlx")
    (later,) = (
        count for (_, what), (count, _) in rows.items() if what.startswith("after the call")
    )
    assert later == 2
    slices = perfetto.rows(
        tmp_path / "t.json",
        "select b.name, b.category as cat, t.name as thread from flow f join slice b on f.slice_in = b.id "
        "join thread_track k on b.track_id = k.id join thread t using (utid)",
    )
    assert slices == [{"name": "profiled_fma", "cat": "device", "thread": "MLX stream"}] * 2


def test_a_full_ring_counts_what_it_drops(tmp_path):
    with pk.profile(tmp_path / "t.json") as profile:
        step = pk.span("step")
        for _ in range((1 << 18) + 1000):
            with step:
                pass
    spans = sum(e.name == "step" for e in profile.events)
    counters = len(profile.events) - spans
    assert profile.dropped == 1000 + counters and spans + counters == 1 << 18
    assert profile.table().splitlines()[-1].startswith(f"{profile.dropped} events were dropped")
    about = json.loads((tmp_path / "t.json").read_text())["otherData"]
    assert about["dropped_events"] == profile.dropped


def test_operations_say_the_bytes_of_their_call():
    kernel = pk.kernel(lambda x: x * 2 + 1, backend="numpy")
    inputs = [np.ones(n, np.float32) for n in range(1, 200)]  # more than a kernel remembers

    def lines():
        with pk.profile() as profile:
            for x in inputs:
                kernel(x)
        return [(e.name, e.args["bytes"]) for e in profile.events if e.category == "op"]

    first = lines()
    assert len(first) == 2 * len(inputs)
    assert {size for _, size in first} == {8 * n for n in range(1, 200)}
    assert lines() == first


def test_events_are_a_list():
    with pk.profile() as profile:
        before = profile.events
        profiled_fma(X, X, X, backend="cpu")
        assert len(profile.events) > len(before)
    assert isinstance(profile.events, list) and profile.events is profile.events

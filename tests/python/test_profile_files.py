"""`picokernel profile`, and `picokernel trace` on files."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import picokernel as pk
import pytest
from picokernel import _core

X = np.ones(1000, np.float32)


@pk.kernel
def fma(a, b, c):
    return a * b + c


def profile_of(*backends):
    with pk.profile() as profile:
        for name in backends:
            for _ in range(2):
                fma(X, X, X, backend=name)
    return profile


def picokernel(*words, folder):
    command = [sys.executable, "-m", "picokernel.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)


SCRIPT = """
import sys
import numpy as np, picokernel as pk, beside

@pk.kernel
def twice(x):
    return x + x

def main():
    twice(np.ones(1000, np.float32), backend="cpu")
    print(__name__, __file__, sys.argv, sys.path[0], sys.modules["__main__"].twice is twice)
    if "raise" in sys.argv:
        raise ValueError("of the script")
    if "status" in sys.argv:
        sys.exit(7)
    if "text" in sys.argv:
        sys.exit("a text")
    if "stop" in sys.argv:
        raise KeyboardInterrupt

main()
"""


@pytest.fixture
def folder(tmp_path):
    """A program in a folder of its own."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app/work.py").write_text(SCRIPT)
    (tmp_path / "app/beside.py").write_text("")
    (tmp_path / "app/bad.py").write_text("x = = 1\n")
    return tmp_path


@pytest.mark.parametrize("argument", ["--out", "raise", "status", "text", "stop"])
def test_a_script_runs_as_it_does_alone(folder, argument):
    words = ["app/work.py", argument, "-m"]
    alone = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=folder, timeout=120
    )
    done = picokernel("profile", *words, folder=folder)
    assert done.stdout == alone.stdout and "work.py" in done.stdout
    status = 130 if argument == "stop" else alone.returncode  # as a shell says: killed by SIGINT
    assert done.returncode == status
    for line in alone.stderr.splitlines():
        assert line in done.stderr
    assert "runpy" not in done.stderr and "script.py" not in done.stderr
    assert "cpu      call     twice" in done.stderr and "def twice(x):" in done.stderr
    trace = (folder / "work.trace.json").read_text()
    assert _core.check_trace(trace) == [] and '"name":"twice","cat":"call"' in trace


def test_a_module_and_named_files(folder):
    words = ["profile", "--out", "a.json", "--html", "a.html", "-m", "work", "--html"]
    done = picokernel(*words, folder=folder / "app")
    alone = [sys.executable, "-m", "work", "--html"]
    alone = subprocess.run(alone, capture_output=True, text=True, cwd=folder / "app", timeout=120)
    assert (done.returncode, done.stdout) == (0, alone.stdout)
    assert {"a.json", "a.html"} <= set(os.listdir(folder / "app"))

    done = picokernel("profile", "--out", "none/a.json", "work.py", folder=folder / "app")
    assert done.returncode == 1 and "none/a.json'\n" in done.stderr


def test_programs_that_do_not_start(folder):
    done = picokernel("profile", "app/bad.py", folder=folder)
    assert done.returncode == 1 and "SyntaxError: invalid syntax" in done.stderr
    assert "Traceback" not in done.stderr
    for words in (["nothing.py"], ["-m", "nothing"]):
        done = picokernel("profile", *words, folder=folder)
        assert done.returncode == 1 and re.fullmatch("picokernel: .*nothing.*\n", done.stderr)
    assert not list(folder.glob("nothing*"))


@pytest.fixture
def traces(tmp_path):
    for name in ("cpu", "numpy"):
        profile_of(name).save(tmp_path / f"{name}.trace.json")
    return tmp_path


def spans(path):
    return [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]


def test_merge(traces):
    # A flow in each, of the same id: they stay two.
    for name in ("cpu", "numpy"):
        trace = json.loads((traces / f"{name}.trace.json").read_text())
        call = next(e for e in trace["traceEvents"] if e.get("cat") == "call")
        ends = {k: call[k] for k in ("pid", "tid", "ts")} | {"name": "flow", "id": 1, "cat": "f"}
        trace["traceEvents"] += [ends | {"ph": "s"}, ends | {"ph": "f", "bp": "e"}]
        (traces / f"{name}.trace.json").write_text(json.dumps(trace))
    words = ["trace", "merge", "m.json", "cpu.trace.json", "numpy.trace.json"]
    assert picokernel(*words, folder=traces).returncode == 0
    assert _core.check_trace((traces / "m.json").read_text()) == []
    events = json.loads((traces / "m.json").read_text())["traceEvents"]
    names = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
    assert set(names) == {"host (cpu)", "cpu (cpu)", "host (numpy)", "numpy (numpy)"}
    assert len(set(names.values())) == 4
    for name in ("cpu", "numpy"):
        pids = {names[f"host ({name})"], names[f"{name} ({name})"]}
        mine, alone = (
            [e for e in spans(traces / "m.json") if e["pid"] in pids],
            spans(traces / f"{name}.trace.json"),
        )
        assert [(e["name"], e["dur"]) for e in mine] == [(e["name"], e["dur"]) for e in alone]
        assert min(e["ts"] for e in events if e["pid"] in pids and "ts" in e) == 0
    # What was merged can be merged again, also with itself.
    words = ["trace", "merge", "n.json", "m.json", "m.json"]
    assert picokernel(*words, folder=traces).returncode == 0
    assert _core.check_trace((traces / "n.json").read_text()) == []
    assert len({e["pid"] for e in spans(traces / "n.json")}) == 8
    before = (traces / "m.json").read_bytes()
    done = picokernel("trace", "merge", "./m.json", "n.json", "m.json", folder=traces)
    assert done.returncode == 1 and "is one of the traces to merge" in done.stderr
    assert (traces / "m.json").read_bytes() == before


def test_compare(traces):
    def rows(a, b):
        done = picokernel("trace", "compare", f"{a}.trace.json", f"{b}.trace.json", folder=traces)
        assert done.returncode == 0, done.stderr
        return [re.split(r"\s{2,}", line) for line in done.stdout.splitlines()[4:]]

    found = {tuple(row[1:3]): row[3:] for row in rows("cpu", "numpy") if row[0] == ""}
    call, launch = found["call", "fma"], found["launch", "fma"]
    assert call[:2] == ["2", "2"] and re.fullmatch(r"\d+\.\d\d", call[4])
    assert (launch[:2], launch[3:]) == (["2", "-"], ["-", "-"])
    (multiply,) = (row for (_, name), row in found.items() if name.startswith("np.multiply"))
    assert multiply[:3] == ["-", "2", "-"] and multiply[4] == "-"
    same = rows("cpu", "cpu")
    assert all(row[-1] in ("1.00", "-") for row in same)  # "-": of no length
    totals = {}
    for e in spans(traces / "cpu.trace.json"):
        key = "" if e["cat"] in ("call", "launch", "alloc", "rest") else "host", e["cat"], e["name"]
        totals[key] = totals.get(key, 0) + round(e["dur"] * 1000)
    assert [tuple(row[:3]) for row in same] == sorted(totals, key=lambda key: (-totals[key], key))


def test_compare_tells_backends_apart(traces):
    profile_of("cpu", "numpy").save(traces / "both.trace.json")
    done = picokernel("trace", "compare", "both.trace.json", "cpu.trace.json", folder=traces)
    assert re.search(r"^cpu +call +fma +2 +2 ", done.stdout, re.M)
    assert re.search(r"^numpy +call +fma +2 +- ", done.stdout, re.M)


@pytest.mark.parametrize("content", [None, b"no JSON", b"[]", b'[{"ph":"X"}]', b"\xff\xfe"])
def test_bad_traces(traces, content):
    if content is not None:
        (traces / "bad.json").write_bytes(content)
    before = sorted(os.listdir(traces))
    for words in (["merge", "out.json"], ["compare"]):
        done = picokernel("trace", *words, "cpu.trace.json", "bad.json", folder=traces)
        assert done.returncode == 1 and done.stdout == ""
        assert re.fullmatch(r"picokernel: bad\.json: .+\n", done.stderr)
    assert sorted(os.listdir(traces)) == before

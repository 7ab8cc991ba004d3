"""The commands that measure run and print what they promise; nothing is asserted about time."""

import dataclasses
import importlib.util
import json
import re
import shutil
import sys

import browser
import picokernel as pk
import pytest
from picokernel import cli
from picokernel.bench import EXPERIMENTS, auto, intensity, on_mlx
from picokernel.bench.chain import ROWS
from picokernel.bench.contenders import VARIANTS, Contenders
from picokernel.bench.duel import Contender, duel, medians, ratio, rounds_of, running
from picokernel.bench.elementwise import against_bars
from picokernel.bench.works import WORKS


def test_duel_gives_every_contender_every_round():
    contenders = [
        Contender("fast", "x = 1", "x + 1"),
        Contender("slow", "def f():\n    for _ in range(3000): pass", "f()"),
        Contender("broken", "import no_such_module", "1"),
    ]
    times = duel(contenders, rounds=3, block_s=0.001, pause_s=0)
    assert set(times) == {"fast", "slow"}
    assert all(len(rounds) == 3 for rounds in times.values())
    assert medians(times)["fast"] < medians(times)["slow"]
    assert ratio(times, "fast", ["slow", "absent"]) > 1
    assert ratio(times, "fast", ["absent"]) is None


def test_a_contender_with_wrong_results_does_not_run(capsys):
    wrong = Contender("wrong", "o = 1", "o", "assert o == 2, 'o is not 2'")
    assert duel([wrong], rounds=1) == {}
    assert "wrong: did not start" in capsys.readouterr().out


def installed(peer):
    """A contender that this machine has what it takes for."""
    module = re.split(r"\W", peer)[0]
    if module == "C":
        return shutil.which("gcc") or shutil.which("cc")
    return module not in ("numba", "numexpr", "jax") or importlib.util.find_spec(module)


@pytest.mark.parametrize("name", WORKS)
def test_every_row_runs_and_gives_what_numpy_gives(name, tmp_path, capfd):
    work = WORKS[name]
    ours = [b for b in work.ours if pk.backends().get(b) == ""]
    made = Contenders(work, 37, tmp_path).all(ours, peers=True)
    made = [c for c in made if installed(c.name) and ("cpu" in ours or c.name not in VARIANTS)]
    assert made
    times = duel(made, rounds=1, block_s=0, pause_s=0)
    assert list(times) == [c.name for c in made], capfd.readouterr().out


@pytest.mark.parametrize("name", WORKS)
def test_a_row_notices_wrong_results(name, tmp_path, capsys):
    right = Contenders(WORKS[name], 37, tmp_path).all(["numpy"], peers=False)[0]
    wrong = dataclasses.replace(
        right, call=f"({right.call}, o.__setitem__(o.shape != (0,), o + 1))"
    )
    lazy = dataclasses.replace(right, call="None")
    assert duel([right], rounds=1, block_s=0, pause_s=0)
    assert duel([wrong, lazy], rounds=1) == {}
    assert capsys.readouterr().out.count("wrong results") == 2


def test_bench_elementwise_writes_its_figures(tmp_path, capsys):
    path = tmp_path / "figures.json"
    backends = "numpy" if pk.backends().get("cpu", "not built") else "numpy,cpu"
    words = ["bench", "elementwise", "fma", "rows", "--backends", backends, "--sizes", "1e3"]
    assert cli.main([*words, "--repeats", "2", "--json", str(path)]) == 0
    figures = json.loads(path.read_text())["elementwise"]
    assert set(figures) == {"fma", "rows"}
    assert set(figures["fma"]["1000"]) == set(backends.split(","))
    out, err = capsys.readouterr()
    assert "## Elementwise: a*b+c, float32" in out and "n = 1,000" in err


def test_bars_are_beside_ratios():
    times = {"cpu": [1.0, 2.0, 1.0], "numba serial": [1.5, 2.4, 1.2]}
    (line,) = against_bars("fma", 10**4, times)
    assert line == ["fma, cpu", "10,000", "numba serial", "1.20", "1.2", "1.6", "must met"]
    assert against_bars("fma", 10**3, times) == []  # none of the row's sizes


def test_rows_that_do_not_exist(capsys):
    assert cli.main(["bench", "elementwise", "nothing"]) == 1
    assert "'nothing'" in capsys.readouterr().err
    assert cli.main(["bench", "costs", "fma"]) == 1


def test_bench_of_a_backend_that_is_not_live(capsys):
    assert cli.main(["bench", "elementwise", "--backends", "nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize("sizes", ["many", "inf", ""])
def test_sizes_that_are_none(sizes, capsys):
    with pytest.raises(SystemExit):
        cli.main(["bench", "elementwise", "--sizes", sizes])
    assert "no list of sizes" in capsys.readouterr().err


OURS = [b for b in ("numpy", "cpu", "mlx") if pk.backends().get(b) == ""]


@pytest.fixture
def own(tmp_path):
    """A file with kernels of a user, and the words that name one of them."""
    path = tmp_path / "own.py"
    path.write_text(
        "import numpy as np\nimport picokernel as pk\n\n"
        "@pk.kernel\ndef wave(x, k: int, phase=0.5):\n    return np.sin(x * k + phase)\n\n"
        "@pk.kernel\ndef decay(x, o):\n    o[...] = x * 0.5\n    x *= 0.5\n\n"
        "@pk.kernel\ndef split(x: np.float64, n: np.int64):\n    return x + n, n // 3\n\n"
        "@pk.kernel\ndef plane(x):\n    return x[1:, 1:]\n\n"
        "def plain(x):\n    return x\n"
    )
    return lambda name: f"{path}::{name}" if name else str(path)


@pytest.mark.parametrize("name", ["wave", "decay", "split"])
def test_elementwise_of_a_users_kernel(own, name, tmp_path, capsys):
    path = tmp_path / "figures.json"
    words = ["--sizes", "37", "--repeats", "1", "--json", str(path)]
    assert cli.main(["bench", "elementwise", own(name), *words]) == 0
    figures = json.loads(path.read_text())["elementwise"]
    assert set(figures[own(name)]["37"]) == {*OURS, "undecorated"}, capsys.readouterr().out


def test_breakdown_of_a_users_kernel(own, tmp_path, capsys):
    path = tmp_path / "figures.json"
    words = ["--backends", "numpy", "--sizes", "37,1e3", "--repeats", "1", "--json", str(path)]
    assert cli.main(["bench", "breakdown", own("wave"), *words]) == 0
    sizes = json.loads(path.read_text())["breakdown"]["sizes"]
    assert list(sizes) == ["37", "1000"]
    assert "np.sin(" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("nowhere.py::f", "there is no file 'nowhere.py'"),
        ("", "names no kernel"),
        ("missing", "defines no 'missing'\n  kernels there: wave, decay, split, plane"),
        ("plain", "is a function, not a kernel: is @pk.kernel above it?"),
        ("plane", "cannot be called with arguments made for it"),
    ],
)
def test_users_kernels_that_are_none(own, word, message, capsys):
    assert cli.main(["bench", "elementwise", word if ".py" in word else own(word)]) == 1
    assert message in capsys.readouterr().err


def test_a_users_file_that_cannot_run(tmp_path, capsys):
    path = tmp_path / "broken.py"
    path.write_text("1 / 0\n")
    assert cli.main(["bench", "breakdown", f"{path}::f"]) == 1
    assert "cannot be run: ZeroDivisionError: division by zero" in capsys.readouterr().err


def test_a_users_kernel_with_wrong_results_is_left_out(tmp_path, capsys):
    path = tmp_path / "wrong.py"
    path.write_text(
        "import numpy as np\nimport picokernel as pk\n"
        "@pk.kernel\ndef f(x):\n    return x * (3 if isinstance(x, np.ndarray) else 2)\n"
    )
    words = ["--backends", "numpy", "--sizes", "37", "--repeats", "1"]
    assert cli.main(["bench", "elementwise", f"{path}::f", *words]) == 0
    assert "numpy: did not start (AssertionError: wrong results" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["chain", "intensity", "costs"])
def test_experiments_with_kernels_of_their_own(what, own, capsys):
    assert cli.main(["bench", what, own("wave")]) == 1
    assert f"bench {what} has no rows to choose from" in capsys.readouterr().err


def test_a_contender_leaves_out_what_takes_too_long():
    call = "__import__('time').sleep(k / 1000)"
    slow = Contender("slow", "", call, points=(1, 20, 30, 40), most_s=0.01, least_points=1)
    with running([slow]) as (process,):
        assert list(process.first_s) == [1, 20]
        assert list(rounds_of([process], 2, 0, 0)["slow"]) == [1, 20]


def test_a_contender_that_prints_does_not_disturb():
    loud = Contender("loud", "print('{' * 100_000)", "print(1)")
    assert len(duel([loud], rounds=2, block_s=0, pause_s=0)["loud"]) == 2


def test_without_plotly(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    page = tmp_path / "report.html"
    assert cli.main(["bench", "elementwise", "--html", str(page)]) == 1
    assert "pip install 'picokernel[bench]'" in capsys.readouterr().err


def test_bench_auto(monkeypatch, capsys):
    monkeypatch.setattr(auto, "_KERNELS", auto._KERNELS[:1])
    assert cli.main(["bench", "auto", "--sizes", "1e3"]) == 0
    assert "| axpy   | float32 | 1e3 |" in capsys.readouterr().out


@pytest.mark.skipif("mlx" not in OURS, reason="MLX is not live here")
def test_bench_mlx(capsys):
    assert cli.main(["bench", "mlx", "--sizes", "1e3", "--repeats", "1"]) == 0
    out = capsys.readouterr().out
    assert "did not start" not in out
    rows = re.findall(r"^\| 1e3 \| (default|2 GiB) +\|(?: +[\d.,]+ \(.*?\) \|){4}", out, re.M)
    assert rows == ["default", "2 GiB"]


def test_the_bars_on_arrays_of_mlx(capsys, monkeypatch):
    rows = {"mx.compile": [2.0, 4.0, 4.0], "kernel": [0.5, 1.0, 2.0]}
    (section,) = on_mlx.sections(
        {"10000000": {"default": rows, "2 GiB": rows | {"kernel": [4.0] * 3}}}
    )
    assert [s.rsplit("; ")[1] for s in section.sentences] == [
        "at least 3 is the bar, met.",
        "at least 1.2 is the bar, missed.",
    ]
    monkeypatch.setattr(on_mlx._core, "backends", lambda: {"mlx": "cannot import mlx.core"})
    figures = on_mlx.on_mlx(say=print)
    assert "mlx: cannot import mlx.core" in capsys.readouterr().out
    assert "MLX is not live here" in on_mlx.sections(figures)[0].text()


def test_bench_profilers(capsys, tmp_path):
    figures = tmp_path / "figures.json"
    words = ["--sizes", "1e3", "--repeats", "1", "--backends", "cpu,numpy", "--json", str(figures)]
    assert cli.main(["bench", "profilers", *words]) == 0
    out = capsys.readouterr().out
    assert "did not start" not in out
    found = json.loads(figures.read_text())["profilers"]["found"]

    def names(backend, tool):
        return " ".join(what for what, _ in found[backend][tool])

    # What the page says of each: operations are ours, functions are theirs.
    assert "`np.sin(x, out=out0)`, pendulums.py:10" in names("numpy", "`pk.profile`")
    assert "`swing`, pendulums.py:8 (launch)" in names("cpu", "`pk.profile`")
    assert "`swing`, <picokernel numpy swing>:1" in names("numpy", "cProfile")
    for tool, package in (("cProfile", "pstats"), ("VizTracer", "viztracer")):
        if importlib.util.find_spec(package):
            assert "swing" not in names("cpu", tool) and "energy" in names("cpu", tool)
    rows = re.findall(r"^\| (numpy|cpu) +\| +1e3 \|.* ([\d.]+) \|$", out, re.M)
    assert [backend for backend, _ in rows] == ["cpu", "numpy"]


def test_the_report_in_a_browser(tmp_path, capsys, monkeypatch):
    pytest.importorskip("plotly", reason="plotly is not installed")
    monkeypatch.setattr(intensity, "OPERATIONS", (0, 1, 16))
    page, figures = tmp_path / "report.html", tmp_path / "figures.json"
    words = ["--sizes", "1e3,2e3", "--repeats", "2", "--steps", "1,2,3"]
    assert cli.main(["bench", "all", *words, "--html", str(page), "--json", str(figures)]) == 0
    out = capsys.readouterr().out
    assert "did not start" not in out
    assert set(json.loads(figures.read_text())) == {"machine", *EXPERIMENTS} - {"auto", "profilers"}

    rows = sum(row.backend in OURS for row in ROWS.values())
    with browser.opened(page) as shown:
        shown.wait_for_selector(".plot-container")
        charts = shown.query_selector_all(".plotly-graph-div")
        assert len(charts) == 1 + 2 + 2 + 2  # of breakdown, chain and intensity one for each size

        def count(chart, selector):
            return len(chart.query_selector_all(selector))

        assert count(charts[0], ".scatterlayer .lines path") == len(OURS)
        for chart in charts[1:3]:  # a bar for each backend and category
            assert count(chart, ".bars .point path") >= len(OURS)
        for chart in charts[3:5]:  # a line through the points of each row
            assert count(chart, ".scatterlayer .point") == 3 * rows
            assert count(chart, ".scatterlayer .lines path") == rows
        for chart in charts[5:]:
            assert count(chart, ".scatterlayer .lines path") >= len(OURS)
        for name in OURS:
            assert shown.get_by_text(f"{name}: the call").count() == 2
        tables = sum(line.startswith("| ---") for line in out.splitlines())
        assert shown.locator("table").count() == tables


def test_demo(tmp_path, capsys, monkeypatch):
    from picokernel import demo

    monkeypatch.setattr(demo, "SIZES", (10, 1000))
    monkeypatch.setattr(demo, "REPEATS", 2)
    assert demo.demo(str(tmp_path)) == 0
    text = capsys.readouterr().out
    assert "np.multiply(a, b, out=out)" in text and "winner" in text
    assert (tmp_path / "demo.trace.json").exists()
    events = json.loads((tmp_path / "demo.trace.json").read_text())["traceEvents"]
    assert {e["cat"] for e in events if e["ph"] == "X"} >= {"call", "op", "launch"}

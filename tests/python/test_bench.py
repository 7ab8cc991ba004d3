"""The commands that measure run and print what they promise; nothing is asserted about time."""

import dataclasses
import importlib.util
import json
import re
import shutil

import picokernel as pk
import pytest
from picokernel import cli
from picokernel.bench.contenders import VARIANTS, Contenders
from picokernel.bench.duel import Contender, duel, medians, ratio
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
    assert cli.main([*words, "--rounds", "2", "--json", str(path)]) == 0
    figures = json.loads(path.read_text())["elementwise"]
    assert set(figures) == {"fma", "rows"}
    assert set(figures["fma"]["1000"]) == set(backends.split(","))
    assert "n = 1,000" in capsys.readouterr().out


def test_bars_are_printed_beside_ratios(capsys):
    times = {"cpu": [1.0, 2.0, 1.0], "numba serial": [1.5, 2.4, 1.2]}
    (line,) = against_bars("fma", 10**4, times)
    assert line == "| fma, cpu | 10,000 | numba serial | 1.20 | 1.2 | 1.6 | must met |"
    assert against_bars("fma", 10**3, times) == []  # none of the row's sizes


def test_rows_that_do_not_exist(capsys):
    assert cli.main(["bench", "elementwise", "nothing"]) == 1
    assert "'nothing'" in capsys.readouterr().err
    assert cli.main(["bench", "costs", "fma"]) == 1


def test_bench_of_a_backend_that_is_not_live(capsys):
    assert cli.main(["bench", "elementwise", "--backends", "nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_sizes_that_are_none(capsys):
    with pytest.raises(SystemExit):
        cli.main(["bench", "elementwise", "--sizes", "many"])
    assert "no list of sizes" in capsys.readouterr().err


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

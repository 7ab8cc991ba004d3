"""The commands that measure run and print what they promise; nothing is asserted about time."""

import json

import picokernel as pk
import pytest
from picokernel import cli
from picokernel.bench.duel import Contender, duel, medians, ratio


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


def test_bench_elementwise_writes_its_figures(tmp_path, capsys):
    path = tmp_path / "figures.json"
    words = ["bench", "elementwise", "--backends", "numpy,cpu", "--sizes", "1e3", "--rounds", "2"]
    if pk.backends().get("cpu", "not built"):
        words[3] = "numpy"
    assert cli.main([*words, "--json", str(path)]) == 0
    figures = json.loads(path.read_text())["elementwise"]["1000"]
    assert set(figures) == set(words[3].split(","))
    assert "n = 1,000" in capsys.readouterr().out


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

"""`Kernel.explain` and backend="auto": the model on made-up ceilings, then calls on this machine."""

import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import picokernel as pk
import pytest
from picokernel import ceilings as c
from picokernel import explain as e
from picokernel.cost_model import Work, predicted

LIVE = [name for name in c.CANDIDATES if pk.backends()[name] == ""]


def rates(**given):
    """1 us a call, 10 GB/s, 1 ns an operation unless given."""
    sizes = [2**k for k in range(10, 31, 4)]
    facts = {
        "launch": 1e-6,
        "first_call": 1e-3,
        "fused": True,
        "speedup": 1.0,
        "pass": [[n, n * 1e-10] for n in sizes],
        "transfer": [[n, 0.0] for n in sizes],
        "step": [[n, 0.0] for n in sizes],
        "cheap": 1e-11,
        "operations": {"exp float32": 1e-9},
        "lacks": [],
    }
    own = {"own": facts | given["own"]} if "own" in given else {}
    return c.Rates(facts | given | own)


@pytest.fixture
def machine(monkeypatch):
    """Sets the ceilings of the live backends."""

    def use(**backends):
        made = c.Ceilings({"backends": {}})
        made.backends = {name: rates(**facts) for name, facts in backends.items()}
        monkeypatch.setattr(c, "_known", made)

    return use


def numpy_like(seconds_per_byte=1e-10):
    sizes = [2**k for k in range(10, 31, 4)]
    return {"fused": False, "step": [[n, 5e-7 + n * seconds_per_byte] for n in sizes], "cheap": 0.0}


def test_curves_join_points_by_power_laws_and_go_on_proportionally():
    r = rates(**{"pass": [[100, 1.0], [10_000, 100.0]]})
    assert r.memory(1000) == pytest.approx(10)
    assert r.memory(50) == pytest.approx(0.5)
    assert r.memory(20_000) == pytest.approx(200)
    assert r.memory(0) == 0
    assert rates(**{"pass": [[100, 0.0], [200, 1.0]]}).memory(150) == pytest.approx(0.5)


def test_fused_costs_are_the_longer_of_memory_and_arithmetic():
    backends = {"cpu": rates()}
    light = predicted(Work(8000, 4000, (("add", "float32", 1000),)), backends, "cpu")
    assert light.memory == pytest.approx(1.2e-6) and light.seconds == pytest.approx(2.2e-6)
    assert light.bound == "memory"
    heavy = predicted(Work(4000, 4000, (("exp", "float32", 1000),) * 10), backends, "cpu")
    assert heavy.compute == pytest.approx(1e-5) and heavy.bound == "compute"
    assert predicted(Work(40, 40, (("add", "float32", 10),)), backends, "cpu").bound == "launch"


def test_threads_help_long_calls_only():
    backends = {"cpu": rates(speedup=4.0)}
    for n, want in ((10_000, 1e-5), (100_000, 5e-5), (1_000_000, 2.5e-4)):
        work = Work(0, 0, (("exp", "float32", n),))
        assert predicted(work, backends, "cpu").compute == pytest.approx(want)


def test_an_unfused_backend_pays_a_pass_for_each_operation():
    backends = {"numpy": rates(**numpy_like())}
    work = Work(8 << 20, 4 << 20, (("add", "float32", 1 << 20),) * 3)
    cost = predicted(work, backends, "numpy")
    assert cost.seconds == pytest.approx(1e-6 + 3 * (5e-7 + (4 << 20) * 1e-10), rel=0.02)
    assert cost.bound == "memory"


def test_copies_are_charged_where_the_arrays_are_elsewhere():
    sizes = [2**k for k in range(10, 31, 4)]
    copying = {"transfer": [[n, n * 0.6e-10] for n in sizes]}
    backends = {"cpu": rates(), "mlx": rates(**copying)}
    work = Work(8 << 20, 4 << 20, (("add", "float32", 1 << 20),))
    there, here = (predicted(work, backends, "mlx", home) for home in ("mlx", None))
    assert there.transfer == 0 and here.transfer == pytest.approx((12 << 20) * 0.6e-10)
    assert here.memory + here.transfer == pytest.approx((12 << 20) * 1e-10)
    # A result that has to go to the other library.
    assert predicted(work, backends, "cpu", "mlx").transfer == pytest.approx((4 << 20) * 0.6e-10)


def test_arrays_of_the_library_have_rates_of_their_own():
    sizes = [2**k for k in range(10, 31, 4)]
    copying = {"transfer": [[n, n * 0.9e-10] for n in sizes]}
    own = {"launch": 5e-6, "pass": [[n, n * 1e-12] for n in sizes]}
    backends = {"cpu": rates(), "mlx": rates(**numpy_like(), **copying, own=own)}
    work = Work(8 << 20, 4 << 20, (("add", "float32", 1 << 20),) * 3)
    there, here = (predicted(work, backends, "mlx", home) for home in ("mlx", None))
    stays = 5e-6 + max((12 << 20) * 1e-12, (3 << 20) * 1e-11)
    assert there.seconds == pytest.approx(stays, rel=0.01)
    assert here.staying == there.staying == pytest.approx(there.seconds)
    assert here.seconds > 10 * stays
    assert here.chained(100) == pytest.approx(here.transfer + 100 * stays, rel=0.01)


@pk.kernel
def chain(a, b, c):
    return a * b + c


@pytest.mark.skipif("numpy" not in LIVE, reason="needs the backend numpy")
def test_a_type_that_the_device_lacks_is_no_choice(machine):
    machine(**{name: {} for name in LIVE} | {"numpy": {"lacks": ["float64"], "launch": 0.0}})
    for dtype, kept in (("float64", False), ("float32", True)):
        found = chain.explain(*np.ones((3, 10), dtype))
        assert (found.best == "numpy") == kept
        assert isinstance(found.costs["numpy"], pk.CompileError) != kept
        assert ("numpy refuses: float64 is not computed on this device" in str(found)) != kept


needs_two = pytest.mark.skipif(
    not {"cpu", "numpy"} <= set(LIVE), reason="needs the backends cpu and numpy"
)


@needs_two
def test_where_another_backend_would_win(machine):
    machine(cpu={"launch": 4e-6}, numpy={**numpy_like(1e-9), "launch": 1e-7})
    a = np.ones(1000, np.float32)
    found = chain.explain(a, a, a)
    (first, small), (later, large) = found.sizes()
    assert (first, small, large) == (1, "numpy", "cpu")
    assert 400 < later < 600  # 1.1 us and 8 ns an element against 4 us and 1.6 ns
    assert f"numpy\n         cpu from {e._count(later)} elements on" in str(found)
    assert found.chains()[{"cpu": "numpy", "numpy": "cpu"}[found.best]] is None


@needs_two
def test_chains_amortise_copies(machine):
    sizes = [2**k for k in range(10, 31, 4)]
    # numpy plays a device: copies of 1 ms at 16 MB, then half of the time a call.
    device = {
        "pass": [[n, n * 1.1e-10] for n in sizes],
        "transfer": [[n, n * 0.6e-10] for n in sizes],
    }
    machine(cpu={}, numpy=device)
    a = np.ones(1 << 20, np.float32)
    found = chain.explain(a, a, a)
    assert found.best == "cpu"
    assert found.chains() == {"numpy": 2}
    assert "numpy from 2 calls on" in str(found)
    machine(cpu={}, numpy={**device, "pass": [[n, n * 1.7e-10] for n in sizes]})
    assert chain.explain(a, a, a).chains() == {"numpy": None}


def test_what_an_explanation_says():
    a, b = np.ones((300, 4), np.float32), np.ones((300, 4), np.float32)
    found = chain.explain(a, b, 2)
    assert (found.work.read, found.work.written, found.work.count) == (9600, 4800, 2401)
    text = str(found)
    assert text.startswith("chain: reads 9.6 kB, writes 4.8 kB, 2401 operations, 0.17 a byte\n")
    assert "a  NumPy  float32  (300, 4)  4.8 kB" in text
    for name in LIVE:
        assert f"\n{name} " in text
    assert repr(found) == text
    assert found.best in LIVE and f"here: {found.best}" in text
    assert "never" in str(chain.explain()) or "every" in str(chain.explain())


def test_explain_of_what_a_backend_refuses():
    if not {"cpu", "mlx"} <= set(LIVE):
        pytest.skip("needs the backends cpu and mlx")
    gcd = pk.kernel(lambda i, j: np.gcd(i, j))
    found = gcd.explain(np.arange(5), np.arange(5))
    refused = [name for name, cost in found.costs.items() if isinstance(cost, pk.CompileError)]
    assert refused == ["mlx"] and "mlx refuses: " in str(found)


def test_errors_are_those_of_calls():
    bad = pk.kernel(lambda a: a if a > 0 else -a)
    for attempt in (lambda a: bad.explain(a), lambda a: bad(a, backend="auto")):
        with pytest.raises(pk.CompileError, match="array"):
            attempt(np.ones(3))
    with pytest.raises(pk.LaunchError, match="misses argument 3"):
        chain.explain(np.ones(3), np.ones(3))
    with pytest.raises(pk.LaunchError, match="and auto"):
        chain(1, 2, 3, backend="atuo")


# ---- auto -----------------------------------------------------------------------------------------------------------


def test_auto_gives_the_same_results_by_every_way_to_name_it():
    a = np.linspace(0, 1, 1000)
    for kernel, call in (
        (pk.kernel(chain.__wrapped__, backend="auto"), lambda k: k(a, a, 3)),
        (pk.kernel(chain.__wrapped__), lambda k: k(a, a, 3, backend="auto")),
        (pk.kernel(chain.__wrapped__), lambda k: k(a, a, c=3, backend="auto", out=np.empty(1000))),
    ):
        for _ in range(30):
            assert np.array_equal(call(kernel), a * a + 3)
    with pk.use("auto"):
        assert np.array_equal(chain(a, a, 3), a * a + 3)
    script = (
        "import numpy as np, picokernel as pk\nk = pk.kernel(lambda a: a + 1)\nprint(k(np.ones(2)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PICOKERNEL_BACKEND": "auto"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "[2. 2.]\n", done.stderr


@needs_two
def test_auto_takes_what_the_model_says_and_learns_better(machine):
    machine(cpu={"launch": 1e-3}, numpy=numpy_like())  # as if native code were slow
    kernel = pk.kernel(chain.__wrapped__, backend="auto")
    a, o = np.ones(100), np.empty(100)
    kernel(a, a, a, out=o)
    assert kernel._recent_calls()[0][0] == "numpy"
    assert "measured" not in str(kernel.explain(a, a, a, out=o))
    for _ in range(10):
        kernel(a, a, a, out=o)
    measured = kernel.explain(a, a, a, out=o).measured
    assert list(measured) == ["numpy"] and 0 < measured["numpy"] < 1e-3
    machine(cpu={"launch": 1e-9}, numpy=numpy_like())  # as if numpy were far slower than it is
    kernel = pk.kernel(chain.__wrapped__, backend="auto")
    kernel(a, a, a, out=o)
    assert kernel._recent_calls()[0][0] == "cpu"
    # numpy is predicted to be faster: what is measured decides.
    machine(cpu={"launch": 1e-9}, numpy={**numpy_like(), "launch": 1e-9, "step": [[1 << 30, 1e-9]]})
    kernel = pk.kernel(chain.__wrapped__, backend="auto")
    for _ in range(200):
        kernel(a, a, a, out=o)
    measured = kernel.explain(a, a, a, out=o).measured
    assert set(measured) == {"cpu", "numpy"}  # both were tried
    fastest = min(measured, key=measured.get)
    assert kernel._recent_calls()[0][0] == fastest


@needs_two
@pytest.mark.parametrize("how", ["decorator", "call", "use"])
def test_measurements_are_shown(how):
    kernel = pk.kernel(lambda a: a * 2, **({"backend": "auto"} if how == "decorator" else {}))
    a = np.ones(1000, np.float32)
    for _ in range(8):
        if how == "call":
            kernel(a, backend="auto")
        else:
            with pk.use("auto"):
                kernel(a)
    assert kernel.explain(a).measured and "measured on" in str(kernel.explain(a))


@needs_two
def test_what_was_learnt_corrects_predictions_for_other_shapes(machine):
    machine(cpu={}, numpy=numpy_like())
    choices = e._Choices()
    first = e.Choice(choices, {"cpu": 1e-6, "numpy": 3e-6})
    assert first.backend == "cpu" and first.observe("cpu", 2e-6)
    second = e.Choice(choices, {"cpu": 1e-5, "numpy": 1.5e-5})
    assert second.seconds("cpu") == pytest.approx(2e-5) and second.backend == "numpy"
    assert not first.observe("cpu", 4e-6) and first.backend == "numpy"


def test_a_trace_says_what_was_chosen_and_why():
    kernel = pk.kernel(chain.__wrapped__, backend="auto")
    a = np.ones(100)
    with pk.profile() as p:
        for _ in range(8):
            kernel(a, a, a)
    events = p.events
    notes = [x.name for x in events if x.name.startswith("auto: ")]
    assert len(notes) == 8
    assert all(name in notes[0] for name in LIVE) and " predicted" in notes[0]
    assert " measured" in notes[-1]


def test_mlx_arrays_stay_where_they_are():
    mx = pytest.importorskip("mlx.core", reason="MLX is not installed")
    a = mx.ones(10)
    result = chain(a, a, 1, backend="auto")
    assert isinstance(result, mx.array) and result[0].item() == 2
    with pk.profile() as p:
        chain(a, a, 1, backend="auto")
        with pk.use("auto"):
            chain(a, a, 1)
        chain(a, a, 1)
    notes = [e.name for e in p.events if e.name.startswith("auto: ")]
    assert notes == ["auto: mlx, for that is where the arrays are"] * 2
    assert "auto takes mlx" in str(chain.explain(a, a, 1))


# ---- The file -------------------------------------------------------------------------------------------------------


_PROGRAM = """
import time, picokernel as pk
from picokernel import ceilings as c
real, c.measure = c.measure, lambda: print("measured") or real()
made = c.ceilings()
print(sorted(made.backends))
"""


def test_ceilings_are_measured_once_a_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("PICOKERNEL_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("PICOKERNEL_CACHE_SIZE", raising=False)

    def run():
        done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert run() == ["measured", str(sorted(LIVE))]
    assert run() == [str(sorted(LIVE))]
    (path,) = tmp_path.rglob("ceilings.json")
    assert path.parent.stat().st_mode & 0o077 == 0
    facts = json.loads(path.read_text())
    for r in facts["backends"].values():
        assert r["launch"] > 0 and r["pass"][-1][1] > 0
    facts["identity"]["numpy"] = "0"
    for damage in (json.dumps(facts), path.read_text()[:100], "[]", '{"identity": 1}'):
        path.write_text(damage)
        assert run()[0] == "measured"


# ---- docs/which-backend.md ------------------------------------------------------------------------------------------


def test_the_page_runs_and_its_sample_has_the_form_of_what_is_printed(capsys):
    text = (pathlib.Path(__file__).parents[2] / "docs/which-backend.md").read_text()
    names = {}
    wanted = []
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(block, "which-backend.md", "exec"), names)
        wanted += re.findall(r"^ *print\(.*\) +# (.*)$", block, re.M)
    printed = capsys.readouterr().out
    assert printed.splitlines()[-len(wanted) :] == wanted
    (sample,) = re.findall(r"```text\n(.*?)```", text, re.S)
    assert printed.splitlines()[:4] == sample.splitlines()[:4]
    columns = r"backend +launch +copies +memory +compute +a call +bound +first call"
    assert re.search(columns, sample) and re.search(columns, printed)

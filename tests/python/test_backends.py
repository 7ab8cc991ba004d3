"""Choosing a backend, and what source backends show of themselves."""

import asyncio
import linecache
import os
import pathlib
import re
import subprocess
import sys
import threading

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same, check, sample
from picokernel import _core, simt

X = np.arange(5, dtype=np.float32)


@pk.kernel
def fma(a, b, c):
    return a * b + c


@pk.kernel(backend="numpy")
def on_numpy(a):
    return a + 1


def ran_on(call):
    """The backends of the calls that a profile sees."""
    with pk.profile() as profile:
        call()
    return [e.backend for e in profile.events if e.category == "call"]


def test_all_backends_are_listed():
    backends = pk.backends()
    assert {"numpy", "ref", "mlx"} <= set(backends)
    assert backends["numpy"] == backends["ref"] == ""
    assert all(isinstance(reason, str) for reason in backends.values())


def test_order_of_choices():
    def call(**options):
        on_numpy(X, **options)

    assert ran_on(call) == ["numpy"]
    with pk.use("ref"):
        assert ran_on(call) == ["ref"]
        with pk.use("numpy"):
            assert ran_on(call) == ["numpy"]
        assert ran_on(lambda: call(backend="numpy")) == ["numpy"]
    assert ran_on(call) == ["numpy"]
    assert ran_on(lambda: on_numpy(X, backend="ref")) == ["ref"]
    assert ran_on(lambda: (fma(X, X, X, backend="ref"), fma(X, X, X), fma(X, X, X))) == [
        "ref",
        *ran_on(lambda: (fma(X, X, X), fma(X, X, X))),
    ]


def test_use_is_per_thread_and_per_task():
    seen = []
    with pk.use("ref"):
        thread = threading.Thread(target=lambda: seen.extend(ran_on(lambda: on_numpy(X))))
        thread.start()
        thread.join()
    assert seen == ["numpy"]

    async def task(name):
        with pk.use(name):
            await asyncio.sleep(0)
            seen.extend(ran_on(lambda: fma(X, X, X)))

    async def both():
        await asyncio.gather(task("ref"), task("numpy"))

    seen.clear()
    asyncio.run(both())
    assert seen == ["ref", "numpy"]


def test_unknown_backends():
    with pytest.raises(pk.LaunchError, match=r"there is no backend 'nunpy'(.|\n)*mean 'numpy'"):
        pk.use("nunpy")
    with pytest.raises(pk.LaunchError, match="there is no backend 'cuba'"):
        fma(X, X, X, backend="cuba")
    with pytest.raises(pk.LaunchError, match="backend= is a int"):
        fma(X, X, X, backend=3)
    with pytest.raises(pk.LaunchError, match="there is no backend"):
        pk.kernel(backend="fortran")(lambda x: x)
    with pytest.raises(pk.LaunchError, match="there is no backend"):
        fma.source("fortran")


OF_THREADS = [name for name in simt.backends() if name not in pk.backends()]
NOT_LIVE = [
    name
    for name in _core.backend_summaries()
    if pk.backends().get(name) != "" and name not in OF_THREADS
]


@pytest.mark.parametrize("name", [n for n in OF_THREADS if not simt.backends()[n]])
def test_backends_of_threads_run_no_arrays(name):
    with pytest.raises(pk.Error, match=f"{name} runs kernels of threads only"):
        fma(X, X, X, backend=name)


@pytest.mark.parametrize("name", NOT_LIVE)
def test_backends_that_cannot_run_say_why(name):
    with pytest.raises(pk.LaunchError, match=f"'{name}' cannot run here"):
        fma(X, X, X, backend=name)
    assert fma.source(name, X, X, X)


def test_objects_are_bytes():
    if pk.backends()["cpu"]:
        pytest.skip("no cpu backend here")
    code = fma.source("obj", X, X, X)
    assert isinstance(code, bytes) and b"pk_fma" in code


def python(code, **environment):
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_backend_from_the_environment():
    code = """
import numpy as np, picokernel as pk
f = pk.kernel(lambda x: x + 1)
g = pk.kernel(backend="numpy")(lambda x: x + 1)
with pk.profile() as p:
    f(np.ones(3)); f(np.ones(3)); g(np.ones(3))
print([e.backend for e in p.events if e.category == "call"])
"""
    shown = python(code, PICOKERNEL_BACKEND="ref")
    assert shown.count("ref") == 2 and shown.count("numpy") == 1
    with pytest.raises(AssertionError, match="there is no backend 'nothing'"):
        python(code, PICOKERNEL_BACKEND="nothing")


def test_import_is_lazy():
    code = """
import sys, numpy
before = set(sys.modules)
import picokernel
print(sorted(set(sys.modules) - before))
"""
    imported = python(code)
    for module in ("mlx", "numpy_functions", "profiler", "sources", "bench", "'html'"):
        assert module not in imported


def test_printed_source_is_what_runs():
    @pk.kernel
    def kernel(a, b, c):
        return a * b + c

    check(kernel, X, X, X, backend="numpy")
    text = kernel.source("numpy")
    shown = [
        v[2] for name, v in linecache.cache.items() if name.startswith("<picokernel numpy kernel")
    ]
    assert text.splitlines(True) in shown
    assert text.count("np.") == 2 and "scratch" not in text


def test_scratch_is_kept_and_capped():
    from picokernel import sources

    scratch = sources._scratch_pool()
    first = scratch(0, (10,), np.float32)
    assert scratch(0, (10,), np.float32) is first
    assert scratch(1, (10,), np.float32) is not first
    assert scratch(0, (11,), np.float32) is not first
    large = (sources.SCRATCH_CAP + 1,)
    assert scratch(0, large, np.bool_) is not scratch(0, large, np.bool_)
    other = []
    thread = threading.Thread(target=lambda: other.append(scratch(1, (10,), np.float32)))
    thread.start()
    thread.join()
    assert other[0] is not scratch(1, (10,), np.float32)

    # The cap is one for all kernels of a thread: the oldest arrays go first.
    pk.trim()
    half, kernels = (sources.SCRATCH_CAP // 2,), [sources._scratch_pool() for _ in range(3)]
    arrays = [k(0, half, np.bool_) for k in kernels]
    assert [k(0, half, np.bool_) is a for k, a in zip(kernels[1:], arrays[1:], strict=True)] == [
        True,
        True,
    ]
    assert kernels[0](0, half, np.bool_) is not arrays[0]
    assert pk.trim() >= sources.SCRATCH_CAP
    assert kernels[0](0, half, np.bool_) is not arrays[0]


@pytest.mark.parametrize("name", ["numpy", "mlx"])
def test_one_event_per_printed_operation(name):
    if pk.backends()[name]:
        pytest.skip(pk.backends()[name])

    @pk.kernel
    def kernel(a, b, c):
        return a * b + c

    a, b, c = (sample("float32", (1000,), seed=i) for i in range(3))
    with np.errstate(all="ignore"), pk.use(name):
        kernel(a, b, c)
        with pk.profile() as profile:
            got = kernel(a, b, c)
            kernel(a, b, c)
        assert_same(got, kernel.__wrapped__(a, b, c))
    lines = [line.strip() for line in kernel.source(name).splitlines() if line.strip()][1:]
    kinds = {"h2d", "op_lazy", "sync", "d2h", "op"}
    events = [e for e in profile.events if e.category in kinds]
    assert [e.name for e in events] == lines * 2
    calls = [e for e in profile.events if e.category == "call"]
    assert len(calls) == 2
    for e in events[: len(lines)]:
        assert calls[0].begin_ns <= e.begin_ns and e.begin_ns + e.duration_ns <= (
            calls[0].begin_ns + calls[0].duration_ns
        )
    assert sum(e.category == "compile" for e in profile.events) == 1  # the instrumented twin
    multiply = next(e for e in events if "multiply" in e.name)
    assert f"{__file__}:" in str(multiply.args) and "mul" in str(multiply.args)
    assert "bytes" in multiply.args


def test_errors_in_printed_source_show_its_line():
    import traceback

    @pk.kernel
    def kernel(a, n):
        return a // n

    with np.errstate(all="raise"), pytest.raises(FloatingPointError) as caught:
        kernel(np.ones(3), np.float64(0.0), backend="numpy")
    text = "".join(traceback.format_exception(caught.value))
    assert "<picokernel numpy kernel" in text and "np." in text


def test_threads_share_a_kernel(backend):
    results = {}

    def work(i):
        x = np.full(1000, i, np.float32)
        for _ in range(50):
            results[i] = fma(x, x, x, backend=backend)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i in range(8):
        assert (results[i] == i * i + i).all()


def test_number_of_threads():
    before = pk.num_threads()
    pk.set_num_threads(2)
    assert pk.num_threads() == 2
    pk.set_num_threads(before)
    with pytest.raises(pk.LaunchError):
        pk.set_num_threads(0)


def test_stubs_name_what_the_core_has():
    import ast
    import pathlib

    tree = ast.parse((pathlib.Path(pk.__file__).parent / "_core.pyi").read_text())
    named = {n.name: n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    assert {n for n in vars(_core) if n[0] != "_" or n[:2] == "_u"} - {
        "known_ufuncs",
        "dtype_names",
    } == {n for n in named if n[0] != "_" or n[:2] == "_u"}
    for name, node in named.items():
        members = [n for n in getattr(node, "body", []) if isinstance(n, ast.FunctionDef)]
        assert all(hasattr(getattr(_core, name), m.name) for m in members)


# ---- Without MLX -------------------------------------------------------------------------------


@pytest.fixture
def without_mlx(tmp_path):
    """Runs `python *words` where MLX cannot be imported; gives what it prints."""
    (tmp_path / "mlx.py").write_text("raise ModuleNotFoundError(\"No module named 'mlx'\")\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])

    def run(*words):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=pathlib.Path(__file__).parent,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_messages_without_mlx(without_mlx):
    program = """
import numpy as np, picokernel as pk
from picokernel import cli
f = pk.kernel(lambda x: x + 1)
assert f(np.ones(2)).tolist() == [2, 2]
assert "mx." in f.source("mlx", np.ones(2))
try:
    f(np.ones(2), backend="mlx")
except pk.LaunchError as e:
    print(e)
cli.main(["doctor"])
cli.main(["bench", "mlx"])
"""
    said = without_mlx("-c", program)
    assert "backend 'mlx' cannot run here" in said
    assert said.count("pip install mlx") >= 2
    assert "MLX is not live here" in said
    assert "bridge" not in said


def test_tests_without_mlx(without_mlx):
    files = [
        "test_mlx_arrays.py",
        "test_mlx_bridge.py",
        "test_mlx_cuda.py",
        "test_mlx_differences.py",
    ]
    said = without_mlx("-m", "pytest", "-rs", "-p", "no:cacheprovider", *files, "test_call.py")
    skipped = re.findall(r"^SKIPPED \[(\d)\] .*: MLX is not installed$", said, re.M)
    assert sum(map(int, skipped)) == len(files)
    assert "failed" not in said and "passed" in said

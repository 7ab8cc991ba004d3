"""What the documents say is what happens."""

import json
import math
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same
from picokernel._core import check_trace

ROOT = Path(__file__).resolve().parents[2]


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=300, **options)


@pytest.mark.parametrize(
    "script", ["make_tour", "make_reference", "make_notebook", "make_experiments"]
)
def test_generated_pages_are_what_the_tools_print(script):
    done = run(sys.executable, str(ROOT / f"scripts/{script}.py"), "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_citation_has_the_version():
    version = re.search(r"VERSION (\d+\.\d+\.\d+) ", (ROOT / "CMakeLists.txt").read_text())[1]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()


def test_readme_kernels_run():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    a, b, c = (np.random.default_rng(0).random(100, dtype=np.float32) for _ in range(3))
    names = {"np": np, "pk": pk, "a": a, "b": b, "c": c, "o": np.empty_like(a)}
    if pk.backends()["mlx"]:
        blocks = [re.sub(r".*backend=\"mlx\".*\n", "", text) for text in blocks]
    for text in blocks:
        exec(text.replace('"trace.json"', "None"), names)
    assert np.array_equal(names["o"], a * b + c)


def test_add_an_op_names_files_that_exist():
    for page in ("add-an-op.md", "add-a-backend.md", "architecture.md"):
        for path in re.findall(
            r"`((?:src|tests|scripts|python)/[\w/.]+)`", (ROOT / "docs" / page).read_text()
        ):
            assert (ROOT / path).exists(), f"{page} names {path}"


def test_doctor_and_trace_check(tmp_path):
    done = run(sys.executable, "-m", "picokernel.cli", "doctor")
    assert done.returncode == 0, done.stderr
    for name in pk.backends():
        assert re.search(rf"^  {name} +(live|not live: .)", done.stdout, re.M), done.stdout

    path = tmp_path / "t.json"

    @pk.kernel
    def twice(x):
        return x + x

    with pk.profile(path):
        twice(np.ones(1000, np.float32))
    done = run(sys.executable, "-m", "picokernel.cli", "trace", "check", str(path))
    assert done.returncode == 0, done.stdout + done.stderr

    events = json.loads(path.read_text())["traceEvents"]
    broken = [e | {"dur": -1} if e["ph"] == "X" else e for e in events]
    path.write_text(json.dumps({"traceEvents": broken}))
    assert run(sys.executable, "-m", "picokernel.cli", "trace", "check", str(path)).returncode == 1


def code_blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.S)


def printed(text, names):
    """Runs a block; each `print(...)  # what it prints` has to."""
    lines = []
    names["print"] = lambda *words: lines.append(" ".join(map(str, words)))
    exec(compile(text, "array-kernels.md", "exec"), names)
    return lines


def test_array_kernels_blocks_run():
    names = {}
    for text in code_blocks("array-kernels.md", "python"):
        lines = printed(text, names)
        wanted = re.findall(r"^ *print\(.*\) +# (.*)$", text, re.M)
        assert len(wanted) == text.count("print(")
        assert [line.strip() for line in lines] == [line.strip() for line in wanted]


def test_array_kernels_refusals():
    text = (ROOT / "docs/array-kernels.md").read_text()
    table = text[text.index("| refused |") :].split("\n\n")[0].splitlines()[2:]
    x, y = np.arange(3, dtype=np.int64), np.ones(3, np.int64)
    for row in table:
        refused, _, instead = (cell.strip() for cell in row.strip("|").split("|", 2))
        code = refused.strip("`")
        kernel = pk.kernel(eval(f"lambda x, y: {code}", {"np": np, "pk": pk, "math": math}))
        with pytest.raises(pk.CompileError):
            kernel(x, y)
        for code in re.findall(r"^`((?:pk|np|\(|x).*)`$", instead):
            good = pk.kernel(eval(f"lambda x, y: {code}", {"np": np, "pk": pk}))
            assert_same(good(x, y), good.__wrapped__(x, y), ulps=2)


def test_profiling_blocks_and_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script, *blocks = code_blocks("profiling.md", "python")
    (tmp_path / "work.py").write_text(script)
    exec(compile(script, str(tmp_path / "work.py"), "exec"), names := {})
    for text in blocks:
        assert printed(text, names) == re.findall(r"^print\(.*\) +# (.*)$", text, re.M)
    assert (tmp_path / "t.html").exists()

    (sample,) = code_blocks("profiling.md", "text")
    sources = [
        {re.split(r"\s{2,}", line.strip(), maxsplit=5)[-1] for line in text.splitlines()[1:]}
        for text in (sample, names["p"].lines())
    ]
    assert sources[0] <= sources[1]

    commands = "".join(code_blocks("profiling.md", "sh")).splitlines()
    for command in commands:
        words = command.removeprefix("picokernel ").split()
        done = run(sys.executable, "-m", "picokernel.cli", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    for file in ("work.trace.json", "work.json", "work.html", "both.json"):
        assert (tmp_path / file).exists()


def test_the_script_of_the_profilers():
    text = (ROOT / "docs/profiling.md").read_text()
    (kernel,) = re.findall(r"```python\n(@pk.kernel\ndef swing.*?)```", text, re.S)
    assert kernel in (ROOT / "python/picokernel/bench/pendulums.py").read_text()


def test_viztracer_records_beside_and_its_traces_merge(tmp_path):
    VizTracer = pytest.importorskip("viztracer", reason="viztracer is not installed").VizTracer
    from picokernel.bench.pendulums import main

    with (
        pk.profile(tmp_path / "ours.json") as ours,
        VizTracer(output_file=str(tmp_path / "theirs.json"), verbose=0),
    ):
        main("numpy", 100, 3)
    assert sum(e.category == "call" for e in ours.events) == 3
    words = ["trace", "merge", "both.json", "ours.json", "theirs.json"]
    done = run(sys.executable, "-m", "picokernel.cli", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    both = (tmp_path / "both.json").read_text()
    assert "energy" in both and "np.sin" in both


def test_mlx_blocks_and_commands_run(capsys):
    pytest.importorskip("mlx.core", reason="MLX is not installed")
    from picokernel import cli

    names = {}
    (source,) = code_blocks("mlx.md", "text")
    for text in code_blocks("mlx.md", "python"):
        lines = printed(text, names)
        wanted = re.findall(r"^ *print\(.*\) +# (.*)$", text, re.M)
        if "source(" in text:
            assert lines.pop() == source
        assert lines == wanted
    (command,) = code_blocks("mlx.md", "sh")
    assert cli.main(command.removeprefix("picokernel ").split()) == 0
    assert "did not start" not in capsys.readouterr().out


def test_where_time_goes_commands_run(capsys, monkeypatch):
    from picokernel import cli
    from picokernel.bench import intensity

    monkeypatch.setattr(intensity, "OPERATIONS", (0, 1, 16))
    (commands,) = code_blocks("where-time-goes.md", "sh")
    *commands, last = commands.splitlines()
    assert last.startswith("picokernel bench all ")  # in a test of its own
    ours = {name for name, why_not in pk.backends().items() if not why_not} & {
        "numpy",
        "cpu",
        "mlx",
    }
    for command in commands:
        words = command.removeprefix("picokernel ").split()
        if "--backends" in words:
            words[words.index("--backends") + 1] = ",".join(ours - {"mlx"})
        assert cli.main(words) == 0
        assert capsys.readouterr().out.count("## ") == 1


def test_the_sentence_on_the_posts_call():
    from picokernel.bench import verdicts
    from test_bench_figures import POST_PARTS

    text = (ROOT / "docs/where-time-goes.md").read_text()
    quoted = " ".join(line[2:] for line in text.splitlines() if line.startswith("> "))
    assert quoted == " ".join(verdicts.breakdown("mlx", POST_PARTS, 104e-3, 47.9e-3))


def test_debugging_finds_the_race(tmp_path):
    """The page's kernels are compiled from a file of them."""
    racing, right, checked = code_blocks("debugging.md", "python")
    (shown,) = code_blocks("debugging.md", "text")
    (tmp_path / "racing.py").write_text(racing)
    imports = racing[: racing.index("@simt.jit")]
    (tmp_path / "right.py").write_text(imports + right)
    (tmp_path / "checked.py").write_text(imports + checked)
    with pytest.raises(pk.KernelError) as found:
        runpy.run_path(str(tmp_path / "racing.py"))
    lines = [line for line in str(found.value).splitlines() if "File" not in line]
    assert lines == shown.splitlines()
    runpy.run_path(str(tmp_path / "right.py"))
    runpy.run_path(str(tmp_path / "checked.py"))


@pytest.mark.parametrize(
    ("page", "shown"),
    [("cpp.md", ["def fma(a, b, c, out)", "my step"]), ("profiling.md", ["my step", "launch"])],
)
def test_cpp_blocks_are_a_program(tmp_path, page, shown):
    includes, *blocks = code_blocks(page, "cpp")
    source = tmp_path / "page.cpp"
    source.write_text(includes + "int main() {\n" + "\n".join(blocks) + "}\n")
    printed = output_of_program(source, tmp_path)
    assert all(text in printed for text in shown)


def output_of_program(source, folder):
    cache = (ROOT / "build/CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.M)[1]
    library = ROOT / "build"
    command = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-UNDEBUG", source]
    command += ["-I", ROOT / "include", "-L", library, "-lpicokernel", f"-Wl,-rpath,{library}"]
    built = run(*map(str, command), "-o", str(folder / "program"))
    assert built.returncode == 0, built.stderr
    done = run(str(folder / "program"), env={**os.environ, "PICOKERNEL_BACKEND": ""}, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_of_a_profile(tmp_path):
    source = ROOT / "examples/cpp/profile.cpp"
    (line,) = (n for n, t in enumerate(source.read_text().splitlines(), 1) if "auto blend" in t)
    printed = output_of_program(source, tmp_path)
    table, lines, *launches = re.split(r"\n\n|(?=\nblend took)", printed)
    assert re.search(r"^cpu +launch +blend +10 .* [\d.]+ %$", table, re.M) and "of ceiling" in table
    assert "blend ten times" in table
    assert "compile" in table and "compile" not in lines  # outside of the call
    assert re.match(r"blend on cpu: 10 calls, .*/profile\.cpp\n", lines)
    assert re.search(rf"^profile.cpp:{line} +10 .* const auto blend = pk::kernel", lines, re.M)
    assert re.search(r"^  launch +10 ", lines, re.M)
    assert len(launches) == 10
    assert all(re.search(r"GB/s: .*, GFLOP/s: .*, % of ceiling: ", text) for text in launches)
    assert check_trace((tmp_path / "profile.json").read_text()) == []


def test_semantics_states_every_function():
    text = (ROOT / "docs/semantics.md").read_text()
    missing = [name for name in pk.functions() if not re.search(rf"\b{name}\b", text)]
    assert not missing

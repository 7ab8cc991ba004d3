"""The bridge into MLX: how it is compiled, kept and done without."""

import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

import picokernel as pk
import pytest

pytest.importorskip("mlx.core", reason="MLX is not installed")

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")

PROGRAM = """
import warnings
import mlx.core as mx, numpy as np, picokernel as pk
fma = pk.kernel(lambda a, b, c: a * b + c)
a = mx.arange(6, dtype=mx.float32)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    assert mx.array_equal(fma(a, a, 2), a * a + 2)
    assert mx.array_equal(fma(a, 2, a), a * 2 + a)
    with pk.profile() as p:
        mx.eval(fma(a, a, 1))
    native = any(e.category == "launch" for e in p.events)
print("native" if native else "printed", *[w.message for w in said])
"""


def run(folder, program=PROGRAM, **environment):
    environment = {"PICOKERNEL_CACHE_DIR": str(folder), **environment}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output_of(process):
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0, text
    return text.strip()


def files(folder):
    return sorted(p.name for p in folder.iterdir() if not p.name.endswith(".pkcache"))


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
def test_several_processes_compile_it_once_and_later_ones_find_it(tmp_path):
    for process in [run(tmp_path) for _ in range(3)]:
        assert output_of(process) == "native"
    assert [bool(re.fullmatch(r"mlx-\d.*\.so", n)) or n for n in files(tmp_path)] == [
        True,
        "mlx.lock",
    ]
    library = next(tmp_path.glob("mlx-*.so"))
    assert stat.S_IMODE(library.stat().st_mode) == 0o700
    before = library.stat().st_mtime_ns
    assert output_of(run(tmp_path, CXX="no-such-compiler")) == "native"
    assert library.stat().st_mtime_ns == before
    doctor = "from picokernel.doctor import report; print(report())"
    assert f"bridge for native code inside its graph: built, in {tmp_path}" in output_of(
        run(tmp_path, doctor)
    )
    library.write_bytes(b"not a library")
    assert output_of(run(tmp_path)) == "native"
    assert library.stat().st_size > 10_000


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
def test_without_a_cache_it_is_made_for_the_process(tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "cache").mkdir()
    process = run(tmp_path / "cache", PICOKERNEL_CACHE_SIZE="0", TMPDIR=str(tmp_path / "tmp"))
    assert output_of(process) == "native"
    assert [files(tmp_path / n) for n in ("cache", "tmp")] == [[], []]
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert output_of(run(open_to_all)).startswith("native")
    assert files(open_to_all) == []


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def test_what_goes_wrong_is_said_once_and_the_results_stay(tmp_path):
    said = {
        "no-such-compiler": "CXX=no-such-compiler is no program",
        script(tmp_path / "broken", "echo 'x.h: error: no such header'; exit 1"): (
            "broken cannot compile it: x.h: error: no such header"
        ),
        script(tmp_path / "wrong", 'while [ "$1" != -o ]; do shift; done; echo no > "$2"'): (
            "file too short"
        ),
    }
    folder = tmp_path / "cache"
    for compiler, why in said.items():
        folder.mkdir()
        text = output_of(run(folder, CXX=compiler))
        assert text.startswith("printed kernels on MLX arrays run as operations of MLX")
        assert text.count("hint: install a C++ compiler") == 1
        assert why in text
        shutil.rmtree(folder)
    folder.mkdir()
    slow = script(tmp_path / "slow", "sleep 100 & sleep 100")
    program = "import picokernel.mlx_bridge as b; b.COMPILE_SECONDS = 1\n" + PROGRAM
    assert "took more than 1 s" in output_of(run(folder, program, CXX=slow))
    assert files(folder) == ["mlx.lock"]
    text = output_of(run(folder, "from picokernel.doctor import report; print(report())"))
    assert "bridge for native code inside its graph: not built yet" in text


def test_the_same_calls_without_the_bridge():
    files = ["test_mlx_arrays.py", "test_mlx_differences.py"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-W", "ignore", "-p", "no:cacheprovider", *files],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CXX": "no-such-compiler"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stdout
    assert int(re.search(r"(\d+) passed", result.stdout)[1]) > 100


NUMBERS = """
import mlx.core as mx, picokernel as pk
line = pk.kernel(lambda x, k, d: x * k + d)
x = mx.arange(4.0)
for k in (2, 3.5, -1.25, 1e30):
    for d in (0, 7):
        mx.eval(line(x, k, d))
assert line(x, 2.0, mx.array(1.0)).tolist() == [1, 3, 5, 7]
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="MLX compiles by g++")
def test_without_the_bridge_a_new_number_compiles_nothing(tmp_path):
    process = run(tmp_path / "cache", NUMBERS, CXX="no-such-compiler", TMPDIR=str(tmp_path))
    assert "RuntimeWarning" in output_of(process)
    assert len([*tmp_path.glob("mlx/*/cpu/*.so")]) == 1


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("which", ["example", "guide"])
def test_programs_in_cpp(which, tmp_path):
    import mlx.core as mx

    source = ROOT / "examples" / "cpp" / "mlx.cpp"
    if which == "guide":
        blocks = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs" / "mlx.md").read_text(), re.S)
        source = tmp_path / "guide.cpp"
        source.write_text("{}int main() {{\n{}}}\n".format(*blocks))
    with open("/proc/self/maps", encoding="utf-8") as maps:
        library = next(m[1] for line in maps if (m := re.search(r"(/\S*libpicokernel\S*)", line)))
    mlx = pathlib.Path(mx.__file__).parent
    program = tmp_path / "mlx"
    command = [COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]
    command += ["-isystem", str(mlx / "include"), "-UNDEBUG", str(source)]
    command += ["-o", str(program), library, f"-Wl,-rpath,{pathlib.Path(library).parent}"]
    command += [f"-L{mlx / 'lib'}", "-lmlx", f"-Wl,-rpath,{mlx / 'lib'}"]
    subprocess.run(command, check=True, timeout=300)
    run = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout
    if which == "example":
        assert "do not broadcast" in run.stdout
        assert run.stdout.endswith("right\n")
    assert pk.backends()["mlx"] == ""

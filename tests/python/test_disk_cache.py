"""Compiled kernels on disk: found by other processes, and never to anybody's harm."""

import os
import platform
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import picokernel as pk
import pytest
from picokernel import cli

pytestmark = pytest.mark.skipif(
    pk.backends().get("cpu", "no cpu backend") != "", reason="needs native code"
)

START = """
import sys, warnings
import numpy as np, picokernel as pk
def kernel(text):
    names = {"np": np, "pk": pk}
    exec("def f(a, b): return " + text, names)
    return pk.kernel(backend="cpu")(names["f"])
A, B = np.arange(100.0), np.linspace(0, 1, 100)
"""


def start(code, folder, **environment):
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PICOKERNEL_CACHE_DIR": str(folder),
    }
    env |= environment
    return subprocess.Popen(
        [sys.executable, "-c", START + code],
        env={name: value for name, value in env.items() if value is not None},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(code, folder, **environment):
    """What a new process prints, and its lines about lookups."""
    process = start(code, folder, **environment)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return out, re.findall("^picokernel cache: (.*)$", errors, re.M)


def logged(code, folder, **environment):
    return run(code, folder, PICOKERNEL_LOG="cache", **environment)


def test_a_new_process_finds_what_another_compiled(tmp_path):
    code = """
f = kernel("a * b + 1")
print(f(A, B).tobytes().hex())
f(A[:10], B[:10])
print(f.ir(), f.ir("kernel"), f.source("cpu"), f.source("asm"))
"""
    first, lookups = logged(code, tmp_path)
    assert lookups[0] == "f on cpu: miss, the cache was empty"
    assert lookups[1] == "f on cpu: hit"
    second, lookups = logged(code, tmp_path)
    assert lookups[:2] == ["f on cpu: disk", "f on cpu: hit"]
    assert second == first


def test_neither_passes_nor_llvm_run_for_a_kernel_on_disk(tmp_path):
    code = """
with pk.profile() as p:
    kernel("a * b + 1")(A, B)
events = p.events
print([e.name for e in events if e.name.startswith(("lower", "compile", "emit", "llvm", "pass lower"))])
print([e.name for e in events if e.category == "compile" and "disk" in e.name])
print([e.name for e in events if e.phase == "C"])
"""
    first = run(code, tmp_path)[0].splitlines()
    assert "'compile cpu'" in first[0] and "'pass lower_loops'" in first[0] and "llvm" in first[0]
    assert first[1:] == ["['load from disk cpu']", "['kernels compiled']"]
    second = run(code, tmp_path)[0].splitlines()
    assert second == ["[]", "['load from disk cpu']", "['kernels found on disk']"]


def test_eight_processes_at_once(tmp_path):
    code = """
for i in range(10):
    assert (kernel(f"a * {i} + b")(A, B) == A * i + B).all()
"""
    processes = [start(code, tmp_path) for _ in range(8)]
    for process in processes:
        assert process.communicate(timeout=300)[1] == ""
        assert process.returncode == 0
    assert len(list(tmp_path.iterdir())) == 10
    assert logged(code, tmp_path)[1] == ["f on cpu: disk"] * 10


def test_processes_killed_while_they_write(tmp_path):
    code = """
print("ready", flush=True)
for i in range(50):
    assert (kernel(f"a * {i} + b")(A, B) == A * i + B).all()
"""
    moments = random.Random(5)
    for _ in range(6):
        processes = [start(code, tmp_path) for _ in range(2)]
        for process in processes:
            process.stdout.readline()
        time.sleep(moments.random() * 0.2)
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=120)
    run(code, tmp_path)
    names = [path.name for path in tmp_path.iterdir() if not path.name.endswith("-tmp")]
    assert len(names) == 50 and all(re.fullmatch(r"[0-9a-f]{32}\.pkcache", name) for name in names)
    assert logged(code, tmp_path)[1] == ["f on cpu: disk"] * 50


def test_damaged_files_are_compiled_again(tmp_path):
    code = """
assert (kernel("a * 7 + b")(A, B) == A * 7 + B).all()
"""
    run(code, tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    middle = len(whole) // 2
    for damaged in (
        *(b"", b"not ours", whole[:middle], whole + b"x"),
        whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
    ):
        path.write_bytes(damaged)
        assert logged(code, tmp_path)[1] == ["f on cpu: miss, the cache was empty"]
        assert path.read_bytes() == whole


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_another_build_of_the_core_finds_nothing(tmp_path):
    code = 'kernel("a * 7 + b")(A, B)'
    run(code, tmp_path / "kernels")
    (path,) = (tmp_path / "kernels").iterdir()
    ours = re.search(rb"build of the core\0([0-9a-f]{40})\0", path.read_bytes())[1].decode()
    maps = Path("/proc/self/maps").read_text()
    library = Path(re.search(r"(/\S*/libpicokernel\.so\S*)$", maps, re.M)[1])
    core, other = library.read_bytes(), ours[::-1]
    assert core.count(bytes.fromhex(ours)) == 1
    name = re.match(r".*\.so(\.\d+\.\d+)?", library.name)[0]  # as it is asked for
    rebuilt = core.replace(bytes.fromhex(ours), bytes.fromhex(other))
    (tmp_path / name).write_bytes(rebuilt)
    lookups = logged(code, tmp_path / "kernels", LD_LIBRARY_PATH=str(tmp_path))[1]
    assert lookups == [f"f on cpu: miss, build of the core: `{ours}` became `{other}`"]


WARNS = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert (kernel("a * 3 + b")(A, B) == A * 3 + B).all()
    assert (kernel("a * 4 + b")(A, B) == A * 4 + B).all()
(warning,) = caught
print(warning.category.__name__, warning.filename, warning.message)
"""


@pytest.mark.parametrize("case", ["read-only", "a file", "cannot be made", "others write", "none"])
def test_without_a_folder_one_warning(case, tmp_path):
    folder, environment = tmp_path / "kernels", {}
    reason = {
        "read-only": "Permission denied",
        "a file": f"{folder}: Not a directory",
        "cannot be made": "No such file or directory",
        "others write": "others can write to it (chmod 700)",
        "none": "HOME is not set",
    }[case]
    if case == "read-only":
        folder.mkdir(mode=0o500)
        if os.geteuid() == 0:  # whom no mode stops
            os.chown(folder, 12345, 12345)
            reason = "it belongs to another user"
    elif case == "a file":
        folder.touch()
    elif case == "cannot be made":
        folder = "/proc/picokernel"
    elif case == "others write":
        folder.mkdir()
        folder.chmod(0o777)
    else:
        folder = ""
        environment = {"HOME": None, "XDG_CACHE_HOME": None}
    out, _ = run(WARNS, folder, **environment)
    assert out.startswith("RuntimeWarning <string> compiled kernels are kept in memory only. ")
    assert reason in out and "PICOKERNEL_CACHE_DIR" in out

    # Who wants none of it says so, and where warnings are errors the call has still succeeded.
    quiet = WARNS.replace("(warning,) = caught", "assert not caught; sys.exit()")
    run(quiet, folder, PICOKERNEL_CACHE_SIZE="0", **environment)
    strict = 'warnings.simplefilter("error"); print(kernel("a + b")(A, B)[-1])'
    assert run(strict, folder, **environment)[0] == "100.0\n"


def test_the_size_is_kept(tmp_path):
    code = """
for i in range(40):
    kernel(f"a * {i} + b")(A, B)
"""
    run(code, tmp_path, PICOKERNEL_CACHE_SIZE="30K")
    files = list(tmp_path.iterdir())
    assert 3 < len(files) < 40
    assert sum(path.stat().st_size for path in files) <= 30 << 10
    latest = 'kernel("a * 39 + b")(A, B)'
    assert logged(latest, tmp_path)[1] == ["f on cpu: disk"]


def test_sizes_and_topics_that_are_none(tmp_path):
    code = """
try:
    kernel("a + b")(A, B)
except pk.LaunchError as error:
    print(error)
"""
    assert run(code, tmp_path, PICOKERNEL_CACHE_SIZE="lots")[0] == (
        "PICOKERNEL_CACHE_SIZE is 'lots'\n"
        "  it takes a number of bytes, such as 512M or 2G; 0 keeps nothing on disk\n"
    )
    assert run(code, tmp_path, PICOKERNEL_LOG="everything")[0] == (
        "PICOKERNEL_LOG is 'everything'\n"
        "  it takes 'cache': a line on stderr for each lookup of a compiled kernel\n"
    )


def test_commands_say_why_a_folder_is_not_used(tmp_path):
    file, open_to_all = tmp_path / "file", tmp_path / "open"
    file.write_text("")
    open_to_all.mkdir(mode=0o700)
    open_to_all.chmod(0o777)
    for folder, why in ((file, "Not a directory"), (open_to_all, "others can write to it")):
        for verb in ("info", "clear"):
            done = subprocess.run(
                [sys.executable, "-m", "picokernel.cli", "cache", verb],
                env={**os.environ, "PICOKERNEL_CACHE_DIR": str(folder)},
                capture_output=True, text=True, timeout=120,
            )  # fmt: skip
            assert done.returncode == 1 and not done.stdout
            assert done.stderr.startswith(f"picokernel: {folder}: {why}")


def test_the_log_says_which_part_differed(tmp_path):
    run('kernel("a * 2 + b")(A, B); kernel("np.sqrt(a) - b")(A, B)', tmp_path)
    (line,) = logged('kernel("a * 3 + b")(A, B)', tmp_path)[1]
    assert re.fullmatch(r"f on cpu: miss, graph: `.*constant 2.*` became `.*constant 3.*`", line), (
        line
    )
    (line,) = logged('kernel("a * 2 + b")(A[::2], B[::2])', tmp_path)[1]
    assert line == "f on cpu: miss, launch class: ` (1 1 1 1)` became ` (1 s s 1)`"
    if platform.machine() == "x86_64":
        (line,) = logged('kernel("a * 2 + b")(A, B)', tmp_path, PICOKERNEL_CPU="x86-64-v3")[1]
        assert line.startswith("f on cpu: miss, target: `"), line
    renamed = 'f = kernel("a * 2 + b").__wrapped__; f.__name__ = "g"; pk.kernel(f)(A, B)'
    assert logged(renamed, tmp_path)[1] == ["g on cpu: miss, kernel: `f` became `g`"]
    # Source backends have no part in it.
    assert logged('pk.kernel(backend="ref")(lambda a: a + 1)(A)', tmp_path)[1] == [
        "kernel on ref: miss, the cache was empty"
    ]


def test_changed_globals_in_another_process(tmp_path):
    """R01: constants, a helper in another file, and numbers that set sizes."""
    (tmp_path / "helper.py").write_text("")
    code = f"""
sys.path.insert(0, {str(tmp_path)!r})
import helper
@pk.kernel
def f(v):
    return helper.scale(v)[: helper.K]
print(f(np.full(4, 10.0)).tolist())
"""
    expected = {2: "[20.0, 20.0]\n", 3: "[30.0, 30.0, 30.0]\n"}
    for k, found in ((2, "miss"), (3, "miss"), (2, "disk"), (3, "disk")):
        text = f"K = {k}\ndef scale(v): return v * K\n"
        (tmp_path / "helper.py").write_text(text)
        out, lookups = logged(code, tmp_path / "kernels", PYTHONDONTWRITEBYTECODE="1")
        assert out == expected[k]
        assert lookups[0].startswith(f"f on cpu: {found}"), lookups
    text = "K = 2\ndef scale(v): return v + K\n"  # the helper's code, not its constant
    (tmp_path / "helper.py").write_text(text)
    assert run(code, tmp_path / "kernels", PYTHONDONTWRITEBYTECODE="1")[0] == "[12.0, 12.0]\n"


def test_cache_info_and_clear(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PICOKERNEL_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setenv("PICOKERNEL_CACHE_SIZE", "64M")

    def cache(verb):
        assert cli.main(["cache", verb]) == 0
        return capsys.readouterr().out

    empty = f"folder   {tmp_path / 'kernels'}\nkernels  0\nsize     0.0 MiB of 64\n"
    assert cache("info") == empty
    assert not (tmp_path / "kernels").exists()
    for number in (1, 2):
        names = {}
        exec(f"def only_here(x): return x * {number} - x / 7", names)
        pk.kernel(names["only_here"], backend="cpu")(np.ones(5))
    assert "kernels  2\n" in cache("info")
    assert cache("clear") == "removed 2 kernels\n"
    assert cache("info") == empty
    monkeypatch.setenv("PICOKERNEL_CACHE_SIZE", "0")
    assert cache("info").endswith("size     0.0 MiB of 0 (off)\n")

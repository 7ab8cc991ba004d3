"""Kernels by name in perf's maps and in gdb."""

import os
import shutil
import subprocess
import sys

import picokernel as pk
import pytest

pytestmark = pytest.mark.skipif(
    pk.backends().get("cpu", "no cpu backend") != "" or sys.platform != "linux",
    reason="needs native code on Linux",
)

CODE = """
import os, numpy as np, picokernel as pk
@pk.kernel
def scaled(x):
    return x * 3
class Unreadable:
    __array_interface__ = dict(shape=(64,), typestr="<f8", data=(65536, True), version=3)
"""


def run(code, *command, **variables):
    env = {k: v for k, v in os.environ.items() if k != "PICOKERNEL_PERF"}
    env |= {"PYTHONPATH": os.pathsep.join(sys.path), **variables}
    return subprocess.run(
        [*command, sys.executable, "-c", CODE + code], env=env, capture_output=True, text=True
    )


def test_perf_map():
    code = """
name = "/tmp/perf-%d.map"
scaled(np.ones(64))
lines = [line.split() for line in open(name % os.getpid())] if os.path.exists(name % os.getpid()) else []
assert all(int(address, 16) and int(size, 16) for address, size, _ in lines)
print(*(line[2] for line in lines))
if lines and (child := os.fork()) == 0:
    scaled(np.ones(64, np.float32))
    print(open(name % os.getpid()).read().count("pk::scaled"), flush=True)
    os.unlink(name % os.getpid())
    os._exit(0)
if lines:
    os.waitpid(child, 0)
    os.unlink(name % os.getpid())
"""
    on = run(code, PICOKERNEL_PERF="map")
    assert "pk::scaled" in on.stdout and "2" in on.stdout.split(), on
    assert run(code).stdout == "\n"
    assert "PICOKERNEL_PERF is 'yes'" in run(code, PICOKERNEL_PERF="yes").stderr


@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb")
def test_gdb_names_the_kernel():
    got = run(
        "scaled(Unreadable())", "gdb", "-q", "-nx", "-batch", "-ex", "run", "-ex", "bt 2", "--args"
    )
    if "SIGSEGV" not in got.stdout:
        pytest.skip(f"gdb cannot run programs here: {got.stderr[-300:]}")
    assert "in pk::scaled ()" in got.stdout and "picokernel::" in got.stdout, got.stdout

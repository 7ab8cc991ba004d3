"""`picokernel run --cuda`: scripts for numba.cuda, with their imports untouched."""

import importlib.util
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import numpy as np
import numba
from numba import cuda, float32, types
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

@cuda.jit
def dice(states, out):
    tile = cuda.shared.array(64, float32)
    i = cuda.grid(1)
    tile[cuda.threadIdx.x] = xoroshiro128p_uniform_float32(states, i)
    cuda.syncthreads()
    out[i] = 1 + types.int32(tile[63 - cuda.threadIdx.x] * 6)

out = np.zeros(256, np.int32)
dice[4, 64](create_xoroshiro128p_states(256, seed=1), out)
assert set(out) == {1, 2, 3, 4, 5, 6}
print(__name__, sys.argv[1:], numba.cuda is cuda)
"""


def run(*words, cwd):
    command = [sys.executable, "-m", "picokernel.cli", "run", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_a_script(tmp_path):
    (tmp_path / "dice.py").write_text(SCRIPT)
    done = run("--cuda", "dice.py", "7", "--loud", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "__main__ ['7', '--loud'] True\n"), done.stderr
    done = run("--cuda", "-m", "dice", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "__main__ [] True\n"), done.stderr


def test_what_cannot_be_run(tmp_path):
    done = run("--cuda", "none.py", cwd=tmp_path)
    assert done.returncode == 1 and "there is no script 'none.py'" in done.stderr
    done = run("none.py", cwd=tmp_path)
    assert done.returncode == 2 and "--cuda" in done.stderr


def test_the_rest_of_numba(tmp_path):
    (tmp_path / "rest.py").write_text("from numba import njit\nprint(njit)\n")
    done = run("--cuda", "rest.py", cwd=tmp_path)
    if importlib.util.find_spec("numba"):
        assert done.returncode == 0
    else:
        assert done.returncode == 1 and "cannot import name 'njit'" in done.stderr


@pytest.mark.parametrize("status", [0, 3])
def test_the_scripts_exit_status(tmp_path, status):
    (tmp_path / "leave.py").write_text(f"import numba.cuda, sys\nsys.exit({status})\n")
    assert run("--cuda", "leave.py", cwd=tmp_path).returncode == status

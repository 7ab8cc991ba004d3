"""The layering script finds what it is there to find, and nothing else."""

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_layers.py"

IN_ORDER = {
    "include/picokernel/dtype.h": "#pragma once\n#include <cstdint>\n",
    "src/support/hash.h": "#include <picokernel/dtype.h>\n",
    "src/support/hash.cpp": '#include "support/hash.h"\n#include <xxhash.h>\n',
    "src/ir/module.h": '#include "support/hash.h"\n#include "ops.def"\n',
    "src/ir/ops.def": "OP(add)\n",
    "src/runtime/pool.h": '#include "support/hash.h"\n',
    "src/passes/graph/fold.cpp": '#include "ir/module.h"\n',
    "src/backend/backend.h": '#include "runtime/pool.h"\n',
    "src/backend/c_like/printer.h": '#include "ir/module.h"\n',
    "src/backend/cpu/cpu.h": '#include "backend/backend.h"\n#include <llvm/IR/Module.h>\n',
    "src/backend/cuda/cuda.h": '#include "backend/c_like/printer.h"\n',
    "src/driver/backends.cpp": '#include "backend/cpu/cpu.h"\n#include "backend/cuda/cuda.h"\n',
    "src/driver/driver.h": '#include "backend/backend.h"\n',
    "tools/picoc/main.cpp": '#include "driver/driver.h"\n#include <CLI/CLI.hpp>\n',
    "include/picokernel/mlx.h": "#include <mlx/mlx.h>\n",
    "python/src/call.cpp": "#include <Python.h>\n#include <numpy/arrayobject.h>\n",
}


def check(root: pathlib.Path, changes: dict[str, str]) -> subprocess.CompletedProcess:
    for path, text in (IN_ORDER | changes).items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)


def test_a_tree_in_order_passes(tmp_path):
    result = check(tmp_path, {})
    assert result.returncode == 0, result.stdout
    assert "layers: in order" in result.stdout


@pytest.mark.parametrize(
    ("path", "text", "finding"),
    [
        ("src/ir/a.h", '#include "passes/graph/fold.cpp"\n', "src/ir/ must not include src/passes"),
        ("src/runtime/a.h", '\n#include "ir/module.h"\n', "a.h:2: src/runtime/ must not include"),
        ("src/passes/a.h", '#include "runtime/pool.h"\n', "src/passes/ must not include"),
        ("include/picokernel/a.h", '#include "ir/module.h"\n', "include/ must not include"),
        ("src/support/a.h", '#include "../ir/module.h"\n', "src/support/ must not include"),
        ("src/backend/cuda/a.h", '#include "backend/cpu/cpu.h"\n', "sibling cpu"),
        ("src/backend/c_like/a.h", '#include "backend/cpu/cpu.h"\n', "sibling cpu"),
        ("src/backend/a.h", '#include "backend/cpu/cpu.h"\n', "only src/driver/backends.cpp"),
        ("src/driver/run.cpp", '#include "backend/cpu/cpu.h"\n', "only src/driver/backends.cpp"),
        ("tools/picoc/a.cpp", '#include "backend/cpu/cpu.h"\n', "only src/driver/backends.cpp"),
        ("src/backend/mlx/a.h", "#include <mlx/mlx.h>\n", "belongs to python/picokernel/bridge/"),
        ("src/driver/a.h", "#include <picokernel/mlx.h>\n", "is for programs that have MLX"),
        ("src/backend/ref/a.h", "#include <llvm/IR/Module.h>\n", "belongs to src/backend/cpu/"),
        ("include/picokernel/a.h", "#include <nanobind/nanobind.h>\n", "belongs to python/src/"),
        ("src/driver/a.h", '#include "Python.h"\n', "belongs to python/src/"),
        ("src/backend/mlx/a.h", "#  include <cuda.h>\n", "belongs to src/backend/cuda/"),
        ("src/ir/a.h", '#include "gone.h"\n', "no file of this tree"),
        ("src/other/a.h", '#include "ir/module.h"\n', "lies in no layer"),
    ],
)
def test_a_wrong_include_is_found(tmp_path, path, text, finding):
    result = check(tmp_path, {path: text})
    assert result.returncode == 1
    assert finding in result.stdout


@pytest.mark.parametrize(
    ("path", "lines", "finding"),
    [
        ("src/passes/graph/long.cpp", 301, "301 lines, over 300"),
        ("src/ir/long.cpp", 801, "801 lines, over 800"),
        ("tests/ir/long_test.cpp", 801, "801 lines, over 800"),
        ("python/picokernel/long.py", 700, "Python is"),
        ("src/ir/huge.cpp", 36_001, "src/ has"),
    ],
)
def test_a_size_over_its_limit_is_found(tmp_path, path, lines, finding):
    result = check(tmp_path, {path: "\n" * lines})
    assert result.returncode == 1
    assert finding in result.stdout

"""Installs a wheel into an empty environment and runs kernels there.

Usage: wheel_test.py WHEEL...   Each is tested by the Python at hand that it is for. There is nothing
on PATH, no variable set, and the checkout is not the working directory: neither a compiler nor LLVM
nor these sources can help.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_BYTES = 60e6

PROGRAM = """
import pathlib
import numpy as np, picokernel as pk

@pk.kernel
def k(a, b, c):
    return np.sqrt(a * b) + np.exp(-c)

a, b, c = np.random.default_rng(0).random((3, 1000)).astype(np.float32)
want = np.sqrt(a * b) + np.exp(-c)
for backend in ("ref", "numpy", "cpu"):
    assert pk.backends()[backend] == "", (backend, pk.backends()[backend])
    np.testing.assert_allclose(k(a, b, c, backend=backend), want, rtol=1e-6)
    print(backend, "runs")

# What is compiled where MLX is needs these.
package = pathlib.Path(pk.__file__).parent
assert (package / "include/picokernel/mlx_primitive.h").exists(), list(package.iterdir())

libraries = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
assert not any("libLLVM" in name or "ROOT" in name for name in libraries), libraries
assert any("libpicokernel" in name for name in libraries), libraries
"""


def readme_example() -> str:
    """The first block of README.md, without the lines that need MLX."""
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    given = "a, b, c = np.ones(5), np.arange(5.0), np.zeros(5)\n"
    lines = [line for line in block.splitlines() if 'backend="mlx"' not in line]
    at = next(i for i, line in enumerate(lines) if line.startswith("o = fma("))
    return "\n".join([*lines[:at], given, *lines[at:]])


def python_of(wheel: pathlib.Path) -> str:
    major, minor = re.search(r"-cp(\d)(\d+)-", wheel.name).groups()
    name = f"python{major}.{minor}"
    versions = pathlib.Path.home() / ".pyenv/versions"
    found = [shutil.which(name), *sorted(versions.glob(f"{major}.{minor}.*/bin/{name}"))]
    for python in filter(None, found):
        if subprocess.run([python, "-c", "import ensurepip"], capture_output=True).returncode == 0:
            return str(python)
    raise SystemExit(f"{wheel.name}: no {name} with venv at hand")


def test(wheel: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        env = pathlib.Path(folder, "env")
        python = env / "bin/python"
        subprocess.run([python_of(wheel), "-m", "venv", env], check=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-q"]
        subprocess.run([*pip, "--only-binary", ":all:", wheel], check=True)
        installed = list(env.glob("lib/*/site-packages/picokernel*/**/*"))
        size = sum(f.stat().st_size for f in installed if f.is_file())
        for text in (PROGRAM.replace('"ROOT"', repr(str(ROOT))), readme_example()):
            program = pathlib.Path(folder, "program.py")
            program.write_text(text)
            subprocess.run(
                [python, "-I", program], cwd=folder, env={"PATH": "/nonexistent"}, check=True
            )
        print(f"{wheel.name}: {size / 1e6:.1f} MB installed, works")
        assert size <= MOST_BYTES, f"more than {MOST_BYTES / 1e6:.0f} MB"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit("no wheel named; `make wheel` builds some into dist/")
    for name in sys.argv[1:]:
        test(pathlib.Path(name).resolve())

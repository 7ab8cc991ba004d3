"""Writes docs/tour.md: one kernel at every stage. `--check` only compares; a test does.

The last section depends on LLVM's version and is not compared.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import numpy as np  # noqa: E402

KERNEL = """import numpy as np, picokernel as pk

@pk.kernel
def smooth(x, w, o):
    o[...] = np.sqrt(x * x + 1.0) * w + np.sqrt(x * x + 1.0) / 4.0"""


MACHINE_CODE = '## As machine code: `smooth.source("asm")`, `smooth.source("llvm")`\n'


def picoc(*words):
    environment = os.environ | {"PICOKERNEL_CPU": "x86-64-v3"}
    command = [ROOT / "build/picoc", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def main_loop(assembly):
    """The first loop that ends in a jump to its own label."""
    lines = assembly.splitlines()
    for start, line in enumerate(lines):
        if not line.startswith(".LBB"):
            continue
        label = line.split(":")[0]
        for end in range(start + 1, len(lines)):
            if lines[end].startswith(".LBB"):
                break
            if lines[end].split()[:1] == ["jl"] and lines[end].split()[1] == label:
                return "\n".join(lines[start : end + 1])
    raise ValueError("no loop found")


def block(text, language=""):
    return f"```{language}\n{text.rstrip()}\n```\n"


def tour():
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "smooth.py"
        script.write_text(KERNEL + "\n")
        names = {}
        exec(compile(KERNEL, str(script), "exec"), names)
        smooth = names["smooth"]
        x = np.linspace(0, 1, 5, dtype=np.float32)
        o = np.zeros_like(x)
        smooth(x, np.float32(2), o)
        values = ", ".join(f"{v:.4f}" for v in o)
        graph = smooth.ir()
        file = Path(folder) / "smooth.pk"
        file.write_text("picokernel 1\n" + graph)
        optimised = picoc("opt", "--pass", "fold,simplify,cse,dce", file)
        lowered = picoc("opt", "--pass", "fold,simplify,cse,dce,lower_loops,cse,dce", file)
        loop = main_loop(picoc("emit", "asm", file))
        pieces = [
            "# A kernel at every stage\n",
            "Made by `scripts/make_tour.py`; a test compares it with what the tools print now.\n",
            "## What the user writes\n",
            block(
                KERNEL + "\n\nx = np.linspace(0, 1, 5, dtype=np.float32)\no = np.zeros_like(x)\n"
                f"smooth(x, np.float32(2), o)     # o: [{values}]",
                "python",
            ),
            "## The graph: `smooth.ir()`\n",
            "One op per NumPy operation, sizes as symbols. `x` and `o` share the size `n0`: that they agree is the\n"
            "guard of this trace. The Python number 1.0 took the type of the array that it met.\n",
            block(graph),
            "## After the graph passes: `picoc opt --pass fold,simplify,cse,dce`\n",
            "The square root is computed once, and the division by 4 became an exact product.\n",
            block(optimised),
            '## As NumPy source: `smooth.source("numpy")`\n',
            "What runs on the numpy backend, to the letter. The output serves as scratch.\n",
            block(smooth.source("numpy"), "python"),
            '## As MLX source: `smooth.source("mlx")`\n',
            block(smooth.source("mlx"), "python"),
            "## As loops: `picoc opt --pass ...,lower_loops`\n",
            "One fused loop: a load per input, a store, no temporary array.\n",
            block(lowered),
            MACHINE_CODE,
            "The innermost parallel loop became SIMD lanes, four vectors side by side; the tail is masked. Here for\n"
            "AVX2 (`PICOKERNEL_CPU=x86-64-v3 picoc emit asm smooth.pk`), the main loop alone:\n",
            block(loop),
        ]
        return "\n".join(pieces)


def main():
    path = ROOT / "docs/tour.md"
    text = tour()
    if "--check" not in sys.argv:
        path.write_text(text)
        return 0
    if path.exists() and path.read_text().split(MACHINE_CODE)[0] == text.split(MACHINE_CODE)[0]:
        return 0
    print("docs/tour.md is not what the tools print now: run scripts/make_tour.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())

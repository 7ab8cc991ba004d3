"""Writes docs/tour.md: one kernel at every stage. `--check` only compares; a test does."""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import numpy as np  # noqa: E402

import picokernel as pk  # noqa: E402

KERNEL = '''import numpy as np, picokernel as pk

@pk.kernel
def smooth(x, w, o):
    y = np.sqrt(x * x + 1.0)
    o[...] = y * w + y'''


def picoc(*words):
    done = subprocess.run([ROOT / "build/picoc", *words], capture_output=True, text=True, check=True)
    return done.stdout


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
        llvm = smooth.source("llvm", x, np.float32(2), o)
        llvm = "\n".join(line for line in llvm.splitlines() if "fmul" in line or "sqrt" in line)
        pieces = [
            "# A kernel at every stage\n",
            "Made by `scripts/make_tour.py`; a test compares it with what the tools print now.\n",
            "## What the user writes\n",
            block(KERNEL + "\n\nx = np.linspace(0, 1, 5, dtype=np.float32)\no = np.zeros_like(x)\n"
                  f"smooth(x, np.float32(2), o)     # o: [{values}]", "python"),
            "## The graph: `smooth.ir()`\n",
            "One op per NumPy operation, sizes as symbols. `x` and `o` share the size `n0`: that they agree is the\n"
            "guard of this trace. The Python number 1.0 took the type of the array that it met.\n",
            block(graph),
            "## After the graph passes: `picoc opt --pass fold,simplify,cse,dce`\n",
            "The second read of `x` is gone.\n",
            block(optimised),
            "## As NumPy source: `smooth.source(\"numpy\")`\n",
            "What runs on the numpy backend, to the letter. The output serves as scratch.\n",
            block(smooth.source("numpy"), "python"),
            "## As MLX source: `smooth.source(\"mlx\")`\n",
            block(smooth.source("mlx"), "python"),
            "## As loops: `picoc opt --pass ...,lower_loops`\n",
            "One fused loop: a load per input, a store, no temporary array.\n",
            block(lowered),
            "## As machine code: `smooth.source(\"llvm\")`, `smooth.source(\"asm\")`\n",
            "The innermost loop is vectorised as wide as this machine allows and interleaved, the tail is masked.\n"
            "`picoc emit asm smooth.pk` prints it all.\n",
        ]
        del llvm
        return "\n".join(pieces)


def main():
    path = ROOT / "docs/tour.md"
    text = tour()
    if "--check" not in sys.argv:
        path.write_text(text)
        return 0
    if path.read_text() == text:
        return 0
    print("docs/tour.md is not what the tools print now: run scripts/make_tour.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())

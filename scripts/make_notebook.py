"""Writes examples/notebook.ipynb from the cells below. `--check` only compares; a test does, and another
runs the cells. Outputs are not stored: times differ by machine.
"""

import json
import sys
from pathlib import Path

PATH = Path(__file__).resolve().parent.parent / "examples/notebook.ipynb"

CELLS = [
    """# Kernels in a notebook

A kernel is NumPy code, compiled at its first call. This notebook defines one, reads what it became, looks at
where the time goes, and changes it.""",
    """import numpy as np
import picokernel as pk

rng = np.random.default_rng(0)
signal = np.cumsum(rng.standard_normal(1_000_000)).astype(np.float32)
smoothed = signal.copy()""",
    """@pk.kernel
def smooth(x, o):
    o[1:-1] = (x[:-2] + 2 * x[1:-1] + x[2:]) / 4


smooth(signal, smoothed)
smoothed[:4]""",
    """## What it became

One loop over three shifted pointers on the CPU; the same kernel as NumPy source uses the output as scratch.""",
    """print(smooth.ir("kernel"))
print(smooth.source("numpy"))""",
    """smooth  # the graph and the sources, unfolded by a click""",
    """## Where the time goes

Every backend in one profile: a row per kind of event. The first call of a backend compiles.""",
    """with pk.profile() as profile:
    for backend in ("cpu", "numpy"):
        for _ in range(5):
            smooth(signal, smoothed, backend=backend)

print(profile.table())
# profile.save("smooth.json") opens in ui.perfetto.dev""",
    """calls = {}
for event in profile.events:
    if event.category == "call":
        calls.setdefault(event.backend, []).append(event.duration_ns / 1e3)

slowest = max(min(times) for times in calls.values())
for backend, times in calls.items():
    bar = "█" * max(1, round(40 * min(times) / slowest))
    print(f"{backend:6} {min(times):8.0f} µs  {bar}")""",
    """## A changed kernel

Running a changed cell compiles anew; a changed global does as well.""",
    """strength = 0.5


@pk.kernel
def smooth(x, o):
    mean = (x[:-2] + x[2:]) / 2
    o[1:-1] = x[1:-1] + strength * (mean - x[1:-1])


smooth(signal, smoothed)
before = smoothed.copy()
strength = 1.0
smooth(signal, smoothed)
print(abs(before - smoothed).max() > 0)""",
    """## A mistake

An error points at the line of the cell and says what to write instead.""",
    """@pk.kernel
def clipped(x):
    if x > 0:
        return x
    return 0 * x


try:
    clipped(signal)
except pk.CompileError as error:
    print(error.msg)
    print(error.text.rstrip())""",
]


def cell(number, text):
    code = number != 0 and not text.startswith("## ")
    lines = text.splitlines(True)
    common = {"id": f"cell-{number}", "metadata": {}, "source": lines}
    if code:
        return {"cell_type": "code", "execution_count": None, **common, "outputs": []}
    return {"cell_type": "markdown", **common}


def notebook():
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": [cell(i, text) for i, text in enumerate(CELLS)],
        "metadata": {"kernelspec": python, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main():
    if "--check" not in sys.argv:
        PATH.write_text(notebook())
    elif not PATH.exists() or PATH.read_text() != notebook():
        print("examples/notebook.ipynb is not what scripts/make_notebook.py writes: run that")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

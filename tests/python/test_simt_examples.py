"""The examples of kernels of threads on every live backend; each checks itself against NumPy."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples/simt"
# What ref interprets in a moment; several blocks, the last one ragged.
SMALL = {
    "bitonic_sort": (1 << 9,),
    "black_scholes": (300,),
    "convolution": (37,),
    "histogram": (20_000,),
    "life": (21, 2),
    "mandelbrot": (20, 16),
    "matmul": (37,),
    "monte_carlo": (2, 32),
    "nbody": (70,),
    "reduction": (20_000,),
    "saxpy": (700,),
    "scan": (1500,),
    "stencil": (37,),
    "transpose": (37,),
}


def test_all_are_here():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(SMALL)


@pytest.mark.parametrize("sizes", ["small", "its own"])
@pytest.mark.parametrize("example", SMALL)
def test_runs(threads_backend, example, sizes, capsys):
    if sizes == "its own" and threads_backend == "ref":
        pytest.skip("interpreted")
    spec = importlib.util.spec_from_file_location(example, FOLDER / f"{example}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(*(SMALL[example] if sizes == "small" else ()))
    assert capsys.readouterr().out.startswith(f"{example}: ")

"""Kernels on MLX arrays of a CUDA device: one printed kernel each. Without one, a compiler stands for
it (fake_cuda), in a process of its own."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from oracle import assert_same

mx = pytest.importorskip("mlx.core", reason="MLX is not installed")
from picokernel import cuda_kernel  # noqa: E402

HERE = pathlib.Path(__file__).parent


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize(
    "tests, least",
    [
        (["on_cuda.py"], 25),
        (["-k", "results_are or stores or test_out or numpy or complex", "test_mlx_arrays.py"], 7),
    ],
)
def test_with_a_compiler_for_cuda(tests, least):
    program = (
        "import sys, fake_cuda, pytest\nfake_cuda.install()\nsys.exit(pytest.main(sys.argv[1:]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, "-p", "no:cacheprovider", *tests],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stdout
    assert int(re.search(r"(\d+) passed", result.stdout)[1]) >= least


@pytest.mark.parametrize("inputs, outputs", [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_transformations_go_through_operations(inputs, outputs):
    def plain(*x):
        return (x[0] * 2 + x[-1] * x[0], x[-1] * x[0])[:outputs]

    def other(*x):  # as lazy, and with a gradient of its own
        return tuple(mx.stop_gradient(r) for r in plain(*x))

    made = cuda_kernel._transformable(other, plain)
    arrays = [mx.arange(3.0), mx.ones(3) * 2][:inputs]

    def results(f):
        def total(*x):
            return sum(r.sum() for r in f(*x))

        numbers = tuple(range(inputs))
        yield from mx.vmap(f)(*(mx.stack([x, x + 1]) for x in arrays))
        yield from mx.vmap(lambda x: f(x, *arrays[1:]))(mx.stack([arrays[0]] * 2))
        yield from mx.compile(f)(*arrays)
        yield from mx.jvp(f, arrays, arrays)[1]
        yield from mx.jvp(lambda x: f(x, *arrays[1:]), arrays[:1], arrays[:1])[1]
        yield from mx.grad(total, argnums=numbers)(*arrays)
        yield mx.grad(lambda x: mx.grad(total)(x, *arrays[1:]).sum())(arrays[0])

    for got, want in zip(results(made), results(plain), strict=True):
        assert_same(np.asarray(got), np.asarray(want))

"""Stands for MLX on a CUDA device: `mx.fast.cuda_kernel` by a C++ compiler, one thread after the
other, and a default device that says it is a GPU."""

import ctypes
import itertools
import math
import os
import pathlib
import subprocess
import tempfile
import types

import mlx.core as mx
import numpy as np

HEADER = pathlib.Path(__file__).parent.parent / "backend/cuda_on_cpu.h"
launches = []  # of each: the name
installed = False


def install():
    global installed
    installed = True
    mx.fast.cuda_kernel = cuda_kernel
    mx.default_device = lambda: types.SimpleNamespace(type=mx.gpu)
    count()


def count():
    """Fills `launches`."""
    make = mx.fast.cuda_kernel

    def counted(name, **how):
        kernel = make(name=name, **how)

        def call(**call):
            launches.append(name)
            return kernel(**call)

        return call

    mx.fast.cuda_kernel = counted


def cuda_kernel(name, input_names, output_names, source, header=""):
    function = _compiled(name, input_names, output_names, source, header)

    def call(*, inputs, output_shapes, output_dtypes, grid, threadgroup):
        mx.eval(*inputs)
        blocks = [math.ceil(n / t) for n, t in zip(grid, threadgroup, strict=True)]
        results = [
            mx.contiguous(mx.zeros(s, t)) for s, t in zip(output_shapes, output_dtypes, strict=True)
        ]
        arrays = [mx.contiguous(x) for x in inputs]
        mx.eval(*results, *arrays)
        views = [np.asarray(x.view(mx.uint8) if x.ndim else x[None].view(mx.uint8)) for x in arrays]
        views += [_writable(x) for x in results]
        pointers = (ctypes.c_void_p * len(views))(*(v.ctypes.data for v in views))
        function(pointers, *blocks[:2], *threadgroup[:2])
        return results

    return call


def _writable(x):
    return np.asarray(x.view(mx.uint8) if x.ndim else x.reshape(1).view(mx.uint8))


def _compiled(name, inputs, outputs, source, header):
    names = itertools.chain(inputs, outputs)
    declared = "".join(
        f"  [[maybe_unused]] auto *{n} = ({'unsigned long long' if n == 'w' else 'void'} *)p[{i}];\n"
        for i, n in enumerate(names)
    )
    text = (
        f'#include "{HEADER}"\n{header}\nextern "C" void call(void **p, unsigned x, unsigned y,'
        f" unsigned tx, unsigned ty) {{\n{declared}"
        f"  run_grid({{x, y, 1}}, {{tx, ty, 1}}, [&] {{ {source} }});\n}}\n"
    )
    folder = tempfile.mkdtemp(prefix="picokernel-fake-cuda-")
    path, made = os.path.join(folder, f"{name}.cpp"), os.path.join(folder, f"{name}.so")
    pathlib.Path(path).write_text(text)
    subprocess.run(
        ["g++", "-std=c++20", "-O1", "-ffp-contract=off", "-shared", "-fPIC", path, "-o", made],
        check=True,
    )
    return ctypes.CDLL(made).call

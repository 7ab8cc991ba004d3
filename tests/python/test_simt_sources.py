"""Kernels of threads as CUDA C++ and OpenCL C."""

import ctypes
import ctypes.util
import importlib.util
from pathlib import Path

import numpy as np
import picokernel as pk
import pytest
from picokernel import simt

EXAMPLES = sorted((Path(__file__).parents[2] / "examples/simt").glob("*.py"))


def nvrtc():
    for name in ("libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    pytest.skip("no NVRTC here")


def compiled(text, architecture):
    """The PTX; fails with the compiler's log."""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
    status = library.nvrtcCompileProgram(program, 1, options)
    kind = "PTX" if status == 0 else "ProgramLog"
    getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    found = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{kind}")(program, found)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    assert status == 0, found.value.decode() + text
    return found.value.decode()


@simt.jit
def everything(x, y, z, n, f, flag):
    tile = simt.shared.array((4, 8), simt.float32)
    more = simt.shared.array(0, simt.int16)
    own = simt.local.array(3, simt.float64)
    i, j, k = simt.grid(3)
    t = simt.threadIdx.x
    own[t % 3] = i * f
    more[t] = t
    tile[simt.threadIdx.y, t] = j
    simt.syncthreads()
    votes = simt.syncthreads_count(i > 3)
    if simt.syncthreads_and(i > n) or simt.syncthreads_or(flag):
        simt.syncthreads()
        y[i, 0] = tile[0, 1]
    if i < x.size:
        simt.atomic.add(x, i, 1.5)
        simt.atomic.max(x, i, x[i] * 2)
        simt.atomic.nanmin(y, (i, 0), 2)
        simt.atomic.inc(z, i, 9)
        simt.atomic.cas(z, i, 1, 2)
        simt.atomic.exch(z, i, votes)
        z[i] += more[t] + k // n + int(own[0]) + simt.gridsize(1) + simt.popc(i)
        while y[i, 1] < 0:
            y[i, 1] += 0.25
            if y[i, 1] == f:
                break


ARGUMENTS = (np.zeros(9, np.float32), np.zeros((18, 4))[::2], np.zeros(9, np.int32), 3, 0.5, True)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_cuda_compiles(architecture):
    ptx = compiled(everything.source(*ARGUMENTS, backend="cuda"), architecture)
    assert ".entry pk_everything(" in ptx and "bar.sync" in ptx and "atom" in ptx


def test_cuda_text():
    @simt.jit
    def reverse(x):
        own = simt.shared.array(64, simt.float32)
        t = simt.threadIdx.x
        own[t] = x[t]
        simt.syncthreads()
        x[t] = own[63 - t]

    text = reverse.source(np.zeros(64, np.float32), backend="cuda")
    body = text[text.index("PK_FUNCTION void") :].splitlines()
    assert body[0] == "PK_FUNCTION void pk_reverse(float *PK_RESTRICT x, long long x_size0) {"
    assert "  __shared__ float own[64];" in body and "  __syncthreads();" in body
    line = reverse.python_function.__code__.co_firstlineno + 5
    assert f'#line {line} "{__file__}"' in text
    assert "#include" not in text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_compile_as_cuda(path, monkeypatch):
    """With the arguments that their launches have."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    texts = {}
    launch = simt.kernel.Launch.__call__

    def seen(self, *args):
        jit = self._jit
        texts.setdefault(jit.__name__, jit.source(*args, backend="cuda"))
        return launch(self, *args)

    monkeypatch.setattr(simt.kernel.Launch, "__call__", seen)
    module.main()
    assert texts
    for name, text in texts.items():
        assert f".entry pk_{name}" in compiled(text, "sm_90")


@pytest.mark.parametrize("backend", ["cuda", "opencl"])
def test_what_gpus_do_not_have(backend):
    @simt.jit
    def small(x):
        simt.atomic.add(x, 0, 1)

    with pytest.raises(pk.CompileError, match=f"{backend} does not run atomics on int8"):
        small.source(np.zeros(1, np.int8), backend=backend)


def test_printed_backends_do_not_run():
    with pytest.raises(pk.LaunchError, match="cuda"):
        simt.jit(backend="cuda")(everything.python_function)
    with pytest.raises(pk.LaunchError, match="numpy"):
        everything.source(*ARGUMENTS, backend="numpy")

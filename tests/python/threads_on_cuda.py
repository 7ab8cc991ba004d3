"""Kernels of threads on a CUDA device, as `cuda` prints them.

    python tests/python/threads_on_cuda.py record FILE    anywhere: runs the examples on cpu
    python tests/python/threads_on_cuda.py check FILE     with a device, NVRTC and CuPy; without picokernel

The first writes each launch's text, arguments and results, the second compiles the texts by NVRTC
with its defaults, launches them and compares bits. (CuPy's own compilation flushes subnormals.)"""

import ctypes
import gzip
import pickle
import sys
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).parents[2] / "examples/simt"
# Launches small enough for a file of some MB.
SIZES = {
    "bitonic_sort": (1 << 12,),
    "histogram": (200_003,),
    "life": (256, 3),
    "reduction": (200_003,),
    "saxpy": (200_003,),
}


def record(path):
    import importlib.util

    from picokernel import simt

    calls, launch = [], simt.kernel.Launch.__call__

    def recorded(self, *args):
        before = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
        text = self._jit.source(*args, backend="cuda")
        launch(self, *args)
        changed = [
            np.array(a) if isinstance(a, np.ndarray) and a.tobytes() != b.tobytes() else None
            for a, b in zip(args, before, strict=True)
        ]
        calls.append((self._jit.__name__, text, self._grid, before, changed))

    simt.kernel.Launch.__call__ = recorded
    for example in sorted(EXAMPLES.glob("*.py")):
        spec = importlib.util.spec_from_file_location(example.stem, example)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.main(*SIZES.get(example.stem, ()))
    with gzip.open(path, "wb", 3) as file:
        pickle.dump(calls, file)


def cubin(text, architecture):
    """A file of the device's code."""
    nvrtc = ctypes.CDLL("libnvrtc.so")
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
    assert nvrtc.nvrtcCompileProgram(program, 1, options) == 0, text
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, code)
    path = Path(f"/tmp/{abs(hash(text))}.cubin")  # CuPy keeps modules by their names
    path.write_bytes(code.raw)
    return str(path)


def number(value):
    kinds = {bool: np.bool_, int: np.int64, float: np.float64}
    return kinds.get(type(value), lambda v: v)(value)


def check(path):
    import cupy as cp

    device = cp.cuda.runtime.getDeviceProperties(0)
    print(device["name"].decode(), "CUDA", cp.cuda.runtime.runtimeGetVersion())
    with gzip.open(path, "rb") as file:
        calls = pickle.load(file)
    same = {}
    for name, text, (blocks, threads, shared), before, after in calls:
        module = cp.RawModule(path=cubin(text, f"sm_{device['major']}{device['minor']}"))
        arrays = [cp.asarray(a) if isinstance(a, np.ndarray) else None for a in before]
        arguments = []
        for given, array in zip(before, arrays, strict=True):
            sizes = [] if array is None else map(np.int64, array.shape)
            arguments += [number(given) if array is None else array, *sizes]
        module.get_function(f"pk_{name}")(blocks, threads, arguments, shared_mem=shared)
        equal = all(
            array is None or array.get().tobytes() == (was if now is None else now).tobytes()
            for was, now, array in zip(before, after, arrays, strict=True)
        )
        launches, equals = same.get(name, (0, 0))
        same[name] = launches + 1, equals + equal
    for name, (launches, equals) in same.items():
        print(f"| {name} | {launches} | {equals} |")


if __name__ == "__main__":
    {"record": record, "check": check}[sys.argv[1]](sys.argv[2])

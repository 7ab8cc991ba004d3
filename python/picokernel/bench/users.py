"""The user's own kernel, named FILE.py::kernel: loaded, given arguments, checked."""

import importlib.util
import os
import sys

import numpy as np

from ..errors import Error, LaunchError
from ..kernel import Kernel

# What a contender does before it times `run()`.
SETUP = "from picokernel.bench.users import prepare\nrun = prepare({path!r}, {name!r}, {n}, {backend!r})\n"


def is_users(word):
    """Does this word name a kernel in a file?"""
    return "::" in word or word.endswith(".py")


def load(word):
    """(path, name, Kernel) of `FILE.py::kernel`. Raises Error that says what is there instead."""
    path, _, name = word.rpartition("::") if "::" in word else (word, "", "")
    if not os.path.isfile(path):
        raise Error(f"there is no file '{path}'")
    names = _names_of(os.path.abspath(path))
    kernels = [key for key, value in names.items() if isinstance(value, Kernel)]
    hint = f"kernels there: {', '.join(kernels)}" if kernels else "there is no kernel in it"
    if not name:
        raise Error(f"'{path}' names no kernel: write {path}::kernel\n  {hint}")
    if name not in names:
        raise Error(f"'{path}' defines no '{name}'\n  {hint}")
    if not isinstance(names[name], Kernel):
        kind = type(names[name]).__name__
        raise Error(
            f"'{name}' of '{path}' is a {kind}, not a kernel: is @pk.kernel above it?\n  {hint}"
        )
    return os.path.abspath(path), name, names[name]


def _names_of(path):
    folder, stem = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0]
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(stem, path)
    if spec is None:
        raise Error(f"'{path}' is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(stem, module)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise Error(f"'{path}' cannot be run: {type(error).__name__}: {error}") from error
    return vars(module)


def arguments(kernel, n):
    """Arguments for it, positional and by keyword: 1-d arrays of n random elements where `ir()`
    would take arrays, and the numbers and defaults that it would take."""
    rng = np.random.default_rng(0)

    def array(dtype):
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return rng.random(n) < 0.5
        if dtype.kind in "iu":
            return rng.integers(1, 100, n).astype(dtype)
        values = rng.random(n, dtype=np.float64 if dtype.itemsize > 4 else np.float32)
        return (values * (1 + 1j) if dtype.kind == "c" else values).astype(dtype, copy=False)

    return kernel._examples(array)


def _same(want, got, what):
    """Results to the last digits, everything else exactly."""
    if isinstance(want, (tuple, list)):
        assert len(want) == len(got), f"wrong results: {what} has {len(got)} parts"
        for i, pair in enumerate(zip(want, got, strict=True)):
            _same(*pair, f"{what} {i}")
        return
    want, got = np.asarray(want), np.asarray(got)
    assert want.shape == got.shape, f"wrong results: {what} has shape {got.shape}, not {want.shape}"
    if want.dtype.kind not in "fc":
        assert np.array_equal(want, got), f"wrong results: {what}"
        return
    finite = np.abs(want[np.isfinite(want)])
    scale = 100 * float(np.finfo(want.dtype).eps)
    near = np.isclose(got, want, scale, scale * float(finite.max(initial=0)), equal_nan=True)
    assert near.all(), f"wrong results: {what} differs in {near.size - near.sum():,} elements"


def prepare(path, name, n, backend):
    """A call of the kernel on arguments of size n, with `out=` if it returns arrays, after it gave what
    the function gives on NumPy; without a backend: a call of that function itself."""
    _, _, kernel = load(f"{path}::{name}")
    args, kwargs = arguments(kernel, n)
    if backend is None:
        return lambda: kernel.__wrapped__(*args, **kwargs)
    with np.errstate(all="ignore"):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        named = {k: a.copy() if isinstance(a, np.ndarray) else a for k, a in kwargs.items()}
        want = kernel.__wrapped__(*copies, **named)
    got = kernel(*args, backend=backend, **kwargs)
    if want is not None:
        _same(want, got, "the result")
    for i, pair in enumerate(zip(copies, args, strict=True)):
        if isinstance(pair[0], np.ndarray):
            _same(*pair, f"argument {i}")
    parts = got if isinstance(got, tuple) else (got,)
    if not all(isinstance(part, np.ndarray) and part.ndim for part in parts):
        return lambda: kernel(*args, backend=backend, **kwargs)
    return lambda: kernel(*args, out=got, backend=backend, **kwargs)


def check_callable(kernel, word):
    """Raises LaunchError if it cannot be called with the arguments made for it."""
    args, kwargs = arguments(kernel, 16)
    try:
        kernel.source("ref", *args, **kwargs)
    except Exception as error:  # the function is the user's: it raises what it likes
        raise LaunchError(
            f"{word} cannot be called with arguments made for it: {error}\n"
            "  parameters are 1-d float32 arrays, unless they have defaults or are annotated int, float"
            " or with a NumPy type"
        ) from error

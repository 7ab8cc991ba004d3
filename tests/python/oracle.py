"""The oracle of every array kernel: its undecorated function, run by NumPy on copies."""

import ctypes
import platform
from contextlib import contextmanager

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def assert_same(got, want, ulps=0, signs=True):
    """Equal in kind, dtype, shape and value. Floats may differ by some units in the last place, and
    without `signs` zeros by their sign."""
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want) and len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            assert_same(g, w, ulps, signs)
        return
    if want is None:
        assert got is None
        return
    g, w = np.asarray(got), np.asarray(want)
    assert g.dtype == w.dtype, f"{g.dtype} instead of {w.dtype}"
    assert g.shape == w.shape, f"{g.shape} instead of {w.shape}"
    if w.dtype.kind == "c":
        assert_same(g.real, w.real, ulps, signs)
        assert_same(g.imag, w.imag, ulps, signs)
        return
    if w.dtype == BFLOAT16:  # float32 holds them exactly
        g, w = g.astype(np.float32), w.astype(np.float32)
    if w.dtype.kind == "f":
        np.testing.assert_array_equal(np.isnan(g), np.isnan(w))
        if ulps:
            eps = np.finfo(w.dtype).eps
            np.testing.assert_allclose(g, w, rtol=ulps * eps, atol=np.finfo(w.dtype).tiny)
            return
        g, w = np.where(np.isnan(g), 0, g), np.where(np.isnan(w), 0, w)
        if signs:
            np.testing.assert_array_equal(np.signbit(g), np.signbit(w))
    np.testing.assert_array_equal(g, w)


def copied(args):
    return [np.array(a, copy=True) if isinstance(a, np.ndarray) else a for a in args]


def check(kernel, *args, ulps=0, signs=True, **options):
    """Calls the kernel and its function, and compares results and arguments afterwards."""
    theirs = copied(args)
    with np.errstate(all="ignore"):
        want = kernel.__wrapped__(*theirs)
        got = kernel(*args, **options)
    assert_same(got, want, ulps, signs)
    for mine, reference in zip(args, theirs, strict=True):
        if isinstance(mine, np.ndarray):
            assert_same(mine, reference, ulps, signs)
    return got


_INTEGERS = [0, 1, -1, 2, -3, 7, 100, -100, 127, -128]
_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.75, 1e3, np.inf, -np.inf, np.nan, 1e-40]


def sample(dtype, shape=(37,), seed=0):
    """Values of that type, awkward ones first."""
    dtype = np.dtype(dtype)
    n = int(np.prod(shape))
    rng = np.random.default_rng([seed, n])
    if dtype.kind == "c":
        parts = np.empty((*shape, 2), dtype.type().real.dtype)
        parts[..., 0], parts[..., 1] = (sample(parts.dtype, shape, 2 * seed + i) for i in range(2))
        return parts.view(dtype)[..., 0]
    if dtype.kind == "b":
        values = rng.integers(0, 2, n).astype(bool)
    elif dtype.kind == "f" or dtype == BFLOAT16:
        values = rng.standard_normal(n) * 4
        awkward = rng.permutation(_FLOATS)[: n // 2]
        values[: len(awkward)] = awkward
    else:
        info = np.iinfo(dtype)
        values = rng.integers(max(info.min, -1000), min(info.max, 1000), n, endpoint=True)
        awkward = [info.min, info.max, *(i for i in _INTEGERS if i >= info.min)]
        awkward = rng.permutation(np.array(awkward, dtype))
        values = values.astype(dtype)
        values[: n // 2] = (
            awkward.astype(dtype)[: n // 2]
            if n // 2 <= len(awkward)
            else (np.resize(awkward.astype(dtype), n // 2))
        )
    with np.errstate(under="ignore"):
        return values.astype(dtype).reshape(shape)


def layouts(array):
    """The same values in other memory layouts: (name, array)."""
    yield "contiguous", array.copy()
    yield (
        "reversed",
        array[tuple(slice(None, None, -1) for _ in array.shape)].copy()[
            tuple(slice(None, None, -1) for _ in array.shape)
        ],
    )
    spaced = np.empty([2 * n for n in array.shape], array.dtype)[
        tuple(slice(None, None, 2) for _ in array.shape)
    ]
    spaced[...] = array
    yield "spaced", spaced
    if array.ndim > 1:
        yield "Fortran", np.asfortranarray(array)


def traces_of(kernel, profile):
    """How often the kernel was traced while the profile recorded."""
    return sum(event.name == f"trace {kernel.__name__}" for event in profile.events)


@contextmanager
def flush_to_zero():
    """What a library compiled with -ffast-math does to the thread that loads it."""
    libm = ctypes.CDLL("libm.so.6")
    environment = (ctypes.c_uint32 * 8)()
    libm.fegetenv(environment)
    before = list(environment)
    place, bits = (7, 0x8040) if platform.machine() == "x86_64" else (0, 1 << 24)
    environment[place] |= bits
    libm.fesetenv(environment)
    try:
        yield
    finally:
        libm.fesetenv((ctypes.c_uint32 * 8)(*before))

"""NumPy's elementwise functions on all types and awkward values, against NumPy."""

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same

FLOATS = ["float32", "float64"]
AWKWARD = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.75, 9.0, -20.0, 88.0, -103.0, 127.5, -149.0,
    1e-10, -1e-10, 1e10, 1e-40, -1e-40, 1e-45, np.inf, -np.inf, np.nan,
]  # fmt: skip


def values(dtype, seed=0):
    """Awkward ones, then all magnitudes and signs."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, 50).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edges = [
            x for x in (info.min, info.min + 1, -2, -1, 0, 1, 2, 3, 12, info.max) if x >= info.min
        ]
        return np.concatenate(
            [np.array(edges, dtype), rng.integers(info.min, info.max, 60, dtype, endpoint=True),
             rng.integers(0, 100, 30).astype(dtype)]
        )  # fmt: skip
    limits = np.finfo(dtype)
    edges = [limits.max, -limits.max, limits.tiny, limits.smallest_subnormal, limits.eps]
    wide = np.exp(rng.uniform(-80, 80, 100)) * rng.choice([-1, 1], 100)
    return np.concatenate(
        [AWKWARD, edges, rng.uniform(-1, 1, 100), rng.uniform(-80, 80, 100), wide]
    ).astype(dtype)


def pairs(dtype, other=None):
    """Each value with many others."""
    a, b = values(dtype), values(other or dtype, seed=1)[::2]
    return np.repeat(a, len(b)), np.tile(b, len(a))


def assert_close(got, want, ulps, floor=0.0):
    """Within `ulps` units in the last place, special values and the signs of zeros exactly.
    `floor` is the magnitude below which errors are absolute."""
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind != "f":
        return np.testing.assert_array_equal(got, want)
    finite = np.isfinite(want)
    assert_same(got[~finite], want[~finite])
    g, w = got[finite], want[finite]
    with np.errstate(over="ignore"):
        bound = ulps * np.spacing(np.maximum(np.abs(w), np.asarray(floor, w.dtype)))
    wrong = ~(np.abs(g - w) <= bound)
    assert not wrong.any(), f"{g[wrong][:5]} instead of {w[wrong][:5]}"
    zero = (w == 0) & (g == 0)
    np.testing.assert_array_equal(np.signbit(g[zero]), np.signbit(w[zero]))


def run(kernel, *args, backend):
    """What the kernel gives and what NumPy does."""
    with np.errstate(all="ignore"):
        return kernel(*args, backend=backend), kernel.__wrapped__(*args)


# Both sides are within 3 units in the last place of the real value.
UNARY = [
    "exp2", "expm1", "log2", "log10", "log1p", "cbrt", "tan", "arcsin", "arccos", "arctan", "sinh",
    "cosh", "arcsinh", "arccosh", "arctanh",
]  # fmt: skip


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint16"])
@pytest.mark.parametrize("name", UNARY)
def test_functions(backend, name, dtype):
    function = getattr(np, name)

    @pk.kernel
    def kernel(x):
        return function(x)

    got, want = run(kernel, values(dtype), backend=backend)
    assert_close(got, want, 5)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint16"])
@pytest.mark.parametrize("name", ["arctan2", "hypot"])
def test_functions_of_two(backend, name, dtype):
    function = getattr(np, name)

    @pk.kernel
    def kernel(x, y):
        return function(x, y)

    got, want = run(kernel, *pairs(dtype), backend=backend)
    assert_close(got, want, 5)


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh"])
def test_aliases(name):
    x = np.linspace(0.1, 0.9, 5)
    x = x + 1 if name == "acosh" else x
    function = getattr(np, name)
    assert_close(pk.kernel(lambda x: function(x))(x), function(x), 5)

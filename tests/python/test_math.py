"""Mathematical functions: special values, errors, and the same bits on every backend that runs kernels,
on every processor, in every lane."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import picokernel as pk
import pytest
from oracle import BFLOAT16, assert_same, flush_to_zero, layouts

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/accuracy"))
import samples  # noqa: E402
from functions import FUNCTIONS  # noqa: E402

KERNEL_BACKENDS = [b for b in ("cpu", "ref") if not pk.backends()[b]]
WIDE = [np.dtype("float32"), np.dtype("float64")]
HALVES = [np.dtype("float16"), BFLOAT16]
BY_NAME = {f.name: f for f in FUNCTIONS}
EXACT = ["fmod", "remainder", "floor_divide"]
names = pytest.mark.parametrize("name", BY_NAME)
wide = pytest.mark.parametrize("dtype", WIDE, ids=str)
accuracies = pytest.mark.parametrize("accuracy", ["strict", "fast"])

_kernels = {}


def kernel(name, accuracy="strict"):
    if (name, accuracy) not in _kernels:
        traced = BY_NAME[name].traced if name in BY_NAME else getattr(np, name)
        two = name in EXACT or BY_NAME[name].operands == 2
        function = (lambda x, y: traced(x, y)) if two else (lambda x: traced(x))
        _kernels[name, accuracy] = pk.kernel(function, accuracy=accuracy)
    return _kernels[name, accuracy]


def specials(dtype):
    """Of both signs."""
    limits = np.finfo(np.float32 if dtype in HALVES else dtype)
    values = np.array([
        0, 1, 2, 3, 0.5, 0.25, 0.75, 1.5, 2.5, 7, 10, 20, 85, 100, 107, 400, 720, 1000, 1e-3, 1e-10, 1e10, 1e20, 1e30,
        math.pi / 2, math.pi, 2**23 - 1, 2**23 + 1, 2**24 + 2, 2**31, 2.0**52 + 1, 2.0**53 + 2, 2.0**63, 2.0**64,
        float(limits.max), float(limits.max) / 2, float(limits.tiny), float(limits.tiny) * 3, 1 - float(limits.epsneg),
        1 + float(limits.eps), float(limits.tiny) / 2, float(limits.smallest_subnormal), math.inf, math.nan,
    ])  # fmt: skip
    with np.errstate(all="ignore"):
        return np.concatenate([values, -values]).astype(dtype)


def operands_of(name, x):
    """The values; all pairs of them for functions of two."""
    if name not in EXACT and BY_NAME[name].operands == 1:
        return (x,)
    return np.repeat(x, len(x)), np.tile(x, len(x))


def ordinary(name, dtype, number=0, count=1 << 20):
    """Of the blocks that the accuracy is measured on, every so many."""
    if BY_NAME[name].operands == 1:
        x = samples.block(BY_NAME[name], np.float64, number)[0]
        if dtype == np.float32:  # half of them where float64's interesting arguments are
            with np.errstate(over="ignore"):
                x = np.concatenate(
                    [samples.spread_float32(number, 4)[::2], x[::2].astype(np.float32)]
                )
        arrays = (x,)
    else:
        arrays = samples.block(BY_NAME[name], dtype.type, number)
    return tuple(np.ascontiguousarray(a[:: len(a) // count][:count]) for a in arrays)


def bits(x):
    """All NaNs as one."""
    x = np.asarray(x)
    return np.where(np.isnan(x), -1, x.view(f"i{x.itemsize}"))


def assert_equal_bits(got, want, *operands):
    assert got.dtype == want.dtype and got.shape == want.shape
    different = bits(got) != bits(want)
    if different.any():
        at = np.argwhere(different)[0]
        where = ", ".join(float(np.broadcast_to(x, got.shape)[tuple(at)]).hex() for x in operands)
        raise AssertionError(
            f"{different.sum()} of {got.size} differ, the first at {where}: "
            f"{got[tuple(at)]!r}, not {want[tuple(at)]!r}"
        )


def quietly(function, *args, **options):
    with np.errstate(all="ignore"):
        return function(*args, **options)


# ---- values


@pytest.mark.parametrize("dtype", [*HALVES, *WIDE], ids=str)
@pytest.mark.parametrize("on", [*KERNEL_BACKENDS, "numpy"])
@names
def test_special_values_are_numpys(name, on, dtype):
    function = BY_NAME[name]
    x = operands_of(name, specials(dtype))
    for accuracy in ("strict", "fast"):
        got = quietly(kernel(name, accuracy), *x, backend=on)
        want = quietly(function.traced if dtype in HALVES else function.numpy, *x)
        assert got.dtype == want.dtype
        got, want = (a.astype(np.float64) for a in (got, want))
        for what in (np.isnan, np.isposinf, np.isneginf):
            assert_same(what(got), what(want))
        finite = np.isfinite(want)
        got, want = got[finite], want[finite]
        if name == "erfc" and dtype == np.float64:  # SciPy's gives up before the subnormals
            got, want = got[want != 0], want[want != 0]
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
        # Zeros to zeros, what is beside them by the spacing of subnormals.
        limits = np.finfo(np.float32 if dtype == BFLOAT16 else dtype)
        eps = 2.0**-7 if dtype == BFLOAT16 else float(limits.eps)
        unit = np.maximum(eps * np.abs(want), float(limits.smallest_subnormal))
        # NumPy and SciPy are up to 4 off themselves; float32's errors vanish in halves.
        bound = 1 if dtype in HALVES else 400 if name == "erfc" else 8
        assert (np.abs(got - want) <= bound * unit).all()


@wide
@names
@accuracies
def test_errors_are_within_the_musts(name, accuracy, dtype):
    truth = pytest.importorskip(
        "truth", reason="needs long doubles of 64 bits", exc_type=ImportError
    )
    function = BY_NAME[name]
    x = ordinary(name, dtype)
    got = quietly(kernel(name, accuracy), *x)
    error, at, wrong, wrong_at = truth.worst(got, truth.exact(function, x))
    assert not wrong, f"{[float(a[wrong_at]) for a in x]} gives {got[wrong_at]}"
    must = 4 if accuracy == "fast" else 1.5 if dtype == np.float32 and function.operands == 1 else 2
    assert error <= must, f"{error} units at {[float(a[at]).hex() for a in x]}"


@wide
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@accuracies
def test_near_multiples_of_half_pi(name, accuracy, dtype):
    truth = pytest.importorskip("truth", exc_type=ImportError)
    rng = np.random.default_rng(8)
    k = [np.rint(2.0 ** rng.uniform(e, e + 1, 20_000)) for e in range(0, 60)]
    x = np.concatenate([np.concatenate(k) * (np.pi / 2), samples._nearest_to_half_pi()])
    x = quietly(x.astype, dtype)
    got = quietly(kernel(name, accuracy), x)
    error, at, wrong, _ = truth.worst(got, truth.exact(BY_NAME[name], (x,)))
    must = 4 if accuracy == "fast" else 1.5 if dtype == np.float32 else 2
    assert not wrong and error <= must, f"{error} units at {float(x[at]).hex()}"


@pytest.mark.parametrize("on", KERNEL_BACKENDS)
@pytest.mark.parametrize("dtype", [*HALVES, *WIDE], ids=str)
def test_exact_results_are_exact(on, dtype):
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
    top = {"float16": 15, "bfloat16": 127, "float32": 127, "float64": 1023}[dtype.name]
    n = np.arange(-top, top)
    powers = np.ldexp(1.0, n)
    roots = np.arange(1.0, math.floor(2 ** (digits / 3)))
    ten = np.array([10.0**k for k in range(23) if 5**k < 2**digits and k < top * 0.3])
    base, exponent = np.meshgrid(np.arange(-9.0, 10.0), np.arange(0.0, 30.0))
    result = base**exponent
    fits = (np.abs(result) < 2**digits) & (np.abs(result) < 2.0**top)
    cases = {
        "exp2": ([n], powers), "log2": ([powers], n), "log10": ([ten], np.arange(len(ten))),
        "cbrt": ([-(roots**3)], -roots), "sqrt": ([roots**2], roots),
        "hypot": ([[3, 5, 8, -7, 20], [-4, 12, 15, 24, 21]], [5, 13, 17, 25, 29]),
        "power": ([base[fits], exponent[fits]], result[fits]),
        "exp": ([[0]], [1]), "log": ([[1]], [0]), "cos": ([[0]], [1]), "cosh": ([[0]], [1]),
        "arctanh": ([[1, -1]], [np.inf, -np.inf]), "erfc": ([[0, np.inf]], [1, 0]),
        "erf": ([[100, -100]], [1, -1]), "tanh": ([[100, -100]], [1, -1]),
    }  # fmt: skip
    for name, (x, want) in cases.items():
        x = [np.asarray(a).astype(dtype) for a in x]
        got = quietly(kernel(name), *x, backend=on)
        assert_same(got, np.asarray(want).astype(dtype))


@pytest.mark.parametrize("on", KERNEL_BACKENDS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["erf", "erfc", "rsqrt"])  # NumPy's functions: test_halves.py
def test_all_halves(name, dtype, on):
    x = np.arange(2**16, dtype=np.uint16).view(dtype)
    got = quietly(kernel(name), x, backend=on).astype(np.float32)
    want = quietly(
        lambda: BY_NAME[name].numpy(x.astype(np.float64)).astype(dtype).astype(np.float32)
    )
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    if name == "rsqrt":  # rounded twice
        near = quietly(np.isclose, got, want, rtol=2.0**-7 if dtype == BFLOAT16 else 2.0**-10)
        assert (near | np.isnan(want)).all()
        return
    least = np.finfo(np.float32).smallest_subnormal * 2.0**16 if dtype == BFLOAT16 else 2.0**-24
    unit = np.maximum(np.abs(want) * (2.0**-7 if dtype == BFLOAT16 else 2.0**-10), least)
    known = ~np.isnan(want)
    assert (np.abs(got - want)[known] <= unit[known]).all()
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


# ---- remainders


@wide
@pytest.mark.parametrize("on", KERNEL_BACKENDS)
@pytest.mark.parametrize("name", EXACT)
def test_remainders_are_numpys_bits(name, on, dtype):
    rng = np.random.default_rng(1)
    n = 200_000 if on == "cpu" else 2000
    limits = np.finfo(dtype)
    every = samples._any(rng, n, dtype.type), samples._any(rng, n, dtype.type)
    a = samples._magnitudes(rng, n, limits.smallest_subnormal, limits.max, dtype.type)
    near = quietly(lambda: (a * 2.0 ** rng.uniform(-60, 3, n)).astype(dtype))
    whole = rng.integers(-1000, 1000, (2, n)).astype(dtype)
    halves = rng.integers(-1000, 1000, (2, n)).astype(dtype) / 4
    cases = [
        operands_of(name, specials(dtype)),
        every,
        (a, near),
        (-a, near),
        (a, -near),
        whole,
        halves,
    ]
    for x, y in cases:
        got = quietly(kernel(name), x, y, backend=on)
        assert_equal_bits(got, quietly(getattr(np, name), x, y), x, y)


# ---- the same bits everywhere


@wide
@names
@accuracies
def test_ref_and_cpu_agree(name, accuracy, dtype):
    x = operands_of(name, specials(dtype))
    more = ordinary(name, dtype, number=1, count=1000)
    for operands in (x, more):
        operands = [a[:4000] for a in operands]
        got = [quietly(kernel(name, accuracy), *operands, backend=b) for b in KERNEL_BACKENDS]
        assert_equal_bits(got[0], got[-1], *operands)


def results(path):
    """Of every function on this processor, in a file."""
    found = {}
    for name in [*BY_NAME, *EXACT]:
        for dtype in WIDE:
            for accuracy in ("strict", "fast"):
                some = ordinary(
                    name if name in BY_NAME else "power", dtype, number=2, count=1 << 14
                )
                more = operands_of(name, specials(dtype))
                x = [np.concatenate(pair) for pair in zip(some, more, strict=True)]
                k = kernel(name, accuracy)
                found[f"{name} {dtype} {accuracy}"] = bits(quietly(k, *x, backend="cpu"))
    np.savez(path, **found)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    path = tmp_path_factory.mktemp("math") / "here.npz"
    results(path)
    return np.load(path)


@pytest.mark.skipif("cpu" not in KERNEL_BACKENDS, reason="cpu is not live")
@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4"])
def test_every_processor_agrees(cpu, here, tmp_path):
    path = tmp_path / "there.npz"
    code = f"import test_math; test_math.results({str(path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True,
        env={**os.environ, "PICOKERNEL_CPU": cpu, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    if "PICOKERNEL_CPU" in done.stderr:
        pytest.skip(f"this machine is no {cpu}")
    assert done.returncode == 0, done.stderr
    there = np.load(path)
    assert set(there.files) == set(here.files)
    different = [k for k in here.files if not np.array_equal(here[k], there[k])]
    assert not different


def lanes(name, dtype):
    """67 operands, ordinary ones and rare ones mixed."""
    rng = np.random.default_rng(3)
    rare = operands_of(name, specials(dtype))
    some = ordinary(name, dtype, number=3, count=256)
    pick, other = rng.choice(len(rare[0]), 24, replace=False), rng.choice(256, 43, replace=False)
    order = rng.permutation(67)
    return [np.concatenate([r[pick], s[other]])[order] for r, s in zip(rare, some, strict=True)]


@wide
@names
@accuracies
def test_every_lane_and_every_tail(name, accuracy, dtype):
    k, x = kernel(name, accuracy), lanes(name, dtype)
    # Each by itself: all lanes are alike.
    alone = np.array([quietly(k, *(np.full(16, v[i]) for v in x))[0] for i in range(67)])
    for n in range(68):
        assert_equal_bits(quietly(k, *(v[:n] for v in x)), alone[:n], *(v[:n] for v in x))
        assert_equal_bits(quietly(k, *(v[n:] for v in x)), alone[n:], *(v[n:] for v in x))
    # One rare among ordinary ones, in each lane.
    usual = ordinary(name, dtype, number=4, count=67)
    calm = quietly(k, *usual)
    for i in range(67):
        mixed = [v.copy() for v in usual]
        for v, w in zip(mixed, x, strict=True):
            v[i] = w[i]
        want = calm.copy()
        want[i] = alone[i]
        assert_equal_bits(quietly(k, *mixed), want, *mixed)


@wide
@names
def test_layouts_and_broadcasts(name, dtype):
    k = kernel(name)
    x = ordinary(name, dtype, number=5, count=35)
    want = quietly(k, *x)
    for named in zip(*(layouts(a) for a in x), strict=True):
        views = [view for _, view in named]
        assert_equal_bits(quietly(k, *views), want, *views)
    x = [a.reshape(5, 7) for a in x]
    want = want.reshape(5, 7)
    assert_equal_bits(quietly(k, *(a.T for a in x)), want.T)
    assert_equal_bits(quietly(k, *(np.asfortranarray(a)[::-1] for a in x)), want[::-1])
    once = [np.broadcast_to(a[:1], (5, 7)) for a in x]
    assert_equal_bits(quietly(k, *once), np.broadcast_to(want[:1], (5, 7)), *once)
    if len(x) == 2:
        a, b = x[0][:, :1], x[1][:1]
        full = [np.ascontiguousarray(v) for v in np.broadcast_arrays(a, b)]
        assert_equal_bits(quietly(k, a, b), quietly(k, *full), *full)
        number = float(b[0, 0])
        full = np.full_like(a, number)
        assert_equal_bits(quietly(k, a, number), quietly(k, a, full), a, full)


@wide
@names
def test_constants_are_elements(name, dtype):
    """What is known when the kernel is compiled has the bits that it has later."""
    k, traced, operands = kernel(name), BY_NAME[name].traced, BY_NAME[name].operands
    x = np.zeros(3, dtype)
    for value in (0.7, 1.3, 2.9, 17.25):
        value = float(dtype.type(value))
        function = pk.kernel(lambda x, v=value: traced(*[np.full_like(x, v)] * operands))
        elements = [np.full_like(x, value)] * operands
        for on in KERNEL_BACKENDS:
            got = quietly(function, x, backend=on)
            assert_equal_bits(got, quietly(k, *elements, backend=on), *elements)


@wide
def test_functions_together_are_functions_alone(dtype):
    unary = [f.name for f in FUNCTIONS if f.operands == 1]
    x = np.concatenate([ordinary(name, dtype, number=6, count=40)[0] for name in unary])
    for group in (unary[::3], unary[1::3], unary[2::3]):
        functions = [BY_NAME[name].traced for name in group]
        together = pk.kernel(lambda x, fs=tuple(functions): tuple(f(x) for f in fs))
        for name, got in zip(group, quietly(together, x), strict=True):
            assert_equal_bits(got, quietly(kernel(name), x), x)

    @pk.kernel
    def chained(x, y):
        return np.exp(np.sin(x)) ** np.tanh(y) + np.log(np.abs(x) + 1)

    y = x[::-1].copy()
    base, exponent = kernel("exp")(quietly(kernel("sin"), x)), quietly(kernel("tanh"), y)
    want = quietly(kernel("power"), base, exponent) + quietly(kernel("log"), np.abs(x) + 1)
    assert_equal_bits(quietly(chained, x, y), want, x, y)


@wide
def test_fast_is_compiled_apart(dtype):
    x = ordinary("exp", dtype, number=9, count=10_000)[0]
    once, fast, again = (quietly(kernel("exp", a), x) for a in ("strict", "fast", "strict"))
    assert_equal_bits(again, once, x)
    assert (bits(fast) != bits(once)).any()


# ---- F02, F04 of cases.md


@wide
@pytest.mark.parametrize("on", KERNEL_BACKENDS)
def test_fast_keeps_isnan(on, dtype):
    @pk.kernel(accuracy="fast")
    def function(x):
        e, s = np.exp(x), np.log(x)
        return (
            np.isnan(e), np.isnan(s), e != e, pk.where(np.isnan(s), 1, s), np.isinf(e),
            np.isfinite(s), np.isnan(np.sin(x)), np.isnan(x ** np.tanh(x)), np.isnan(x),
        )  # fmt: skip

    x = specials(dtype)
    got, want = (quietly(f, x) for f in (lambda x: function(x, backend=on), function.__wrapped__))
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if i == 3:
            g, w = np.isfinite(g), np.isfinite(w)
        assert_same(g, w)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's way to the control register")
@wide
@names
@accuracies
def test_subnormals_beside_flush_to_zero(name, accuracy, dtype):
    limits, rng = np.finfo(dtype), np.random.default_rng(7)
    tiny = samples._magnitudes(rng, 500, limits.smallest_subnormal, limits.tiny, dtype.type)
    tiny *= rng.choice([-1, 1], 500).astype(dtype)
    x = [tiny, tiny[::-1].copy()][: BY_NAME[name].operands]
    few = ordinary(name, dtype, number=7, count=500)  # with results that are subnormal
    x = [np.resize(np.concatenate(pair), 100_000) for pair in zip(x, few, strict=True)]
    k = kernel(name, accuracy)
    for n in (1000, 100_000):  # one thread, several
        operands = [a[:n] for a in x]
        want = quietly(k, *operands)
        with flush_to_zero():
            got = quietly(k, *operands)
        assert_equal_bits(got, want, *operands)
    got = quietly(k, *(a[:500] for a in x), backend="ref")
    assert_equal_bits(got, want[:500], *(a[:500] for a in x))

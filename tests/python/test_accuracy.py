"""The tool that measures accuracy (tools/accuracy), itself."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/accuracy"))
import samples  # noqa: E402
from functions import FUNCTIONS  # noqa: E402

truth = pytest.importorskip("truth", exc_type=ImportError)
TYPES = [(np.float32, np.float64), (np.float64, np.longdouble)]
types = pytest.mark.parametrize("dtype, wider", TYPES)
BY_NAME = {f.name: f for f in FUNCTIONS}


@types
def test_errors_are_in_units_in_the_last_place(dtype, wider):
    limits = np.finfo(dtype)
    eps, least = wider(limits.eps), wider(limits.smallest_subnormal)
    for x in (1.0, 1.5, -3.0, 1e30, 1e-30, limits.max, limits.tiny, limits.tiny / 4, 0.0):
        got = np.full(3, x, dtype)
        unit = max(eps * 2.0 ** wider(np.floor(np.log2(abs(wider(x) or 1)))), least) if x else least
        want = got.astype(wider)
        assert truth.worst(got, want)[:2] == (0, -1)
        want[1] += unit * wider(0.25)
        want[2] -= unit * wider(0.125 if x else 0)
        error, at, wrong, _ = truth.worst(got, want)
        assert (error, at, wrong) == (0.25, 1, 0)


@types
def test_what_overflows(dtype, wider):
    limits = np.finfo(dtype)
    past = np.ldexp(wider(1), limits.maxexp)
    got = np.array([np.inf, -np.inf, np.inf], dtype)
    assert truth.worst(got, np.array([past, -past * 2, wider(np.inf)]))[::2] == (0, 0)
    error, at, wrong, _ = truth.worst(got[:1], np.array([wider(limits.max)]))
    assert (error, at, wrong) == (1, 0, 0)
    assert truth.worst(np.array([limits.max], dtype), np.array([past]))[0] == 1


@types
def test_what_is_wrong_in_kind(dtype, wider):
    got = np.array([np.nan, 1, np.inf, -np.inf, 1, 0.0, -0.0, 0.0], dtype)
    want = np.array([1, np.nan, np.nan, np.inf, -np.inf, -0.0, 0.0, -1e-320], wider)
    assert truth.worst(got, want)[2:] == (8, 0)
    right = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)
    assert truth.worst(right, right.astype(wider)) == (0, -1, 0, -1)


@pytest.mark.parametrize("name", BY_NAME)
def test_long_double_is_near_mpfr(name):
    arrays = [np.ascontiguousarray(a[::8192]) for a in samples.block(BY_NAME[name], np.float64, 99)]
    assert truth.distrust(BY_NAME[name], arrays) < 0.01


def test_distrust_finds_what_is_wrong(monkeypatch):
    right = truth.exact
    wrong = lambda f, a: right(f, a) * (1 + np.longdouble(2) ** -58)  # noqa: E731
    monkeypatch.setattr(truth, "exact", wrong)
    assert truth.distrust(BY_NAME["exp"], [np.array([1.0, 2.0])]) > 0.01


def test_mpfr_and_long_double_give_one_error():
    x = np.linspace(0.1, 5, 100)
    got = np.exp(x) * (1 + 2.0**-50)
    error, at, _, _ = truth.worst(got, truth.exact(BY_NAME["exp"], (x,)))
    assert abs(truth.error_by_mpfr(BY_NAME["exp"], (x[at],), got[at]) - error) < 0.01


def test_samples_are_the_same_each_time():
    for f in FUNCTIONS:
        for dtype in (np.float32, np.float64):
            if f.operands == 1 and dtype == np.float32:
                continue
            once, again = (samples.block(f, dtype, 3) for _ in range(2))
            assert all(len(a) == samples.BLOCK and a.dtype == dtype for a in once)
            assert all(
                np.array_equal(a, b, equal_nan=True) for a, b in zip(once, again, strict=True)
            )
    bits = samples.spread_float32(1, 4).view(np.uint32)
    assert len(np.unique(bits >> 23)) == 512 and len(bits) == samples.BLOCK


def test_hard_arguments_are_near_multiples_of_half_pi():
    x = samples._nearest_to_half_pi()
    x = x[x > 10]
    assert len(x) > 1900
    assert 6381956970095103 * 2.0**797 in x  # the hardest double of all
    sine, cosine = (truth.exact(BY_NAME[n], (x,)) for n in ("sin", "cos"))
    assert np.minimum(abs(sine), abs(cosine)).max() < 1e-12

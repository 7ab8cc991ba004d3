"""Random programs on every live backend against NumPy. PICOKERNEL_FUZZ_SEED and _COUNT choose others;
a failure prints the seed and the program."""

import os

import pytest
import random_programs

SEED = int(os.environ.get("PICOKERNEL_FUZZ_SEED", "1"))
COUNT = int(os.environ.get("PICOKERNEL_FUZZ_COUNT", "400"))


@pytest.mark.parametrize("part", range(8))
def test_random_programs(part):
    from conftest import LIVE

    for seed in range(SEED + part, SEED + COUNT, 8):
        assert random_programs.run(seed, LIVE) is None


def test_a_difference_is_found():
    """The comparison itself: results that differ by the sign of a zero, a dtype or a shape."""
    import numpy as np

    zero = np.zeros(2)
    assert random_programs.difference(zero, zero.copy()) is None
    assert random_programs.difference(np.full(2, np.nan), -np.full(2, np.nan)) is None
    for other in (-zero, zero.astype("f4"), zero[:1], None):
        assert random_programs.difference(zero, other)
    assert random_programs.difference((zero, zero), (zero, zero + 1))

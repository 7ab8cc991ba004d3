"""Loops that the cpu backend walks in a way of their own: short rows, and arrays that run across."""

import numpy as np
import picokernel as pk
import pytest
from oracle import check

TYPES = ("float32", "float64", "int8", "bool", "float16", "complex64")


def numbers(shape, dtype, seed=0):
    return (np.random.default_rng(seed).random(shape) * 9).astype(dtype)


@pk.kernel
def scale_columns(a, c, o):
    o[...] = a * c + c


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("columns", range(1, 10))
def test_short_rows_with_one_row(columns, dtype):
    """One loop over all elements, in which the row's operand is periodic."""
    for rows in (1, 63, 64, 65, 1000):
        a, c = numbers((rows, columns), dtype), numbers(columns, dtype, 1)
        check(scale_columns, a, c, np.zeros_like(a))
        check(scale_columns, a, c, np.zeros((rows, columns + 1), dtype)[:, :columns])


def test_short_rows_past_the_caches():
    a, c = numbers((4_000_000, 3), "float32"), numbers(3, "float32", 1)
    for first in (0, 1):  # aligned or not
        check(scale_columns, a[first:], c, np.zeros_like(a)[first:])


def test_the_row_may_be_the_output():
    """Then nothing is periodic: a written array has to be written in order."""

    @pk.kernel
    def rows(a, o):
        o[...] = a[-1] * 2
        a[...] = o + a

    a = numbers((100, 3), "float32")
    check(rows, a, np.zeros(3, "float32"))


@pk.kernel
def add_transposed(x, y, o):
    o[...] = x.T + y


@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_across(dtype):
    """Walked in tiles of 64 x 64."""
    for n, m in ((1, 7), (5, 64), (63, 65), (64, 64), (65, 200), (130, 129)):
        x, y = numbers((m, n), dtype), numbers((n, m), dtype, 1)
        check(add_transposed, x, y, np.zeros_like(y))
        check(add_transposed, x[::-1], y[:, ::-1], np.zeros((2 * n, m), dtype)[::2])

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


@pk.kernel
def swap_ends(a, o):
    first, last = a[..., 0], a[..., -1]
    o[..., 0] = last + last
    o[..., -1] = first


@pk.kernel
def channels(a, o):
    r, g, b = a[..., 0], a[..., 1], a[..., 2]
    o[..., 0] = b + b
    o[..., 1] = r + g
    o[..., 2] = r


@pk.kernel
def quaternions(p, q, o):
    w, x, y, z = (p[:, i] for i in range(4))
    a, b, c, d = (q[:, i] for i in range(4))
    o[:, 0] = w * a - x * b - y * c - z * d
    o[:, 1] = w * b + x * a + y * d - z * c
    o[:, 2] = w * c - x * d + y * a + z * b
    o[:, 3] = w * d + x * c - y * b + z * a


@pytest.mark.parametrize("dtype", ("float32", "float64", "int8", "bool", "float16", "int16"))
def test_neighbouring_elements_are_whole_vectors(dtype):
    for n in (1, 15, 16, 17, 100, 1000):
        a = numbers((n, 2), dtype)
        check(swap_ends, a, np.zeros_like(a))
        check(swap_ends, a, np.zeros((2 * n, 2), dtype)[::2])
        check(swap_ends, numbers((n, 3), dtype), np.ones((n, 3), dtype))  # the middle stays
        a = numbers((n, 3), dtype)
        check(channels, a, np.zeros_like(a))
        check(channels, numbers((n, 4), dtype), np.ones((n, 4), dtype))
        check(channels, numbers((5, n, 3), dtype)[:, ::-1], np.zeros((5, n, 3), dtype))


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_quaternions(dtype):
    for n in (1, 63, 1000):
        p, q = np.round(numbers((n, 4), dtype)), np.round(numbers((n, 4), dtype, 1))
        check(quaternions, p, q, np.zeros_like(p))


@pk.kernel
def in_place(z, w):
    z *= w
    z.real[...] += 1


@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
def test_complex_in_place(dtype):
    for n in (1, 31, 1000):
        z = np.round(numbers(n, "float64")) + 1j * np.round(numbers(n, "float64", 1))
        check(in_place, z.astype(dtype), z.astype(dtype) + 1)
        check(in_place, z.astype(dtype), z.astype(dtype)[::-1])


def test_complex_past_the_caches():
    z = (np.round(numbers(3_000_000, "float32")) + 2j).astype("complex64")
    twice = pk.kernel(lambda z, o: o.__setitem__(..., z + z))
    for first in (0, 1, 3):
        check(twice, z[first:], np.zeros_like(z)[first:])
    out = np.zeros(3_000_001, "complex64")
    misaligned = np.frombuffer(out.data, np.float32)[1:-1].view("complex64")
    check(twice, z, misaligned)

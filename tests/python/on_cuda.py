"""Tests of kernels on MLX arrays of a CUDA device, or of fake_cuda's: see test_mlx_cuda.py.

On a machine with a device: pytest tests/python/on_cuda.py
"""

import fake_cuda
import mlx.core as mx
import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same
from picokernel import cuda_kernel

if not fake_cuda.installed:
    fake_cuda.count()
cuda_kernel.FUSED_LEVELS = 0  # short expressions show as much


def on_mlx(x):
    """A strided NumPy array as an MLX array, which has the same elements and C's order."""
    return mx.array(x, dtype=mx.float64) if x.dtype == np.float64 else mx.array(x)


def check(function, *arguments, kernels=1):
    """One kernel computes the bits that native code computes."""
    kernel = pk.kernel(function)
    want = kernel(*arguments)
    before = len(fake_cuda.launches)
    got = kernel(*(on_mlx(x) if isinstance(x, np.ndarray) else x for x in arguments))
    assert len(fake_cuda.launches) == before + kernels
    if not isinstance(want, tuple):
        got, want = [got], [want]
    for g, w in zip(got, want, strict=True):
        assert_same(np.asarray(g), w)


rng = np.random.default_rng(7)
A = rng.uniform(-3, 3, (5, 6)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "int64", "uint16", "bool"])
def test_types(dtype):
    a = A.astype(dtype)
    check(lambda a, b: pk.where(a < b, a, b), a, a.T.copy().reshape(5, 6))
    if dtype != "bool":
        check(lambda a, b: a * b + a, a, a[::-1].copy())


@pytest.mark.parametrize(
    "function, arguments",
    {
        "rows": (lambda a, b: a * b, [A, A[0]]),
        "columns": (lambda a, b: a * b, [A, A[:, :1]]),
        "rows of three": (lambda a, b: a * b, [A.reshape(10, 3), A[0, :3]]),
        "three dimensions": (lambda a, b: a - b, [A.reshape(5, 2, 3), A[:1, :2].reshape(2, 1)]),
        "slices": (lambda a: a[1:-1, ::2] + a[:-2, ::2] * a[2:, 1::2], [A]),
        "reversed": (lambda a: a[::-1] - a, [A]),
        "transposed": (lambda a, b: a.T * b, [A, A.reshape(6, 5)]),
        "numbers": (lambda a, s, t: a * s + t, [A, 2, 0.5]),
        "typed numbers": (lambda a, s, t: a * s + t, [A, np.float16(2), np.int8(-3)]),
        "big numbers": (lambda a, s: a + s, [A.astype(np.uint64), 2**63 + 1]),
        "functions": (lambda a: np.exp(a) + np.sin(a) * np.log(abs(a)), [A]),
        "whole numbers": (lambda a, b: a // b + a % b, [np.arange(-6, 7), np.arange(13) - 5]),
        "least": (lambda a, b: a // b, [np.array([-(2**31)], np.int32), np.array([-1], np.int32)]),
        "several": (lambda a: (a + 1, a < 0, -a), [A]),
        "complex": (lambda a, b: a * b, [A.astype(np.complex64), A * np.complex64(1j)]),
    }.values(),
)
def test_one_kernel(function, arguments):
    check(function, *arguments)


def test_scalars_are_left_to_mlx():
    check(lambda a, b: a + b, np.array(2.0, np.float32), np.array(3, np.float32), kernels=0)


def test_nothing_to_compute():
    check(lambda a: a * 2, np.empty((0, 3), np.float32), kernels=0)


def test_more_than_one_loop_is_left_to_mlx():
    def twice(a):
        o = np.zeros_like(a)
        o[1:] = a[:-1]
        o[:-1] += o[1:]
        return o

    check(twice, A, kernels=0)


def test_products_are_not_fused_with_sums():
    a = np.float32(1) + np.float32(2) ** -23 * np.arange(1, 34, dtype=np.float32)
    check(lambda a: a * a - 1, a)


def test_a_new_number_compiles_nothing_and_gradients_see_it():
    kernel = pk.kernel(lambda a, s: a * a * s)
    a = on_mlx(A)
    for s in (1.5, 2.5, 3.5):
        gradient = mx.grad(lambda x, s=s: kernel(x, s).sum())(a)
        assert_same(np.asarray(gradient), 2 * A * np.float32(s))
    assert len(set(fake_cuda.launches[-2:])) == 1

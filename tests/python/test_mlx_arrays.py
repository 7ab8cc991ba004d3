"""MLX arrays as arguments: backend mlx computes on them lazily, in place of nothing."""

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same

mx = pytest.importorskip("mlx.core")


@pk.kernel
def fma(a, b, c):
    return a * b + c


@pk.kernel
def store(x, o):
    o[...] = x * 2


def arrays(n=3):
    return [mx.arange(6, dtype=mx.float32) + i for i in range(n)]


def same(got, want):
    assert isinstance(got, mx.array)
    assert_same(np.asarray(got), np.asarray(want))


def test_results_are_lazy_arrays():
    a, b, c = arrays()
    for _ in range(2):
        same(fma(a, b, c), a * b + c)
        same(fma(a, 2, 1.5), a * 2 + 1.5)
    same(fma(mx.array(2.0), 1, 1), mx.array(3.0))
    same(fma(mx.zeros((0, 3)), 1, 1), mx.zeros((0, 3)))
    same(fma(a[::2], b[::2], 1), a[::2] * b[::2] + 1)
    fma(a, b, c)
    text = fma.source("mlx", a, b, c)
    assert fma.source("mlx") == text  # the last call's
    assert "mx.array" not in text and "mx.eval" not in text and "return (v1,)" in text
    assert "mx.eval" in fma.source("mlx", np.ones(3), 1, 2)


def test_transformations_of_mlx_see_through_the_call():
    a, b, c = arrays()
    same(mx.grad(lambda x: fma(x, b, c).sum())(a), b)
    same(mx.compile(fma)(a, b, c), a * b + c)


def test_stores_bind_the_argument_anew():
    a, o = arrays(2)
    view = np.array(o)
    assert store(a, o) is None
    same(o, a * 2)
    assert view[0] == 1
    x, y = mx.arange(3.0), mx.ones(3)

    @pk.kernel
    def swap(x, y):
        t = x + 0
        x[...] = y
        y[...] = t

    swap(x, y)
    same(x, mx.ones(3))
    same(y, mx.arange(3.0))

    @pk.kernel
    def parts(x):
        x[1:-1] = x[2:] * 2
        return x, x + 1, x + 1

    x, want = mx.arange(5.0), np.arange(5, dtype=np.float32)
    results = parts(x)
    want[1:-1] = want[2:] * 2
    assert results[0] is x
    same(x, want)
    same(results[1], want + 1)
    results[1][0] = 9
    assert results[2][0].item() == 1  # equal results are arrays of their own


def test_out():
    a, b, c = arrays()
    o, n = mx.zeros(6), np.zeros(6, np.float32)
    assert fma(a, b, c, out=o) is o
    same(o, a * b + c)
    assert fma(a, b, c, out=n) is n
    assert_same(n, np.asarray(a * b + c))
    with pytest.raises(pk.LaunchError, match=r"out has shape \(5,\)"):
        fma(a, b, c, out=mx.zeros(5))


def test_numpy_beside():
    (a,) = arrays(1)
    n = np.arange(6, dtype=np.float32)[::-1]
    same(fma(a, n, memoryview(n.copy())), np.asarray(a) * n + n)
    o = np.zeros(6, np.float32)
    store(a, o)
    assert_same(o, np.asarray(a) * 2)
    table = np.arange(6, dtype=np.float32)

    @pk.kernel
    def captured(x):
        return x * table

    same(captured(a), np.asarray(a) * table)


def test_other_backends_read_in_place():
    a, b, c = arrays()
    for backend in ("cpu", "numpy", "ref"):
        if pk.backends().get(backend) == "":
            same(fma(a, b, c, backend=backend), a * b + c)
            with pytest.raises(pk.LaunchError, match="read-only"):
                store(a, b, backend=backend)
    with pk.use("numpy"):
        same(fma(a, b, c), a * b + c)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "complex64"])
def test_half_and_complex_arrays(name):
    dtype = getattr(mx, name)
    x = (mx.arange(6) - 2.5).astype(dtype)
    result = fma(x, x, 1)
    assert result.dtype == dtype
    assert mx.array_equal(result, x * x + 1)
    o = mx.zeros(6, dtype)
    store(x, o)
    assert mx.array_equal(o, x * 2)


def test_complex_numbers_and_results():
    rotate = pk.kernel(lambda z, by: z * by)
    z = mx.array([1 + 2j, 3 - 1j])
    assert mx.array_equal(rotate(z, 1j), z * 1j)
    with pytest.raises(pk.LaunchError, match="complex128, which MLX lacks"):
        rotate(mx.ones(2), np.ones(2, np.complex128))


def test_refusals():
    a = mx.ones(6)
    jnp = pytest.importorskip("jax.numpy")
    with pytest.raises(pk.LaunchError, match=r"is a mlx.core.array(.|\n)*a jax.Array"):
        fma(a, jnp.ones(6), 1)


def test_profile():
    a, b, c = arrays()
    fma(a, b, c)
    with pk.profile() as p:
        fma(a, b, c)
        fma(a, np.ones(6, np.float32), c)
    steps = [(e.category, e.name) for e in p.events if e.category in ("op_lazy", "h2d", "sync")]
    lazy = [("op_lazy", "v0 = mx.multiply(a, b)"), ("op_lazy", "v1 = mx.add(v0, c)")]
    assert steps == [*lazy, ("h2d", "copy to MLX"), *lazy]

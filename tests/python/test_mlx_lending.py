"""Transparent calls on MLX with NumPy's memory in the place of copies."""

import gc
import weakref

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same, check
from picokernel import mlx_bridge

mx = pytest.importorskip("mlx.core")
N = 1 << 16


@pytest.fixture(scope="module", autouse=True)
def bridge():
    try:
        mlx_bridge.library()
    except mlx_bridge.BridgeError as error:
        pytest.skip(str(error))
    pk.kernel(lambda a: a + 1)(mx.ones(3))  # opens it


def array(dtype="float32", seed=0):
    return (np.random.default_rng(seed).random(N) * 8 - 4).astype(dtype)


def copied(kernel, *args, **options):
    """Bytes that a call copies to MLX."""
    options["backend"] = "mlx"
    kernel(*args, **options)
    with pk.profile() as p:
        kernel(*args, **options)
    return sum(e.args.get("bytes", 0) for e in p.events if e.category == "h2d")


fma = pk.kernel(lambda a, b, c: a * b + c)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool"])
def test_large_contiguous_arrays_are_lent(dtype):
    a = np.concatenate([array(dtype)] * 2)
    kernel = pk.kernel(lambda a, b: pk.where(a == b, a, b))
    check(kernel, a, a[::-1].copy(), backend="mlx")
    assert copied(kernel, a, a[::-1].copy()) == 0


def test_complex_arrays():
    a = np.concatenate([array()] * 2).view(np.complex64)
    check(pk.kernel(lambda a, b: a + b), a, a[::-1].copy(), backend="mlx")


def test_what_is_copied():
    a = array()
    small = a[:100]
    assert copied(fma, small, small, small) == 3 * small.nbytes
    assert copied(fma, np.repeat(a, 2)[::2], a, a) == a.nbytes
    assert copied(fma, a[::-1], a, a) == a.nbytes
    store = pk.kernel(lambda x, o: o.__setitem__(..., o + x))
    assert copied(store, a, a.copy()) == a.nbytes  # the one that is written


def test_results_over_arguments():
    for out in (0, 1):
        a, b = array(seed=1), array(seed=2)
        want = a * b + a
        both = (a, b)
        fma(a, b, a, out=both[out], backend="mlx")
        assert_same(both[out], want)
    two = pk.kernel(lambda a: (a * 1, a[::-1] * 2))
    a = array()
    x, y = a.copy(), np.empty_like(a)
    two(x, out=(x, y), backend="mlx")
    assert_same((x, y), (a, a[::-1] * 2))
    x = a.copy()
    two(x, out=(y, x), backend="mlx")
    assert_same((y, x), (a, a[::-1] * 2))


def test_stores_in_order():
    @pk.kernel
    def shuffle(x, y, o):
        o[...] = x[::-1]
        x[...] = y
        y[:10] = o[:10]

    check(shuffle, array(seed=1), array(seed=2), array(seed=3), backend="mlx")


def test_arguments_are_never_written():
    a = array()
    kept = a.copy()
    chain = pk.kernel(lambda a: ((a + 1) * 2 - a) * a)
    for _ in range(3):
        check(chain, a, backend="mlx")
    assert_same(a, kept)


def test_results_do_not_keep_or_see_the_argument():
    a = array()
    same = pk.kernel(lambda a: a[1:] * 1)
    result = same(a, backend="mlx")
    want, alive = a[1:].copy(), weakref.ref(a)
    a[:] = 0
    assert_same(result, want)
    del a
    gc.collect()
    assert alive() is None


def test_memory_at_the_start_of_a_page(tmp_path):
    path = tmp_path / "a"
    array().tofile(path)
    a = np.memmap(path, np.float32, "r")
    assert_same(fma(np.asarray(a), 2, 1, backend="mlx"), array() * 2 + 1)


def test_streams_and_single_steps():
    with mx.stream(mx.cpu):
        check(fma, array(), array(seed=1), array(seed=2), backend="mlx")
    with pk.profile(split=True):
        check(fma, array(), array(seed=1), array(seed=2), backend="mlx")

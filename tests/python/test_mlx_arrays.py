"""MLX arrays as arguments: backend mlx computes on them lazily, in place of nothing."""

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same
from picokernel import mlx_bridge

mx = pytest.importorskip("mlx.core", reason="MLX is not installed")


def has_compiler():
    try:
        return bool(mlx_bridge._compiler())
    except mlx_bridge.BridgeError:
        return False


# All other tests run without the bridge, too: see test_mlx_bridge.py.
needs_bridge = pytest.mark.skipif(not has_compiler(), reason="there is no C++ compiler")


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


@needs_bridge
def test_profile():
    a, b, c = arrays()
    mx.eval(fma(a, b, c))
    with pk.profile() as p:
        o = fma(a, np.ones(6, np.float32), c)
        mx.eval(o)
        p.stop()
    steps = {(e.backend, e.category, e.name): e for e in p.events if e.phase == "X"}
    assert {("mlx", "h2d", "copy to MLX"), ("mlx", "op_lazy", "enqueue native code")} <= {*steps}
    run = steps["mlx", "device", "fma"]
    launch = next(e for e in p.events if e.category == "launch")
    assert (run.thread, launch.thread) == ("MLX stream", "MLX stream")
    assert launch.args["bytes"] == 4 * 6 * 4
    assert run.begin_ns <= launch.begin_ns


# ---- Our code inside MLX's graph ---------------------------------------------------------------


@needs_bridge
def test_nothing_runs_at_the_call():
    calls = pk.kernel(lambda x: np.sqrt(x))
    x = mx.array([4.0, 9.0])
    same(calls(x), mx.array([2.0, 3.0]))
    with pk.profile() as p:
        lazy = calls(calls(x))
        before = [e for e in p.events if e.category == "launch"]
        mx.eval(lazy)
        after = [e for e in p.events if e.category == "launch"]
    assert (len(before), len(after)) == (0, 2)


def test_gradient_jvp_and_vmap():
    a, b, _ = arrays()
    f = pk.kernel(lambda x, y, k: np.where(x > 1, x * x * y, k * x))

    def of_mlx(x, y, k):
        return mx.where(x > 1, x * x * y, k * x)

    for arg in (0, 1):
        got = mx.grad(lambda *v: f(*v, 3.0).sum(), argnums=arg)(a, b)
        same(got, mx.grad(lambda *v: of_mlx(*v, 3.0).sum(), argnums=arg)(a, b))
    value, _ = mx.value_and_grad(lambda x: (f(x, b, 3.0) ** 2).sum())(a)
    assert value.item() == (of_mlx(a, b, 3.0) ** 2).sum().item()
    second = mx.grad(lambda x: mx.grad(lambda z: f(z, b, 3.0).sum())(x).sum())(a)
    same(second, mx.where(a > 1, 2 * b, mx.zeros(6)))
    (out,), (tangent,) = mx.jvp(lambda x: f(x, b, 3.0), [a], [mx.ones(6)])
    same(out, of_mlx(a, b, 3.0))
    same(tangent, mx.where(a > 1, 2 * a * b, mx.full(6, 3.0)))
    rows = mx.arange(12, dtype=mx.float32).reshape(2, 6)
    want = mx.stack([of_mlx(r, b, 3.0) for r in rows])
    same(mx.vmap(lambda x, y: f(x, y, 3.0), in_axes=(0, None))(rows, b), want)
    same(mx.vmap(lambda x: f(x, b, 3.0), in_axes=1, out_axes=1)(rows.T), want.T)
    pair = pk.kernel(lambda x, y: (x * y, x - y))
    got = mx.grad(lambda x: sum(r.sum() for r in pair(x, b)))(a)
    same(got, b + 1)


def test_inside_mx_compile_and_modules():
    import mlx.nn as nn

    a, b = arrays(2)
    step = mx.compile(lambda x, y: fma(mx.sin(x), y, 2.5) + fma(mx.sin(x), y, 2.5))
    for n in (6, 6, 4):
        x, y = a[:n], b[:n]
        np.testing.assert_allclose(step(x, y), 2 * (np.sin(x) * np.asarray(y) + 2.5), rtol=1e-5)

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = mx.ones(6)

        def __call__(self, x):
            return fma(x, self.w, 1)

    model = Scale()
    loss = nn.value_and_grad(model, lambda x: model(x).sum())
    value, gradients = loss(a)
    assert value.item() == (a + 1).sum().item()
    same(gradients["w"], a)


@needs_bridge
def test_sizes_that_a_compiled_function_cannot_have():
    a, b, c = arrays()
    resized = mx.compile(fma, shapeless=True)
    same(resized(a, b, c), a * b + c)
    same(resized(a[:3], b[:3], c[:3]), (a * b + c)[:3])
    with pytest.raises(RuntimeError, match="was traced for sizes that do not fit"):
        mx.eval(resized(a[:1], b[:1], c[:1]))


def test_streams_and_threads():
    import threading

    a, b, c = arrays()
    with mx.stream(mx.new_stream(mx.cpu)):
        o = fma(a, b, c)
    mx.async_eval(o)
    same(o, a * b + c)
    found = {}

    def work(i):
        results = [fma(mx.ones(100) * i, 2, k) for k in range(20)]
        mx.eval(results)
        found[i] = [r[0].item() for r in results]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {i: [2.0 * i + k for k in range(20)] for i in range(4)}


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "every other": lambda x: x[::2, 1:],
    "backwards": lambda x: x[::-1, ::-1],
    "broadcast": lambda x: mx.broadcast_to(x[0], (4, 8)),
    "rank 0": lambda x: x[1, 1],
    "empty": lambda x: x[:0],
    "one row": lambda x: x[2:3],
    "shifted": lambda x: x[1:],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "dtype", ["float32", "int16", "float16", "bfloat16", "complex64", "float64"]
)
def test_layouts_and_types(layout, dtype):
    x = LAYOUTS[layout]((mx.arange(32) % 7).reshape(4, 8).astype(getattr(mx, dtype)))
    want = x * x + x
    for _ in range(2):
        got = fma(x, x, x)
        assert got.dtype == x.dtype
        assert got.shape == x.shape
        assert mx.array_equal(got, want)


def test_memory_is_reused_where_nobody_sees_it():
    n = (4 << 20) + 1  # bytes beyond which results come from our own pool
    x = mx.ones(n)
    kept = x
    for _ in range(4):
        x = fma(x, 0.5, 1)
    same(x[:4], mx.full(4, 1.9375))
    assert kept[0].item() == 1
    small = mx.arange(8.0)
    same(fma(fma(small + 1, 2, 0), 1, 1), (mx.arange(8.0) + 1) * 2 + 1)
    same(small, mx.arange(8.0))
    alive = [fma(x[:n], 1, i) for i in range(3)]
    mx.eval(alive)
    assert [r[-1].item() for r in alive] == [1.9375, 2.9375, 3.9375]
    after = mx.sin(alive[0]) + alive[0]  # MLX's own operations on such memory
    np.testing.assert_allclose(after[-1].item(), np.sin(1.9375) + 1.9375, rtol=1e-6)
    assert alive[0][-1].item() == 1.9375


@needs_bridge
def test_float64_functions_are_full_precision():
    x = np.linspace(-20, 20, 101)
    f = pk.kernel(lambda x: np.exp(x) + np.sin(x) * np.cos(x))
    got = f(mx.array(x, dtype=mx.float64))
    assert got.dtype == mx.float64
    assert_same(np.asarray(got), f(x, backend="cpu"))
    with pytest.raises(RuntimeError, match="exp of float64 is computed in float32 by MLX"):
        mx.grad(lambda v: f(v).sum())(mx.array(x, dtype=mx.float64))


def test_errors_of_a_call_come_at_the_call():
    add = pk.kernel(lambda x, k: x + k)
    with pytest.raises(pk.LaunchError, match="300 is out of bounds for uint8"):
        add(mx.array([1], dtype=mx.uint8), 300)
    with pytest.raises(pk.LaunchError, match="share memory"):
        x = mx.ones(3)
        pk.kernel(lambda a, b: [a.__setitem__(..., b), b.__setitem__(..., a)][:0])(x, x)


@needs_bridge
def test_dropped_results_leave_nothing_behind():
    import gc
    import weakref

    @pk.kernel
    def once(x):
        return x * 3

    same(once(mx.ones(3)), mx.full(3, 3.0))
    lazy = once(mx.ones(3))
    alive = weakref.ref(once)
    del once
    gc.collect()
    assert alive() is not None  # the lazy result needs it
    same(lazy, mx.full(3, 3.0))
    del lazy
    for _ in range(50):
        gc.collect()
        if alive() is None:
            break
        mx.eval(mx.ones(3) + 1)
    assert alive() is None


@pytest.mark.parametrize("rank", [64, 65, 70, 1000])
def test_ranks(rank):
    x = mx.ones([1] * rank)
    if rank <= 64:
        same(fma(x, x, 1), x + 1)
        return
    with pytest.raises(pk.LaunchError, match=f"array of {rank} dimensions\n.*at most 64"):
        fma(x, x, 1)


def test_single_steps_within_transformations_are_left_whole():
    a = mx.arange(3.0)
    with pk.profile(split=True):
        same(mx.compile(lambda x: fma(x, x, 1))(a), a * a + 1)
        same(mx.vmap(lambda x: fma(x, x, 1))(mx.stack([a, a])), mx.stack([a * a + 1] * 2))
        same(mx.grad(lambda x: fma(x, x, 1).sum())(a), 2 * a)

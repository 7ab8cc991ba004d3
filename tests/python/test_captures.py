"""Globals and closures: read when the kernel is traced, and traced again when they change."""

import types

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same, sample, traces_of

K = 2
W = np.arange(5, dtype=np.float32)
SETTINGS = types.ModuleType("settings")
SETTINGS.scale = 3
X = np.arange(5, dtype=np.float32)


class Scales:
    big = 10


def helper(v):
    return v * K


@pk.kernel
def uses_global(v):
    return v * K


@pk.kernel
def uses_helper(v):
    return helper(v) + 1


@pk.kernel
def uses_array(v):
    return v * W + (W * 2)


def test_a_changed_global_is_never_used_silently(monkeypatch):
    for k in (2, 5, 2.5, True, 5, np.float64(3)):
        monkeypatch.setitem(globals(), "K", k)
        for kernel in (uses_global, uses_helper):
            for _ in range(2):
                assert_same(kernel(X), kernel.__wrapped__(X))


def test_a_value_seen_before_is_not_traced_again(monkeypatch):
    @pk.kernel
    def kernel(v):
        return v * K

    with pk.profile() as profile:
        for k in (1.5, 2.5, 1.5, 2.5, float("1.5")):
            monkeypatch.setitem(globals(), "K", k)
            assert_same(kernel(X), X * np.float32(k))
    assert traces_of(kernel, profile) == 2


def test_closures_are_read_when_called():
    factor = 2

    @pk.kernel
    def kernel(v):
        return v * factor

    assert_same(kernel(X), X * 2)
    factor = 7
    assert_same(kernel(X), X * 7)


def test_captured_arrays_are_read_at_each_call(monkeypatch, backend):
    w = W.copy()
    monkeypatch.setitem(globals(), "W", w)
    assert_same(uses_array(X, backend=backend), X * w + w * 2)
    w += 10
    assert_same(uses_array(X, backend=backend), X * w + w * 2)
    for shape in ((5,), (1,), (3, 5)):
        monkeypatch.setitem(globals(), "W", np.full(shape, 7, np.float32))
        assert_same(uses_array(X, backend=backend), uses_array.__wrapped__(X))
    monkeypatch.setitem(globals(), "W", np.arange(5))
    assert_same(uses_array(X, backend=backend), uses_array.__wrapped__(X))
    monkeypatch.setitem(globals(), "W", 3)
    assert_same(uses_array(X, backend=backend), X * 3 + 6)


def test_rebinding_an_array_traces_nothing(monkeypatch):
    @pk.kernel
    def kernel(v):
        return v + W

    with pk.profile() as profile:
        for i in range(5):
            monkeypatch.setitem(globals(), "W", np.full(5, i, np.float32))
            assert_same(kernel(X), X + i)
    assert traces_of(kernel, profile) == 1


def test_two_names_of_one_array():
    u = v = np.ones(5, np.float32)

    @pk.kernel
    def kernel(x):
        return x * u + v

    assert_same(kernel(X), X * 1 + 1)
    v = np.full(5, 9, np.float32)
    assert_same(kernel(X), X * 1 + 9)


def test_arrays_through_helpers_and_kernels():
    w = np.full(5, 3, np.float32)

    def helped(x):
        return x * (w + 1)

    @pk.kernel
    def inner(x, o):
        return helped(x) + w

    @pk.kernel
    def kernel(x):
        return inner(x, None) * w

    assert_same(kernel(X), (X * 4 + 3) * 3)
    w[...] = 1
    assert_same(kernel(X), (X * 2 + 1) * 1)


def test_arrays_made_while_tracing():
    @pk.kernel
    def kernel(x):
        return x + np.array([1, 2, 3, 4, 5], np.float32) * 2

    for _ in range(3):
        assert_same(kernel(X), X + np.array([2, 4, 6, 8, 10], np.float32))
    assert_same(kernel(X.astype(np.float64)), kernel.__wrapped__(X.astype(np.float64)))


def test_a_captured_array_of_a_wrong_type_is_refused():
    bad = np.array(["a"])

    @pk.kernel
    def kernel(x):
        return x + bad

    with pytest.raises(pk.LaunchError, match="captured array 'bad' has dtype <U1"):
        kernel(X)


def test_attributes_of_modules_and_classes():
    @pk.kernel
    def kernel(x):
        return x * SETTINGS.scale + Scales.big

    assert_same(kernel(X), X * 3 + 10)
    SETTINGS.scale = 4
    assert_same(kernel(X), X * 4 + 10)
    Scales.big = 20
    assert_same(kernel(X), X * 4 + 20)
    SETTINGS.scale, Scales.big = 3, 10


def test_a_helper_bound_to_another_function(monkeypatch):
    assert_same(uses_helper(X), X * K + 1)
    monkeypatch.setitem(globals(), "helper", lambda v: v - 1)
    assert_same(uses_helper(X), X - 1 + 1)


def test_functions_as_arguments_capture_too():
    offset = 1

    def shifted(v):
        return v + offset

    @pk.kernel
    def kernel(x, f):
        return f(x)

    assert_same(kernel(X, shifted), X + 1)
    offset = 5
    assert_same(kernel(X, shifted), X + 5)


def test_an_undefined_global_defined_later(monkeypatch):
    @pk.kernel
    def kernel(x):
        return x + later_defined  # noqa: F821

    with pytest.raises(NameError):
        kernel(X)
    monkeypatch.setitem(globals(), "later_defined", 2)
    assert_same(kernel(X), X + 2)


def test_builtins_may_be_shadowed(monkeypatch):
    @pk.kernel
    def kernel(x):
        return abs(x)

    assert_same(kernel(-X), X)
    monkeypatch.setitem(globals(), "abs", lambda v: v * 2)
    assert_same(kernel(-X), X * -2)


def test_kernels_of_closures_are_collected():
    import gc
    import weakref

    def make():
        table = np.ones(3, np.float32)

        @pk.kernel
        def kernel(x):
            return x + table if kernel else x  # refers to itself

        return kernel

    kernel = make()
    kernel(sample("float32", (3,)))
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("backend", ["numpy", None])
def test_a_captured_global_bound_anew_by_another_thread(backend, monkeypatch):
    import sys
    import threading

    monkeypatch.setitem(globals(), "rebound", np.zeros(50_000, np.float32))
    x = np.ones(50_000, np.float32)

    @pk.kernel(backend=backend)
    def kernel(x):
        return x + rebound  # noqa: F821

    torn = []

    def rebind_and_call():
        for value in range(100):
            globals()["rebound"] = np.full(50_000, value, np.float32)
            result = kernel(x)
            if result.min() != result.max():  # not of one array that lived throughout
                torn.append(value)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=rebind_and_call) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert torn == []

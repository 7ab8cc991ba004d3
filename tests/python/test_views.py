"""Slices, integers, new axes and transposes on both sides, as in NumPy."""

import numpy as np
import picokernel as pk
import pytest
from oracle import check


@pk.kernel
def bounds_of_sizes(a, k):
    n = a.shape[0]
    o = np.zeros_like(a)
    o[1 : n - 1] = a[: n - 2] + a[n // 2]
    o[n - k :] -= a[-k:]
    return o


def test_bounds_made_of_sizes_and_arguments(backend):
    for n, k in ((10, 1), (11, 1), (11, 3), (12, 12), (3, 2)):
        check(bounds_of_sizes, array(n), k, backend=backend)


@pk.kernel
def powers(a, terms):
    total = np.zeros_like(a)
    for i in range(terms):
        total = total + a**i
    return total


def test_an_argument_may_count_a_loop(backend):
    for terms in (0, 1, 4):
        check(powers, array(7), terms, backend=backend)


@pk.kernel
def both_sides(o, a):
    o[1:-1] = a[:-2] + a[2:]


@pk.kernel
def in_place(o):
    o[1:-1] = o[:-2] + o[2:]


@pk.kernel
def steps(a, o):
    o[::-2] = a[::2] * 2
    o[0] = a[-1]


@pk.kernel
def of_a_computed_array(a):
    d = a[1:] - a[:-1]
    d[0] = 7
    return d[1:] * d[:-1], d[::-3], d


@pk.kernel
def augmented(o, a):
    o[2:] += a[:-2]
    o[:-1] *= 2


@pk.kernel
def axes(a, b):
    return a.T + b, a[None, :, 0], a[..., 1] * b[0, 1], a[:, ::-1]


@pk.kernel
def laplace(u, o):
    o[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]


def array(*shape):
    return np.random.default_rng(sum(shape)).integers(-50, 50, shape).astype(np.float32)


# Sizes at which slices become empty, or of length one, which broadcasts.
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 33])
@pytest.mark.parametrize("kernel", [both_sides, steps, augmented], ids=lambda k: k.__name__)
def test_two_arrays(backend, kernel, n):
    arrays = (array(n), array(n + 100)[:n])
    if kernel is steps and backend == "mlx":  # which writes through one slice only
        with pytest.raises(pk.CompileError, match="MLX stores through slices only"):
            steps(*arrays, backend=backend)
    else:
        check(kernel, *arrays, backend=backend)


def test_sizes_related_by_a_division():
    @pk.kernel
    def half(a, b):
        return a[::2] + b

    for n in (4, 5, 9, 33):
        check(half, array(n), array((n + 1) // 2))
    check(steps, array(6), array(5)[::-1])


@pytest.mark.parametrize("n", [3, 4, 5, 50])
def test_one_array(backend, n):
    check(in_place, array(n), backend=backend)
    check(of_a_computed_array, array(n), backend=backend)


def test_two_dimensions(backend):
    check(axes, array(3, 4), array(4, 3), backend=backend)
    check(laplace, array(12, 40), array(13, 41)[1:, 1:], backend=backend)
    check(laplace, array(12, 40)[::-1, ::-1], array(40, 12).T, backend=backend)


def test_a_stencil_is_one_loop():
    both_sides(array(10), array(10))
    text = both_sides.ir("kernel")
    assert text.count("parallel") == 1 and text.count("load") == 2 and text.count("store") == 1


def test_sizes_that_share_a_trace(backend):
    for n in (10, 11, 400):
        check(both_sides, array(n), array(n), backend=backend)


@pytest.mark.parametrize(
    ("function", "kind", "text"),
    [
        (lambda a: a[1:] + a, pk.LaunchError, "do not broadcast"),
        (lambda a: a[10], pk.LaunchError, "out of bounds"),
        (lambda a: a[0, 0], pk.CompileError, "too many indices"),
        (lambda a: a[::0], pk.CompileError, "step of a slice is 0"),
        (lambda a: a[a > 0], pk.CompileError, "not supported"),
        (lambda a, k=1.5: a[k:], pk.CompileError, "not supported"),
        (lambda a: a[a.astype(int)], pk.CompileError, "not supported"),
        (lambda a: a.transpose(1), pk.CompileError, "axes"),
    ],
)
def test_bad_indices(function, kind, text):
    with pytest.raises(kind, match=text):
        pk.kernel(function)(array(5))


def test_an_empty_part_of_a_reversed_array(backend):
    @pk.kernel
    def nothing(a):
        v = a[::-1]
        v[1:-1] *= v

    check(nothing, array(1), backend=backend)


@pk.kernel
def decided_by_sizes(x, n):
    if x.shape[0] > 3 and n >= 2:
        return x[: min(2, x.shape[0])] * n
    if x.shape == (3,):
        return x + 1
    return x - n


def test_comparisons_of_sizes_are_decided_by_the_call(backend):
    for size, n in ((5, 2), (5, 1), (9, 2), (3, 2), (2, 7), (3, 1)):
        check(decided_by_sizes, array(size), n, backend=backend)


def test_what_they_decide_is_a_guard():
    kernel = pk.kernel(decided_by_sizes.__wrapped__)
    kernel(array(5), 2)
    with pk.profile() as profile:
        for size in (6, 700):
            kernel(array(size), 2)
    assert sum(event.name.startswith("trace") for event in profile.events) == 0
    assert "n0 >= 4" in kernel.ir()


def test_an_except_in_the_function_hides_no_constant():
    @pk.kernel
    def careless(x):
        try:
            y = x + np.arange(4.0)
        except:  # noqa: E722
            y = x * 0
        return y

    check(careless, array(4).astype(float))


def test_aliases_are_aliases(backend):
    @pk.kernel
    def aliases(x, y):
        a = x.astype(x.dtype, copy=False)
        a += 1
        b = y.conj()
        b *= 2

    check(aliases, array(4), array(4), backend=backend)

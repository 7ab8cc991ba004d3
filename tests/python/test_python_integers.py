"""Python ints have no bounds: what a kernel computes from them is exact or refused, never wrapped."""

import numpy as np
import picokernel as pk
import pytest
from oracle import check

BIG = 2**40


@pytest.mark.parametrize(
    ("function", "args", "text"),
    [
        (lambda a, n: a * (n * n), (np.ones(1), BIG), "out of bounds for int64"),
        (lambda a, n: a + (n + 1), (np.ones(1), 2**63 - 1), "out of bounds for int64"),
        (lambda a, n: a * abs(n), (np.ones(1), -(2**63)), "out of bounds for int64"),
        (lambda a, n: a * (1 << n), (np.ones(1), 70), "out of bounds for int64"),
        (lambda a, n: a + n // 0, (np.ones(1), 3), "division by zero"),
        (lambda a, n: a + n % 0, (np.ones(1), 3), "division by zero"),
        (lambda a, n: a + (n >> -1), (np.ones(1), 3), "negative shift"),
        (lambda a, n: a + (n + 1), (np.zeros(1, "i1"), 127), "128 computed here is out of bounds"),
        (lambda a: a + a.shape[0], (np.zeros(200, "i1"),), "200 computed here is out of bounds"),
    ],
)
def test_what_does_not_fit_is_refused(backend, function, args, text):
    with pytest.raises(pk.LaunchError, match=text):
        pk.kernel(function)(*args, backend=backend)


def test_what_fits_is_exact(backend):
    kernel = pk.kernel(lambda a, n: a * (n * n - n // 3 + (n << 2) + abs(-n) % 7))
    for n in (0, 1, -5, 1000, 2**20):
        check(kernel, np.arange(4.0), n, backend=backend)
    check(pk.kernel(lambda a: a + a.shape[0]), np.zeros(100, "i1"), backend=backend)


def test_integers_that_share_what_they_are_made_of():
    def chain(a, n):
        for _ in range(60):
            n = n + n - n
        return a * n

    check(pk.kernel(chain), np.ones(3), 5)


@pytest.mark.parametrize(
    "name", ["multiply", "add", "abs", "negative", "remainder", "floor_divide"]
)
@pytest.mark.parametrize(("dtype", "number"), [("f4", 0.5), ("i1", 5)])
def test_ufuncs_of_numbers_make_numpy_scalars(name, dtype, number):
    ufunc = getattr(np, name)
    kernel = pk.kernel(lambda a, s: a + ufunc(*[s] * ufunc.nin))
    check(kernel, np.ones(2, dtype), number)


@pk.kernel
def twice(x, o):
    o[...] = x * 2
    o[...] = x + 1


def test_one_array_for_two_is_refused_where_it_would_mean_something_else(backend):
    q = np.ones(3)
    with pytest.raises(pk.LaunchError, match=r"'x' shares memory with .*'o'"):
        twice(q, q, backend=backend)
    assert q.tolist() == [1, 1, 1]
    check(twice, np.ones(3), np.zeros(3), backend=backend)


def test_one_array_for_two_is_fine_where_each_element_is_read_first(backend):
    @pk.kernel
    def once(x, o):
        o[...] = x * 2 + x

    q = np.arange(4.0)
    once(q, q, backend=backend)
    assert q.tolist() == [0, 3, 6, 9]

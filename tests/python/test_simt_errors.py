"""One bad kernel per message: what is wrong, at which line, and what to write instead."""

import linecache

import numpy as np
import picokernel as pk
import pytest
from picokernel import simt

# The body of a kernel of arrays x (float32, 1-d), a (int64, 2-d) and a number n; what is said of its
# last line; what the hint says.
CASES = [
    ("with n:\n    pass", "`with` is not for kernels of threads", "write its statements out", 2),
    (
        "try:\n    x[0] = 1\nfinally:\n    pass",
        "`try` is not for kernels",
        "test for what may fail",
        4,
    ),
    ("raise ValueError", "`raise` is for kernels that are checked", "check=True", 1),
    ("import math", "`import` is not for kernels", "import outside", 1),
    ("def f():\n    pass", "a function inside of it is not", "simt.jit(device=True)", 2),
    ("return n", "the kernel `k` returns a value", "out[i] = value", 1),
    ("x[0] = [1, 2]", "a list is not for kernels", "simt.local.array", 1),
    ("x[0] = 'text'", "a text is not for kernels", "leave it out", 1),
    ("x[0] = {1: 2}", "a dict is not for kernels", "use a tuple", 1),
    ("f = lambda v: v", "`lambda` is not for kernels", "simt.jit(device=True)", 1),
    ("x[0] = x", "what is stored is an array of float32", "take an element", 1),
    ("x[0] = x + 1", "the left side of `+` is an array of float32", "take an element", 1),
    ("a[0] = 1", "an element of 2 dimensions is stored to by 1", "x[i, :] = 0", 1),
    ("a[0, 0, 0] = 1", "3 indices for an array of 2 dimensions", "x[i, j]", 1),
    ("x[0.5] = 1", "an index is Python float", "int(x)", 1),
    ("x[x[0]] = 1", "an index is float32", "int(x)", 1),
    ("n[0] = 1", "elements of Python int cannot be assigned", "assign the whole", 1),
    ("i, j = simt.grid(3)", "cannot unpack a tuple of 3 into 2", "simt.grid(2)", 1),
    ("i, j = n", "cannot unpack Python int into 2", "simt.grid(2)", 1),
    ("i = simt.grid(4)", "`simt.grid` takes 1, 2 or 3", "i, j = simt.grid(2)", 1),
    ("i = simt.grid(n)", "`simt.grid` takes 1, 2 or 3", "i, j = simt.grid(2)", 1),
    ("for v in n:\n    pass", "do not loop over Python int", "x[i] in the body", 2),
    ("for i in range(0, 5, 0):\n    pass", "a step of 0 never ends", "any other integer", 2),
    ("for i in range(0.5):\n    pass", "a bound of range is Python float", "int(x)", 2),
    ("x[0] = t", "`t` has no value here", "assign it before", 1, "t = 1"),
    ("x[0] = np.sqr(n)", "`numpy` has no attribute `sqr`", "see its documentation", 1),
    ("x[0] = np.sum(n)", "`numpy.sum` cannot be called in kernels", "hint:", 1),
    ("x[0] = np.hypot(n)", "`numpy.hypot` takes 2 numbers, not 1", "outputs and options", 1),
    ("x[0] = sorted(n)", "`sorted` cannot be called in kernels", "device=True", 1),
    ("x[0] = len(n)", "`len` of Python int", "arrays of known size", 1),
    ("x[0] = n.real", "Python int has no attribute `real`", "x.size", 1),
    ("x[0] = x.flat", "arrays have no attribute `flat`", "write loops", 1),
    ("x[0] = x @ x", "`@` is not for kernels", "write the loop", 1),
    ("x[0] = 1 if x else 2", "a condition is an array of float32", "take an element", 1),
    ("x[0] = n in (1, 2)", "`in` is not for kernels", "compare with each", 1),
    ("x[0] = n & x[0]", "`bitwise_and` of Python int and float32", "cast both", 1),
    ("x[0] = n(1)", "Python int cannot be called", "call a function", 1),
    ("x[0] = missing", "`missing` is not defined", "pass it as an argument", 1),
    ("x[0] = 99999999999999999999", "fits neither int64 nor uint64", "write a float", 1),
    ("s = simt.shared.array(n, simt.float32)", "is not made of constants", "kernel[grid, block", 1),
    ("s = simt.local.array(0, simt.float32)", "is not made of constants", "largest size", 1),
    ("s = simt.shared.array(5)", "takes a shape and a dtype", "shape=(16, 16)", 1),
    ("s = simt.shared.array(5, n)", "the dtype of `simt.shared.array` is Python int", "dtype=", 1),
    (
        "simt.atomic.add(x, 0)",
        "takes an array, an index and a number",
        "simt.atomic.add(x, i, 1)",
        1,
    ),
    ("simt.atomic.and_(x, 0, 1)", "`simt.atomic.and_` of an array of float32", "another type", 1),
    (
        "simt.atomic.add(n, 0, 1)",
        "the first argument of `simt.atomic.add` is Python int",
        "simt",
        1,
    ),
    ("t = x if n else a", "this is an array of float32, not a number", "take an element", 1),
    (
        "t = x\nif n:\n    t = a\nt[0] = 1",
        "`t` is an array of int64 or another thing",
        "two names",
        3,
    ),
    ("helper(1, 2)", "`helper` is called with other arguments", "each of them once", 1),
    ("forever(1)", "`forever` calls itself", "write a loop", 0),
    ("t = (1, 2)\nx[0] = t[n]", "a tuple of 2 has no such item", "simt.local.array", 1),
    (
        "if i > n:\n    simt.syncthreads()",
        "in a branch that depends on the thread, through `i`",
        "take",
        2,
    ),
    (
        "for k in range(i):\n    simt.syncthreads()",
        "in a loop that depends on the thread",
        "take",
        2,
    ),
    ("j = i * 2\nwhile j > n:\n    barrier()\n    j -= 1", "in a loop that depends on", "take", 3),
    (
        "for k in range(n):\n    if i == k: continue\n    simt.syncthreads()",
        "a turn ends here, in front of a barrier, depending on the thread, through `i`",
        "outside of these",
        2,
    ),
    (
        "if i > 2:\n    return\nx[0] = meets(n)",
        "a barrier behind a `return` is part",
        "of its own",
        1,
    ),
    (
        "if i > 2:\n    return\nif simt.syncthreads_or(n):\n    x[0] = 1",
        "a barrier behind a `return` is part",
        "of its own",
        2,
    ),
    ("x[0], n = 1", "cannot unpack Python int into 2", "simt.grid(2)", 1),
]


@simt.jit(device=True)
def helper(v):
    return v


@simt.jit(device=True)
def forever(v):
    return forever(v - 1)


@simt.jit(device=True)
def barrier():
    simt.syncthreads()


@simt.jit(device=True)
def meets(n):
    simt.syncthreads()
    return n


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].replace("\n", "; "))
def test_message(case):
    body, message, hint, from_end, *after = case
    lines = [*body.split("\n"), *after]
    source = "@simt.jit\ndef k(x, a, n):\n    i = simt.grid(1)\n" + "".join(
        f"    {line}\n" for line in lines
    )
    name = f"<kernel {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = {
        "simt": simt,
        "np": np,
        "helper": helper,
        "barrier": barrier,
        "meets": meets,
        "forever": forever,
        "__name__": name,
    }
    exec(compile(source, name, "exec"), names)
    with pytest.raises(pk.CompileError) as e:
        names["k"][1, 1](np.zeros(4, np.float32), np.zeros((2, 2), np.int64), 3)
    assert message in str(e.value)
    assert (
        hint in str(e.value).split("hint: ", 1)[1] if hint != "hint:" else "hint: " in str(e.value)
    )
    if from_end:
        assert (e.value.filename, e.value.lineno) == (
            name,
            3 + len(lines) - len(after) - from_end + 1,
        )


def test_kernels_need_their_source():
    names = {}
    exec("def f(x):\n    x[0] = 1\n", names)
    with pytest.raises(pk.CompileError, match="the source of `f` cannot be read"):
        simt.jit(names["f"])[1, 1](np.zeros(1))


def test_parameters_are_plain_names():
    @simt.jit
    def f(x, n=3):
        x[0] = n

    with pytest.raises(pk.CompileError, match="not all plain names"):
        f[1, 1](np.zeros(1))


def test_complex_arrays():
    @simt.jit
    def f(z):
        z[0] = 1

    with pytest.raises(pk.CompileError, match="argument 'z' is an array of complex64"):
        f[1, 1](np.zeros(1, np.complex64))


def test_names_of_simt_are_for_kernels():
    with pytest.raises(TypeError, match=r"simt\.grid is for kernels"):
        simt.grid(1)

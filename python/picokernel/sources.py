"""Opening the Python source that the numpy and mlx backends print."""

import itertools
import linecache
import re
import threading
import weakref

import numpy as np

from . import _core

SCRATCH_CAP = 64 << 20  # bytes that a thread keeps for reuse, of all kernels together


class _Kept:
    """One thread's scratch."""

    def __init__(self):
        # Oldest first: (id of a kernel's dict, number) -> (the dict, bytes)
        self.arrays = {}


_numbers = itertools.count(2)
_thread = threading.local()
_threads = weakref.WeakSet()  # of every _Kept; under _lock
_lock = threading.Lock()


def opened(text, entry, backend, stamp=None, lines=(), lazy=(), **names):
    """The function `entry` of a printed source. With `stamp`, its instrumented twin: `stamp()` runs
    before the first of these lines (numbers from 1) and after each of them. What the `lazy` ones
    assign is evaluated before that. `names`: what else it sees."""
    name = f"<picokernel {backend} {entry}>"
    if stamp is not None:
        text = _instrumented(text, lines, lazy)
        name = f"<picokernel {backend} {entry}, profiled>"
    if name in linecache.cache:
        name = f"{name[:-1]} {next(_numbers)}>"
    # Tracebacks show the printed lines.
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"np": np, "scratch": _scratch_pool(), "_s": stamp, **names}
    if "ml_dtypes." in text:
        import ml_dtypes

        space["ml_dtypes"] = ml_dtypes
    if backend == "mlx":
        import mlx.core

        space |= {"mx": mlx.core, "_e": _evaluated}
    exec(compile(text, name, "exec"), space)
    function = space.pop(entry)  # no cycle: who drops it drops all of it
    weakref.finalize(function, linecache.cache.pop, name, None).atexit = False
    return function


def _evaluated(array):
    import mlx.core

    try:
        mlx.core.eval(array)
    except ValueError as error:
        if "during function transformations" not in str(error):  # nothing is there to evaluate
            raise


_BODY = "_body"
_HOST_LINE = re.compile(
    r"    (s\d+) = |    (v\d+) = mx\.array\("
)  # numbers, and arrays made of them
_STORE = re.compile(r"    (\w+)\[\.\.\.\] = (\w+)$")


def fused(text, entry):
    """The function of MLX's arrays in a printed source, with all that it does to arrays in one
    `mx.compile`. Numbers enter that as arrays, so a new value compiles nothing."""
    head, *lines = text.splitlines()
    parameters = head[head.index("(") + 1 : head.rindex(")")].split(", ")
    host = [line for line in lines if _HOST_LINE.match(line)]
    numbers = [m[2] for line in host if (m := _HOST_LINE.match(line))[2]]
    body = [line for line in lines if not _HOST_LINE.match(line)]
    results = body.pop().removeprefix("    return ") if body[-1].startswith("    return") else "()"
    stores = []  # the last lines bind arguments anew
    while body and (store := _STORE.match(body[-1])) and store[1] in parameters:
        stores.insert(0, store.groups())
        body.pop()
    used = "\n".join([*body, results, *(value for _, value in stores)])
    arrays = [n for n in [*parameters, *numbers] if re.search(rf"\b{n}\b", used)]
    inner = f"def {_BODY}({', '.join(arrays)}):"
    values = "".join(value + ", " for _, value in stores)
    function = opened("\n".join([inner, *body, f"    return {results}, ({values})"]), _BODY, "mlx")
    call = [f"    r, w = {_BODY}({', '.join(arrays)})"]
    call += [f"    {name}[...] = w[{i}]" for i, (name, _) in enumerate(stores)]
    import mlx.core as mx

    outer = "\n".join([head, *host, *call, "    return r"])
    return opened(outer, entry, "mlx", **{_BODY: mx.compile(function)})


def _instrumented(text, lines, lazy):
    numbers, lazy = set(lines), set(lazy)
    result = []
    for number, line in enumerate(text.splitlines(), 1):
        indent = line[: len(line) - len(line.lstrip())]
        if lines and number == lines[0]:
            result.append(f"{indent}_s()")
        result.append(line)
        if number in lazy:
            variable = line.strip().partition(" = ")[0].partition("[")[0]
            result.append(f"{indent}_e({variable})")
        if number in numbers:
            result.append(f"{indent}_s()")
    return "\n".join(result) + "\n"


def _scratch_pool():
    local = threading.local()

    def scratch(i, shape, dtype):
        """An array of undefined content: the i-th that a call asks for."""
        mine = local.__dict__
        last = mine.get(i)
        if last is not None and last[0] == shape and last[1] is dtype:
            return last[2]
        array = np.empty(shape, dtype)
        _keep(mine, i, (shape, dtype, array))
        return array

    return scratch


def _keep(mine, i, what):
    if (kept := getattr(_thread, "kept", None)) is None:
        kept = _thread.kept = _Kept()
        with _lock:
            _threads.add(kept)
    kept = kept.arrays
    size = what[2].nbytes
    _drop(kept, (id(mine), i))
    if size > SCRATCH_CAP:
        return
    for oldest in list(kept):
        if sum(n for _, n in list(kept.values())) <= SCRATCH_CAP - size:
            break
        _drop(kept, oldest)
    mine[i] = what
    kept[id(mine), i] = mine, size
    count_scratch()


def _all_kept():
    with _lock:
        return list(_threads)


def count_scratch():
    """Says in profiles how much scratch all threads keep, once there was any."""
    if threads := _all_kept():
        _core._count_scratch(sum(n for kept in threads for _, n in list(kept.arrays.values())))


def _drop(kept, key):
    # Another thread may trim at the same time.
    mine, size = kept.pop(key, ({}, 0))
    mine.pop(key[1], None)
    return size


def trim():
    """Drops the scratch of all threads; gives the number of bytes."""
    size = sum(_drop(kept.arrays, key) for kept in _all_kept() for key in list(kept.arrays))
    count_scratch()
    return size

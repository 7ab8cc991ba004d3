"""What this machine's backends can do at most, measured once: the facts that costs are predicted from.

Each live backend runs three kernels of NumPy arrays in cache and beyond: `a*b+c`, a long chain of such steps,
and single dear operations. From these come

- what a call costs beside its arrays, and the first call of a new kernel;
- seconds for `a*b+c` by the bytes that it moves: bandwidth per level of the memory hierarchy;
- the part of that in which arrays are copied to the backend's library and back, from a profile;
- seconds for one more cheap operation, by an array's bytes: next to nothing where operations are fused, a pass
  over memory where they are not;
- seconds per element of dear operations, on one thread.

Where the library's own arrays are arguments, too, `a*b+c` on them gives what calls cost there.

The result is kept in the folder of compiled kernels, for this processor, number of threads and build.
"""

import contextlib
import functools
import json
import math
import os
import platform
import statistics
import sys
import threading
import time
from bisect import bisect_left

import numpy as np

from . import _core
from .errors import CompileError, Error, LaunchError
from .kernel import Kernel
from .profiler import Profiler
from .report import write

FORMAT = 2
STEPS = 8  # of the chain: x = x*b + c
_LIMIT_S = 1.2  # for the sizes: the largest arrays are left out where time runs out
_OWN_LIMIT_S = 0.3  # for those of MLX's own arrays
_MORE_ELEMENTS = [1 << 25, 1 << 27]  # of these, too, where a device is fast
_ELEMENTS = [1 << k for k in (4, 10, 12, 14, 16, 18, 20, 21, 22, 23)]
_SAMPLE = 8192  # elements for one operation's cost: within the first-level cache
CANDIDATES = ("cpu", "numpy", "mlx")

# Operation of the IR -> an expression of x and y for it.
_DEAR = {
    "div": "x / y",
    "floordiv": "x // y",
    "mod": "x % y",
    "pow": "x ** y",
    **{
        name: f"np.{name}(x)"
        for name in ("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p")
    },
    **{
        name: f"np.{name}(x)"
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "cbrt", "rint")
    },
    **{
        ours: f"np.{name}(x)"
        for ours, name in (("asin", "arcsin"), ("acos", "arccos"), ("atan", "arctan"))
    },
    "atan2": "np.arctan2(x, y)",
    "hypot": "np.hypot(x, y)",
}
# Element type -> the operations measured on it: the others cost as an addition does.
_MEASURED = {
    "float32": tuple(_DEAR),
    "float64": tuple(_DEAR),
    "int64": ("div", "floordiv", "mod"),
    "int32": ("div", "floordiv", "mod"),
    "float16": ("mul",),
}

_lock = threading.Lock()
_known = None
_told = None  # to profiles: the facts, and of which backends


class Ceilings:
    """The measured facts of one machine; `backends` maps a live backend's name to its `Rates`."""

    def __init__(self, facts):
        self.facts = facts
        self.backends = {name: Rates(rates) for name, rates in facts["backends"].items()}


class Rates:
    """One backend's facts, in seconds."""

    def __init__(self, facts):
        self.launch = facts["launch"]
        self.first_call = facts["first_call"]
        self.fused = facts["fused"]
        self.speedup = facts["speedup"]  # by threads, of long calls that compute
        self._pass = facts["pass"]  # [bytes of a*b+c's four arrays, seconds beyond the launch]
        self._transfer = facts["transfer"]  # [the same bytes, seconds of copies]
        self._step = facts["step"]  # [bytes of one array, seconds for one more operation]
        self._operations = facts["operations"]  # "exp float32" -> seconds per element
        self._cheap = facts["cheap"]  # seconds per element of an addition, computed in registers
        self.lacks = facts["lacks"]  # element types that it does not compute with here
        self.own = Rates(facts["own"]) if facts.get("own") else None  # on its library's own arrays

    def memory(self, n):
        """For one pass over n bytes, arrays read and written together."""
        return _at(self._pass, n)

    def transfer(self, n):
        """For copying n bytes to the backend's library and back."""
        return _at(self._transfer, n)

    def step(self, n):
        """For one more cheap operation on arrays of n bytes each."""
        return max(_at(self._step, n), self._step[0][1] if self._step else 0.0)

    def operation(self, name, dtype):
        """For one operation, per element, without its memory."""
        if dtype in ("float16", "bfloat16"):
            return self._operations.get("mul float16", self._cheap)
        if dtype not in _MEASURED:
            kind, size = np.dtype(dtype).kind, np.dtype(dtype).itemsize
            dtype = "float32" if kind not in "iu" else "int64" if size == 8 else "int32"
        return max(self._operations.get(f"{name} {dtype}", 0.0), self._cheap)

    def bandwidth(self):
        """[bytes of all arrays, bytes per second] of `a*b+c`, per measured size."""
        return [(n, n / s) for n, s in self._pass if s > 0]

    def peak(self):
        """Cheap operations on float32 a second, of all threads."""
        return self.speedup / self.operation("add", "float32")


def _at(curve, n):
    """A curve's value at n: between two points a power law, beyond the ends proportional."""
    if n <= 0 or not curve:
        return 0.0
    i = bisect_left(curve, n, key=lambda point: point[0])
    if i == 0:
        return curve[0][1] * n / curve[0][0]
    if i == len(curve):
        return curve[-1][1] * n / curve[-1][0]
    (n0, s0), (n1, s1) = curve[i - 1], curve[i]
    if s0 <= 0 or s1 <= 0:
        return s0 + (s1 - s0) * (n - n0) / (n1 - n0)
    return s0 * (s1 / s0) ** (math.log(n / n0) / math.log(n1 / n0))


# ---- Keeping ----------------------------------------------------------------------------------------------------------


def ceilings(again=False, own_arrays=False):
    """This machine's ceilings: from memory, from disk, or measured, which takes up to two seconds.
    `own_arrays`: with what calls on MLX's arrays cost, which may compile what they need first."""
    global _known
    with _lock:
        if _known is None or again:
            _known = Ceilings((None if again else _load()) or _kept_facts(measure()))
        mlx = _known.facts["backends"].get("mlx")
        if own_arrays and mlx is not None and "own" not in mlx:
            facts = {**_known.facts["backends"], "mlx": mlx | {"own": _own_arrays(_known.facts)}}
            _known = Ceilings(_kept_facts(_known.facts | {"backends": facts}))
        return _known


def _path():
    folder, problem, *_ = _core.cache_contents()
    return os.path.join(folder, "ceilings.json") if folder and not problem else None


def _processor():
    from .doctor import cpu_name

    return {
        "format": FORMAT,
        "build": _core.__version__,
        "cpu": cpu_name(),
        "host": platform.node(),
        "threads": _core.num_threads(),
        "capped": os.environ.get("PICOKERNEL_CPU", ""),
    }


def _identity():
    live = [name for name in CANDIDATES if _core.backends().get(name) == ""]
    return _processor() | {"numpy": np.__version__, "backends": live}


def _load(identity=_identity):
    if (path := _path()) is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
        Ceilings(facts)
        wanted = identity()
        return facts if {k: facts["identity"][k] for k in wanted} == wanted else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # any doubt is a miss


def _kept_facts(facts):
    if path := _path():
        with contextlib.suppress(Error):  # measured again in the next process
            write(path, json.dumps(facts))
    return facts


# ---- Profiles ---------------------------------------------------------------------------------------------------------


@functools.cache
def _kept():
    facts = _load(_processor)  # without asking for backends, which would import their libraries
    return facts and Ceilings(facts)


def tell_profiles():
    """Has profiles show the share of this machine's ceilings that kernels reach, if these are known: nothing
    is measured. What runs on this processor is compared with the best that it does, which is the backend cpu."""
    global _told
    made = _known or _kept()
    if made is None or "cpu" not in made.backends:
        return
    mlx = sys.modules.get("mlx.core")
    here = ["cpu", "numpy", "ref"]
    if mlx is not None and mlx.default_device().type == mlx.cpu:
        here.append("mlx")
    if _told == (made, here):
        return
    rates = made.backends["cpu"]
    bandwidth = [(n, speed / 1e9) for n, speed in rates.bandwidth()]
    for name in here:
        _core._set_ceiling(name, bandwidth, rates.peak() / 1e9)
    _told = made, here


# ---- Measuring --------------------------------------------------------------------------------------------------------


def measure():
    """Measures all live backends, and gives the facts as JSON can hold them."""
    with _core.span("measure ceilings"):
        return _measured(_identity())


def _arrays():
    return [np.linspace(0.5, 1.5, _ELEMENTS[-1], dtype=np.float32) for _ in range(3)]


def _measured(identity):
    names = identity["backends"]
    arrays = _arrays()
    out = np.zeros(_ELEMENTS[-1], np.float32)
    deadline = time.perf_counter() + _LIMIT_S
    share = _LIMIT_S / max(len(names), 1)
    backends = {}
    for i, name in enumerate(names):
        backends[name] = _backend(
            name, arrays, out, min(deadline, time.perf_counter() + share * (i + 1))
        )
    return {"identity": identity, "backends": backends}


def _compiled(text, parameters, backend, **names):
    scope = {"np": np, **names}
    exec(f"def ceiling({parameters}):\n{text}", scope)
    return Kernel(scope["ceiling"], backend)


def _seconds(call, least=3, budget=2e-3):
    """The median of as many calls as fit into the budget, at least `least`, or 2 of long ones; the first one
    is not timed."""
    begin = time.perf_counter()
    call()
    times, start = [], time.perf_counter()
    least, begin = (2 if start - begin > 3 * budget else least), start
    while len(times) < least or (time.perf_counter() - begin < budget and len(times) < 50):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _per_call(call, repeats=50):
    """Seconds of a short call: the lowest of some medians of a loop."""

    def loop():
        for _ in range(repeats):
            call()

    return _seconds(loop, 5, 0) / repeats


def _chain(steps, backend):
    # A number that nobody else uses: its first call is one of a new kernel.
    salt = repr(1 + float(np.random.default_rng().random()) * 1e-3)
    body = " x = a\n" + " x = x * b + c\n" * (steps - 1) + f" return x * b + {salt}\n"
    return _compiled(body, "a, b, c", backend)


def _backend(name, arrays, out, deadline):
    one = _compiled(" return a * b + c", "a, b, c", name)
    chain = _chain(STEPS, name)
    small = [a[:16] for a in arrays]
    begin = time.perf_counter()
    chain(*small, out=out[:16])
    first_call = time.perf_counter() - begin
    one(*small, out=out[:16])
    launch = _per_call(lambda: one(*small, out=out[:16]))

    passes, transfers, steps = [], [], []
    for n in _ELEMENTS[1:]:
        if len(passes) > 4 and time.perf_counter() + 12 * passes[-1][1] > deadline:
            break
        part, o = [a[:n] for a in arrays], out[:n]

        def call(part=part, o=o):
            one(*part, out=o)

        whole = _seconds(call)
        long = _seconds(lambda part=part, o=o: chain(*part, out=o))
        copies = _copies(call)
        # More work never takes less time: what seems so is noise.
        passes.append([16 * n, max(whole - launch, passes[-1][1] if passes else 0.05 * launch)])
        transfers.append([16 * n, min(copies * whole, passes[-1][1])])
        step = (long - whole) / (2 * STEPS - 2)
        steps.append([4 * n, max(step, steps[-1][1] if steps else 0.0)])
    # A pass over memory per operation, or next to nothing?
    at = min(len(steps) - 1, 5)
    fused = steps[at][1] < 0.25 * (passes[at][1] - transfers[at][1])
    cheap, speedup = _compute(name, arrays, out) if fused else (0.0, 1.0)
    if not fused:  # what `step` counts for the two operations of a*b+c
        launch = max(launch - 2 * steps[0][1], 0.2 * launch)
    return {
        "launch": launch,
        "first_call": first_call,
        "fused": fused,
        "speedup": speedup,
        "pass": passes,
        "transfer": transfers,
        "step": steps,
        "cheap": cheap,
        **_operations(name),
    }


def _least_cheap(first_call, arrays):
    """Seconds per element of a cheap operation on MLX's arrays."""
    import mlx.core as mx

    if first_call > 0.5:  # a GPU's compiler: nothing that counts beside memory
        return 1e-14
    kernel, part = _chain(64, "mlx"), [mx.array(a[:4096]) for a in arrays]
    return _seconds(lambda: mx.eval(kernel(*part))) / (4096 * 128)


def _own_arrays(facts):
    """On MLX's arrays a kernel is one pass: our native code, or what MLX's compiler makes."""
    import mlx.core as mx

    arrays, backends = _arrays(), facts["backends"]
    Kernel(lambda a: a + 1, "mlx")(
        mx.array(1.0)
    )  # what is made once is none of a kernel's first call
    one = _chain(1, "mlx")
    begin = time.perf_counter()
    small = [mx.array(a[:16]) for a in arrays]
    mx.eval(one(*small))
    first_call = time.perf_counter() - begin
    launch = _per_call(lambda: mx.eval(one(*small)))
    with Profiler() as p:
        mx.eval(one(*small))
    native = backends.get("cpu") if any(e.category == "launch" for e in p.events) else None
    passes, deadline = [], time.perf_counter() + _OWN_LIMIT_S
    for n in [*_ELEMENTS[1:], *_MORE_ELEMENTS]:
        if len(passes) > 4 and time.perf_counter() + 20 * (passes[-1][1] + launch) > deadline:
            break
        part = [mx.full(n, 0.5) for _ in arrays]
        mx.eval(part)
        whole = _seconds(lambda part=part: mx.eval(one(*part)))
        passes.append([12 * n, max(whole - launch, passes[-1][1] if passes else 0.05 * launch)])
    computed = native or {
        "cheap": _least_cheap(first_call, arrays),
        "speedup": 1.0,
        "operations": {},
    }
    return {
        "launch": launch,
        "first_call": first_call,
        "fused": True,
        "pass": passes,
        "transfer": [],
        "step": [],
        "lacks": [],
        **{key: computed[key] for key in ("cheap", "speedup", "operations")},
    }


def _copies(call):
    """The share of a call in which arrays are copied to a library and back."""
    with Profiler() as p:
        call()  # makes the instrumented twin
        call()
    events = p.events
    calls = [e for e in events if e.category == "call"]
    last = calls[-1]
    copied = sum(
        e.duration_ns
        for e in events
        if e.category in ("h2d", "d2h") and e.begin_ns >= last.begin_ns and e.tid == last.tid
    )
    return copied / last.duration_ns if last.duration_ns else 0.0


def _compute(name, arrays, out):
    """Seconds per element of a cheap operation in a kernel of many, and what threads gain in long calls."""
    kernel = _chain(64, name)

    def per_element(n):
        part, o = [a[:n] for a in arrays], out[:n]
        return _seconds(lambda: kernel(*part, out=o)) / (n * 128)

    cheap = per_element(4096)
    many = per_element(1 << 19) if _core.num_threads() > 1 else cheap
    return cheap, max(1.0, cheap / many)


def _operations(name):
    found, lacks = {}, []
    for dtype, operations in _MEASURED.items():
        x = np.linspace(*((1, _SAMPLE) if dtype.startswith("int") else (0.1, 0.9)), _SAMPLE).astype(
            dtype
        )
        y = x[::-1].copy()

        def seconds(expression, x=x, y=y):
            kernel = _compiled(f" return {expression}", "x, y", name)
            out = kernel(x, y)
            return _seconds(lambda: kernel(x, y, out=out), 5, 2e-4)

        base = None
        for operation in operations:
            try:
                if base is None:
                    base = seconds("x + y") if dtype != "float16" else 0.0
                whole = seconds(_DEAR.get(operation, "x * y"))
            except CompileError:  # what a backend refuses has no cost there
                continue
            except LaunchError:
                lacks.append(dtype)
                break
            found[f"{operation} {dtype}"] = max(whole - base, 0.0) / _SAMPLE
    return {"operations": found, "lacks": lacks}

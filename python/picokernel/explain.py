"""`Kernel.explain`, and the choice that `backend="auto"` makes."""

import math
import threading
from collections import OrderedDict

import numpy as np

from . import _core
from .ceilings import CANDIDATES, ceilings
from .cost_model import Work, predicted
from .errors import CompileError
from .report import columns, duration

_MOST_ELEMENTS = 1e10  # of the sizes that are looked at
_KEPT = 256  # choices of one kernel


def _library(value):
    """Whose array this is, or None."""
    if isinstance(value, np.ndarray):
        return "NumPy"
    if not hasattr(value, "shape") or isinstance(value, np.generic):
        return None
    package = type(value).__module__.partition(".")[0]
    return {"mlx": "MLX", "jaxlib": "jax"}.get(package, package)


def _considered(kernel, args, kwargs):
    """Work of this call, the backend whose library has its arrays (None: the host's memory), and by live
    backend the Cost or the CompileError with which it refuses."""
    plans, refused = {}, {}
    live = [name for name in CANDIDATES if _core.backends().get(name) == ""]
    # Sources are printed at once; native code, which takes anything, is compiled for nothing if it is not
    # the one that is called.
    for name in sorted(live, key=lambda name: name == "cpu"):
        if name == "cpu" and plans:
            continue
        try:
            plans[name] = kernel._plan(name, args, kwargs)
        except CompileError as error:
            refused[name] = error
    if not plans:
        raise refused[live[0]]
    work = Work.of(next(iter(plans.values())))
    home = "mlx" if any(_library(a) == "MLX" for a in (*args, *kwargs.values())) else None
    rates = ceilings(own_arrays=home is not None).backends
    for name in set(plans) & set(rates):
        lacked = {dtype for _, dtype, _ in work.operations} & set(rates[name].lacks)
        if lacked:
            refused[name] = CompileError(f"{', '.join(lacked)} is not computed on this device")
    costs = {
        name: refused[name] if name in refused else predicted(work, rates, name, home)
        for name in live
        if name in refused or name in rates
    }
    return work, home, costs


class Explanation:
    """Where a call's time would go on each live backend; `str()` is the text of it.

    `work`: bytes read and written and the operations. `costs`: by backend the predicted `Cost`, or the
    CompileError with which it refuses the kernel. `best`: the backend of the least predicted time.
    `measured`: by backend, seconds of earlier calls like this one with `backend="auto"`.
    """

    def __init__(self, kernel, args, kwargs):
        self.kernel = kernel.__name__
        self.work, self._home, self.costs = _considered(kernel, args, kwargs)
        names = [*kernel.parameters, *kwargs]
        given = [*zip(names, args, strict=False), *kwargs.items()]
        self.arrays = [(name, a) for name, a in given if _library(a)]
        known = _choices(kernel).known.get(_signature(args, kwargs))
        self.measured = dict(known.measured) if known else {}
        self._runs = {n: c for n, c in self.costs.items() if not isinstance(c, CompileError)}
        self.best = min(self._runs, key=lambda name: self._runs[name].seconds)

    def sizes(self):
        """[(first number of elements, backend)]: which backend is predicted to win from there on, for arrays
        of other sizes."""
        rates = ceilings().backends
        n = max((np.prod(a.shape, dtype=float) for _, a in self.arrays), default=1.0) or 1.0
        found, size = [], 1.0
        while size <= _MOST_ELEMENTS:
            work = self.work.scaled(size / n)
            costs = {name: predicted(work, rates, name, self._home) for name in self._runs}
            winner = min(costs, key=lambda name: costs[name].seconds)
            if not found or found[-1][1] != winner:
                found.append((math.ceil(size), winner))
            size *= 1.25
        return found

    def chains(self):
        """By backend: the least number of such calls in a row, on arrays that stay with its library, from
        which on it is predicted to win; None: never."""
        best, found = self._runs[self.best], {}
        for name, cost in self._runs.items():
            if name == self.best:
                continue
            gain = best.staying - cost.staying
            steps = (cost.transfer - best.transfer) / gain if gain > 0 else None
            found[name] = steps if steps is None else max(1, int(np.ceil(steps)))
        return found

    def __str__(self):
        w = self.work
        lines = [
            f"{self.kernel}: reads {_bytes(w.read)}, writes {_bytes(w.written)}, {_count(w.count)} operations"
            + (f", {w.count / w.bytes:.2g} a byte" if w.bytes else "")
        ]
        rows = [
            [
                name,
                _library(a),
                str(a.dtype).rpartition(".")[2],
                str(tuple(a.shape)),
                _bytes(a.nbytes),
            ]
            for name, a in self.arrays
        ]
        if rows:
            lines.append(columns(rows, {0, 1, 2, 3}).rstrip())
        head = ["backend", "launch", "copies", "memory", "compute", "a call", "bound", "first call"]
        rows = [head]
        for name, cost in self._runs.items():
            parts = (cost.launch, cost.transfer, cost.memory, cost.compute, cost.seconds)
            rows.append([name, *map(_time, parts), cost.bound, _time(cost.first_call)])
        lines += ["", columns(rows, {0, 6}).rstrip()]
        for name, cost in self.costs.items():
            if isinstance(cost, CompileError):
                lines.append(f"{name} refuses: {cost.msg.splitlines()[0]}")
        for name, seconds in self.measured.items():
            lines.append(f"measured on {name}: {_time(seconds)}")
        return "\n".join([*lines, "", *self._verdict()]) + "\n"

    def _verdict(self):
        others = sorted(c.seconds for n, c in self._runs.items() if n != self.best)
        ratio = others[0] / self._runs[self.best].seconds if others else 0.0
        times = f", {ratio:.1f} times as fast as the next" if ratio >= 1.05 else ""
        if 0 < ratio < 1.05:
            times = ", and the next as fast as far as can be told"
        yield f"here: {self.best}{times}"
        parts = [
            f"{name} from {_count(size)} elements on" if size > 1 else name
            for size, name in self.sizes()
        ]
        yield f"by size: {parts[0]}" + (" at every size" if len(parts) == 1 else "")
        for part in parts[1:]:
            yield f"         {part}"
        chains = {name: steps for name, steps in self.chains().items() if steps is not None}
        fastest = min(chains, key=lambda name: self._runs[name].staying, default=None)
        wins = [
            f"{name} from {_count(steps)} calls on"
            for name, steps in chains.items()
            if name == fastest or steps < chains[fastest]
        ]
        wins = ", ".join(wins) or f"{self.best} at every length"
        yield f"in a chain of such calls on arrays that stay with the backend: {wins}"
        if self._home:
            yield f"auto takes {self._home}, where the arrays are: nothing is copied, results stay lazy"

    __repr__ = __str__


def _bytes(n):
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f} B"


def _count(n):
    return f"{n:.0f}" if n < 1e4 else f"{n:.1e}".replace("e+0", "e").replace("e+", "e")


def _time(seconds):
    return duration(seconds * 1e9) if seconds else "0"


# ---- backend="auto" -----------------------------------------------------------------------------------------------------


class Choice:
    """The backend of calls of one kind: the least time by measurement, where there is one, else by
    prediction, which is corrected by how far it was off in other calls of this kernel."""

    def __init__(self, choices, predictions):
        self._choices = choices
        self.predicted = predictions
        self.measured = {}

    def seconds(self, backend):
        factor = self._choices.factors.get(backend, 1.0)
        return self.measured.get(backend) or self.predicted[backend] * factor

    @property
    def backend(self):
        return min(self.predicted, key=self.seconds)

    def observe(self, backend, seconds):
        """Learns from calls. Gives whether `backend` is still the one to take."""
        self.measured[backend] = seconds
        ratio = seconds / self.predicted[backend]
        self._choices.factors[backend] = (self._choices.factors.get(backend, ratio) + ratio) / 2
        return self.backend == backend

    def why(self):
        """A sentence for the trace."""
        parts = [
            f"{name} {_time(self.seconds(name))} {'measured' if name in self.measured else 'predicted'}"
            for name in sorted(self.predicted, key=self.seconds)
        ]
        return f"auto: {', '.join(parts)}"


class _Choices:
    """What one kernel has chosen and learnt."""

    def __init__(self):
        self.known = OrderedDict()  # signature -> Choice, the latest last
        self.factors = {}  # backend -> measured over predicted
        self.lock = threading.Lock()


def _choices(kernel):
    found = kernel.__dict__.get("_auto_choices")
    return found if found is not None else kernel.__dict__.setdefault("_auto_choices", _Choices())


def _signature(args, kwargs):
    def one(value):
        if isinstance(value, tuple):
            return tuple(map(one, value))
        if _library(value):
            return str(value.dtype), tuple(value.shape), getattr(value, "strides", None)
        return type(value)

    return tuple(map(one, args)), tuple((k, one(v)) for k, v in kwargs.items() if k != "backend")


def choose(kernel, args, kwargs):
    """(name of the backend, Choice) of this call."""
    choices, key = _choices(kernel), _signature(args, kwargs)
    with choices.lock:
        choice = choices.known.get(key)
    if choice is None:
        _, _, costs = _considered(kernel, args, {k: v for k, v in kwargs.items() if k != "backend"})
        seconds = {n: c.seconds for n, c in costs.items() if not isinstance(c, CompileError)}
        choice = Choice(choices, seconds)
    with choices.lock:
        choice = choices.known.setdefault(key, choice)
        choices.known.move_to_end(key)
        if len(choices.known) > _KEPT:
            choices.known.popitem(last=False)
    return choice.backend, choice

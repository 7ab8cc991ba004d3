"""Fair timing: a process per contender, rounds that go through the contenders in turn.

Two thread pools in one process fight, and these machines' speed drifts: so contenders never share a
process, and what is compared was measured in the same round. BLAS and pool variables are removed from
the environment, since some machines pin OpenBLAS to older kernels by such variables.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..errors import Error

_CLEARED = ("OPENBLAS_", "OMP_", "MKL_", "NUMBA_", "GOTO_")
# Requests and answers are lines of JSON; whatever else a contender prints goes to stderr. Contenders see
# `value` and `k`, the point at hand.
_WORKER = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
answers, sys.stdout = sys.stdout, sys.stderr
def answer(value): print(json.dumps(value), file=answers, flush=True)
spec = json.loads(sys.stdin.readline())
names = {}
exec(spec["setup"], names)
call = eval("lambda k: " + spec["call"], names)
def seconds(inner, k):
    begin = time.perf_counter()
    for _ in range(inner): call(k)
    return (time.perf_counter() - begin) / inner
def seconds_after_idling(inner, k):
    times = []
    for _ in range(inner):
        time.sleep(spec["idle_s"])
        times.append(seconds(1, k))
    return sorted(times)[inner // 2]
timed = seconds_after_idling if spec["idle_s"] else seconds
first = []
for k in spec["points"]:
    names["k"] = k
    took = seconds(1, k)
    exec(spec["check"], names)
    if took < 10: took = seconds(1, k)  # the first one compiled, too, on some devices for seconds
    first.append(took)
    if took > spec["most_s"] and len(first) >= spec["least_points"]: break
answer(first)
for line in sys.stdin:
    request = json.loads(line)
    if "value" in request: answer(eval(request["value"], names)); continue
    for _ in range(request["untimed"]): call(request["k"])
    answer(timed(request["inner"], request["k"]))
"""
_SLOW_S = 0.2  # calls from here on are timed without an untimed one before


@dataclass
class Contender:
    """Three pieces of Python: what to do before, the expression to time, what must hold after it.

    The expression sees one of `points` as `k`. `idle_s` seconds pass before each timed call; they are
    no part of its time. Once a call took longer than `most_s` the points after it are left out, but
    for the first `least_points`.
    """

    name: str
    setup: str
    call: str
    check: str = ""
    environment: dict | None = None
    idle_s: float = 0.0
    points: tuple = (None,)
    most_s: float = 1e9
    least_points: int = 1


class _Process:
    """A contender that runs: its first calls are made and its results are right."""

    def __init__(self, contender):
        self.name, self._idle_s = contender.name, contender.idle_s
        environment = {k: v for k, v in os.environ.items() if not k.startswith(_CLEARED)}
        environment |= contender.environment or {}
        self._stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            env=environment,
        )
        spec = {k: v for k, v in vars(contender).items() if k not in ("name", "environment")}
        try:
            self.first_s = dict(zip(contender.points, self._ask(spec), strict=False))
        except BaseException:
            self.end()
            raise

    def _ask(self, request):
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._stderr.seek(0)
            last = (self._stderr.read().strip().splitlines() or ["no message"])[-1]
            raise Error(last)
        return json.loads(line)

    def value(self, expression):
        """What the expression gives there; it becomes JSON."""
        return self._ask({"value": expression})

    def begin_turn(self):
        """One untimed call where `seconds` makes none: the others may have taken this one's free memory."""
        k, first_s = next(iter(self.first_s.items()))
        if first_s >= _SLOW_S:
            self._ask({"inner": 1, "untimed": 0, "k": k})

    def seconds(self, inner, k):
        """Seconds per call of `inner` calls, after two untimed ones, fewer where calls are long."""
        untimed = 0 if self.first_s[k] >= _SLOW_S else 1 if self.first_s[k] >= 0.05 else 2
        return self._ask({"inner": inner, "untimed": untimed, "k": k})

    def calibrated(self, block_s, k):
        """How many calls last for about `block_s` seconds."""
        inner, took = 1, self.first_s[k]
        for _ in range(2):
            if took + self._idle_s >= block_s:
                return inner
            inner = max(1, int(block_s / max(took + self._idle_s, 1e-7)))
            took = self.seconds(inner, k)
        return max(1, int(block_s / max(took + self._idle_s, 1e-7)))

    def end(self):
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._process.wait()
        self._stderr.close()


@contextlib.contextmanager
def running(contenders, starters=2):
    """The processes of those contenders that could start, in order; `starters` start at a time."""

    def start(contender):
        try:
            return _Process(contender)
        except Error as error:
            print(f"  {contender.name}: did not start ({error})", flush=True)

    processes = []
    try:
        with ThreadPoolExecutor(starters) as pool:
            for process in pool.map(start, contenders):
                processes += [process] if process is not None else []
        yield processes
    finally:
        for process in processes:
            process.end()


def rounds_of(processes, rounds=7, block_s=0.05, pause_s=0.15):
    """Seconds per call, name -> point -> all rounds.

    A round gives each contender, at each point, untimed calls and then a block of about `block_s`
    seconds; `pause_s` lets the one before park its workers.
    """
    inner = {p.name: {k: p.calibrated(block_s, k) for k in p.first_s} for p in processes}
    times = {p.name: {k: [] for k in p.first_s} for p in processes}
    for _ in range(rounds):
        for process in processes:
            time.sleep(pause_s)
            process.begin_turn()
            for k in process.first_s:
                times[process.name][k].append(process.seconds(inner[process.name][k], k))
    return times


def duel(contenders, rounds=7, block_s=0.05, pause_s=0.15):
    """Seconds per call, name -> all rounds, of those contenders that could start."""
    with running(contenders) as processes:
        times = rounds_of(processes, rounds, block_s, pause_s)
    return {name: rounds_at for name, points in times.items() for rounds_at in points.values()}


def medians(times):
    """name -> the median of its rounds."""
    return {name: statistics.median(rounds) for name, rounds in times.items()}


def ratio(times, ours, peers):
    """How much faster `ours` was than the peer of the best median: the median over rounds, or None."""
    middle = medians(times)
    there = [p for p in peers if p in times]
    if not there:
        return None
    best = min(there, key=middle.get)
    return statistics.median(his / mine for his, mine in zip(times[best], times[ours], strict=True))

"""Fair timing: a process per contender, rounds that go through the contenders in turn.

Two thread pools in one process fight, and these machines' speed drifts: so contenders never share a
process, and what is compared was measured in the same round. BLAS and pool variables are removed from
the environment, since some machines pin OpenBLAS to older kernels by such variables.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

_CLEARED = ("OPENBLAS_", "OMP_", "MKL_", "NUMBA_", "GOTO_")
_WORKER = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
spec = json.loads(sys.stdin.readline())
names = {}
exec(spec["setup"], names)
call = eval("lambda: " + spec["call"], names)
call(); call()
exec(spec["check"], names)
print("ready", flush=True)
def back_to_back(inner):
    begin = time.perf_counter()
    for _ in range(inner): call()
    return time.perf_counter() - begin
def after_idling(inner):
    times = []
    for _ in range(inner):
        time.sleep(spec["idle_s"])
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return sorted(times)[inner // 2] * inner
block = after_idling if spec["idle_s"] else back_to_back
for line in sys.stdin:
    inner = int(line)
    call(); call()
    print(block(inner) / inner, flush=True)
"""


@dataclass
class Contender:
    """Three pieces of Python: what to do before, the expression to time, what must hold after it.

    `idle_s` seconds pass before each timed call; they are no part of its time.
    """

    name: str
    setup: str
    call: str
    check: str = ""
    environment: dict | None = None
    idle_s: float = 0.0


def duel(contenders, rounds=7, block_s=0.05, pause_s=0.15):
    """Seconds per call, name -> all rounds, of those contenders that could start.

    A round gives each contender two untimed calls and then a block of about `block_s` seconds;
    `pause_s` lets the one before park its workers.
    """
    with ThreadPoolExecutor(2) as starters:  # most of a start is one thread's work, and of memory
        started = zip(contenders, starters.map(_start, contenders), strict=True)
        processes = {c.name: process for c, process in started if process is not None}
    idle = {contender.name: contender.idle_s for contender in contenders}
    inner = {name: _calibrate(p, block_s, idle[name]) for name, p in processes.items()}
    times = {name: [] for name in processes}
    for _ in range(rounds):
        for name, process in processes.items():
            time.sleep(pause_s)
            times[name].append(_ask(process, inner[name]))
    for process in processes.values():
        process.stdin.close()
        process.wait()
    return times


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


def _start(contender):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(_CLEARED)}
    environment |= contender.environment or {}
    process = subprocess.Popen(
        [sys.executable, "-c", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    spec = {name: getattr(contender, name) for name in ("setup", "call", "check", "idle_s")}
    process.stdin.write(json.dumps(spec) + "\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.strip() == "ready":
            return process
    last = (process.stderr.read().strip().splitlines() or ["no message"])[-1]
    print(f"  {contender.name}: did not start ({last})", flush=True)
    process.wait()
    return None


def _ask(process, inner):
    process.stdin.write(f"{inner}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def _calibrate(process, block_s, idle_s):
    inner = 1
    for _ in range(2):
        inner = max(1, int(block_s / max(_ask(process, inner) + idle_s, 1e-7)))
    return inner

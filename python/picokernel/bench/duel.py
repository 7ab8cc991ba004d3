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
for line in sys.stdin:
    inner = int(line)
    call(); call()
    begin = time.perf_counter()
    for _ in range(inner): call()
    print((time.perf_counter() - begin) / inner, flush=True)
"""


@dataclass
class Contender:
    """Three pieces of Python: what to do before, the expression to time, what must hold after it."""

    name: str
    setup: str
    call: str
    check: str = ""
    environment: dict | None = None


def duel(contenders, rounds=9, block_s=0.05, pause_s=0.15):
    """Seconds per call, name -> all rounds, of those contenders that could start.

    A round gives each contender two untimed calls and then a block of about `block_s` seconds;
    `pause_s` lets the one before park its workers.
    """
    processes = {}
    for contender in contenders:
        process = _start(contender)
        if process is not None:
            processes[contender.name] = process
    inner = {name: _calibrate(p, block_s) for name, p in processes.items()}
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
    """How much faster `ours` was than the best of `peers`: the median over rounds, or None."""
    rounds = [
        min(others) / mine
        for mine, *others in zip(times[ours], *(times[p] for p in peers if p in times), strict=True)
        if others
    ]
    return statistics.median(rounds) if rounds else None


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
    spec = {"setup": contender.setup, "call": contender.call, "check": contender.check}
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


def _calibrate(process, block_s):
    inner = max(1, int(block_s / max(_ask(process, 1), 1e-7)))
    return max(1, int(block_s / max(_ask(process, inner), 1e-7)))

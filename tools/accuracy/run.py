"""Measuring and checking, in one process per core."""

import concurrent.futures
import functools
import hashlib
import math
import multiprocessing
import os
import time

import numpy as np
import picokernel as pk
import report
import samples
import truth
from functions import FUNCTIONS, kernel_text
from picokernel import _core

TYPES = (np.float32, np.float64)
CHUNK = 1 << 22  # of the exhaustive runs: what lies in caches costs least
SPREAD = 4  # blocks of a check
BLOCKS = 64  # of a measurement by samples
EVERY = 16  # of the exhaustive runs' arguments, peers compute one
OURS, PEERS = ("strict", "fast"), ("numpy", "libm", "mlx")
BY_NAME = {f.name: f for f in FUNCTIONS}
SLACK = 0.01  # of long double against MPFR
MUST = {(np.float32, 1): 1.5, (np.float32, 2): 2, (np.float64, 1): 2, (np.float64, 2): 2}  # strict


@functools.cache
def expansion(function, dtype, fast):
    module = _core.parse(kernel_text(function, truth.NAMES[dtype], fast))[0]
    text = _core.run_pass(module, "expand_math").text(names=False)
    return text.replace(" accuracy fast", "")


def hashes(function, dtype):
    return {
        accuracy: hashlib.sha256(expansion(function, dtype, accuracy == "fast").encode()).hexdigest()[:16]
        for accuracy in ("strict", "fast")
    }  # fmt: skip


@functools.cache
def kernel(name, accuracy):
    function = BY_NAME[name]
    traced = function.traced
    if function.operands == 1:
        return pk.kernel(lambda x: traced(x), accuracy=accuracy)
    return pk.kernel(lambda x, y: traced(x, y), accuracy=accuracy)


def _mlx(function, arrays, out):
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    dtype = mx.float32 if out.dtype == np.float32 else mx.float64
    result = getattr(mx, function.mlx)(*(mx.array(a, dtype=dtype) for a in arrays))
    return np.asarray(result)


def contenders(function, dtype):
    """Name -> f(arrays, out), which gives the results."""
    found = {}
    same = expansion(function, dtype, False) == expansion(function, dtype, True)
    for accuracy in ("strict",) if same else ("strict", "fast"):
        k = kernel(function.name, accuracy)
        found[accuracy] = lambda arrays, out, k=k: k(*arrays, out=out, backend="cpu")
    found["numpy"] = lambda arrays, out: function.numpy(*arrays, out=out)
    if function.libm:
        found["libm"] = lambda arrays, out: truth.libm(function, arrays, out)
    if function.mlx and not pk.backends()["mlx"]:
        found["mlx"] = lambda arrays, out: _mlx(function, arrays, out)
    return found


class Result:
    """The worst of a contender: an error and where it is, and how many results are wrong in kind."""

    def __init__(self):
        self.error, self.at, self.wrong, self.wrong_at = 0.0, None, 0, None

    def add(self, other):
        if other.error > self.error:
            self.error, self.at = other.error, other.at
        self.wrong += other.wrong
        self.wrong_at = self.wrong_at or other.wrong_at
        return self


def measure_block(name, dtype, arrays, *, only=OURS + PEERS, confirm=True, of_peers=slice(None)):
    """Contender -> Result. Peers compute the part `of_peers`; `confirm`: by MPFR."""
    function = BY_NAME[name]
    want = truth.exact(function, arrays)
    results = {}
    with np.errstate(all="ignore"):
        for contender, compute in contenders(function, dtype).items():
            if contender not in only:
                continue
            if contender == PEERS[0]:
                arrays, want = ([a[of_peers].copy() for a in arrays], want[of_peers].copy())
            got = compute(arrays, np.empty(len(want), dtype))
            result = results[contender] = Result()
            result.error, at, result.wrong, wrong_at = truth.worst(got, want)
            if at >= 0:
                result.at = tuple(float(a[at]) for a in arrays)
                if confirm and dtype == np.float64:
                    result.error = truth.error_by_mpfr(function, result.at, got[at])
            if result.wrong:
                result.wrong_at = tuple(float(a[wrong_at]) for a in arrays)
    return results


def arrays_of(function, dtype, number, exhaustive, spread=SPREAD):
    if exhaustive:
        return (samples.all_float32(number * CHUNK, CHUNK),)
    if dtype == np.float32 and function.operands == 1:
        return (samples.spread_float32(number, spread),)
    return samples.block(function, dtype, number)


def _task(name, dtype, numbers, exhaustive, only=OURS + PEERS, spread=SPREAD):
    pk.set_num_threads(1)
    totals = {}
    for number in numbers:
        arrays = arrays_of(BY_NAME[name], dtype, number, exhaustive, spread)
        part = slice(number % EVERY, None, EVERY) if exhaustive else slice(None)
        block = measure_block(
            name, dtype, arrays, only=only, confirm=PEERS[0] in only, of_peers=part
        )
        for contender, result in block.items():
            totals.setdefault(contender, Result()).add(result)
    return totals


def _distrust(name):
    function = BY_NAME[name]
    arrays = samples.block(function, np.float64, BLOCKS)
    return truth.distrust(function, [a[:: len(a) // 4096].copy() for a in arrays])


def processes():
    # MLX does not live through a fork.
    return concurrent.futures.ProcessPoolExecutor(
        os.process_cpu_count()
        if hasattr(os, "process_cpu_count")
        else len(os.sched_getaffinity(0)),
        multiprocessing.get_context("spawn"),
    )


def merged(futures, tell=None):
    totals = {}
    for i, future in enumerate(concurrent.futures.as_completed(futures), 1):
        for contender, result in future.result().items():
            totals.setdefault(contender, Result()).add(result)
        if tell:
            tell(i / len(futures))
    return totals


def measure(names, again, spread=None):
    unknown = set(names) - BY_NAME.keys()
    if unknown:
        print(f"accuracy: no function {', '.join(sorted(unknown))}; these: {', '.join(BY_NAME)}")
        return 2
    table = report.load()
    wanted = [
        (f, t) for t in TYPES for f in FUNCTIONS
        if (not names or f.name in names)
        and (again or report.entry(table, f, t).get("hash") != hashes(f, t))
    ]  # fmt: skip
    begin = time.monotonic()
    with processes() as pool:
        for i, (function, dtype) in enumerate(wanted):
            unary32 = dtype == np.float32 and function.operands == 1
            exhaustive = unary32 and not spread
            blocks = spread if unary32 and spread else BLOCKS
            count = (1 << 32) // CHUNK if exhaustive else blocks
            label = f"{i + 1}/{len(wanted)} {function.name} {truth.NAMES[dtype]}"

            def tell(share, label=label):
                print(f"\r{label}: {share:4.0%}", end="", flush=True)

            start = time.monotonic()
            if dtype == np.float64:
                distrust = pool.submit(_distrust, function.name).result()
                if not distrust < SLACK:
                    print(f"{label}: long double is {distrust:.3f} units off, and no oracle")
                    return 1
            futures = [
                pool.submit(_task, function.name, dtype, range(n, min(n + 16, count)), exhaustive, spread=blocks)
                for n in range(0, count, 16)
            ]  # fmt: skip
            results = merged(futures, tell)
            results.setdefault("fast", results["strict"])
            report.record(table, function, dtype, hashes(function, dtype), results,
                          None if exhaustive else blocks * samples.BLOCK)  # fmt: skip
            report.write(table)
            words = ", ".join(f"{c} {r.error:.3g}" for c, r in results.items())
            print(f"\r{label}: {words}; {time.monotonic() - start:.0f} s", flush=True)
    print(f"{len(wanted)} measured in {time.monotonic() - begin:.0f} s")
    return 0


def check():
    """0 if the table is that of these expansions and holds on 2^22 arguments of each function."""
    table, wrong, begin = report.load(), [], time.monotonic()
    with processes() as pool:
        futures = {
            (f, t): pool.submit(_task, f.name, t, range(SPREAD), False, OURS)
            for t in TYPES
            for f in FUNCTIONS
        }
        for (f, t), future in futures.items():
            entry, label = report.entry(table, f, t), f"{f.name} {truth.NAMES[t]}"
            errors = entry.get("errors", {})
            for accuracy, must in (("strict", MUST[t, f.operands]), ("fast", 4)):
                if errors and not errors[accuracy]["error"] <= must:
                    wrong.append(f"{label}, {accuracy}: the table has more than {must} units")
            if entry.get("hash") != hashes(f, t):
                wrong.append(
                    f"{label}: the expansion is not the one that was measured: make accuracy"
                )
            for accuracy, result in future.result().items():
                recorded = errors.get(accuracy, {}).get("error", math.inf)
                if result.wrong:
                    wrong.append(f"{label}, {accuracy}: wrong at {result.wrong_at}")
                if not result.error <= recorded + SLACK:
                    wrong.append(
                        f"{label}, {accuracy}: {result.error:.3f} units off at {result.at},"
                        f" more than the table's {recorded:.3f}"
                    )
    if report.render(table) != report.PAGE.read_text():
        wrong.append(f"{report.PAGE.name} is not what the table says: tools/accuracy write")
    print("\n".join(wrong) or "the table holds", f"({time.monotonic() - begin:.0f} s)")
    return int(bool(wrong))

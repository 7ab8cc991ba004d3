"""Many threads: one compilation, right results, no more workers than there are CPUs for."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same, traces_of

THREADS = 16


def at_once(functions):
    """Runs the functions on a thread each, started together; gives their results."""
    barrier = threading.Barrier(len(functions))

    def run(function):
        barrier.wait(60)
        return function()

    with ThreadPoolExecutor(len(functions)) as pool:
        return [f.result(120) for f in [pool.submit(run, function) for function in functions]]


@pytest.fixture
def switching():
    """Threads take turns so often that they meet everywhere."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def compiles_of(profile):
    return sum(event.name.startswith("compile ") for event in profile.events)


def test_sixteen_threads_first_call_compiles_once(backend, switching):
    x = np.arange(1000, dtype=np.float32)

    def make(factor):
        @pk.kernel(backend=backend)
        def kernel(v):
            return v * factor

        return kernel

    for n in range(10):
        kernel = make(n + 0.1234)  # code of its own
        with pk.profile() as profile:
            results = at_once([lambda i=i, k=kernel: k(x + i) for i in range(THREADS)])
        for i, result in enumerate(results):
            assert_same(result, kernel.__wrapped__(x + i))
        assert traces_of(kernel, profile) == 1
        assert compiles_of(profile) == 1


def test_many_kernels_and_dtypes_at_once(backend, switching):
    def make(n):
        return pk.kernel(lambda v: (v * n + 1) / (v * v + n), backend=backend)

    kernels = [make(n) for n in range(1, 5)]
    dtypes = ["float32", "float64", "int32", "complex64"]
    if backend == "mlx":
        dtypes = ["float32", "int32"]

    def work(thread):
        for turn in range(12):
            kernel = kernels[(thread + turn) % len(kernels)]
            x = np.arange(1, 50).astype(dtypes[(thread // 4 + turn) % len(dtypes)])
            ulps = 4 if backend == "mlx" else 0
            with np.errstate(all="ignore"):
                assert_same(kernel(x), kernel.__wrapped__(x), ulps=ulps)

    at_once([lambda t=t: work(t) for t in range(THREADS)])


def test_constants_and_functions_at_once(switching):
    """Sets of constants are made, found and forgotten by all threads together."""

    @pk.kernel(backend="ref")
    def kernel(v, f, n):
        return f(v) ** n

    x = np.arange(4.0)

    def work(thread):
        for turn in range(60):
            shift = float(turn * THREADS + thread)  # never twice: forgotten soon
            assert_same(kernel(x, lambda v, shift=shift: v + shift, 2), (x + shift) ** 2)

    at_once([lambda t=t: work(t) for t in range(6)])
    plans, sets = kernel._kept()
    assert sets <= 257 + 6 and plans <= 1025 + 6


@pytest.fixture
def restored_threads():
    before = pk.num_threads()
    yield
    pk.set_num_threads(before)


def test_results_do_not_depend_on_the_number_of_threads(restored_threads):
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((2, 1_000_003)).astype(np.float32)

    @pk.kernel
    def kernel(x, y):
        return np.exp(np.sin(x) * y) / (1 + x * x), x[::-1] + np.where(x > y, x, y)

    results = []
    for threads in (1, 2, 3, 7):
        pk.set_num_threads(threads)
        assert pk.num_threads() == threads
        results.append(kernel(x, y))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert a.tobytes() == b.tobytes()


def test_a_thread_that_exits_before_its_result(backend):
    @pk.kernel(backend=backend)
    def kernel(x):
        return x * 2 + 1

    x = np.ones(300_000, np.float32)  # pooled by the thread that made it
    for _ in range(20):
        box = []
        thread = threading.Thread(target=lambda box=box: box.append(kernel(x)))
        thread.start()
        thread.join(60)
        assert box[0].min() == box[0].max() == 3
        box[0] += 1
        del box


def count_threads():
    return len(os.listdir("/proc/self/task"))


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="Linux has /proc")
def test_callers_from_many_threads_share_the_workers(restored_threads):
    pk.set_num_threads(3)

    @pk.kernel
    def kernel(x):
        return np.exp(x)

    x = np.linspace(0, 1, 2_000_000, dtype=np.float32)
    kernel(x)
    before = count_threads()
    most = []

    def work():
        for _ in range(5):
            kernel(x)
            most.append(count_threads())

    at_once([work] * 8)
    assert max(most) <= before + 8


def start(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


NUM_THREADS = "import picokernel as pk; print(pk.num_threads())"


def test_limits_on_threads():
    """Of cgroups: tests/runtime/cpu_limits_test.cpp, with files like the kernel's."""
    cpus = len(os.sched_getaffinity(0))
    plain = {"OMP_NUM_THREADS": "", "PICOKERNEL_NUM_THREADS": ""}
    assert 1 <= int(start(NUM_THREADS, **plain).stdout) <= cpus
    assert start(NUM_THREADS, **{**plain, "OMP_NUM_THREADS": "1"}).stdout == "1\n"
    assert start(NUM_THREADS, **{**plain, "PICOKERNEL_NUM_THREADS": "5"}).stdout == "5\n"
    pinned = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);" + NUM_THREADS
    assert start(pinned, **plain).stdout == "1\n"


@pytest.mark.parametrize("count", [0, -1, 1025, 10**30, -(10**30)])
def test_numbers_of_threads_out_of_range(count):
    with pytest.raises(pk.LaunchError, match="must be from 1 to 1024"):
        pk.set_num_threads(count)


CALL = """
import numpy as np, picokernel as pk
kernel = pk.kernel(lambda x: x + 1)
for _ in range(2):
    try:
        kernel(np.ones(3))
    except pk.LaunchError as error:
        print(error)
"""


@pytest.mark.parametrize("value", ["four", "0", "-1", "2.5", "100000"])
def test_a_number_of_threads_that_is_none(value):
    text = f"PICOKERNEL_NUM_THREADS is '{value}'; it takes a number from 1 to 1024\n"
    assert start(CALL, PICOKERNEL_NUM_THREADS=value).stdout.count(text) == 2
    # A number from the program stands in for it.
    assert start(
        CALL + "print(pk.set_num_threads(2), kernel(np.ones(1)))", PICOKERNEL_NUM_THREADS=value
    ).stdout.endswith("None [2.]\n")


@pytest.mark.skipif(pk.backends().get("cpu") != "", reason="the cpu backend is not live")
def test_a_cpu_that_is_none():
    run = start(CALL, PICOKERNEL_CPU="x86-64-v9", PICOKERNEL_BACKEND="")
    text = "backend `cpu` cannot run here: PICOKERNEL_CPU is `x86-64-v9`; it takes x86-64-v3 and"
    assert run.stdout.count(text) == 2
    assert start(CALL, PICOKERNEL_CPU="x86-64-v3", PICOKERNEL_BACKEND="").stdout == ""

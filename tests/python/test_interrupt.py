"""Ctrl-C during a launch: KeyboardInterrupt soon, and everything works afterwards."""

import subprocess
import sys
import textwrap

import picokernel as pk
import pytest

# The signal comes 0.2 s into a launch of many seconds. What is printed: how long Python's handler
# had to wait, in seconds. NumPy can be interrupted between its functions only: these are short.
PROGRAM = """
import os, signal, sys, threading, time
import numpy as np, picokernel as pk

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells' background jobs ignore it
backend, threads = sys.argv[1], int(sys.argv[2])
pk.set_num_threads(threads)

@pk.kernel(backend=backend)
def slow(x, y):
    for _ in range(8):
        x = np.gcd(x, y) - 1 + x
    return x

few = np.full(10, 7540113804746346429), np.full(10, 4660046610375530309)
want = slow(*few).copy()
many = [np.repeat(a, 30_000 if backend == "numpy" else 3_000_000) for a in few]
sent = []
def send():
    time.sleep(0.2)
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
for _ in range(2):
    threading.Thread(target=send).start()
    try:
        slow(*many)
    except KeyboardInterrupt:
        print(time.perf_counter() - sent[-1])
    else:
        sys.exit("not interrupted")
    assert (slow(*few) == want).all()
"""


RUNS = [("cpu", 1), ("cpu", 2), ("ref", 1), ("numpy", 1)]


@pytest.mark.parametrize(("backend", "threads"), [r for r in RUNS if pk.backends().get(r[0]) == ""])
def test_ctrl_c_ends_a_launch(backend, threads):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, backend, str(threads)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    waited = [float(line) for line in done.stdout.split()]
    assert len(waited) == 2 and all(w < 2 for w in waited), waited


def test_a_handler_that_returns_changes_nothing():
    program = textwrap.dedent("""
        import os, signal, threading, time
        import numpy as np, picokernel as pk
        seen = []
        signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        k = pk.kernel(lambda x, y: np.gcd(x, y))
        x = np.full(3_000_000, 7540113804746346429)
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
        while not seen:
            assert (k(x, x // 2 + 12345) == np.gcd(x[0], x[0] // 2 + 12345)).all()
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_out_of_memory_is_a_memory_error():
    import numpy as np

    k = pk.kernel(lambda x: x + 1)
    x = np.broadcast_to(np.float64(1), (1 << 20, 1 << 30))
    with pytest.raises(MemoryError):
        k(x)
    assert k(np.ones(3)).tolist() == [2, 2, 2]


def test_a_handler_may_rebind_what_the_launch_reads():
    program = textwrap.dedent("""
        import os, signal, threading
        import numpy as np, picokernel as pk
        pk.set_num_threads(1)
        table = np.full(3_000_000, 7540113804746346429)
        k = pk.kernel(lambda x: np.gcd(table, x))
        x, out, calls = np.full(3_000_000, 4660046610375530309), np.empty(3_000_000, np.int64), []
        def handler(*_):
            global table
            table = np.full(3_000_000, 6)
            calls.append(k(np.full(3_000_000, 4))[-1])
        signal.signal(signal.SIGINT, handler)
        while len(calls) < 5:
            table = np.full(3_000_000, 7540113804746346429)
            threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
            assert (k(x, out=out) == 1).all()
        assert set(calls) == {2}, calls
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr

"""fork, spawn, pools of processes, pickles, and Dask's tokens."""

import concurrent.futures
import copy
import enum
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import types

import numpy as np
import picokernel as pk
import pytest
from oracle import assert_same

X = np.arange(100_000, dtype=np.float32)
SCALE = 3
START_METHODS = multiprocessing.get_all_start_methods()
needs_fork = pytest.mark.skipif("fork" not in START_METHODS, reason="this system has no fork")


@pk.kernel
def scaled(x):
    return x * SCALE + 1


@pk.kernel(accuracy="fast", fastmath=True)
def fast(x):
    return np.exp(x)


def plain(x):
    return x + 7


plain_kernel = pk.kernel(plain, backend="numpy")


def make(factor, w):
    def helped(v, by=2):
        return v * factor + by

    @pk.kernel
    def kernel(x, n=2):
        return helped(x) ** n + w

    return kernel


def total(task):
    kernel, x = task
    return float(kernel(x).sum(dtype=np.float64))


@pytest.fixture
def fresh():
    """A hang of a child must not become one of the tests."""
    signal.alarm(300)
    yield
    signal.alarm(0)


def roundtrip(kernel):
    data = pickle.dumps(kernel)
    assert len(data) < 4000, len(data)
    return pickle.loads(data)


def test_module_level_kernels_go_by_name():
    for kernel in (scaled, fast):
        assert roundtrip(kernel) is kernel
        assert len(pickle.dumps(kernel)) < 100
    other = roundtrip(plain_kernel)  # its name is the function's
    assert other.__wrapped__ is plain and other.default_backend == "numpy"
    assert_same(other(X), X + 7)


def test_pickles_do_not_grow_by_calls(backend):
    w = np.ones(3, np.float32)
    kernel = make(2.5, w)
    before = pickle.dumps(kernel)
    kernel(X[:3], backend=backend)
    assert pickle.dumps(kernel) == before


def test_closures_go_with_what_they_capture():
    w = np.arange(3, dtype=np.float32)
    kernel = make(2.5, w)
    x = np.ones(3, np.float32)
    other = roundtrip(kernel)
    assert other is not kernel
    assert_same(other(x), kernel(x))
    assert_same(other(x, 3), kernel(x, 3))
    w += 1  # the other one has its own
    assert_same(other(x), kernel(x) - 1)
    assert other.__name__ == "kernel" and other.__qualname__ == kernel.__qualname__


class Colour(enum.Enum):
    RED = 2


def test_all_that_kernels_capture():
    def even(v, n):
        return v if n == 0 else odd(v * pair[0], n - 1)

    def odd(v, n):
        return even(v + pair[1].value, n - 1)

    pair = (2, Colour.RED)
    inner = pk.kernel(lambda v: np.sqrt(v) + SCALE)
    dtype = np.dtype("float64")
    half = np.float32(0.5)

    @pk.kernel
    def kernel(v):
        return inner(even(v, 4)).astype(dtype) * half if kernel and later_defined is None else v

    later_defined = None
    assert_same(roundtrip(kernel)(X), kernel(X))


def test_options_survive():
    def function(x):
        return np.exp(x)

    for options in ({}, {"accuracy": "fast"}, {"fastmath": True}, {"backend": "numpy"}):
        kernel = pk.kernel(function, **options)
        other = roundtrip(kernel)
        assert other.default_backend == kernel.default_backend
        assert other.source("numpy", X) == kernel.source("numpy", X)
        assert other.ir("kernel", X) == kernel.ir("kernel", X)


def test_what_cannot_travel_is_refused():
    table = {"a": 1}
    kernel = pk.kernel(lambda x: x * table["a"])
    with pytest.raises(pickle.PicklingError, match="the kernel reads 'table', a dict") as caught:
        pickle.dumps(kernel)
    assert "kernel '<lambda>' cannot be pickled" in str(caught.value)


def test_bytecode_of_another_python_is_refused(monkeypatch):
    from picokernel import pickling

    data = pickle.dumps(make(2, np.ones(1)))
    monkeypatch.setattr(pickling, "MAGIC_NUMBER", b"other")
    with pytest.raises(pickle.UnpicklingError, match="another version of Python"):
        pickle.loads(data)


def test_copies_are_the_kernel_itself():
    for kernel in (scaled, make(2, np.ones(3))):
        assert copy.copy(kernel) is kernel and copy.deepcopy(kernel) is kernel
        assert copy.deepcopy({"k": [kernel]})["k"][0] is kernel


def test_cloudpickle():
    cloudpickle = pytest.importorskip("cloudpickle")
    assert pickle.loads(cloudpickle.dumps(scaled)) is scaled
    kernel = make(2.5, np.ones(3, np.float32))
    data = cloudpickle.dumps(kernel)
    assert len(data) < 8000
    kernel(X[:3])
    assert len(cloudpickle.dumps(kernel)) == len(data)
    assert_same(pickle.loads(data)(X[:3]), kernel(X[:3]))
    by_function = pickle.loads(cloudpickle.dumps(lambda x: kernel(x) + 1))
    assert_same(by_function(X[:3]), kernel(X[:3]) + 1)


NOTEBOOK = """
import pickle, sys
import numpy as np, picokernel as pk
K = 2.5
def helper(v): return v * K
@pk.kernel
def kernel(v): return helper(v) + np.float32(1)
kernel(np.ones(3, np.float32))
sys.stdout.buffer.write(pickle.dumps(kernel))
"""


def test_kernels_of_main_run_in_a_process_without_it():
    dumped = subprocess.run(
        [sys.executable, "-c", NOTEBOOK], capture_output=True, timeout=120, check=True
    )
    load = "import pickle, sys, numpy as np; k = pickle.load(sys.stdin.buffer);"
    load += "print(k(np.ones(3, np.float32)))"
    run = subprocess.run(
        [sys.executable, "-c", load], input=dumped.stdout, capture_output=True, timeout=120
    )
    assert run.stdout == b"[3.5 3.5 3.5]\n", run.stderr.decode()


@pytest.mark.parametrize("method", START_METHODS)
def test_pools_of_processes(method, fresh):
    kernels = [scaled, fast, make(2.5, np.float32(1))]
    tasks = [(k, X[:1000] / 1000) for k in kernels] * 2
    want = [total(t) for t in tasks]  # threads and kernels are there before
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert pool.map_async(total, tasks).get(240) == want
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(total, tasks, timeout=240)) == want


def test_joblib(fresh):
    joblib = pytest.importorskip("joblib")
    tasks = [(k, X[:1000]) for k in (scaled, make(2.5, np.float32(1)))]
    got = joblib.Parallel(2, timeout=240)(joblib.delayed(total)(t) for t in tasks)
    assert got == [total(t) for t in tasks]


def child_exit(function):
    """Forks; the exit status of the child: 0 if the function says True, 99 if it hangs."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, lambda *_: os._exit(99))
        signal.alarm(100)
        try:
            ok = function()
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            ok = False
        os._exit(0 if ok else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@needs_fork
def test_a_child_computes_what_its_parent_does(fresh, backend):
    if backend == "mlx":
        pytest.skip("devices are not for forked children")
    before = pk.num_threads()
    pk.set_num_threads(4)
    try:
        want = scaled(X, backend=backend)
        new = make(1.5, np.float32(2))

        def both():
            assert_same(scaled(X, backend=backend), want)
            assert_same(new(X, backend=backend), new.__wrapped__(X))
            return pk.num_threads() == 4

        assert child_exit(both) == 0
        assert child_exit(lambda: child_exit(both) == 0) == 0
        assert_same(scaled(X, backend=backend), want)
    finally:
        pk.set_num_threads(before)


@needs_fork
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_two_hundred_forks_while_one_thread_compiles_and_one_launches(fresh):
    before = pk.num_threads()
    pk.set_num_threads(3)
    done, failures = threading.Event(), []
    large = np.linspace(0, 1, 1_000_000, dtype=np.float32)
    want = scaled(large)

    def guarded(function):
        try:
            while not done.is_set():
                function()
        except Exception as error:
            failures.append(error)

    numbers = iter(range(1_000_000))

    @pk.kernel
    def shared(x, scale):
        return x * int(scale) + 0.5

    def compiles():
        n = next(numbers)
        assert_same(shared(X[:10], str(n)), X[:10] * n + np.float32(0.5))

    def launches():
        assert_same(scaled(large), want)

    threads = [threading.Thread(target=guarded, args=(f,)) for f in (compiles, launches)]
    for thread in threads:
        thread.start()
    try:
        for i in range(200):

            def child(i=i):
                assert_same(scaled(X), X * SCALE + 1)
                if i % 5 == 0:  # its lock may have been taken when this process was made
                    assert_same(shared(X[:10], f"-{i}"), X[:10] * -i + np.float32(0.5))
                return True

            assert child_exit(child) == 0, i
    finally:
        done.set()
        for thread in threads:
            thread.join(100)
        pk.set_num_threads(before)
    assert failures == []


TOKEN = """
import numpy as np, picokernel as pk
K, W = 2, np.arange(3)
def helper(v): return v * K + W
@pk.kernel
def kernel(v): return helper(v) if v.ndim in {1, 2, "a", "b"} else v
print(kernel.__dask_tokenize__())
"""


LONG = """
import multiprocessing, os, signal, sys, threading, time
import numpy as np, picokernel as pk

def heavy(x):
    for _ in range(60):
        x = np.sin(x) + 0.1
    return x

def fork():
    if (child := os.fork()) == 0:
        os._exit(0)
    os.waitpid(child, 0)

def pool():
    with multiprocessing.get_context("fork").Pool(1) as workers:
        workers.map(abs, [1])

done = []
def act(*_):
    {"fork": fork, "pool": pool, "threads": lambda: pk.set_num_threads(2)}[sys.argv[2]]()
    done.append(time.perf_counter())

pk.set_num_threads(3)
k, x = pk.kernel(heavy), np.ones(4_000_000)
want = k(x[:1])[0]
if sys.argv[1] == "handler":
    signal.signal(signal.SIGALRM, act)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
else:
    threading.Timer(0.1, act).start()
got = k(x)
while not done:
    time.sleep(0.01)
assert (got == want).all() and k(x[:1])[0] == want
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", ["fork", "pool", "threads"])
@pytest.mark.parametrize("who", ["handler", "thread"])
def test_while_the_main_thread_is_in_a_long_launch(who, what):
    """Nothing that a launch holds is waited for by who holds the interpreter's lock."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LONG, who, what], capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_tokens_are_equal_in_all_processes():
    def token(code, seed):
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout

    assert token(TOKEN, "1") == token("# moved\n\n" + TOKEN, "2")


def test_tokens_depend_on_code_options_and_captures():
    def module(text, **options):
        space = types.ModuleType("m")
        exec(text, space.__dict__)
        return pk.kernel(space.function, **options)

    text = "import numpy as np\nK = 2\ndef helper(v, by=1): return v * K + by\n"
    text += "W = np.arange(3)\ndef function(v): return helper(v) + W"
    texts = [text]
    for old, new in (
        ("K = 2", "K = 3"),
        ("K = 2", "K = 2.0"),
        ("* K", "- K"),
        ("by=1", "by=2"),
        ("arange(3)", "ones(3)"),
        ("+ W", "- W"),
    ):
        assert old in text
        texts.append(text.replace(old, new))
    kernels = [module(t) for t in texts]
    kernels += [module(text, accuracy="fast"), module(text, fastmath=True)]
    kernels += [module(text, backend="numpy")]
    tokens = [k.__dask_tokenize__() for k in kernels]
    assert len(set(tokens)) == len(tokens)
    assert module(text).__dask_tokenize__() == tokens[0]
    kernels[0](np.ones(3))
    assert kernels[0].__dask_tokenize__() == tokens[0]
    assert pickle.loads(pickle.dumps(kernels[0])).__dask_tokenize__() == tokens[0]


def test_dask(fresh):
    dask_base = pytest.importorskip("dask.base")
    dask = pytest.importorskip("dask")
    kernel = make(2.5, np.float32(1))
    assert dask_base.tokenize(kernel) == dask_base.tokenize(pickle.loads(pickle.dumps(kernel)))
    assert dask_base.tokenize(kernel) != dask_base.tokenize(make(3.5, np.float32(1)))
    tasks = [dask.delayed(kernel)(X[:10] + i) for i in range(3)]
    for scheduler in ("threads", "processes"):
        for i, got in enumerate(dask.compute(*tasks, scheduler=scheduler)):
            assert_same(got, kernel(X[:10] + i))

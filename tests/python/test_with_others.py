"""picokernel in one process with other libraries that compile: each works, whoever came first."""

import importlib.util
import subprocess
import sys

import pytest

# Each imports its library, and checks a result with it.
USES = {
    "picokernel": """
        import picokernel as pk
        for backend, reason in pk.backends().items():
            if not reason:
                kernel = pk.kernel(lambda x: np.sin(x) * 2 + 1, backend=backend)
                np.testing.assert_allclose(kernel(X), np.sin(X) * 2 + 1, rtol=1e-5, atol=1e-6)
    """,
    "numba": """
        import numba
        @numba.vectorize(["float32(float32)"])
        def ufunc(x):
            return x * 2 + 1
        @numba.njit(parallel=True, fastmath=True)
        def total(x):
            s = 0.0
            for i in numba.prange(x.size):
                s += x[i]
            return s
        np.testing.assert_array_equal(ufunc(X), X * 2 + 1)
        np.testing.assert_allclose(total(X), X.sum(dtype=float), rtol=1e-5)
    """,
    "jax": """
        import jax
        np.testing.assert_allclose(jax.jit(lambda x: x * 2 + 1)(X), X * 2 + 1, rtol=1e-6)
        if (pk := sys.modules.get("picokernel")) is not None:
            got = pk.kernel(lambda x: x * 2 + 1)(jax.numpy.asarray(X))
            assert isinstance(got, jax.Array)
            np.testing.assert_array_equal(np.asarray(got), X * 2 + 1)
    """,
    "mlx": """
        import mlx.core as mx
        np.testing.assert_allclose(np.array(mx.compile(lambda x: x * 2 + 1)(mx.array(X))), X * 2 + 1)
    """,
    "pyopencl": """
        import pyopencl as cl
        context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
        queue = cl.CommandQueue(context)
        program = cl.Program(context, '''
            kernel void twice(global const float* x, global float* o) {
                size_t i = get_global_id(0);
                o[i] = x[i] * 2 + 1;
            }''').build()
        flags, out = cl.mem_flags, np.empty_like(X)
        x = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=X)
        o = cl.Buffer(context, flags.WRITE_ONLY, X.nbytes)
        program.twice(queue, X.shape, None, x, o)
        cl.enqueue_copy(queue, out, o).wait()
        np.testing.assert_array_equal(out, X * 2 + 1)
    """,
}
ORDERS = [
    ["picokernel", "numba", "jax", "mlx", "pyopencl"],
    ["pyopencl", "mlx", "jax", "numba", "picokernel"],
    ["numba", "pyopencl", "picokernel", "jax", "mlx"],
    ["jax", "mlx", "picokernel", "pyopencl", "numba"],
]


def why_missing(name):
    """Empty if the library is there; for OpenCL, with a platform."""
    if importlib.util.find_spec(name) is None:
        return f"{name} is not installed"
    if name != "pyopencl":
        return ""
    probe = "import pyopencl as cl; cl.get_platforms()[0].get_devices()[0]"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, timeout=120)
    return "OpenCL has no device here: apt-get install pocl-opencl-icd" if run.returncode else ""


@pytest.fixture(scope="module")
def missing():
    return {name: why for name in USES if (why := why_missing(name))}


def run_in_order(names):
    """Imports and uses them in order, and then, all imported, uses each again."""
    lines = ["import sys, textwrap", "import numpy as np"]
    lines += ["X = np.linspace(-3, 3, 200_001, dtype=np.float32)", f"USES = {USES!r}"]
    for name in names * 2:
        lines += [
            f"print({name!r}, flush=True)",
            f"exec(textwrap.dedent(USES[{name!r}]), globals())",
        ]
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=600
    )
    assert run.returncode == 0, f"after {run.stdout.split()}:\n{run.stderr[-3000:]}"
    assert run.stdout.split() == names * 2


@pytest.mark.parametrize("other", [name for name in USES if name != "picokernel"])
def test_beside_one_other(other, missing):
    if other in missing:
        pytest.skip(missing[other])
    run_in_order(["picokernel", other])
    run_in_order([other, "picokernel"])


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(order))
def test_beside_all_others(order, missing):
    present = [name for name in order if name not in missing]
    if len(present) == 1:
        pytest.skip("; ".join(missing.values()))
    run_in_order(present)

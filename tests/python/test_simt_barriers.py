"""Kernels whose threads meet: barriers, shared memory, and what the checker finds in them."""

import numpy as np
import picokernel as pk
import pytest
from picokernel import simt

LIVE = [name for name, why_not in simt.backends().items() if not why_not]


@pytest.fixture
def rng():
    return np.random.default_rng(8)


def checked(kernel, grid, block, *args):
    with pytest.raises(pk.KernelError) as e, pk.use("ref"):
        kernel[grid, block](*args)
    return str(e.value)


@pytest.fixture(params=[("ref", 0), ("ref", 1), ("ref", 2), ("cpu", 0), ("opencl", 0)], ids=str)
def jit(request):
    """Several orders of threads, and native code, and a device's."""
    backend, seed = request.param
    if backend not in LIVE:
        pytest.skip(f"{backend} does not run here")
    return simt.jit(backend=backend, seed=seed)


def test_a_return_before_a_barrier(jit):
    """Case S01."""

    @jit
    def reverse(out, n):
        tid = simt.threadIdx.x
        s = simt.shared.array(32, simt.int32)
        if tid >= n:
            return
        s[tid] = tid + 1
        simt.syncthreads()
        out[tid] = s[n - 1 - tid]

    out = np.zeros(25, np.int32)
    reverse[1, 32](out, 25)
    assert out.tolist() == list(range(25, 0, -1))


def test_barriers_in_loops_and_branches_behind_a_return(jit):
    @jit
    def sums(x, out, rounds):
        tid, i = simt.threadIdx.x, simt.grid(1)
        s = simt.shared.array(64, simt.float32)
        s[tid] = 0
        if i >= x.size:
            return
        s[tid] = x[i]
        simt.syncthreads()
        half = simt.blockDim.x // 2
        while half > 0:
            if tid < half:
                s[tid] += s[tid + half]
            simt.syncthreads()
            half //= 2
        for r in range(rounds):
            if rounds > 2:
                simt.syncthreads()
                if tid == 0:
                    s[0] += r
            else:
                simt.syncthreads()
            last = r
        low = simt.syncthreads_count(tid < 5)
        if low > 0 and tid == 0:
            out[simt.blockIdx.x] = s[0] + 1000 * last

    x = np.arange(150, dtype=np.float32)
    for rounds in (1, 4):
        out = np.zeros(3, np.float32)
        sums[3, 64](x, out, rounds)
        more = 6 if rounds == 4 else 0
        expected = [x[b : b + 64].sum() + more + 1000 * (rounds - 1) for b in (0, 64, 128)]
        assert out.tolist() == expected


def test_threads_that_return_inside_of_a_loop_with_barriers(jit):
    @jit
    def run(out, n):
        tid = simt.threadIdx.x
        s = simt.shared.array(16, simt.int64)
        s[tid] = 0
        for k in range(n):
            if tid == k:
                return
            s[tid] += 1
            simt.syncthreads()
            if tid == simt.blockDim.x - 1:
                out[k] = s[tid - 1] if k < 3 else 100 + k
            simt.syncthreads()
        out[n] = simt.syncthreads_and(tid >= n)

    out = np.zeros(7, int)
    run[1, 8](out, 6)
    assert out.tolist() == [1, 2, 3, 103, 104, 105, 1]


def test_a_block_breaks_together(jit):
    @jit
    def search(x, out):
        tid = simt.threadIdx.x
        found = simt.shared.array(1, simt.int32)
        if tid == 0:
            found[0] = -1
        simt.syncthreads()
        for k in range(x.shape[0]):
            if x[k, tid] > 0:
                found[0] = k
            simt.syncthreads()
            if found[0] >= 0:
                break
            simt.syncthreads()
        if tid == 0:
            out[0] = found[0]

    x = np.zeros((5, 8), int)
    x[3, 2] = 1
    out = np.zeros(1, int)
    search[1, 8](x, out)
    assert out[0] == 3


def test_tiled_matmul(jit, rng):
    tile = 4

    @jit
    def matmul(a, b, c):
        sa = simt.shared.array(shape=(tile, tile), dtype=simt.float32)
        sb = simt.shared.array(shape=(tile, tile), dtype=simt.float32)
        x, y = simt.grid(2)
        tx, ty = simt.threadIdx.x, simt.threadIdx.y
        acc = simt.float32(0.0)
        for i in range(simt.gridDim.x):
            sa[ty, tx] = a[y, tx + i * tile] if y < a.shape[0] and tx + i * tile < a.shape[1] else 0
            sb[ty, tx] = b[ty + i * tile, x] if x < b.shape[1] and ty + i * tile < b.shape[0] else 0
            simt.syncthreads()
            for j in range(tile):
                acc += sa[ty, j] * sb[j, tx]
            simt.syncthreads()
        if y < c.shape[0] and x < c.shape[1]:
            c[y, x] = acc

    a, b = rng.random((9, 10), np.float32), rng.random((10, 11), np.float32)
    c = np.zeros((9, 11), np.float32)
    matmul[(3, 3), (tile, tile)](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-6)


def test_dynamic_shared_memory():
    @simt.jit(backend="ref")
    def reverse(x):
        s = simt.shared.array(0, simt.float32)
        i = simt.threadIdx.x
        s[i] = x[i]
        simt.syncthreads()
        x[i] = s[x.size - 1 - i]

    x = np.arange(8, dtype=np.float32)
    reverse[1, 8, 0, 32](x)
    assert x.tolist() == list(range(7, -1, -1))
    with pytest.raises(pk.KernelError, match=r"element 7 of `s`, which has those from 0 to 6"):
        reverse[1, 8, 0, 28](x)


def test_what_the_checker_finds_in_shared_memory():
    """Cases S03 and S06."""

    @simt.jit
    def missing_barrier(x):
        s = simt.shared.array(8, simt.float32)
        i = simt.threadIdx.x
        s[i] = x[i]
        x[i] = s[7 - i]

    text = checked(missing_barrier, 1, 8, np.zeros(8, np.float32))
    assert "`s`" in text and ("a race" in text or "nobody has written" in text)

    @simt.jit
    def across_blocks(a, b):
        i = simt.grid(1)
        a[i] = i
        simt.syncthreads()
        b[i] = a[(i + simt.blockDim.x) % a.size]

    text = checked(across_blocks, 2, 4, np.full(8, -1), np.zeros(8, int))
    assert "a race" in text and "blocks run in any order" in text

    @simt.jit
    def unwritten(out):
        s = simt.shared.array(8, simt.float32)
        if simt.threadIdx.x < 5:
            s[simt.threadIdx.x] = 1
        simt.syncthreads()
        if simt.threadIdx.x == 0:
            for k in range(8):
                out[0] += s[k]

    assert "element 5 of `s`, which nobody has written" in checked(unwritten, 1, 8, np.zeros(1))


def test_what_cpu_does_not_run():
    if "cpu" not in LIVE:
        pytest.skip("cpu does not run here")

    @simt.jit(device=True)
    def meet(n):
        if n:
            simt.syncthreads()

    @simt.jit
    def differs(x):
        meet(x[simt.threadIdx.x] > 0)

    @simt.jit
    def local(x):
        v = simt.local.array(100, simt.float32)
        v[0] = x[0]
        simt.syncthreads()
        x[0] = v[0]

    @simt.jit
    def dynamic(x):
        s = simt.shared.array(0, simt.float32)
        s[0] = x[0]

    @simt.jit
    def large(x):
        s = simt.shared.array(100_000, simt.float32)
        s[0] = x[0]

    for kernel, message in (
        (differs, "a barrier under a condition that may differ"),
        (local, "409600 bytes of shared memory and of its threads' local arrays"),
        (dynamic, "shared memory whose size the launch gives"),
        (large, "400000 bytes of shared memory"),
    ):
        with pytest.raises(pk.CompileError, match=rf'does not run {message}(.|\n)*backend="ref"'):
            kernel[1, 4](np.zeros(4))


def test_local_arrays_live_across_barriers(jit, rng):
    @jit
    def sort_and_share(x, out):
        mine = simt.local.array((2, 3), simt.float32)
        count = simt.local.array(1, simt.int64)
        s = simt.shared.array((8, 8), simt.float32)
        tx, ty = simt.threadIdx.x, simt.threadIdx.y
        i = simt.blockIdx.x * 64 + ty * 8 + tx
        count[0] = 0
        for k in range(3):
            mine[0, k] = x[i, k]
            simt.atomic.add(count, 0, k)
        for k in range(3):
            s[ty, tx] = mine[0, k]
            simt.syncthreads()
            mine[1, k] = s[tx, ty]  # of the thread on the other side of the diagonal
            simt.syncthreads()
        for k in range(3):
            out[i, k] = mine[0, k] - mine[1, 2 - k] + count[0]

    x = rng.integers(0, 99, (128, 3)).astype(np.float32)
    out = np.zeros_like(x)
    sort_and_share[2, (8, 8)](x, out)
    other = x.reshape(2, 8, 8, 3).transpose(0, 2, 1, 3).reshape(128, 3)
    np.testing.assert_array_equal(out, x - other[:, ::-1] + 3)


def test_values_that_live_across_barriers(jit, rng):
    """Of threads and of blocks; exchanged, carried by loops, and left by branches."""

    @jit
    def run(x, out, rounds, swap):
        tid, i = simt.threadIdx.x, simt.grid(1)
        s = simt.shared.array(32, simt.float64)
        a, b, k = x[i], x[i] * 2, 0
        s[tid] = a
        while k < rounds:
            simt.syncthreads()
            left = s[(tid + 1) % 32]
            a, b = b, a + left
            simt.syncthreads()
            if swap > k:
                s[tid] = b
                simt.syncthreads()
                a += s[31 - tid]
                votes = simt.syncthreads_count(a > b)
            else:
                votes = -1
                simt.syncthreads()
            if a > 50 and tid != 3:
                a = -a
            k += 1
            b += votes
        out[i] = a + 3 * b + k

    def expected(x, rounds, swap):
        s, tid = x.copy(), np.arange(32)
        a, b = x.copy(), 2 * x
        for k in range(rounds):
            a, b = b, a + s[(tid + 1) % 32]
            votes = -1
            if swap > k:
                s = b.copy()
                a = a + s[31 - tid]
                votes = (a > b).sum()
            a = np.where((a > 50) & (tid != 3), -a, a)
            b = b + votes
        return a + 3 * b + rounds

    for rounds, swap in ((0, 0), (1, 1), (4, 2), (5, 9)):
        x = rng.integers(-5, 6, 64).astype(float)
        out = np.zeros(64)
        run[2, 32](x, out, rounds, swap)
        for block in (slice(0, 32), slice(32, 64)):
            np.testing.assert_array_equal(out[block], expected(x[block], rounds, swap))


def test_histogram(jit, rng):
    @jit
    def histogram(x, bins):
        s = simt.shared.array(16, simt.int32)
        tid = simt.threadIdx.x
        if tid < 16:
            s[tid] = 0
        simt.syncthreads()
        for i in range(simt.grid(1), x.size, simt.gridsize(1)):
            simt.atomic.add(s, x[i], 1)
        simt.syncthreads()
        if tid < 16:
            simt.atomic.add(bins, tid, s[tid])

    x, bins = rng.integers(0, 16, 500).astype(np.uint8), np.zeros(16, np.int64)
    histogram[3, 64](x, bins)
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=16))


def test_atomics_on_a_threads_own_memory(jit):
    @jit
    def run(out):
        own = simt.local.array(2, simt.float32)
        numbers = simt.local.array(2, simt.int32)
        t = simt.threadIdx.x
        own[0] = t
        numbers[0] = 5
        out[t, 0] = simt.atomic.add(own, 0, 1.5) + own[0]
        out[t, 1] = simt.atomic.max(numbers, 0, t) + numbers[0]
        out[t, 2] = simt.atomic.cas(numbers, 0, 5, 9) + numbers[0]
        out[t, 3] = simt.atomic.cas(own, 0, t + 1.5, -1.0) + own[0]

    out = np.zeros((8, 4))
    run[1, 8](out)
    wanted = [[2 * t + 1.5, 5 + max(5, t), 14 if t < 6 else 2 * t, t + 0.5] for t in range(8)]
    assert out.tolist() == wanted

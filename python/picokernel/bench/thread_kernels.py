"""The kernels that `bench threads` measures. They are Numba's CUDA as well: with the import line
below changed, Numba's simulator runs this file."""

import math

import numpy as np

from picokernel import simt as cuda

TILE = 16
BINS = 256
THREADS = 256


@cuda.jit
def empty(a, b, c, d):
    pass


@cuda.jit
def mandelbrot(counts, left, top, step, iterations):
    j, i = cuda.grid(2)
    if i < counts.shape[0] and j < counts.shape[1]:
        cx, cy = left + step * np.float32(j), top + step * np.float32(i)
        x, y = np.float32(0), np.float32(0)
        count = 0
        for _ in range(iterations):
            xx, yy = x * x, y * y
            if xx + yy > np.float32(4):
                break
            y = np.float32(2) * x * y + cy
            x = xx - yy + cx
            count += 1
        counts[i, j] = count


@cuda.jit(device=True)
def normal(x):
    return np.float32(1) / (
        np.float32(1) + math.exp(np.float32(-1.5976) * x - np.float32(0.070566) * x * x * x)
    )


@cuda.jit
def black_scholes(S, K, t, r, v, o):
    i = cuda.grid(1)
    if i < o.size:
        width = v * math.sqrt(t[i])
        d = (math.log(S[i] / K[i]) + (r + v * v / np.float32(2)) * t[i]) / width
        o[i] = S[i] * normal(d) - K[i] * math.exp(-r * t[i]) * normal(d - width)


def _accelerations(bodies, out):
    tile = cuda.shared.array((4, THREADS), cuda.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    x, y, z = bodies[0, i], bodies[1, i], bodies[2, i]
    ax, ay, az = np.float32(0), np.float32(0), np.float32(0)
    for first in range(0, bodies.shape[1], THREADS):
        for c in range(4):
            tile[c, t] = bodies[c, first + t]
        cuda.syncthreads()
        for k in range(THREADS):
            dx, dy, dz = tile[0, k] - x, tile[1, k] - y, tile[2, k] - z
            square = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            inverse = np.float32(1) / math.sqrt(square)
            pull = tile[3, k] * inverse * inverse * inverse
            ax += dx * pull
            ay += dy * pull
            az += dz * pull
        cuda.syncthreads()
    out[0, i], out[1, i], out[2, i] = ax, ay, az


bodies_strict = cuda.jit(_accelerations)
bodies_fastmath = cuda.jit(fastmath=True)(_accelerations)


@cuda.jit
def stencil(u, o):
    tile = cuda.shared.array((TILE + 2, TILE + 2), cuda.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    j = cuda.blockIdx.x * TILE + tx + 1
    i = cuda.blockIdx.y * TILE + ty + 1
    inside = i < u.shape[0] - 1 and j < u.shape[1] - 1
    if inside:
        tile[ty + 1, tx + 1] = u[i, j]
        if ty == 0:
            tile[0, tx + 1] = u[i - 1, j]
        if ty == TILE - 1 or i == u.shape[0] - 2:
            tile[ty + 2, tx + 1] = u[i + 1, j]
        if tx == 0:
            tile[ty + 1, 0] = u[i, j - 1]
        if tx == TILE - 1 or j == u.shape[1] - 2:
            tile[ty + 1, tx + 2] = u[i, j + 1]
    cuda.syncthreads()
    if inside:
        around = tile[ty, tx + 1] + tile[ty + 2, tx + 1] + tile[ty + 1, tx] + tile[ty + 1, tx + 2]
        o[i, j] = np.float32(0.25) * around


@cuda.jit
def reduction(x, sums):
    partial = cuda.shared.array(THREADS, cuda.float32)
    t = cuda.threadIdx.x
    total = np.float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    partial[t] = total
    cuda.syncthreads()
    width = THREADS // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = partial[0]


@cuda.jit
def matmul(a, b, c):
    tile_a = cuda.shared.array((TILE, TILE), cuda.float32)
    tile_b = cuda.shared.array((TILE, TILE), cuda.float32)
    j, i = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for first in range(0, a.shape[1], TILE):
        tile_a[ty, tx] = a[i, first + tx]
        tile_b[ty, tx] = b[first + ty, j]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    c[i, j] = total


@cuda.jit
def histogram(data, counts):
    own = cuda.shared.array(BINS, cuda.int32)
    t = cuda.threadIdx.x
    for b in range(t, BINS, cuda.blockDim.x):
        own[b] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), data.size, cuda.gridsize(1)):
        cuda.atomic.add(own, data[i], 1)
    cuda.syncthreads()
    for b in range(t, BINS, cuda.blockDim.x):
        cuda.atomic.add(counts, b, own[b])

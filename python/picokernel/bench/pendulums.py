"""The script that `bench profilers` runs: pendulums, one part of the work in a kernel and the rest not."""

import numpy as np

import picokernel as pk


@pk.kernel
def swing(x, v, dt):
    a = -np.sin(x)
    w = v + a * dt
    return x + w * dt, w


def energy(x, v):
    return float(np.sum(v * v / 2 - np.cos(x)))


def as_text(x):
    return ",".join(f"{angle:.3f}" for angle in x[:1000].tolist())


def main(backend, pendulums, steps):
    x = np.linspace(0, 3, pendulums, dtype=np.float32)
    v = np.zeros_like(x)
    report = []
    for step in range(steps):
        x, v = swing(x, v, 0.01, backend=backend)
        if step % 100 == 0:
            report.append((energy(x, v), as_text(x)))
    return report

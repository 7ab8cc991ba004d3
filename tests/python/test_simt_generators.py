"""Random numbers of kernels of threads, against xoroshiro128+ in Python's integers."""

import math

import numpy as np
import pytest
from picokernel import simt
from picokernel.simt import random

WORD = 2**64 - 1


def rotated(x, k):
    return (x << k | x >> (64 - k)) & WORD


def step(state):
    first, second = state
    second ^= first
    result = sum(state) & WORD
    state[:] = rotated(first, 55) ^ second ^ (second << 14 & WORD), rotated(second, 36)
    return result


def jump(state):
    after = [0, 0]
    for word in (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922):
        for bit in range(64):
            if word >> bit & 1:
                after = [a ^ s for a, s in zip(after, state, strict=True)]
            step(state)
    state[:] = after


def started(seed, jumps):
    z = seed + 0x9E3779B97F4A7C15 & WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
    state = [z ^ z >> 31] * 2
    for _ in range(jumps):
        jump(state)
    return state


@pytest.mark.parametrize(("seed", "start"), [(1, 0), (0, 3), (2**63 + 5, 1), (-1, 0)])
def test_states_lie_apart_by_jumps(seed, start):
    states = random.create_xoroshiro128p_states(4, seed=seed, subsequence_start=start)
    assert states.tolist() == [started(seed & WORD, start + i) for i in range(4)]


@simt.jit
def draw(states, uniform, single, normal):
    i = simt.grid(1)
    if i < uniform.shape[0]:
        for k in range(uniform.shape[1]):
            uniform[i, k] = random.xoroshiro128p_uniform_float64(states, i)
            single[i, k] = random.xoroshiro128p_uniform_float32(states, i)
            normal[i, k] = random.xoroshiro128p_normal_float32(states, i)


def test_numbers(threads_backend):
    n, count = 5, 7
    states = random.create_xoroshiro128p_states(n, seed=42)
    plain = [list(map(int, state)) for state in states]
    uniform = np.zeros((n, count))
    single, normal = np.zeros((2, n, count), np.float32)
    draw.forall(n)(states, uniform, single, normal)
    for i, state in enumerate(plain):
        for k in range(count):
            assert uniform[i, k] == (step(state) >> 11) * 2.0**-53
            assert single[i, k] == np.float32((step(state) >> 11) * 2.0**-53)
            u, v = (np.float32((step(state) >> 11) * 2.0**-53) for _ in range(2))
            wanted = math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)
            assert normal[i, k] == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    assert states.tolist() == plain


@simt.jit
def draw_64(states, out):
    i = simt.grid(1)
    if i < out.size:
        out[i] = random.xoroshiro128p_normal_float64(states, i)


def test_normal_numbers_are_normal():
    out = np.zeros(40_000)
    draw_64.forall(out.size)(random.create_xoroshiro128p_states(out.size, seed=7), out)
    assert abs(out.mean()) < 0.02 and abs(out.std() - 1) < 0.02
    assert abs((abs(out) < 1).mean() - 0.6827) < 0.01


def test_no_generators_and_too_few():
    assert random.create_xoroshiro128p_states(0, seed=1).shape == (0, 2)
    with pytest.raises(ValueError, match="cannot be -1 generators"):
        random.create_xoroshiro128p_states(-1, seed=1)

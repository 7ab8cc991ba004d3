"""Random numbers in kernels of threads: xoroshiro128+, a generator for each thread, under Numba's names.

states = create_xoroshiro128p_states(threads, seed=1)

@simt.jit
def points(states, out):
    i = simt.grid(1)
    out[i] = xoroshiro128p_uniform_float32(states, i)

The algorithms are public: xoroshiro128+ with its first constants (55, 14, 36) and jumps of 2**64 steps
(Blackman and Vigna, prng.di.unimi.it), seeds through SplitMix64, normal numbers by Box and Muller. The
numbers are those that Numba gives for a seed."""

import math

import numpy as np

from .. import _core, use
from ..errors import LaunchError
from .kernel import jit

_UNIT = 2.0**-53
_TWO_PI_32, _TWO_PI_64 = np.float32(2 * math.pi), np.float64(2 * math.pi)
_JUMP = (np.uint64(0xBEAC0467EBA5FACB), np.uint64(0xD86B048B86AA9922))
_SPLIT_MIX = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)


@jit(device=True)
def _rotate(x, k):
    return (x << k) | (x >> (64 - k))


@jit(device=True)
def xoroshiro128p_next(states, index):
    """The next uint64 of the generator `states[index]`."""
    first, second = states[index, 0], states[index, 1]
    mixed = first ^ second
    states[index, 0] = _rotate(first, 55) ^ mixed ^ (mixed << 14)
    states[index, 1] = _rotate(mixed, 36)
    return first + second


@jit(device=True)
def xoroshiro128p_jump(states, index):
    """2**64 steps of the generator `states[index]` at once."""
    first, second = np.uint64(0), np.uint64(0)
    for word in range(2):
        jump = _JUMP[0] if word == 0 else _JUMP[1]
        for bit in range(64):
            if (jump >> np.uint64(bit)) & 1:
                first ^= states[index, 0]
                second ^= states[index, 1]
            xoroshiro128p_next(states, index)
    states[index, 0] = first
    states[index, 1] = second


@jit(device=True)
def xoroshiro128p_uniform_float64(states, index):
    """A float64 in [0, 1)."""
    return np.float64(xoroshiro128p_next(states, index) >> 11) * _UNIT


@jit(device=True)
def xoroshiro128p_uniform_float32(states, index):
    """A float32 in [0, 1]: the float64 rounded."""
    return np.float32(xoroshiro128p_uniform_float64(states, index))


@jit(device=True)
def xoroshiro128p_normal_float32(states, index):
    """A normally distributed float32 of mean 0 and deviation 1, of two steps."""
    u = xoroshiro128p_uniform_float32(states, index)
    v = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(-2 * math.log(u)) * math.cos(_TWO_PI_32 * v)


@jit(device=True)
def xoroshiro128p_normal_float64(states, index):
    """A normally distributed float64 of mean 0 and deviation 1, of two steps. As Numba's, it is made of
    two float32 numbers."""
    u = xoroshiro128p_uniform_float32(states, index)
    v = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(-2.0 * np.float64(math.log(u))) * math.cos(_TWO_PI_64 * v)


@jit
def _start(states, seed, jumps):
    z = seed + _SPLIT_MIX[0]
    z = (z ^ (z >> 30)) * _SPLIT_MIX[1]
    z = (z ^ (z >> 27)) * _SPLIT_MIX[2]
    z ^= z >> 31
    states[0, 0] = z
    states[0, 1] = z
    for _ in range(jumps):
        xoroshiro128p_jump(states, 0)
    for i in range(1, states.shape[0]):
        states[i, 0] = states[i - 1, 0]
        states[i, 1] = states[i - 1, 1]
        xoroshiro128p_jump(states, i)


def init_xoroshiro128p_states(states, seed, subsequence_start=0, stream=0):
    """Starts generators over: see create_xoroshiro128p_states."""
    if states.shape[0] > 0:
        with use("cpu" if _core.backends().get("cpu") == "" else "ref"):  # one thread does it
            _start[1, 1](states, np.uint64(seed % 2**64), subsequence_start)


def create_xoroshiro128p_states(n, seed, subsequence_start=0, stream=0):
    """n generators, 2**64 steps apart, the first one `subsequence_start` times 2**64 steps after the
    seed's start. They are an array of uint64 of shape (n, 2), for kernels to pass on."""
    if n < 0:
        raise LaunchError(
            f"there cannot be {n} generators\n  hint: one for each thread of the grid"
        )
    states = np.empty((n, 2), np.uint64)
    init_xoroshiro128p_states(states, seed, subsequence_start)
    return states

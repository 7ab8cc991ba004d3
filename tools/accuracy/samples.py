"""Arguments, in blocks that depend on the function's name, the type and a number alone: what `check`
looks at is part of what was measured."""

import functools
import zlib

import gmpy2
import numpy as np

BLOCK = 1 << 20
# Pairs that long searches found to be the worst of float32.
HARD_POWERS = [
    (0.8870699405670166, -738.6803588867188), (0.8870218992233276, -738.6054077148438),
    (0.8879141211509705, 725.487548828125), (0.8989545106887817, -758.3500366210938),
]  # fmt: skip


def all_float32(start, count):
    """The floats of these bit patterns."""
    return np.arange(start, start + count, dtype=np.uint64).astype(np.uint32).view(np.float32)


def spread_float32(number, blocks):
    """Every 2^12 / blocks-th of all bit patterns, about."""
    step = (1 << 32) // (BLOCK * blocks)
    rng = np.random.default_rng([32, number])
    bits = np.arange(number, BLOCK * blocks, blocks, dtype=np.uint64) * np.uint64(step)
    bits += rng.integers(0, step, len(bits), dtype=np.uint64)
    return bits.astype(np.uint32).view(np.float32)


def block(function, dtype, number):
    """The arguments of one block: a tuple of arrays."""
    rng = np.random.default_rng([zlib.crc32(function.name.encode()), dtype().itemsize, number])
    if function.operands == 1:
        return (_unary(function, rng),)
    pairs = {"power": _powers, "arctan2": _alike, "hypot": _alike}[function.name]
    return tuple(np.ascontiguousarray(a) for a in pairs(rng, dtype))


def _integers(dtype):
    return {4: np.uint32, 8: np.uint64}[dtype().itemsize]


def _any(rng, n, dtype):
    """All bit patterns alike, but for signalling NaNs, which functions of two may treat as they like."""
    bits = _integers(dtype)
    x = rng.integers(0, np.iinfo(bits).max, n, bits, endpoint=True).view(dtype)
    return np.where(np.isnan(x), dtype(np.nan), x)


def _magnitudes(rng, n, low, high, dtype):
    """All exponents between alike."""
    bits = _integers(dtype)
    ends = np.array([low, high], dtype).view(bits).astype(np.uint64)
    return rng.integers(ends[0], ends[1], n, np.uint64, endpoint=True).astype(bits).view(dtype)


def _near(rng, points):
    """Up to 2^45 units in the last place off."""
    steps = (2.0 ** rng.uniform(-1, 45, len(points))).astype(np.int64)
    at = points.view(np.int64)
    # From 0 into both signs.
    return np.where(at == 0, np.copysign(steps.view(np.float64), rng.normal(size=len(points))),
                    (at + steps * rng.choice([-1, 1], len(points))).view(np.float64))  # fmt: skip


def _unary(function, rng):
    """float64. An eighth is of all bit patterns, a quarter near the points, the rest in the ranges."""
    near = BLOCK // 4 if function.points else 0
    pieces = [_any(rng, BLOCK // 8, np.float64)]
    if function.points == "pi/2":
        pieces.append(_multiples_of_half_pi(rng, near))
    elif near:
        pieces.append(_near(rng, rng.choice(np.array(function.points), near)))
    rest = BLOCK - sum(map(len, pieces))
    for i, (low, high) in enumerate(function.ranges):
        n = rest // (len(function.ranges) - i)
        rest -= n
        if low < 0 or (i and high < 1e9):
            pieces.append(rng.uniform(low, high, n))
        else:
            x = _magnitudes(rng, n, low, high, np.float64)
            pieces.append(x * rng.choice([-1, 1], n))
    return np.concatenate(pieces)


def _multiples_of_half_pi(rng, n):
    """Near them, half of small ones; and the doubles of each exponent that come nearest."""
    hard = _nearest_to_half_pi()
    few = rng.choice(hard, n // 4) * rng.choice([-1.0, 1.0], n // 4)
    k = np.concatenate([
        rng.integers(1, 1000, (n - len(few)) // 2).astype(float),
        np.rint(2.0 ** rng.uniform(0, 60, n - len(few) - (n - len(few)) // 2)),
    ])  # fmt: skip
    return np.concatenate([few, _near(rng, k * (np.pi / 2))])


@functools.cache
def _nearest_to_half_pi():
    """Convergents of the continued fraction of 2^e / (pi/2) have as denominators the integers m for
    which m 2^e is nearest to a multiple of pi/2."""
    found = []
    with gmpy2.context(precision=1400):
        for e in range(-53, 972):
            ratio = gmpy2.exp2(e) / (gmpy2.const_pi() / 2)
            before, q = 0, 1  # denominators
            x = ratio
            for _ in range(60):
                x = x - gmpy2.floor(x)
                if x == 0:
                    break
                x = 1 / x
                a = int(gmpy2.floor(x))
                before, q = q, a * q + before
                if q >= 1 << 53:
                    # Those between the last two convergents.
                    q = (((1 << 53) - 1 - (q - a * before)) // before) * before + (q - a * before)
                    found.append(float(gmpy2.mpfr(q)) * 2.0**e)
                    found.append(float(gmpy2.mpfr(before)) * 2.0**e)
                    break
    return np.array(found)


def _specials(rng, n, dtype):
    limits = np.finfo(dtype)
    values = [0.0, 1.0, 2.0, 3.0, 0.5, limits.max, limits.tiny, limits.smallest_subnormal, np.inf]
    return rng.choice(np.array([*values, *(-v for v in values), np.nan], dtype), n)


def _powers(rng, dtype):
    """Results of all magnitudes, integer exponents, bases near 1, and anything."""
    n = BLOCK // 8
    limits = np.finfo(dtype)
    x, y = (
        [_any(rng, n, dtype), _specials(rng, n, dtype)],
        [_any(rng, n, dtype), _specials(rng, n, dtype)],
    )
    lowest, highest = np.log2(float(limits.smallest_subnormal)) - 1, float(limits.maxexp)
    off = [2.0 ** rng.uniform(-limits.nmant - 1, -1, n), rng.uniform(0, 0.2, n)]
    near = 1 + rng.choice([-1, 1], 2 * n) * np.concatenate(off)
    bases = [
        _magnitudes(rng, 2 * n, limits.smallest_subnormal, limits.max, dtype), near.astype(dtype),
    ]  # fmt: skip
    for base in bases:
        with np.errstate(all="ignore"):
            exponent = rng.uniform(lowest, highest, 2 * n) / np.log2(base.astype(np.longdouble))
        x.append(base)
        y.append(exponent.astype(dtype))
    x.append(_any(rng, 2 * n, dtype))
    y.append(rng.integers(-40, 40, 2 * n).astype(dtype) / dtype(2))
    x, y = np.concatenate(x), np.concatenate(y)
    x[: len(HARD_POWERS)], y[: len(HARD_POWERS)] = np.transpose(HARD_POWERS)
    return x, y


def _alike(rng, dtype):
    """Of exponents that differ by little, by more, and anything."""
    n, limits = BLOCK // 8, np.finfo(dtype)
    x, y = (
        [_any(rng, n, dtype), _specials(rng, n, dtype)],
        [_any(rng, n, dtype), _specials(rng, n, dtype)],
    )
    for count, bound in ((4 * n, 2), (2 * n, 64)):
        a = _magnitudes(rng, count, limits.smallest_subnormal, limits.max, dtype)
        with np.errstate(all="ignore"):
            b = (a.astype(np.longdouble) * 2.0 ** rng.uniform(-bound, bound, count)).astype(dtype)
        x.append(a * rng.choice([-1, 1], count).astype(dtype))
        y.append(b * rng.choice([-1, 1], count).astype(dtype))
    return np.concatenate(x), np.concatenate(y)

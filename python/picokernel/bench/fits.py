"""Straight lines through measured times, and where two of them cross."""

import math
from dataclasses import dataclass

# Student's t, 97.5 %, by degrees of freedom.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179)


def t_quantile(freedom):
    """Of the two-sided 95 % interval; beyond 12 degrees of freedom by Cornish and Fisher's expansion."""
    if freedom < 1:
        return math.inf
    z = 1.959964
    return _T[freedom - 1] if freedom <= len(_T) else z + (z**3 + z) / (4 * freedom)


@dataclass(frozen=True)
class Line:
    """y = intercept + slope * x, by least squares through `points` points (x, y); standard errors and
    covariance of the two. With two points there is no telling the errors: they are infinite."""

    intercept: float
    slope: float
    slope_error: float
    intercept_error: float
    covariance: float
    points: int

    def at(self, x):
        return self.intercept + self.slope * x


def fit(points):
    """The line through (x, y), of which there are two at least, with different x."""
    n = len(points)
    mean_x, mean_y = (sum(p[i] for p in points) / n for i in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    intercept = mean_y - slope * mean_x
    residue = sum((y - intercept - slope * x) ** 2 for x, y in points)
    variance = residue / (n - 2) if n > 2 else math.inf
    return Line(
        intercept,
        slope,
        math.sqrt(variance / spread),
        math.sqrt(variance * (1 / n + mean_x**2 / spread)),
        -variance * mean_x / spread,
        n,
    )


@dataclass(frozen=True)
class Crossover:
    """Where `other` becomes faster than `base`: at x = `at`, with 95 % between `low` and `high`.

    `kind` is "at"; "first": other is faster from x = 1 on; "until": it is faster up to `at`; "never":
    it is slower at 1 and its steps are dearer; "unclear": the slopes cannot be told apart, so that
    `at` is not to be told from never. `difference` of the slopes, base's less other's, has the
    standard error `error`.
    """

    kind: str
    at: float
    low: float
    high: float
    difference: float
    error: float


def crossover(base, other):
    """Of two lines. The interval is Fieller's."""
    difference = base.slope - other.slope
    error = math.hypot(base.slope_error, other.slope_error)
    behind = other.intercept - base.intercept
    t = t_quantile(base.points + other.points - 4)
    at = behind / difference if difference else math.inf
    slower_at_first = other.at(1) > base.at(1)
    told_apart = abs(difference) > t * error
    if not slower_at_first and (not told_apart or difference > 0):
        kind = "first"
    elif not told_apart:
        kind = "unclear"
    elif difference < 0:
        kind = "never" if slower_at_first else "until"
    else:
        kind = "at"
    if kind in ("first", "never", "unclear"):
        return Crossover(kind, at, 0.0, math.inf, difference, error)
    low, high = _fieller(behind, difference, error, t, base, other)
    return Crossover(kind, at, low, high, difference, error)


def _fieller(behind, difference, error, t, base, other):
    """The x for which behind - x * difference is zero within its own error; |difference| > t * error."""
    variance = base.intercept_error**2 + other.intercept_error**2
    # cov(behind, difference): the lines are independent, and both signs turn.
    covariance = -(base.covariance + other.covariance)
    a = difference**2 - (t * error) ** 2
    b = behind * difference - t**2 * covariance
    c = behind**2 - t**2 * variance
    root = math.sqrt(max(0.0, b * b - a * c))
    return max(0.0, (b - root) / a), (b + root) / a


def meeting(first, second):
    """Where `second`'s curve rises above `first`'s for good, both {x: y} and x, y > 0: 0 if it is
    above from their first common x on, None if it is below at the last; by logarithms in between."""
    common = sorted(first.keys() & second.keys())
    if not common or second[common[-1]] <= first[common[-1]]:
        return None
    gaps = [math.log(second[x] / first[x]) for x in common]
    for i in range(len(common) - 1, 0, -1):
        if gaps[i - 1] <= 0:
            part = -gaps[i - 1] / (gaps[i] - gaps[i - 1])
            return common[i - 1] * (common[i] / common[i - 1]) ** part
    return 0.0

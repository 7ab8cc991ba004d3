"""sinh r = r + r^3 a(r^2) and cosh r = 1 + r^2 b(r^2) on [0, ln 2 / 2]; tanh v = v - v^3 / q(v^2) on [0, 1].

A small error of q matters less the nearer to 0 v is: so q is fitted on the upper half of its interval.
"""

from fit import minimax

HALF_LN2 = "0.34658"


def sinh(name, count, digits):
    powers = range(3, 3 + 2 * count, 2)
    return minimax(
        name, "sinh(x)", powers, digits, "1b-20", HALF_LN2, relative_to="sinh(x)", exact="x"
    )


def cosh(name, count, digits):
    powers = range(2, 2 + 2 * count, 2)
    return minimax(
        name, "cosh(x)", powers, digits, "1b-20", HALF_LN2, relative_to="cosh(x)", exact="1"
    )


def tanh(name, count, digits):
    return minimax(name, "x^3 / (x - tanh(x))", range(0, 2 * count, 2), digits, "0.5", "1")


def tables():
    return [
        sinh("kSinh32", 2, 24),
        sinh("kSinh64", 5, 53),
        cosh("kCosh32", 3, 24),
        cosh("kCosh64", 5, 53),
        tanh("kTanh32", 4, 24),
        tanh("kTanh64", 9, 53),
    ]


if __name__ == "__main__":
    print(*tables(), sep="\n")

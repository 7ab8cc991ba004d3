"""asin on [0, 1/2] and atan on [0, 1]: x + x^3 p(x^2)."""

from fit import minimax


def odd(name, function, terms, digits, low, high):
    return minimax(
        name,
        function,
        range(3, 3 + 2 * terms, 2),
        digits,
        low,
        high,
        relative_to=function,
        exact="x",
    )


def tables():
    return [
        odd("kAsin32", "asin(x)", 5, 24, "1e-6", "0.5"),
        # A little past 1, so that atan(1) is the float nearest to pi/4.
        odd("kAtan32", "atan(x)", 9, 24, "1e-6", "1.01"),
        odd("kAsin64", "asin(x)", 12, 53, "1e-8", "0.5"),
        odd("kAtan64", "atan(x)", 20, 53, "1e-8", "1"),
    ]


if __name__ == "__main__":
    print(*tables(), sep="\n")

"""erf x = x + x p(x^2) near 0, farther out 1 - 2^l(x) with l = log2 erfc.

erfc x = e^(-x^2) q(t) / (1 + 1.625 x), t = (x - k) / (x + k), which brings [1/2, infinity) into (-1, 1): there q is between 0.9 and 1.13.
The idea is Shepherd's and Laframboise's (Math. Comp. 36, 1981). Each k is near the best, and q(0) is nearly a float.
"""

from fit import minimax


def near(name, count, digits, high):
    powers = range(1, 1 + 2 * count, 2)
    return minimax(name, "erf(x)", powers, digits, "1b-20", high, relative_to="erf(x)", exact="x")


def log2_erfc(name, count, digits, low, high):
    return minimax(
        name, "log2(erfc(x))", range(count), digits, low, high, relative_to="1 / erfc(x)"
    )


def scaled_erfc(name, count, digits, k, high):
    y = f"({k} * (1 + x) / (1 - x))"
    function = f"(1 + 1.625 * {y}) * exp({y}^2) * erfc({y})"
    ends = [f"({y} - {k}) / ({y} + {k})" for y in ("0.5", high)]
    return minimax(name, function, range(count), digits, *ends)


def tables():
    return [
        near("kErf32", 7, 24, "1"),
        near("kErf64", 13, 53, "1"),
        log2_erfc("kLog2Erfc32", 7, 24, "1", "4"),
        log2_erfc("kLog2Erfc64", 18, 53, "1", "6"),
        scaled_erfc("kErfc32", 10, 24, "2.53125", "10.1"),
        scaled_erfc("kErfc64", 23, 53, "2.552490234375", "27.3"),
    ]


if __name__ == "__main__":
    print(*tables(), sep="\n")

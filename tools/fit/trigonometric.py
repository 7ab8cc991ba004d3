"""sin and cos on [-pi/4, pi/4] and, for accuracy=fast, on [-pi/2, pi/2]; tan on [-pi/4, pi/4].

The constants of argument reduction: pi/2 and pi as sums of floats, of which the second part is short enough that the
differences of formulas are exact, and the bits of 2/pi.
"""

from fit import Table, minimax, sollya

QUARTER, HALF = "0.7857", "1.5711"  # of a turn by pi, and what rounding adds


def fitted(name, function, terms, digits, low, high):
    """The terms behind the first one, which is exact: x, or of cos 1."""
    first, exact = (2, "1") if function == "cos(x)" else (3, "x")
    powers = range(first, first + 2 * terms, 2)
    return minimax(name, function, powers, digits, low, high, relative_to=function, exact=exact)


def split(name, value, digits, rounding="RN"):
    """The value as a sum of floats with so many bits each."""
    script = f"r = {value};\n" + "".join(
        f"c = round(r, {d}, {rounding}); print(c); r = r - c;\n" for d in digits
    )
    return Table(name, f"their sum is {value}", sollya(script))


def pi(bits):
    """floor(pi * 2^bits), by Machin's formula; a few units less."""

    def arctan_of_inverse(n):
        term, total, k = (1 << (bits + 32)) // n, 0, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term, k = term // (n * n), k + 2
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239)) >> 32


def two_over_pi(name, zeros, words):
    bits = 64 * words - zeros
    value = (2 << (bits + 2048)) // pi(2048)
    parts = [f"{(value >> (64 * (words - 1 - i))) & (2**64 - 1):#x}" for i in range(words)]
    return Table(
        name, f"2/pi, {zeros} zero bits and then those behind the point", parts, "uint64_t"
    )


def tables():
    return [
        fitted("kSin32", "sin(x)", 4, 24, "1e-6", QUARTER),
        fitted("kCos32", "cos(x)", 4, 24, "1e-6", QUARTER),
        fitted("kHalfSin32", "sin(x)", 4, 24, "1e-6", HALF),
        fitted("kTan32", "tan(x)", 7, 24, "1e-6", QUARTER),
        split("kHalfPi32", "pi/2", [24, 12, 24], "RD"),
        split("kPi32", "pi", [24, 24, 24], "RD"),
        two_over_pi("kTwoOverPi32", 11, 4),
        fitted("kSin64", "sin(x)", 7, 53, "1e-8", QUARTER),
        fitted("kCos64", "cos(x)", 7, 53, "1e-8", QUARTER),
        fitted("kHalfSin64", "sin(x)", 8, 53, "1e-8", HALF),
        fitted("kTan64", "tan(x)", 15, 53, "1e-8", QUARTER),
        split("kHalfPi64", "pi/2", [53, 53, 53], "RD"),
        split("kPi64", "pi", [53, 53, 53], "RD"),
        two_over_pi("kTwoOverPi64", 28, 19),
    ]


if __name__ == "__main__":
    print(*tables(), sep="\n")

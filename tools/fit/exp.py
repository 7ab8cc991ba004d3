"""e^r = 1 + r + r^2 p(r) on [-ln 2 / 2, ln 2 / 2] and e^r - 1 with the relative error of that; 2^r = 1 + r p(r) on [-1/2, 1/2]; shorter ones for accuracy="fast"."""

from fit import minimax


def e(name, count, digits):
    return minimax(
        name,
        "exp(x)",
        range(2, 2 + count),
        digits,
        "-0.34658",
        "0.34658",
        relative_to="exp(x)",
        exact="1 + x",
    )


def two(name, count, digits):
    return minimax(
        name, "2^x", range(1, 1 + count), digits, "-0.5", "0.5", relative_to="2^x", exact="1"
    )


def expm1(name, count, digits):
    return minimax(
        name,
        "expm1(x)",
        range(2, 2 + count),
        digits,
        "-0.34658",
        "0.34658",
        relative_to="expm1(x)",
        exact="x",
    )


def tables():
    return [
        e("kExp32", 5, 24),
        e("kExp32Fast", 4, 24),
        e("kExp64", 10, 53),
        e("kExp64Fast", 9, 53),
        two("kExp2_32", 6, 24),
        two("kExp2_32Fast", 5, 24),
        two("kExp2_64", 11, 53),
        two("kExp2_64Fast", 10, 53),
        expm1("kExpm1_32", 5, 24),
        expm1("kExpm1_64", 11, 53),
    ]


if __name__ == "__main__":
    print(*tables(), sep="\n")

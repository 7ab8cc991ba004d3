"""For logarithms as pairs: log2(1 + f) = (f - f^2 / 2) / ln 2 + f^3 p(f) for float32;
log2((1 + s) / (1 - s)) = 2 (s + s^3 / 3) / ln 2 + s^5 p(s^2) for float64, with |s| up to (sqrt(2) - 1) / (sqrt(2) + 1)."""

from fit import minimax


def tables():
    atanh = "log2((1 + sqrt(x)) / (1 - sqrt(x))) / sqrt(x)"
    exact = "(2 + 2 / 3 * x) / log(2)"
    return [
        minimax(
            "kPowLog32",
            "log2(1 + x)",
            range(3, 9),
            24,
            "-0.134616",
            "0.125",
            relative_to="log2(1 + x)",
            exact="(x - x^2 / 2) / log(2)",
        ),
        minimax("kPowLog64", atanh, range(2, 9), 53, "1b-60", "0.0294373", exact=exact),
    ]


if __name__ == "__main__":
    print(*tables(), sep="\n")

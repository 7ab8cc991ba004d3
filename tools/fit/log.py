"""log(1 + f) = f + f^2 p(f), and to base 2 and 10: c f + f p(f), c being the logarithm of e as a float32, with 1 + f in
[sqrt(1/2), sqrt(2)]; shorter ones for accuracy="fast". log((1 + s) / (1 - s)) = 2 s + s^3 p(s^2) for |s| up to
(sqrt(2) - 1) / (sqrt(2) + 1), for float64."""

from fit import minimax


def log(name, function, powers, exact):
    return minimax(
        name,
        function,
        powers,
        24,
        "-0.29289322",
        "0.41421357",
        relative_to=function,
        exact=exact,
    )


def bases(suffix, count):
    return [
        log("kLog32" + suffix, "log(1 + x)", range(2, 2 + count), "x"),
        log("kLog2_32" + suffix, "log2(1 + x)", range(1, 2 + count), "0x1.715476p+0 * x"),
        log("kLog10_32" + suffix, "log10(1 + x)", range(1, 2 + count), "0x1.bcb7b2p-2 * x"),
    ]


def tables():
    atanh = "(log((1 + sqrt(x)) / (1 - sqrt(x))) / sqrt(x) - 2) / x"
    return [
        *bases("", 9),
        *bases("Fast", 7),
        minimax("kAtanh64", atanh, range(7), 53, "1b-60", "0.0294373", relative_to=atanh),
    ]


if __name__ == "__main__":
    print(*tables(), sep="\n")

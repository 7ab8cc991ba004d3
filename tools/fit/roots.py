"""1 / cbrt(x) on [1/2, 4]: where the iterations begin."""

from fit import minimax


def tables():
    return [
        minimax("kInverseCbrt32", "x^(-1/3)", range(4), 24, "0.5", "4", relative_to="x^(-1/3)"),
        minimax("kInverseCbrt64", "x^(-1/3)", range(7), 53, "0.5", "4", relative_to="x^(-1/3)"),
    ]


if __name__ == "__main__":
    print(*tables(), sep="\n")

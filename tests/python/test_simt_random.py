"""Random kernels of threads: native code gives the bits of the interpreter."""

import linecache
import os
import random

import numpy as np
import picokernel as pk
import pytest
from picokernel import simt

COUNT = int(os.environ.get("PICOKERNEL_FUZZ_COUNT", 60))
FIRST = int(os.environ.get("PICOKERNEL_FUZZ_SEED", 1))


class Writer:
    """Statements over ints a, b, c and floats f, g of one thread i, which writes row i of o, p and q only."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.loops = 0
        self.lines = []

    def pick(self, *options):
        return self.random.choice(options)

    def integer(self, depth=2):
        if depth == 0 or self.random.random() < 0.3:
            return self.pick("a", "b", "c", "i", "n", str(self.random.randint(-3, 7)))
        x, y = self.integer(depth - 1), self.integer(depth - 1)
        return self.pick(
            f"({x} + {y})", f"({x} - {y})", f"({x} * 3)", f"({x} // {y})", f"({x} % {y})",
            f"min({x}, {y})", f"({x} & {y})", f"({x} if {self.condition(0)} else {y})",
            f"z[{x} % z.size]", f"o[i, {x} % 4]", "z[n]", "z[i]", f"abs({x})",
        )  # fmt: skip

    def floating(self, depth=2):
        if depth == 0 or self.random.random() < 0.3:
            return self.pick("f", "g", "x[i]", "x[n]", "0.5", "w[2 * i + 1]")
        x, y = self.floating(depth - 1), self.floating(depth - 1)
        return self.pick(
            f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"abs({x})", f"max({x}, {y})",
            f"({x} if {self.condition(0)} else {y})", f"x[{self.integer(depth - 1)} % x.size]",
            f"np.float32({self.integer(depth - 1)} % 64)", f"p[i, {self.integer(depth - 1)} % 4]",
        )  # fmt: skip

    def condition(self, depth=1):
        simple = self.pick(
            f"{self.integer(depth)} < {self.integer(0)}", f"{self.floating(depth)} > {self.floating(0)}",
            f"{self.integer(depth)} % 3 == 1", f"q[i, {self.integer(0)} % 4]", f"0 <= {self.integer(0)} < n",
        )  # fmt: skip
        if depth == 0:
            return f"({simple})"
        return f"({self.pick('', 'not ')}{simple} {self.pick('and', 'or')} {self.condition(depth - 1)})"

    def block(self, indent, depth, size):
        for _ in range(size):
            self.statement("    " * indent, indent, depth)

    def statement(self, tab, indent, depth):
        def add(line):
            self.lines.append(tab + line)

        kind = self.random.random()
        if depth == 0 or kind < 0.5:
            add(
                self.pick(
                    f"{self.pick('a', 'b', 'c')} = {self.integer()}",
                    f"{self.pick('f', 'g')} = {self.floating()}",
                    f"{self.pick('a', 'b')} += {self.integer(1)}",
                    f"o[i, {self.integer(1)} % 4] = {self.integer()}",
                    f"p[i, {self.integer(0)} % 4] = {self.floating()}",
                    f"q[i, {self.integer(0)} % 4] = {self.condition()}",
                    "a, b = b, a",
                )
            )
        elif kind < 0.75:
            add(f"if {self.condition()}:")
            self.block(indent + 1, depth - 1, 2)
            if self.random.random() < 0.2:
                add("    return")
            elif self.random.random() < 0.5:
                add("else:")
                self.block(indent + 1, depth - 1, 2)
        else:
            self.loops += 1
            k = f"k{self.loops}"
            if self.random.random() < 0.6:
                add(f"for {k} in range({self.pick('4', 'n', 'n, -2, -2', 'i % 4', 'b % 3')}):")
            else:
                add(f"{k} = 0")
                add(f"while {k} < 5 and {self.condition(0)}:")
                add(f"    {k} += 1")
            add(f"    c = c + {k}")
            self.block(indent + 1, depth - 1, 2)
            if self.random.random() < 0.4:
                add(f"    if {self.condition(0)}:")
                add(f"        {self.pick('break', 'continue')}")
                self.block(indent + 1, 0, 1)

    def meeting(self, indent, depth):
        """Statements that all threads of a block reach together."""
        tab = "    " * indent
        for _ in range(2):
            kind = self.random.random()
            if kind < 0.5 or depth == 0:
                self.lines += [
                    f"{tab}s[t] = {self.integer()}",
                    f"{tab}simt.syncthreads()",
                    f"{tab}{self.pick('a', 'b', 'c')} += s[(t + {self.random.randint(1, 9)}) % simt.blockDim.x]",
                    f"{tab}simt.syncthreads()",
                ]
            elif kind < 0.7:
                vote = self.pick("count", "and", "or")
                self.lines += [
                    f"{tab}v = simt.syncthreads_{vote}({self.condition()})",
                    f"{tab}{self.pick('a', 'b', 'c')} += v",
                ]
            elif kind < 0.85:
                self.loops += 1
                u = f"u{self.loops}"
                self.lines.append(f"{tab}for {u} in range({self.pick('n', '3', '2, -3, -2')}):")
                self.block(indent + 1, 1, 1)
                self.meeting(indent + 1, depth - 1)
                self.lines.append(f"{tab}    b += {u}")
            else:
                self.lines.append(f"{tab}if {self.pick('n > 2', 'n % 2', 'simt.blockIdx.x == 1')}:")
                self.meeting(indent + 1, depth - 1)
                self.lines.append(f"{tab}else:")
                self.block(indent + 1, 1, 2)
            self.block(indent, 2, 1)

    def kernel(self, meets):
        self.lines = [
            "def k(x, w, z, n, o, p, q):",
            "    i, t = simt.grid(1), simt.threadIdx.x",
            *(
                [
                    "    s = simt.shared.array(64, simt.int64)",
                    "    s[t] = t * t",
                    "    simt.syncthreads()",
                ]
                if meets
                else []
            ),
            "    if i >= o.shape[0]:",
            "        return",
            "    a, b, c = i, n, 1",
            "    f, g = x[i], w[i]",
        ]
        self.block(1, 3, 2 if meets else 5)
        if meets:
            self.meeting(1, 2)
        self.lines += ["    o[i, 0] += a + b", "    p[i, 1] = f - g"]
        return "\n".join(self.lines) + "\n"


def results(kernel, grid, block, n):
    rng = np.random.default_rng(n)
    count = 37
    x = (rng.integers(-8, 9, count) / 4).astype(np.float32)
    w = (rng.integers(-8, 9, 2 * count + 2) / 4).astype(np.float32)[::-1]
    z = rng.integers(-5, 9, count).astype(np.int32)
    o, p, q = (
        np.zeros((count, 4), int),
        np.zeros((count, 4), np.float32),
        np.zeros((count, 4), bool),
    )
    kernel[grid, block](x, w, z, n, o, p, q)
    return o, p, q


@pytest.mark.parametrize("meets", [False, True], ids=["alone", "barriers"])
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_compiled_code_gives_the_interpreters_bits(backend, seed, meets):
    if simt.backends().get(backend, "absent"):
        pytest.skip(f"{backend} does not run here")
    source = Writer(seed).kernel(meets)
    name = f"<random {seed} {meets}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = {"simt": simt, "np": np, "__name__": name}
    exec(compile(source, name, "exec"), names)
    kernel = simt.jit(names["k"])
    for grid, block in (((3, 16)), ((1, 64))):
        outcomes = []
        for name in ("ref", backend):
            with pk.use(name):
                outcomes.append(results(kernel, grid, block, seed % 5 + 1))
        for expected, got in zip(*outcomes, strict=True):
            np.testing.assert_array_equal(got, expected, err_msg=source)

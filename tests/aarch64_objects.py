"""Objects for AArch64: emitted here, linked with a C program by zig, run by qemu, compared with ref.

Usage: aarch64_objects.py PICOC     a picoc that is built with -DPICOKERNEL_AARCH64=ON
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import picokernel as pk
import ziglang
from oracle import BFLOAT16, assert_same, sample

TRIPLE = "aarch64-linux-gnu"
ZIG = str(pathlib.Path(ziglang.__file__).with_name("zig"))

INTS = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = [np.dtype(np.float32), np.dtype(np.float64)]
HALVES = [np.dtype(np.float16), BFLOAT16]
COMPLEX = [np.dtype(np.complex64), np.dtype(np.complex128)]
REAL = [np.dtype(bool), *INTS, *HALVES, *FLOATS]


def stencil(a):
    return a[:-2] + a[2:] * 2 - a[1:-1]


def reversed_in_place(a):
    a[...] = a[::-1] * 2  # through scratch
    return a + 1


def branches(a, b):
    return np.where((a > b) & ~np.isnan(a), np.maximum(a, 0), np.minimum(b, 1))


def mixed(a, b):
    return a * b + (a < b)


FUNCTIONS = [
    *((f, 2, REAL) for f in (np.add, np.multiply, np.maximum, np.fmin, np.less, np.equal, branches)),
    *((f, 2, [*INTS, *HALVES, *FLOATS]) for f in (np.subtract, np.floor_divide, np.remainder, mixed)),
    *((f, 2, INTS) for f in (np.left_shift, np.right_shift, np.gcd, np.bitwise_xor)),
    *((f, 1, [*INTS, *HALVES, *FLOATS]) for f in (np.abs, np.sign, stencil, reversed_in_place)),
    *((f, 1, FLOATS + HALVES) for f in (np.exp, np.log, np.sin, np.tanh, np.cbrt, np.expm1, np.rint)),
    *((f, 2, FLOATS) for f in (np.power, np.arctan2, np.hypot, np.divide, np.copysign)),
    *((f, 2, COMPLEX) for f in (np.multiply, np.divide)),
    (np.exp, 1, COMPLEX),
]  # fmt: skip


def cast(to):
    return lambda a: a.astype(to)


class Case:
    """One kernel with its arguments, and what ref makes of them."""

    def __init__(self, number, function, inputs):
        names = "abc"[: len(inputs)]
        source = f"def k{number}({', '.join(names)}):\n    return function({', '.join(names)})\n"
        space = {"function": function}
        exec(source, space)
        self.what = f"{getattr(function, '__name__', function)} of {[str(x.dtype) for x in inputs]}"
        kernel = pk.kernel(space[f"k{number}"])
        self.inputs = inputs
        self.written = [x.copy() for x in inputs]
        with np.errstate(all="ignore"):
            self.result = kernel(*self.written, backend="ref")
        self.ir = kernel.ir()

    def call(self, prototype):
        """C that reads the arguments, calls the function and writes what it leaves."""
        name, params = prototype
        pointers = [*self.written, np.asarray(self.result)]
        lines, arguments = [], []
        for param in params:
            if "*" not in param:
                arguments.append(str(len(self.inputs[0])))
                continue
            i = len(lines)
            size = pointers[i].nbytes
            lines.append(f"void *p{i} = get({size}, {int(i < len(self.inputs))});")
            arguments.append(f"p{i}")
        assert len(lines) == len(pointers), (self.what, params)
        puts = [f"put(p{i}, {pointers[i].nbytes});" for i in range(len(pointers))]
        return "  {" + " ".join([*lines, f"{name}({', '.join(arguments)});", *puts]) + "}\n"


PROGRAM = """#include <stdio.h>
#include <stdlib.h>
#include "k.h"
static void *get(size_t bytes, int given) {
  void *p = calloc(bytes + 1, 1);
  if (p == NULL || (given && fread(p, 1, bytes, stdin) != bytes)) exit(2);
  return p;
}
static void put(void *p, size_t bytes) {
  if (fwrite(p, 1, bytes, stdout) != bytes) exit(3);
  free(p);
}
int main(void) {
"""


def cases():
    made = []
    for function, count, dtypes in FUNCTIONS:
        for dtype in dtypes:
            made.append((function, [sample(dtype, seed=i) for i in range(count)]))
    for a in [*REAL]:
        for b in [*REAL]:
            made.append((cast(b), [sample(a)]))
    return [Case(i, *case) for i, case in enumerate(made)]


def main(picoc):
    kernels = cases()
    with tempfile.TemporaryDirectory() as folder:

        def run(*command, data=None):
            done = subprocess.run(command, cwd=folder, input=data, capture_output=True)
            if done.returncode:
                raise SystemExit(f"{' '.join(map(str, command))}:\n{done.stderr.decode()[-4000:]}")
            return done.stdout

        at = pathlib.Path(folder)
        (at / "k.pk").write_text("".join(case.ir for case in kernels))
        run(picoc, "emit", "obj", "--target", TRIPLE, "-o", "k.o", "--header", "k.h", "k.pk")
        found = re.findall(r"^(?:void|int) (pk_k\d+)\((.*)\);$", (at / "k.h").read_text(), re.M)
        assert len(found) == len(kernels)
        calls = [
            case.call((name, params.split(", ")))
            for case, (name, params) in zip(kernels, found, strict=True)
        ]
        (at / "main.c").write_text(PROGRAM + "".join(calls) + "  return 0;\n}\n")
        run(ZIG, "cc", "-target", "aarch64-linux-musl", "-static", "main.c", "k.o", "-o", "program")
        data = b"".join(x.tobytes() for case in kernels for x in case.inputs)
        out = run("qemu-aarch64", "./program", data=data)
    for case in kernels:
        for want in [*case.written, np.asarray(case.result)]:
            got = np.frombuffer(out[: want.nbytes], want.dtype).reshape(want.shape)
            out = out[want.nbytes :]
            try:
                assert_same(got, want)
            except AssertionError as difference:
                raise SystemExit(f"{case.what}: {difference}\n{case.ir}") from None
    assert not out
    print(f"{len(kernels)} kernels on AArch64: the same bits as ref")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())

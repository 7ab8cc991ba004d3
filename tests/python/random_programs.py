"""Random array programs, run by NumPy and by a kernel.

A program is Python source: statements over a few arrays that read, compute, view, store and alias,
of all types, ranks and layouts. `python tests/python/random_programs.py --seed 1 --count 100000`
runs many; a difference prints the seed, the source and the call.
"""

import argparse
import linecache
import sys
import time

import ml_dtypes
import numpy as np
import picokernel as pk

DTYPES = [
    np.dtype(t)
    for t in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", ml_dtypes.bfloat16, "float32", "float64", "complex64", "complex128"),
    )
]
# Exact on every machine, and bit-equal to NumPy's. Which zero is the smaller one is open.
ANY = ("{} + {}", "{} * {}", "np.where({} == {}, 1, {})", "{} != {}")
REAL = (
    "{} - {}",
    "np.abs(np.minimum({}, {}))",
    "np.abs(np.maximum({}, {}))",
    "{} < {}",
    "{} >= {}",
    "np.abs(np.fmin({}, {}))",
)
# The sign of a NaN is open.
FLOATS = (
    "{} / {}",
    "np.copysign({0}, np.where({1} == {1}, {1}, 1))",
    "np.sqrt(np.abs({}))",
    "np.floor({})",
    "{} // {}",
    "{} % {}",
)
# Last digits are each library's own: where one of these is, backends are compared with `ref`.
FUNCTIONS = (
    *(f"np.{name}({{}})" for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "sin", "cos", "tan", "arcsin", "arccos",
        "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
    )),
    "pk.erf({})", "pk.erfc({})", "pk.rsqrt({})", "np.power({}, {})", "np.abs({}) ** {}",
    "np.arctan2({}, {})", "np.hypot({}, {})", "np.fmod({}, {})",
)  # fmt: skip
INTEGERS = ("{} & {}", "{} | {}", "{} ^ {}", "~{}", "{} << 3", "{} >> 1", "{} // 7", "{} % 5")
UNARY = ("-{}", "np.abs({})", "np.square({})", "np.sign({}) + 0")


class Program:
    """One program: `source` of a function f, and `arguments()` for a call of it."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.lines = []
        self.shape = tuple(
            self._one(0, 1, 2, 3, 5, 8, 17) for _ in range(self._one(0, 1, 1, 2, 2, 3))
        )
        self.specs = [self._spec() for _ in range(self._one(1, 2, 3))]
        self.names = []  # (name, dtype or None: a Python number, shape)
        for i, (dtype, shape, _) in enumerate(self.specs):
            self.names.append((f"a{i}", dtype, shape))
        if self._one(False, True):
            self.names.append(("s", None, ()))
        self.returned = None
        for _ in range(int(self.rng.integers(1, 7))):
            self._statement()
        results = [name for name, _, _ in self.names if name.startswith("t")]
        self.returned = results[-2:] if results else []

    def _one(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def _spec(self):
        dtype = DTYPES[int(self.rng.integers(len(DTYPES)))]
        shape = tuple(1 if self._one(*([0] * 5), 1) else n for n in self.shape)
        shape = shape[self._one(0, 0, 0, len(shape) // 2) :]
        return dtype, shape, self._one("C", "F", "reversed", "spaced", "C", "C")

    @property
    def source(self):
        parameters = ", ".join(
            [f"a{i}" for i in range(len(self.specs))]
            + (["s"] if ("s", None, ()) in self.names else [])
        )
        body = self.lines + ([f"return {', '.join(self.returned)}"] if self.returned else [])
        return f"def f({parameters}):\n" + "".join(f"    {line}\n" for line in body or ["pass"])

    def _slice(self, shape):
        parts, extents = [], []
        for n in shape:
            kind = self._one(0, 0, 1, 2, 3, 4, 5)
            start, stop, step = {
                0: ("", "", ""), 1: ("1", "", ""), 2: ("", "-1", ""), 3: ("", "", "-1"),
                4: ("", "", "2"), 5: ("1", "-1", ""),
            }[kind]  # fmt: skip
            text = f"{start}:{stop}" + (f":{step}" if step else "")
            parts.append(text)
            extents.append(
                len(range(n)[slice(*(int(x) if x else None for x in (start, stop, step)))])
            )
        if shape and self._one(0, 0, 0, 1) and shape[0] > 0:
            parts[0] = self._one("0", "-1")
            return f"[{', '.join(parts)}]", tuple(extents[1:])
        return (f"[{', '.join(parts)}]" if parts else "[...]"), tuple(extents)

    def _expression(self, depth):
        """(text, dtype or None, shape)"""
        if depth == 0 or self._one(0, 0, 1):
            name, dtype, shape = self.names[int(self.rng.integers(len(self.names)))]
            if dtype is None or name == "s" or not shape or self._one(0, 1):
                return name, dtype, shape
            part, extents = self._slice(shape)
            text = name + part
            if len(extents) == 2 and self._one(0, 0, 1):
                return text + ".T", dtype, extents[::-1]
            return text, dtype, extents
        for _ in range(8):
            x, y = self._expression(depth - 1), self._expression(depth - 1)
            try:
                shape = np.broadcast_shapes(x[2], y[2])
            except ValueError:
                continue
            if self._one(0, 0, 0, 1):
                number = self._one("2", "0.5", "3", "1.25")
                y = (number, None, ())
                shape = x[2]
            text = self._operation(x, y)
            if self._weak_bfloat16(x, y, text):
                continue
            dtype = self._dtype(text)
            if dtype is not None:
                return f"({text})", dtype, shape
        return "a0", self.specs[0][0], self.specs[0][1]

    def _operation(self, x, y):
        kinds = {("f" if d.kind == "V" else d.kind) for d in (x[1], y[1]) if d is not None}
        table = list(ANY)
        if "c" not in kinds:
            table += REAL
        if kinds <= {"f", "i", "u"}:
            table += UNARY
        if kinds <= {"f"}:
            table += FLOATS
            if self._one(0, 1):
                table = FUNCTIONS
        if kinds <= {"i", "u"}:
            table += INTEGERS
        form = table[int(self.rng.integers(len(table)))]
        texts = [x[0], y[0], x[0]]
        return form.format(*texts)

    @staticmethod
    def _weak_bfloat16(x, y, text):
        """Beside Python floats it stays bfloat16 here, and becomes float32 in ml_dtypes."""
        weak = any(d is None for _, d, _ in (x, y)) or "0.5" in text or "1.25" in text
        return weak and any(d is not None and d.kind == "V" for _, d, _ in (x, y))

    def _dtype(self, text):
        """Of the expression, by NumPy on ones; None: NumPy refuses it."""
        space = {"np": np, "pk": pk, "s": 1.5}
        for name, dtype, _ in self.names:
            if dtype is not None:
                space[name] = np.ones((3,) * len(self._shape_of(name)), dtype)
        try:
            with np.errstate(all="ignore"):
                result = eval(text, space)
        except (TypeError, ValueError, OverflowError, IndexError):
            return None
        dtype = getattr(result, "dtype", None)
        return dtype if dtype in DTYPES else None

    def _shape_of(self, name):
        return next(shape for n, _, shape in self.names if n == name)

    def _statement(self):
        text, dtype, shape = self._expression(2)
        kind = self._one("name", "store", "store", "in place", "view")
        arrays = [(n, d, s) for n, d, s in self.names if d is not None and s]
        if kind == "name" or not arrays or dtype is None:
            if dtype is None or text in (n for n, _, _ in self.names):
                return
            name = f"t{len(self.lines)}"
            self.lines.append(f"{name} = {text}")
            self.names.append((name, dtype, shape))
            return
        name, target_dtype, target_shape = arrays[int(self.rng.integers(len(arrays)))]
        part, extents = self._slice(target_shape)
        if kind == "view":
            if "0" in part.split(", ")[0] and ":" not in part.split(", ")[0]:
                return
            view = f"v{len(self.lines)}"
            self.lines.append(f"{view} = {name}{part}")
            self.names.append((view, target_dtype, extents))
            return
        try:
            if np.broadcast_shapes(shape, extents) != extents or len(shape) > len(extents):
                return
        except ValueError:
            return
        if not self._castable(dtype, target_dtype):
            return
        operator = "="
        if kind == "in place":
            operator = self._one("+=", "*=")
            common = self._dtype(f"{name} {operator[0]} {text}")
            if common is None or not self._castable(common, target_dtype, strict=True):
                return
        self.lines.append(f"{name}{part or '[...]'} {operator} {text}")

    @staticmethod
    def _castable(source, target, strict=False):
        """NumPy leaves casts out of range open, and warns where it drops imaginary parts."""
        kinds = ["f" if d.kind == "V" else d.kind for d in (source, target)]
        if strict and not np.can_cast(source, target, "same_kind"):
            return False
        if kinds[1] == "b" or kinds[0] == "b":
            return True
        if kinds[0] == "c":
            return kinds[1] == "c"
        return kinds[0] in "iu" or kinds[1] in "fc"

    def arguments(self):
        arrays = []
        for dtype, shape, layout in self.specs:
            arrays.append(laid_out(self._values(dtype, shape), layout))
        # Sometimes two arguments share memory.
        if len(arrays) > 1 and self._one(0, 0, 0, 1):
            alike = [
                i for i in range(1, len(arrays))
                if arrays[i].dtype == arrays[0].dtype and arrays[i].shape == arrays[0].shape
            ]  # fmt: skip
            for i in alike:
                arrays[i] = arrays[0]
        numbers = [self._one(1.5, -2.0, 3.0)] if ("s", None, ()) in self.names else []
        return arrays + numbers

    def _values(self, dtype, shape):
        n = int(np.prod(shape))
        if dtype.kind == "b":
            return self.rng.integers(0, 2, n).astype(dtype).reshape(shape)
        if dtype.kind in "iu":
            low = 0 if dtype.kind == "u" else -20
            return self.rng.integers(low, 20, n).astype(dtype).reshape(shape)
        values = np.round(self.rng.standard_normal(n) * 16) / 4  # products stay exact mostly
        special = self.rng.random(n) < 0.1
        values[special] = self.rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], special.sum())
        if dtype.kind == "c":
            values = np.round(self.rng.standard_normal(n) * 8) + 1j * np.round(
                self.rng.standard_normal(n) * 8
            )
        with np.errstate(all="ignore"):
            return values.astype(dtype).reshape(shape)


_NAMES = [form[: form.index("(")] for form in FUNCTIONS if form[3:6] != "abs"] + [" ** "]


def laid_out(values, layout):
    if layout == "F":
        return np.asfortranarray(values)
    if layout == "reversed" and values.ndim:
        flip = tuple(slice(None, None, -1) for _ in values.shape)
        return values[flip].copy()[flip]
    if layout == "spaced" and values.ndim:
        memory = np.zeros([2 * n for n in values.shape], values.dtype)
        view = memory[tuple(slice(None, None, 2) for _ in values.shape)]
        view[...] = values
        return view
    return values.copy()


def copied(arguments):
    """Copies that share memory where the originals do."""
    known = {}
    return [
        known.setdefault(id(a), a.copy(order="K")) if isinstance(a, np.ndarray) else a
        for a in arguments
    ]


def bits(x):
    """Comparable: NaNs as one, zeros with their signs (but for complex ones)."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        # The order of NumPy's complex sums, and so the sign of a zero, depends on the machine.
        return np.stack([bits(x.real + 0), bits(x.imag + 0)], -1)
    if x.dtype.kind in "fV":
        wide = x.astype(np.float64)
        return np.where(np.isnan(wide), np.uint64(1), wide.view(np.uint64))
    return x


def difference(want, got, values=True):
    if type(want) is tuple:
        return next(
            filter(None, (difference(w, g, values) for w, g in zip(want, got, strict=True))), None
        )
    if want is None or got is None:
        return None if want is got else "a missing result"
    if want.dtype != got.dtype or np.shape(want) != np.shape(got):
        return f"{want.dtype} {np.shape(want)} and {got.dtype} {np.shape(got)}"
    if not values:
        return None
    if want.dtype.kind == "c" and np.isfinite(want).all():
        # NumPy's products are fused on some machines: the last digits of large ones differ.
        scale = np.finfo(want.dtype).eps * max(1, np.abs(want).max(initial=0))
        return None if np.abs(want - got).max(initial=0) <= 64 * scale else "complex values"
    return None if np.array_equal(bits(want), bits(got)) else f"values\n{want!r}\n{got!r}"


def run(seed, backends):
    """What differs, as text, or None. Programs that NumPy itself refuses are skipped."""
    program = Program(seed)
    if not program.lines:
        return None
    name = f"<program {seed}>"
    linecache.cache[name] = (0, None, program.source.splitlines(True), name)
    space = {"np": np, "pk": pk}
    exec(compile(program.source, name, "exec"), space)
    arguments = program.arguments()
    theirs = copied(arguments)
    try:
        with np.errstate(all="ignore"):
            want = space["f"](*theirs)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    kernel = pk.kernel(space["f"])
    functions = any(name in program.source for name in _NAMES)
    if functions:
        backends = ["ref", *(b for b in backends if b != "ref")]
    for backend in backends:
        ours = copied(arguments)
        try:
            with np.errstate(all="ignore"):
                got = kernel(*ours, backend=backend)
        except (pk.CompileError, pk.LaunchError) as e:
            if any(text in str(e) for text in ACCEPTED):
                continue
            return f"seed {seed}, {backend}: {e}\n{program.source}"
        # NumPy and MLX are compared with nothing then: they compute with digits of their own.
        values = not functions or backend == "cpu"
        arrays = [tuple(a for a in x if isinstance(a, np.ndarray)) for x in (theirs, ours)]
        found = difference(want, got, values) or difference(*arrays, values)
        if functions and backend == "ref":
            want, theirs = got, ours
        if found:
            return f"seed {seed}, {backend}: {found}\n{program.source}\narguments {arguments!r}"
    linecache.cache.pop(name, None)
    return None


# Refusals that are stated in the documentation.
ACCEPTED = (
    # Two arguments in one memory where that would change the meaning.
    "share memory",
    "shares memory",
    "computes nothing",
    "MLX",  # stores through views that it does not have
    "cannot be assigned",
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--backends", default="cpu,numpy,ref")
    options = parser.parse_args()
    start, failures = time.time(), 0
    for seed in range(options.seed, options.seed + options.count):
        found = run(seed, options.backends.split(","))
        if found:
            failures += 1
            print(found, flush=True)
            if failures >= 5:
                break
    print(
        f"{options.count} programs from seed {options.seed} on {options.backends}: "
        f"{failures} differences, {time.time() - start:.0f} s"
    )
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())

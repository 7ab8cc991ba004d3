"""Minimax polynomials for src/passes/legalize/math, by Sollya (https://www.sollya.org, in Debian: `apt-get install sollya`).

`python tools/fit/exp.py` and its siblings print tables of coefficients; `python tools/fit/fit.py` writes all of them into
src/passes/legalize/math/*_coefficients.h. Coefficients come from Sollya's fpminimax (Brisebarre and Chevillard, "Efficient
polynomial L-infinity approximations", ARITH 18, 2007): the best polynomial whose coefficients are floats of the given
precisions. The bound in each comment is Sollya's infinity norm of the error on the interval.
"""

import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent
TARGET = HERE.parent.parent / "src/passes/legalize/math"


def sollya(script):
    """What Sollya prints for a script, as lines. Raises RuntimeError with its warnings."""
    head = "prec=400!; verbosity=1!; display=hexadecimal!; showmessagenumbers=off!;\n"
    done = subprocess.run(["sollya"], input=head + script, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    if any("error" in line.lower() for line in lines):
        raise RuntimeError(done.stdout + done.stderr)
    return lines


class Table:
    """One array of coefficients in C++: named, with the error that it was fitted to."""

    def __init__(self, name, comment, coefficients, element="double"):
        self.name, self.comment, self.coefficients, self.element = (
            name,
            comment,
            coefficients,
            element,
        )

    def __str__(self):
        values = "".join(f"    {c},\n" for c in self.coefficients)
        return (
            f"// {self.comment}\ninline constexpr {self.element} {self.name}[] = {{\n{values}}};\n"
        )


def minimax(name, function, powers, digits, low, high, relative_to=None, exact=""):
    """A Table of p with p(x) = sum of c_i x^powers[i] near `function` (Sollya's syntax) on [low, high].

    digits: bits of each coefficient: 24 for float32, 53 for float64. relative_to: an expression that errors are divided
    by; None: absolute. exact: a fixed part, added to p before the comparison with function ("x", say).
    """
    if isinstance(digits, int):
        digits = [digits] * len(powers)
    formats = ", ".join(str(d) for d in digits)
    monomials = ", ".join(str(p) for p in powers)
    fixed = f"({exact})" if exact else "0"
    weight = f"({relative_to})" if relative_to else "1"
    kind = "relative" if relative_to == function else "absolute"
    if relative_to in (None, function):
        near = f", {exact}" if exact else ""
    else:  # near the weighted best polynomial
        assert not exact
        near = f", 0, remez(f / {weight}, [|{monomials}|], I, 1 / {weight})"
    script = f"""
I = [{low}; {high}];
f = {function};
p = fpminimax(f, [|{monomials}|], [|{formats}|], I, floating, {kind}{near});
print("coefficients");
c = [||];
for i in [|{monomials}|] do print(coeff(p - {fixed}, i));
print("bound");
display = decimal!; prec = 20!;
print(dirtyinfnorm((p - f) / {weight}, I));
"""
    lines = sollya(script)
    start, end = lines.index("coefficients"), lines.index("bound")
    error = float(lines[end + 1])
    kind = f"relative to {relative_to}" if relative_to else "absolute"
    comment = f"{function} on [{low}, {high}]: error {abs(error):.1e}, {kind}"
    return Table(name, comment, lines[start + 1 : end])


def write(module_name, tables):
    """Writes `module_name`_coefficients.h."""
    text = (
        f"// Made by tools/fit/{module_name}.py, which has the method; lowest powers first.\n"
        "#pragma once\n\nnamespace picokernel::passes::math {\n\n"
        + "\n".join(str(t) for t in tables)
        + "\n}  // namespace picokernel::passes::math\n"
    )
    (TARGET / f"{module_name}_coefficients.h").write_text(text)


if __name__ == "__main__":
    import importlib
    import sys

    sys.path.insert(0, str(HERE))
    for script in sorted(HERE.glob("*.py")):
        if script.stem != "fit":
            write(script.stem, importlib.import_module(script.stem).tables())

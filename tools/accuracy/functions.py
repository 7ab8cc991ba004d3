"""What is measured: each function here, in NumPy, in the C library, in MLX and in MPFR, and where its
arguments are interesting."""

import dataclasses

import numpy as np
import picokernel as pk

INF = float("inf")
TINY, HUGE = 2.0**-60, 2.0**60


def _scipy(name):
    from scipy import special

    return getattr(special, name)


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    operands: int
    traced: object  # in a kernel
    ops: str  # as IR on %x and %y, giving %r
    numpy: object
    libm: str | None = None
    mlx: str | None = None
    mpfr: str = ""
    # float64: intervals of magnitudes, of both signs unless they begin below 0, and points near which
    # arguments lie close.
    ranges: tuple = ((TINY, HUGE),)
    points: tuple = ()


def _one(name, op=None, *, libm=None, mlx="", mpfr=None, scipy=False, **options):
    function = _scipy(name) if scipy else getattr(np, name)
    op = op or name
    return Function(
        name, 1, getattr(pk, name) if scipy else function, f"%r = {op} %x", function,
        libm or op, (mlx if mlx != "" else name), mpfr or op, **options,
    )  # fmt: skip


def _two(name, op, *, mlx="", mpfr=None, **options):
    function = getattr(np, name)
    return Function(
        name, 2, function, f"%r = {op} %x, %y", function, op, (mlx if mlx != "" else name),
        mpfr or op, **options,
    )  # fmt: skip


_TRIGONOMETRIC = {"ranges": ((2.0**-30, 2.0**30), (0.0, 100.0)), "points": "pi/2"}

FUNCTIONS = [
    _one("exp", ranges=((TINY, 750.0), (-745.2, 709.8)), points=(0.0, -745.13, 709.78, -708.39)),
    _one("exp2", mlx=None, ranges=((TINY, 1080.0), (-1075.0, 1024.0)), points=(0.0, -1075.0, 1024.0, -1022.0)),
    _one("expm1", ranges=((TINY, 750.0), (-40.0, 709.8)), points=(0.0, 709.78, -37.4)),
    _one("log", ranges=((0.0, INF), (0.5, 2.0)), points=(0.0, 1.0)),
    _one("log2", ranges=((0.0, INF), (0.5, 2.0)), points=(0.0, 1.0, 2.0, 1024.0)),
    _one("log10", ranges=((0.0, INF), (0.5, 2.0)), points=(0.0, 1.0, 10.0, 1e5, 1e22)),
    _one("log1p", ranges=((TINY, HUGE), (-1.0, 1.0)), points=(0.0, -1.0, -0.5)),
    _one("sqrt", ranges=((0.0, INF),)),
    Function(
        "rsqrt", 1, pk.rsqrt, "%0 = sqrt %x\n%1 = constant 1.0 : T\n%r = div %1, %0",
        lambda x, out=None: np.divide(1, np.sqrt(x), out=out), None, "rsqrt", "rec_sqrt",
        ranges=((0.0, INF),),
    ),
    _one("cbrt", mlx=None, ranges=((0.0, INF),), points=(0.0,)),
    _one("sin", **_TRIGONOMETRIC),
    _one("cos", **_TRIGONOMETRIC),
    _one("tan", **_TRIGONOMETRIC),
    _one("arcsin", "asin", ranges=((TINY, 1.0), (-1.0, 1.0)), points=(0.0, 0.5, -0.5, 1.0, -1.0)),
    _one("arccos", "acos", ranges=((TINY, 1.0), (-1.0, 1.0)), points=(0.0, 0.5, -0.5, 1.0, -1.0)),
    _one("arctan", "atan", points=(1.0, -1.0)),
    _one("sinh", ranges=((TINY, 715.0), (-710.5, 710.5)), points=(0.0, 710.4758, -710.4758)),
    _one("cosh", ranges=((TINY, 715.0), (-710.5, 710.5)), points=(0.0, 710.4758, -710.4758)),
    _one("tanh", ranges=((TINY, 25.0), (-23.0, 23.0)), points=(0.0, 22.0)),
    _one("arcsinh", "asinh", ranges=((TINY, HUGE), (-4.0, 4.0))),
    _one("arccosh", "acosh", ranges=((1.0, HUGE), (1.0, 4.0)), points=(1.0, 2.0)),
    _one("arctanh", "atanh", ranges=((TINY, 1.0), (-1.0, 1.0)), points=(0.0, 1.0, -1.0, 0.5)),
    _one("erf", scipy=True, ranges=((TINY, 6.5), (-6.0, 6.0)), points=(0.0,)),
    _one("erfc", scipy=True, mlx=None, ranges=((TINY, 28.0), (-6.0, 27.3)), points=(0.0, 26.55, 27.226)),
    _two("power", "pow"),
    _two("arctan2", "atan2"),
    _two("hypot", "hypot", mlx=None),
]  # fmt: skip


def kernel_text(function, dtype, fast):
    """The function on one element, as IR."""
    operands = ", ".join(f"%{v}: {dtype}" for v in "xy"[: function.operands])
    accuracy = " accuracy fast" if fast else ""
    ops = function.ops.replace("T", dtype)
    return f"kernel @f({operands}) -> ({dtype}){accuracy} {{\n{ops}\nreturn %r\n}}\n"

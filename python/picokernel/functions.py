"""Functions that NumPy lacks, in kernels and outside of them."""

import numpy as np

from .errors import Error


def erf(x):
    """The error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x.

    In a kernel it is traced as NumPy's functions are: float16 stays float16, integers become floats
    as in np.exp. scipy.special.erf traces too. Outside of kernels it is SciPy's, and raises Error
    if SciPy is not installed."""
    return _of_scipy("erf", x)


def erfc(x):
    """1 - erf(x), accurate where that is near 0; otherwise as `erf`."""
    return _of_scipy("erfc", x)


def rsqrt(x):
    """1 / np.sqrt(x): a square root and a division, each rounded."""
    return 1 / np.sqrt(x)


def _of_scipy(name, x):
    from .traced import TracedArray, _strong

    if isinstance(x, TracedArray):
        where = x._trace.here()
        return _strong(x._trace, x._trace.apply(name, (x,), where), where)
    try:
        from scipy import special
    except ImportError as e:
        message = f"pk.{name} outside of kernels is scipy.special.{name}: pip install scipy"
        raise Error(message) from e
    x = np.asarray(x)
    result = np.exp.resolve_dtypes((x.dtype, None))[-1]  # as functions of NumPy have it
    wide = x.astype(np.float32) if result.itemsize == 2 else x
    return np.asarray(getattr(special, name)(wide)).astype(result)[()]

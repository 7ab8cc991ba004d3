"""`picokernel run --cuda`: scripts that import numba.cuda get picokernel.simt under that name."""

import importlib.util
import sys
import types

from .. import simt

_SUBMODULES = ("random", "types")


def _types():
    """What numba.types and numba itself have of types."""
    return {name: getattr(simt, name) for name in simt.__all__ if _is_type(getattr(simt, name))}


def _is_type(value):
    return (isinstance(value, type) and value.__module__ == "numpy") or hasattr(value, "dtype")


def _cuda():
    """simt as a module of another name, so that `from numba.cuda.random import ...` works, too."""
    from . import random

    cuda = types.ModuleType("numba.cuda", simt.__doc__)
    cuda.__path__ = []
    cuda.__getattr__ = lambda name: getattr(simt, name)
    cuda.random = random
    cuda.types = types.SimpleNamespace(**_types())
    return cuda


def _no_numba(name):
    raise AttributeError(
        f"numba is not installed, and picokernel stands in for its cuda and types, not for '{name}'"
    )


def install():
    """From now on `numba.cuda` is this package; the rest of numba is numba's, where it is installed."""
    cuda = _cuda()
    if importlib.util.find_spec("numba") is not None:
        import numba
    else:
        numba = types.ModuleType("numba", "picokernel stands in for numba's cuda and types.")
        numba.__path__ = []
        numba.__version__ = "0.0"
        numba.types = cuda.types
        vars(numba).update(_types())
        numba.__getattr__ = _no_numba
    numba.cuda = cuda
    sys.modules |= {"numba": numba, "numba.cuda": cuda, "numba.cuda.random": cuda.random}

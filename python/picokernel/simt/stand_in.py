"""`picokernel run --cuda`: scripts that import numba.cuda get picokernel.simt under that name."""

import importlib.util
import sys
import types

from .. import simt
from . import random


def _cuda():
    """simt as a module of another name, so that `from numba.cuda.random import ...` works, too."""
    cuda = types.ModuleType("numba.cuda", simt.__doc__)
    cuda.__path__ = []
    cuda.__getattr__ = lambda name: getattr(simt, name)
    cuda.random, cuda.types = random, simt.types
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
        vars(numba).update(simt.types.NAMES)
        numba.__getattr__ = _no_numba
    numba.cuda = cuda
    modules = {"numba": numba, "cuda": cuda, "cuda.random": random, "types": simt.types}
    sys.modules |= {("numba." if name != "numba" else "") + name: m for name, m in modules.items()}

"""Fixtures shared by the Python tests, which leave the user's cache of kernels alone."""

import os
import shutil
import tempfile

import picokernel as pk
import pytest
from picokernel import simt

CACHE = os.environ["PICOKERNEL_CACHE_DIR"] = tempfile.mkdtemp(prefix="picokernel-tests-")
os.environ.pop("PICOKERNEL_CACHE_SIZE", None)


def pytest_unconfigure():
    shutil.rmtree(CACHE, ignore_errors=True)


LIVE = [name for name, why_not in pk.backends().items() if not why_not]


@pytest.fixture(params=LIVE)
def backend(request):
    """Every backend that runs kernels of arrays here."""
    return request.param


THREADS = [name for name, why_not in simt.backends().items() if not why_not]


@pytest.fixture(params=THREADS)
def threads_backend(request):
    """Every backend that runs kernels of threads here, chosen for the test."""
    with pk.use(request.param):
        yield request.param

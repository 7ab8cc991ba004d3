"""Fixtures shared by the Python tests."""

import picokernel as pk
import pytest

LIVE = [name for name, reason in pk.backends().items() if not reason]


@pytest.fixture(params=LIVE)
def backend(request):
    """Every backend that can run here."""
    return request.param

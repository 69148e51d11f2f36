"""What the tests of several vendors have in common."""

from __future__ import annotations

import pytest

from sources.gpu.fake_devices import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    """Set by hand."""
    return FakeClock()

"""Which lines of ours the tests run: measured in every process that runs tests, and in none that they start.

`coverage combine` makes one account of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from coverage import Coverage


class Covering:
    """Measures this process, but for the tests that say the same of every line a thousand times."""

    def __init__(self) -> None:
        self._coverage = Coverage(data_suffix=True)
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Rest while a test runs that is marked so."""
        if item.get_closest_marker("uncovered") is None:
            return (yield)
        self._coverage.stop()
        try:
            return (yield)
        finally:
            self._coverage.start()

    def pytest_unconfigure(self) -> None:
        """Write down what was seen."""
        self._coverage.stop()
        self._coverage.save()

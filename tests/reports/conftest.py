"""What tests of reports share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def plotting() -> None:
    """There is matplotlib, and it has opened the fonts that it keeps open."""
    pytest.importorskip("matplotlib")
    from rich import report_rich  # not before coverage is measured

    report = report_rich(2)
    for shown in (report, report._replace(columns=None)):
        shown.plot().canvas.draw()

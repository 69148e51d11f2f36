"""When lines are written."""

from __future__ import annotations

import math

import pytest

from gpu_tracker.sampler.pace import Pace


@pytest.mark.parametrize("line_bytes", [100, 10_000])
def test_lines_take_as_much_however_large_they_are(line_bytes: int) -> None:
    """The same number of bytes whenever the age grows by a factor of e."""
    pace, written = Pace(1e6), 0
    for second in range(1, 100_000):
        if pace.is_due(second):
            pace.note(second, line_bytes)
            written += line_bytes
    folds = 1 + math.log(100_000 * line_bytes / 1e6)

    # A little less, because a line waits for the next second.
    assert 0.85e6 * folds < written < 1.01e6 * folds


def test_the_first_line_is_due_at_once() -> None:
    """Its size is not known yet."""
    pace = Pace(1000.0)
    assert pace.is_due(0.0)
    pace.note(10.0, 100)

    assert pace.interval_seconds(10.0) == pytest.approx(1.0)
    assert not pace.is_due(10.5)
    pace.note(11.2, 1000)  # one large line among small ones
    assert pace.interval_seconds(10.0) == pytest.approx(1.9)

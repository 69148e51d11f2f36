"""Points in time as text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.core.moments import Pace, parse_moment, stamp_moment


@given(st.integers(0, 2**32), st.integers(0, 999))
def test_what_a_header_keeps_is_read_back_to_the_millisecond(seconds: int, milliseconds: int) -> None:
    """Whatever the zone of the machine."""
    moment = seconds + (milliseconds + 0.5) / 1000
    text = stamp_moment(moment)

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", text)
    assert round(1000 * (parse_moment(text) or 0.0)) == 1000 * seconds + milliseconds


def test_what_costs_more_is_done_more_seldom() -> None:
    """Never more often than a second apart, and for a hundredth of a core."""
    pace = Pace()
    assert pace.is_due(0.0)
    pace.pay(10.0, 0.001)
    assert not pace.is_due(10.9)
    assert pace.is_due(11.0)
    assert (pace.remaining(10.25), pace.remaining(12.0)) == (0.75, 0.0)
    pace.pay(11.0, 2.0)
    assert pace.remaining(11.0) == 1.0  # it may have cost so much only once
    pace.pay(12.0, 2.0)
    assert not pace.is_due(211.9)
    assert pace.is_due(212.0)


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-01-31T12:00:00", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"]
)
def test_a_moment_that_cannot_be_shown_everywhere_is_not_valid(text: str) -> None:
    """No moment at all, of no known time zone, or in no year elsewhere."""
    assert parse_moment(text) is None

"""Points in time as text."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from gpu_tracker.core.moments import parse_moment, stamp_moment


@given(st.integers(0, 2**32), st.integers(0, 999))
def test_what_a_header_keeps_is_read_back_to_the_millisecond(seconds: int, milliseconds: int) -> None:
    """Whatever the zone of the machine."""
    moment = seconds + (milliseconds + 0.5) / 1000
    text = stamp_moment(moment)

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", text)
    assert round(1000 * (parse_moment(text) or 0.0)) == 1000 * seconds + milliseconds

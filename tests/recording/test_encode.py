"""The encoder writes valid JSON."""

from __future__ import annotations

import json
import math

from hypothesis import given, strategies as st

from gpu_tracker.recording.encode import to_json

_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(_PLAIN)
def test_the_standard_decoder_reads_what_we_write(value: object) -> None:
    """Including quotes, control characters and lone surrogates."""
    assert json.loads(to_json(value)) == value


def test_nan_is_null() -> None:
    """And a tuple is a list."""
    assert to_json((1, math.nan, math.inf, -math.inf)) == "[1,null,null,null]"

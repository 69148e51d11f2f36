"""Our JSON is JSON."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from gpu_tracker.recording.encode import to_json

_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(_PLAIN)
def test_the_standard_decoder_reads_what_we_write(value: object) -> None:
    """Also quotes, control characters and lone surrogates."""
    assert json.loads(to_json(value)) == value


def test_what_json_has_no_word_for_is_null() -> None:
    """A tuple is a list, and nan is not known."""
    assert to_json((1, math.nan, math.inf, -math.inf)) == "[1,null,null,null]"

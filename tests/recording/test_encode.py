"""The encoder writes valid JSON."""

from __future__ import annotations

import json
import math
import sys

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.recording import encode
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


def test_nan_is_null_wherever_it_is() -> None:
    """What is around it stays as it is."""
    value = {"a": [1.5, math.nan, None, True], "b": (math.inf, "x")}

    assert to_json(value) == '{"a":[1.5,null,null,true],"b":[null,"x"]}'


def test_what_is_no_plain_value_is_refused() -> None:
    """A recording holds no text that was made up for an object."""
    with pytest.raises(TypeError, match="set is no plain value"):
        to_json({"a": set()})


def test_an_interpreter_without_the_encoder_in_c_writes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer to start."""
    value = {"é": [1.5, None, True, (2, 'quoted "text"')], "b": {}}
    expected = to_json(value)
    monkeypatch.setitem(sys.modules, "_json", None)

    assert encode.choose_encoder()(value) == expected

"""Messages survive being cut anywhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpu_tracker.sampler.handle.wire import Inbox, pack

_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.lists(_PLAIN, max_size=4), st.integers(1, 40))
def test_messages_come_out_as_they_went_in(values: list[object], size: int) -> None:
    """Whatever the pipe makes of them."""
    stream = b"".join(pack("word", number, value) for number, value in enumerate(values))
    inbox = Inbox()
    received = []
    for start in range(0, len(stream), size):
        received += inbox.feed(stream[start : start + size])

    assert received == [("word", (number, value)) for number, value in enumerate(values)]

"""Messages survive being cut anywhere."""

from __future__ import annotations

from hypothesis import given, strategies as st

from builders import found, gpu, recording
from gpu_tracker.core.model import MetricTotals
from gpu_tracker.core.observation import ABSENT, UNSUPPORTED, Missing, Reason, VendorState
from gpu_tracker.sampler.handle.wire import Inbox, pack
from observed import observation, process, reading, vendor
from recorded import FRAMEWORKS, REGIONS

_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.lists(_PLAIN, max_size=4), st.integers(1, 40))
def test_messages_arrive_as_they_were_sent(values: list[object], size: int) -> None:
    """However the pipe splits them."""
    stream = b"".join(pack("word", number, value) for number, value in enumerate(values))
    inbox = Inbox()
    received = []
    for start in range(0, len(stream), size):
        received += inbox.feed(stream[start : start + size])

    assert received == [("word", (number, value)) for number, value in enumerate(values)]


def test_an_observation_arrives_as_it_was_sent() -> None:
    """Every value keeps its class."""
    sent = observation(
        vendor(
            reading(),
            processes=(process(),),
            details={"GPU-0": {"pstate": "P0", "fan.speed": 30.0}},
            reasons=(Reason("GPU-0", "energy_joules", "Not reported.", UNSUPPORTED),),
            notes=("Something.",),
        ),
        VendorState("amd", missing=(Missing("amd", ABSENT, "No AMD."),)),
    )
    ((word, (received,)),) = Inbox().feed(pack("observation", sent))

    assert word == "observation"
    assert received == sent
    assert repr(received) == repr(sent)


def test_a_recording_arrives_as_it_was_sent() -> None:
    """With everything that it may contain, including what JSON cannot express."""
    sent = recording(
        events=(found(gpu()),),
        metric_totals=(MetricTotals("loss", 3, 1, 2.5, 1.0, 1.5, float("inf"), 9.0),),
        regions=REGIONS,
        frameworks=FRAMEWORKS,
    )
    ((_, (number, received)),) = Inbox().feed(pack("totals", 7, sent))

    assert (number, received) == (7, sent)
    assert repr(received) == repr(sent)

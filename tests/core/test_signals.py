"""Names of signals."""

from __future__ import annotations

import signal
import sys

import pytest

from gpu_tracker.core.signals import name_signal


@pytest.mark.skipif(sys.platform != "linux", reason="compares with the names of Linux")
@pytest.mark.parametrize("number", [number for number in signal.Signals if number < 32])
def test_names_are_those_of_linux(number: signal.Signals) -> None:
    """As Python has them here."""
    assert name_signal(number) == f"{number.name} ({number.value})"


def test_others_have_a_number() -> None:
    """Of real time, or not a signal at all."""
    assert [name_signal(number) for number in (0, -3, 32, 64)] == [
        "signal 0",
        "signal -3",
        "signal 32",
        "signal 64",
    ]

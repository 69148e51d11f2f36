"""CPU time given to regions."""

from __future__ import annotations

import gc
import time
from pathlib import Path

import pytest

from gpu_tracker import region
from gpu_tracker.instrument.shared_file import CPU, OWN_CPU
from gpu_tracker.instrument.stack import Frame, RegionStack


class TimeLimitError(Exception):
    """As a signal handler raises it."""


def interrupt(_: Frame) -> None:
    """Raise where the calls around a call are looked for."""
    raise TimeLimitError


def burn_interrupted(mailbox: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The CPU time of two nested regions, and of the inner one alone, whose counting was interrupted."""
    stack = RegionStack(str(mailbox))
    outer, inner = stack.enter(region("epoch")), stack.enter(region("load"))
    assert outer is not None
    assert inner is not None
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass
    with monkeypatch.context() as patched:
        patched.setattr(Frame, "find_next", interrupt)
        with pytest.raises(TimeLimitError):
            stack.leave(inner)
    stack.leave(inner)
    stack.leave(outer)
    return [stack._writer.words[word] for word in (CPU + 1, CPU + 2, OWN_CPU + 2)]


def test_no_part_is_larger_than_the_whole_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal handler may raise wherever something is called, also in the middle of counting."""
    outer, inner, own = burn_interrupted(tmp_path, monkeypatch)
    gc.collect()  # regions inside each other know each other, and the file is open until they are gone

    assert own <= inner <= outer

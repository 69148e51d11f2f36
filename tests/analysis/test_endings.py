"""How a run ended."""

from __future__ import annotations

import pytest

from gpu_tracker.analysis.endings import (
    describe_signals,
    find_deadline,
    find_signal,
    has_failed,
    is_at_time_limit,
    is_gpu_memory_error,
    is_memory_error,
)
from gpu_tracker.core.model import SIGNAL, Allocation, Event


@pytest.mark.parametrize(
    ("ending", "code", "expected"),
    [
        ("exited", 0, False),
        ("exited", 1, True),
        ("stopped", None, False),
        ("running", None, False),
        ("sampler lost", None, False),
        ("sampler lost", -9, True),
        ("raised", None, True),
        ("killed", None, True),
    ],
)
def test_a_failure_is_an_exit_code_or_an_ending(ending: str, code: int | None, expected: bool) -> None:
    """A lost sampler is not the job's fault."""
    assert has_failed(ending, code) is expected


@pytest.mark.parametrize(
    ("code", "signal"),
    [(-9, 9), (137, 9), (-15, 15), (143, 15), (-11, None), (139, None), (9, None), (0, None), (None, None)],
)
def test_telling_signals_are_found_in_an_exit_code(code: int | None, signal: int | None) -> None:
    """Of the job itself, or as a shell passes it on."""
    assert find_signal(code) == signal


@pytest.mark.parametrize(
    ("name", "is_memory", "is_gpu"),
    [
        ("MemoryError", True, False),
        ("_ArrayMemoryError", True, False),
        ("TooLarge, derived from MemoryError", True, False),
        ("OutOfMemoryError", True, True),
        ("ValueError", False, False),
    ],
)
def test_memory_that_was_refused_is_in_the_name_of_the_exception(
    name: str, is_memory: bool, is_gpu: bool
) -> None:
    """Its own, or that of a base class."""
    assert (is_memory_error(name), is_gpu_memory_error(name)) == (is_memory, is_gpu)


@pytest.mark.parametrize(
    ("ends_at", "ended_at", "expected"),
    [(100.0, 96.0, True), (100.0, 94.0, False), (100.0, 150.0, True), (100.0, 161.0, False)],
    ids=["at the end", "before", "a little later", "over before it began"],
)
def test_a_run_is_at_its_time_limit_when_its_time_is_up(
    ends_at: float, ended_at: float, expected: bool
) -> None:
    """It took a minute."""
    given = Allocation(4, 4.0, "Slurm", 1, 1, "machine", ends_at_seconds=ends_at)

    assert is_at_time_limit(given, ended_at, 60.0) is expected
    assert not is_at_time_limit(given, None, 60.0)
    assert not is_at_time_limit(given._replace(ends_at_seconds=None), ended_at, 60.0)


def test_without_its_end_a_time_limit_counts_from_the_start() -> None:
    """An end that is known is better; without either, and without a start, there is none."""
    given = Allocation(4, 4.0, "Slurm", 1, 1, "machine", time_limit_seconds=60.0)

    assert find_deadline(given, 100.0) == 160.0
    assert find_deadline(given._replace(ends_at_seconds=150.0), 100.0) == 150.0
    assert find_deadline(given, None) is None
    assert find_deadline(given._replace(time_limit_seconds=None), 100.0) is None


def test_signals_are_told_once_each() -> None:
    """With the first time; what is no number is damage."""
    events = [Event(1.0, SIGNAL, "10"), Event(2.0, SIGNAL, "15"), Event(3.0, SIGNAL, "10")]
    others = [Event(0.5, "note", "15"), Event(0.5, SIGNAL, "TERM")]

    assert describe_signals([*others, *events]) == [
        "The job got SIGUSR1 (10) after 1 s.",
        "The job got SIGTERM (15) after 2 s.",
    ]

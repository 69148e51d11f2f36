"""Recordings of one and the same run."""

from __future__ import annotations

from builders import totals
from gpu_tracker.analysis.copies import leave_out_copies
from gpu_tracker.core.model import Identity, RecordingData
from recorded import rank


def on_machine(made: RecordingData, boot_id: str = "a") -> RecordingData:
    """The same on a machine that tells its boot."""
    return made._replace(header=made.header._replace(identity=Identity(boot_id=boot_id)))


def test_the_most_complete_recording_of_a_run_counts() -> None:
    """One with an end before one without; then the longest. Each of the others gets a sentence."""
    cut, whole = (on_machine(made) for made in (rank(seconds=99.0, end=None), rank(seconds=10.0)))
    edited = on_machine(rank(seconds=9.0))
    kept, notes = leave_out_copies([("cut", cut), ("edited", edited), ("whole", whole)])

    assert kept == [("whole", whole)]
    assert notes == [
        "Counted once: cut is of the same run as whole.",
        "Counted once: edited is of the same run as whole.",
    ]


def test_other_runs_are_no_copies() -> None:
    """On another machine or boot, of another process, or begun at another time."""
    runs = [rank(), rank(start=1), rank(pid=2), rank(host="node2")]
    recordings = [(f"{at}", on_machine(made)) for at, made in enumerate(runs)]
    recordings.append(("other boot", on_machine(rank(), "b")))

    assert leave_out_copies(recordings) == (recordings, [])


def test_without_a_boot_only_equal_recordings_are_copies() -> None:
    """Containers count their processes from one."""
    other = rank(totals=totals(at_seconds=11.0))
    kept, _ = leave_out_copies([("a", rank()), ("b", rank()), ("c", other)])

    assert [name for name, _ in kept] == ["a", "c"]


def test_of_many_copies_a_few_are_named() -> None:
    """And the rest are counted."""
    _, notes = leave_out_copies([(f"{number}", rank()) for number in range(9)])

    assert len(notes) == 6
    assert notes[-1] == "Counted once: 3 more are of the same runs as others."

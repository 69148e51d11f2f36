"""Lines of a file by their offsets."""

from __future__ import annotations

from pathlib import Path

from gpu_tracker.recording.lines import LineFile


def test_lines_are_read_together_or_one_by_one(tmp_path: Path) -> None:
    """Those that follow each other, and those with others in between."""
    path = tmp_path / "x"
    path.write_bytes(b"one\ntwo\nthree\n")
    file = LineFile("x", lambda: path.open("rb"))

    assert file.read_together([0, 4, 8]) == [b"one\n", b"two\n", b"three\n"]
    assert file.read_together([0, 8]) == [b"one\n", b"three\n"]

"""Lines of a file by their offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_tracker.recording import lines
from gpu_tracker.recording.lines import LineFile


def test_lines_are_read_together_or_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that follow each other; those with others in between; and those that are too much at once."""
    path = tmp_path / "x"
    path.write_bytes(b"one\ntwo\nthree\n")
    file = LineFile("x", lambda: path.open("rb"))

    assert file.read_together([0, 4, 8]) == [b"one\n", b"two\n", b"three\n"]
    assert file.read_together([0, 8]) == [b"one\n", b"three\n"]
    monkeypatch.setattr(lines, "_MOST_BYTES_AT_ONCE", 1)
    assert file.read_together([0, 4, 8]) == [b"one\n", b"two\n", b"three\n"]


def test_lines_around_one_that_is_too_long_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever in a block it begins, it is skipped to its end."""
    monkeypatch.setattr(lines, "LONGEST_LINE_BYTES", 100)
    path = tmp_path / "long"
    path.write_bytes(b"a" * 49 + b"\nb\n" + b"x" * 500 + b"\nc\n")
    found = list(LineFile("x", lambda: path.open("rb")).read_all(50))

    assert found == [(0, b"a" * 49 + b"\nb\n"), (52, b"\xff\n"), (553, b"c\n")]

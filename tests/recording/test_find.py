"""Files, directories and patterns."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gpu_tracker.core.errors import RecordingError, UsageError
from gpu_tracker.core.model import NO_PROCESS, Identity
from gpu_tracker.recording.find import (
    find_all,
    find_recordings,
    is_followed,
    is_recording,
    list_job,
    name_run,
)
from gpu_tracker.recording.lock import hold
from recorded import rank, write


def test_a_directory_means_its_recordings(tmp_path: Path) -> None:
    """Sorted by name, without other files."""
    for name in ("b.jsonl", "a.jsonl", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "c.jsonl").mkdir()
    os.mkfifo(tmp_path / "d.jsonl")

    assert find_recordings(str(tmp_path)) == [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]


def test_a_pattern_means_its_matches_unless_a_file_has_that_name(tmp_path: Path) -> None:
    """Also directories."""
    (tmp_path / "runs1").mkdir()
    (tmp_path / "runs1" / "a.jsonl").touch()
    odd = tmp_path / "odd[1].jsonl"
    odd.touch()

    assert find_recordings(f"{tmp_path}/runs*") == [str(tmp_path / "runs1" / "a.jsonl")]
    assert find_recordings(str(odd)) == [str(odd)]
    assert find_recordings("plain.jsonl") == ["plain.jsonl"]


def test_an_unreadable_directory_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one sentence; root may read any, so the refusal is simulated."""

    def refuse(path: str) -> list[str]:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(RecordingError, match="Permission denied"):
        find_recordings(str(tmp_path))


def test_a_path_is_named_by_its_last_part() -> None:
    """Without the suffix."""
    assert [name_run(path) for path in ("runs/a.jsonl", "runs/after/", ".")] == ["a", "after", "."]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"header":{"version":1}}\n', True),
        (b' { "header": {"version": 1}}\n{"sample":', True),
        (b'{"header":{"ver', True),
        (b'{"headers":[]}', False),
        (b'{"header":{"version":1},"summary":{}}\n', False),  # an export
        (b'{"header":{"version":1}', True),
        (b'{\n "header": {\n  "version": 1', False),  # a report as JSON
        (b"", False),
        (b"\xff\x00", False),
    ],
)
def test_a_recording_is_known_by_its_header(tmp_path: Path, content: bytes, expected: bool) -> None:
    """Whatever it is called, and even if that is torn."""
    path = tmp_path / "x"
    path.write_bytes(content)

    assert is_recording(str(path)) == expected


def test_a_recording_that_has_just_begun_is_one(tmp_path: Path) -> None:
    """It is still empty, but somebody holds it."""
    path = tmp_path / "x.jsonl"
    with path.open("ab") as file:
        hold(file.fileno())

        assert is_recording(str(path))
    assert not is_recording(str(path))


def test_what_cannot_be_read_is_no_recording(tmp_path: Path) -> None:
    """Nor does asking wait for the writer of a pipe."""
    os.mkfifo(tmp_path / "pipe")

    assert not any(is_recording(str(tmp_path / name)) for name in ("pipe", "missing", "."))


def test_what_may_not_be_read_is_no_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants to write to it will learn why not."""
    path = tmp_path / "x.json"
    path.write_text("x")

    def refuse(*_: object) -> None:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr("builtins.open", refuse)

    assert not is_recording(str(path))


def test_the_jobs_of_a_directory_are_found_in_it(tmp_path: Path) -> None:
    """Those of one job by its number: its array tasks and restarts too, but no other whose number begins alike."""
    for name in (
        "a.jsonl",
        "job-47/s0-n1-r0.jsonl",
        "job-47_1/n1.jsonl",
        "job-47.r1/n1.jsonl",
        "job-471/n1.jsonl",
        "other/b.jsonl",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [os.path.relpath(path, tmp_path) for path in find_recordings(str(tmp_path))]

    assert found == [
        "a.jsonl",
        "job-47/s0-n1-r0.jsonl",
        "job-47.r1/n1.jsonl",
        "job-471/n1.jsonl",
        "job-47_1/n1.jsonl",
    ]
    assert [os.path.relpath(path, tmp_path) for path in list_job(str(tmp_path), "47")] == [
        "job-47/s0-n1-r0.jsonl",
        "job-47.r1/n1.jsonl",
        "job-47_1/n1.jsonl",
    ]


def test_several_places_mean_each_recording_once(tmp_path: Path) -> None:
    """Or those of one job in them; nothing is an error that names the places."""
    for name in ("a.jsonl", "job-47/b.jsonl", "job-48/c.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    places = [str(tmp_path), str(tmp_path / "a.jsonl"), str(tmp_path / "job-48")]

    assert find_all(places) == [
        str(tmp_path / name) for name in ("a.jsonl", "job-47/b.jsonl", "job-48/c.jsonl")
    ]
    assert find_all(places[:1], "47") == [str(tmp_path / "job-47/b.jsonl")]
    with pytest.raises(UsageError, match=r"^There is no recording of job 49 in "):
        find_all(places[:1], "49")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"^There is no recording in .*/empty\.$"):
        find_all([str(tmp_path / "empty")])


def test_a_whole_job_is_followed_while_somebody_writes_its_recording(tmp_path: Path) -> None:
    """On this machine, also by a later name; nobody else's recording counts, although it may have the name."""
    job, host = Identity(job="7"), os.uname().nodename
    node = host.partition(".")[0]
    folder = tmp_path / "job-7"

    def put(name: str, **fields: Any) -> Path:
        made = rank(**{"pid": NO_PROCESS, "host": host, **fields})._replace(end=None)
        return write(folder / name, made)

    assert not is_followed(str(tmp_path), job)
    put(f"{node}.jsonl")  # its tracker was killed
    strangers = [put(f"{node}-2.jsonl", pid=5), put(f"{node}-3.jsonl", host="other")]
    begun = folder / f"{node}-4.jsonl"
    begun.touch()
    with ExitStack() as stack:
        for path in (*strangers, begun):
            hold(stack.enter_context(path.open("rb")).fileno())
        assert not is_followed(str(tmp_path), job)
        hold(stack.enter_context(put(f"{node}-5.jsonl").open("rb")).fileno())
        assert is_followed(str(tmp_path), job)
        assert not is_followed(str(tmp_path), Identity(job="8"))
        assert not is_followed(str(tmp_path), Identity())

    assert not is_followed(str(tmp_path), job)

"""Events are read many at a time, and as carefully as one by one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

import pytest

from builders import found, gpu
from gpu_tracker.core.errors import RecordingError
from gpu_tracker.core.model import Event
from gpu_tracker.recording import reader
from gpu_tracker.recording.follow import Follower, follow_path
from gpu_tracker.recording.glance import glance
from gpu_tracker.recording.reader import load, load_bytes, load_several, load_whole
from recorded import Made, make_plain, plain_sample, run, write

NOTES = tuple(Event(float(at), "note", f"Note {at}.") for at in range(2500))


def test_all_events_are_read_in_order(tmp_path: Path) -> None:
    """Of either kind, however many there are."""
    events = (found(gpu()), *NOTES, found(gpu(1)))

    assert load(str(write(tmp_path / "x.jsonl", run(events=events)))).events == events


@pytest.mark.parametrize("together", [1, 7, 1000])
@pytest.mark.parametrize(
    "wrong",
    [
        b'{"event":{"at":1,"kind":5}}',
        b'{"event":{"at":' + b"9" * 30 + b',"kind":"note"}}',
        b'{"event":{"at":}}',
    ],
)
def test_a_damaged_event_is_left_out_alone(
    tmp_path: Path, together: int, wrong: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the number of its line; a torn one at the end is no damage."""
    monkeypatch.setattr(reader, "_LINES_AT_ONCE", together)
    path = write(tmp_path / "x.jsonl", run(events=NOTES[:20], end=None))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:11], wrong, b"\n", *lines[11:], b'{"event":{"at":2']))
    recording = load(str(path))

    assert recording.events == NOTES[:20]
    assert list(recording.problems) == ["Line 12 of the recording is damaged and was left out."]


def test_events_in_another_spelling_keep_their_place(tmp_path: Path) -> None:
    """Any JSON will do, with white space anywhere."""
    path = write(tmp_path / "x.jsonl", run(events=NOTES[:3]))
    path.write_bytes(path.read_bytes().replace(b'{"event":{"at":1.0', b'  { "event" : { "at": 1.0'))

    assert load(str(path)).events == NOTES[:3]


def test_a_file_full_of_damaged_events_is_not_read_to_its_end(tmp_path: Path) -> None:
    """There may be a billion of them."""
    path = make_plain(tmp_path / "x.jsonl")
    with path.open("ab") as file:
        file.writelines([b'{"event":{}}\n'] * 20_000)

    assert "was read only up to byte" in load(str(path)).problems[0]


def test_an_event_costs_few_calls(tmp_path: Path) -> None:
    """A million of them must not take long."""
    with Made(tmp_path / "x.jsonl") as writer:
        for event in NOTES:
            writer.write_event(event)
    n_calls = 0

    def count(_frame: FrameType, kind: str, _argument: object) -> None:
        nonlocal n_calls
        n_calls += kind == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        load(str(tmp_path / "x.jsonl"))
    finally:
        sys.setprofile(before)

    assert n_calls < 8 * len(NOTES)


def test_lines_that_are_known_from_another_file_are_no_recording(tmp_path: Path) -> None:
    """What many files have in common is checked once, but each must have its header."""
    whole = write(tmp_path / "a.jsonl", run(samples=(plain_sample(1.0), plain_sample(2.0))))
    lines = [line for line in whole.read_bytes().splitlines(keepends=True) if b'{"sample"' in line]
    (tmp_path / "b.jsonl").write_bytes(b"".join(lines))
    same = write(tmp_path / "c.jsonl", run(samples=(plain_sample(1.0), plain_sample(2.0))))
    loaded, skipped = load_several([str(tmp_path / f"{name}.jsonl") for name in "abc"], ())

    assert [path for path, _ in loaded] == [str(whole), str(same)]
    assert [len(recording.samples) for _, recording in loaded] == [2, 2]
    assert skipped == (f"Skipped: {tmp_path / 'b.jsonl'} is not a gpu-tracker recording.",)


def test_a_damaged_file_is_left_out_unless_it_is_named_or_the_only_one(tmp_path: Path) -> None:
    """Then there is nothing to go on with."""
    whole = str(write(tmp_path / "a.jsonl", run()))
    damaged = tmp_path / "b.jsonl"
    damaged.write_text("nonsense")

    assert len(load_several([whole, str(damaged)], ())[1]) == 1
    with pytest.raises(RecordingError):
        load_several([whole, str(damaged)], (str(damaged),))
    with pytest.raises(RecordingError) as refusal:
        load_several([str(damaged)], ())
    assert not str(refusal.value).startswith("Skipped")


def test_what_follows_the_end_is_said(tmp_path: Path) -> None:
    """Another end is damage; so is a sample, whose place is before it."""
    path = make_plain(tmp_path / "x.jsonl")
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    sample, end = next(line for line in lines if line.startswith(b'{"sample"')), lines[-1]
    path.write_bytes(content + end.replace(b"exited", b"ended"))
    n_lines = content.count(b"\n")
    recording = load(str(path))
    assert recording.end == load_bytes(content).end
    assert list(recording.problems) == [f"Line {n_lines + 1} of the recording is damaged and was left out."]

    path.write_bytes(content + sample)
    assert list(load(str(path)).problems) == ["The recording has samples after its end."]


@pytest.mark.parametrize("line", [b"{", b'{"heade', b'{"header"', b'{"header":{"version":1,'])
def test_a_header_that_was_torn_early_is_a_header(tmp_path: Path, line: bytes) -> None:
    """Whoever reads it says the same."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(line)
    os.utime(path, (0, 0))
    sentences = set()
    for read in (load, glance, lambda name: Follower(follow_path(name)).look()):
        with pytest.raises(RecordingError) as raised:
            read(str(path))
        sentences.add(str(raised.value))

    assert sentences == {
        f"{path} has no complete header: gpu-tracker was killed at the start, or the disk was full."
    }


@pytest.mark.parametrize(
    ("good", "wrong"),
    [
        (b'"at_seconds":10.0', b'"at_seconds":-7000000000.0'),
        (b'"at_seconds":10.0', b'"at_seconds":9e+18'),
        (b'"tracker_ram_bytes":', b'"tracker_ram_bytes":-'),
    ],
)
def test_an_end_with_numbers_that_cannot_be_is_damaged(tmp_path: Path, good: bytes, wrong: bytes) -> None:
    """So no limit is held against them."""
    path = make_plain(tmp_path / "x.jsonl")
    content = path.read_bytes()
    head, end = content[: content.index(b'{"end"')], content[content.index(b'{"end"') :]
    assert end.count(good) == 1
    path.write_bytes(head + end.replace(good, wrong))
    with pytest.raises(RecordingError, match="is damaged and was left out"):
        load_whole(str(path))


def test_a_last_sample_that_cannot_be_makes_no_totals(tmp_path: Path) -> None:
    """Of a run that was killed; the one before does."""
    path = tmp_path / "x.jsonl"
    with Made(path) as writer:
        for at in (1.0, 2.0, 3.0):
            writer.write_sample(plain_sample(at))
    path.write_bytes(path.read_bytes().replace(b'"at":3.0', b'"at":-7e9'))
    recording = load(str(path))

    assert recording.totals.at_seconds == 2.0
    assert recording.problems

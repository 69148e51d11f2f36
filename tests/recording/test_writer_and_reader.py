"""A file that can be cut anywhere and still be read."""

from __future__ import annotations

import json
import math
import os
import re
import time
from pathlib import Path

import pytest

from builders import found, gpu, header, totals
from gpu_tracker.analysis.regions import summarize_metrics
from gpu_tracker.core.errors import RecordingError, UsageError
from gpu_tracker.core.model import End, Event, MachineEnergy, MetricRow, MetricTotals, Peaks
from gpu_tracker.recording.create import create
from gpu_tracker.recording.reader import load, load_bytes, load_descriptor, load_whole
from gpu_tracker.recording.writer import Writer
from recorded import Made, plain_sample


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A complete recording: header, three samples, an event, an end."""
    file = tmp_path / "runs" / "x.jsonl"
    with Made(file) as writer:
        writer.write_event(found(gpu()))
        for at, peak in ((1.0, 100), (2.0, 450), (3.0, 450)):
            writer.write_sample(plain_sample(at, peak))
        writer.write_event(Event(3.0, "note", "Said once."))
        writer.write_end(End("exited", 0, totals(), 0.1, 9))
        assert not writer.is_deleted()
    return file


def test_what_was_written_is_read(path: Path) -> None:
    """Header, samples with the peaks so far, events, end."""
    recording = load(str(path))

    assert recording.header == header()
    assert tuple(recording.samples) == (
        plain_sample(1.0, 100),
        plain_sample(2.0, 450),
        plain_sample(3.0, 450),
    )
    assert recording.events == (found(gpu()), Event(3.0, "note", "Said once."))
    assert recording.totals == totals()
    assert recording.end is not None
    assert not recording.problems


def test_only_its_owner_may_read_it(path: Path) -> None:
    """A command line may contain private data."""
    assert path.stat().st_mode & 0o777 == 0o600


def test_any_prefix_is_a_full_report(path: Path) -> None:
    """Cut at every byte: only what came after is missing."""
    content = path.read_bytes()
    first_line = content.index(b"\n")
    for length in reversed(range(len(content))):
        os.truncate(path, length)
        if length < first_line:
            with pytest.raises(RecordingError):
                load(str(path))
            continue
        recording = load(str(path))
        assert not recording.problems
        if recording.end is None and recording.samples:
            last = recording.samples[-1]
            assert recording.totals.at_seconds == last.at_seconds
            assert recording.totals.readings == 10 * len(recording.samples)
            assert recording.totals.peaks == last.peaks


def test_a_damaged_line_is_left_out_with_a_note(path: Path) -> None:
    """Everything else is still there."""
    assert load_whole(str(path)).end is not None
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = b'{"sample": {"at": "no"}}\n'
    lines.insert(5, b"\xff\x00 not json\n")
    path.write_bytes(b"".join(lines))
    recording = load(str(path))

    assert len(recording.samples) == 2
    assert [re.findall(r"\d+", problem) for problem in recording.problems] == [["4"], ["6"]]
    with pytest.raises(RecordingError, match=r"damaged: Line 4"):
        load_whole(str(path))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"hello\n", "is not a gpu-tracker recording"),
        (b'{"sample":{}}\n', "is not a gpu-tracker recording"),
        (b"[1]\n", "is not a gpu-tracker recording"),
        (b'{"header":{"version":99}}\n', "version 99"),
    ],
)
def test_other_files_are_refused_with_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    """And recordings of a newer version."""
    file = tmp_path / "x.jsonl"
    file.write_bytes(content)
    with pytest.raises(RecordingError, match=sentence):
        load(str(file))
    with pytest.raises(RecordingError, match=sentence):
        load_bytes(content)


@pytest.mark.parametrize(
    ("version", "hint"), [(99, "Update gpu-tracker"), (0, "the gpu-tracker that wrote it")]
)
def test_the_advice_about_another_version_can_be_followed(tmp_path: Path, version: int, hint: str) -> None:
    """An update reads no older format."""
    file = tmp_path / "x.jsonl"
    file.write_text(f'{{"header":{{"version":{version}}}}}\n')
    with pytest.raises(RecordingError) as refused:
        load(str(file))

    assert hint in (refused.value.hint or "")


def test_a_missing_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """With the system's own reason."""
    with pytest.raises(RecordingError, match="No such file or directory"):
        load(str(tmp_path / "none.jsonl"))


def test_a_closed_descriptor_is_refused_with_a_sentence() -> None:
    """The program may have closed it."""
    with pytest.raises(RecordingError, match="Bad file descriptor"):
        load_descriptor(-1)


def test_a_torn_header_is_followed_by_a_complete_one(path: Path) -> None:
    """After a full disk."""
    content = path.read_bytes()
    path.write_bytes(content[:50] + b"\n" + content)

    assert load(str(path)).end is not None


def test_a_recording_never_overwrites_another(path: Path) -> None:
    """A file that the user named."""
    with pytest.raises(UsageError, match="already exists"):
        create(str(path), ("job",), 1)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("x.jsonl/below", "Not a directory"),
        ("x.jsonl/below.jsonl", "Not a directory"),
        ("y" * 300, "File name too long"),
        ("y/" * 2000, "File name too long"),
        ("y" * 300 + ".jsonl", "File name too long"),
        ("a\0b", "null"),
    ],
)
def test_a_place_where_nothing_can_be_written_is_named_with_the_reason(
    path: Path, place: str, reason: str
) -> None:
    """The caller says so and goes on."""
    with pytest.raises(RecordingError, match=reason):
        create(os.path.join(path.parent, place), ("job",), 1)


def test_a_taken_name_gives_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal pids in the same second."""
    monkeypatch.setattr(time, "strftime", lambda _: "20260131-235959")
    names = [Path(create(str(tmp_path), ("train.py",), 7)).name for _ in range(3)]

    assert names == [f"20260131-235959-train-7{again}.jsonl" for again in ("", "-2", "-3")]


def test_the_caller_keeps_a_line_that_does_not_fit(tmp_path: Path) -> None:
    """After a full disk the next line is whole, with the peaks that were not written."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    while True:
        try:
            os.write(writing, b"x" * 4096)
        except BlockingIOError:
            break
    writer = Writer(writing)
    with pytest.raises(OSError):
        writer.write_sample(plain_sample(1.0, 100))
    os.close(reading)
    os.close(writing)

    fd = os.open(tmp_path / "x.jsonl", os.O_CREAT | os.O_RDWR)
    writer._fd = fd
    writer.write_header(header())
    writer.write_sample(plain_sample(2.0, 100))
    recording = load_descriptor(fd)
    os.unlink(tmp_path / "x.jsonl")

    assert recording.samples == (plain_sample(2.0, 100),)
    assert writer.is_deleted()
    os.close(fd)


def test_a_writer_notices_that_its_file_was_truncated(tmp_path: Path) -> None:
    """Also if it has written more since."""
    path = tmp_path / "x.jsonl"
    with Made(path) as writer:
        writer.write_sample(plain_sample(1.0, 100))
        assert not writer.is_cut()
        os.truncate(path, 100)
        writer.write_sample(plain_sample(2.0, 100))
        assert writer.is_cut()


def test_half_a_line_is_an_error(tmp_path: Path) -> None:
    """What stands in the way of the rest says why."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with pytest.raises(OSError, match="Resource temporarily unavailable"):
        Writer(writing).write_event(Event(0.0, "note", "x" * 200_000))
    os.close(reading)
    os.close(writing)


def test_secrets_in_notes_are_masked(tmp_path: Path) -> None:
    """They may quote what failed."""
    with Made(tmp_path / "x.jsonl") as writer:
        writer.write_event(Event(1.0, "note", "Cannot run curl -u me:abcdef host."))

    assert load(str(tmp_path / "x.jsonl")).events[0].text == "Cannot run curl -u me:*** host."


TOTALS = (
    MetricTotals("loss", 2_592_000, 3, 1e300, -1e200, 1e299, math.nan, 2_591_999.5),
    MetricTotals("lr", 2, 2, 0.0, None, None, math.inf, 1.0),
)


def test_totals_of_metrics_outlive_the_numbers_that_were_not_kept(tmp_path: Path) -> None:
    """The last line counts, and names without one are counted from their points."""
    with Made(tmp_path / "x.jsonl") as writer:
        writer.write_metrics([MetricRow(1.0, {"loss": 1.0, "other": 5.0})])
        writer.write_metric_totals(TOTALS[:1])
        writer.write_metric_totals(TOTALS)
    recording = load(tmp_path / "x.jsonl")
    loss, lr, other = summarize_metrics(recording)

    assert repr(tuple(recording.metric_totals)) == repr(TOTALS)
    assert (loss.logged, loss.minimum, loss.maximum) == (2_592_000, -1e200, 1e299)
    assert (lr.logged, lr.minimum) == (2, None)
    assert (other.logged, other.last) == (1, 5.0)


@pytest.mark.parametrize(
    "values",
    [
        [1, 0, 1.0, 1.0, 1.0, 1.0],
        [1.5, 0, 1.0, 1.0, 1.0, 1.0, 1.0],
        [1, 0, "much", 1.0, 1.0, 1.0, 1.0],
        [1, 0, None, 1.0, 1.0, 1.0, 1.0],
        [1, 0, 1.0, 1.0, 1.0, None, 1.0],
        [1, 0, 1.0, 1.0, 1.0, 1.0, None],
        "nonsense",
    ],
)
def test_damaged_totals_of_metrics_are_noted_and_the_points_counted(tmp_path: Path, values: object) -> None:
    """Like any other damaged line."""
    path = tmp_path / "x.jsonl"
    with Made(path) as writer:
        writer.write_metrics([MetricRow(1.0, {"loss": 1.0})])
    with path.open("a") as file:
        file.write(json.dumps({"metric_totals": {"loss": values}}) + "\n")
    recording = load(path)

    assert [metric.logged for metric in summarize_metrics(recording)] == [1]
    assert len(recording.problems) == 1


def test_energy_and_what_a_limit_counts_survive(tmp_path: Path) -> None:
    """In the end, and without one in the last sample."""
    file = tmp_path / "x.jsonl"
    energy, peaks = MachineEnergy(12.5, None, 3.0), Peaks(limit_held_bytes=7)
    with Made(file) as writer:
        writer.write_sample(plain_sample(1.0)._replace(energy=energy, peaks=peaks))
        assert load(str(file)).totals.energy == energy
        assert load(str(file)).totals.peaks.limit_held_bytes == 7
        writer.write_end(End("exited", 0, totals(energy=energy, peaks=peaks), 0.1, 9))
    recording = load(str(file))

    assert recording.totals.energy == recording.samples[0].energy == energy
    assert recording.totals.peaks.limit_held_bytes == 7

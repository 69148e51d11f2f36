"""What is decoded on access is what was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_tracker.core.errors import WRONG_DATA, RecordingError
from gpu_tracker.recording.lazy import decode_events
from gpu_tracker.recording.reader import load
from recorded import (
    FRAMEWORKS,
    METRICS,
    PROCESSES,
    REGIONS,
    Made,
    gpu_sample,
    make_full,
    make_plain,
    plain_sample,
    run,
    write,
)


def test_samples_are_a_sequence(tmp_path: Path) -> None:
    """Iterated, indexed and sliced, each with the peaks so far."""
    samples = load(str(make_plain(tmp_path / "x.jsonl"))).samples
    written = tuple(plain_sample(at, 100 * int(at)) for at in (1.0, 2.0, 3.0))

    assert len(samples) == 3
    assert tuple(samples) == written
    assert (samples[0], samples[-1], samples[1:]) == (written[0], written[2], written[1:])
    with pytest.raises(IndexError):
        samples[3]


def test_samples_of_devices_have_their_uuids(tmp_path: Path) -> None:
    """Even before any device was seen."""
    samples = load(str(make_full(tmp_path / "x.jsonl"))).samples

    assert samples[1].gpus == gpu_sample(1.0).gpus
    assert samples[2].gpu_counters == gpu_sample(2.0).gpu_counters
    assert not samples[0].gpus


def test_of_regions_and_processes_the_last_line_counts(tmp_path: Path) -> None:
    """In the order of their first lines."""
    recording = load(str(make_full(tmp_path / "x.jsonl")))

    assert tuple(recording.regions) == REGIONS
    assert len(recording.regions) == 2
    assert recording.regions[1] == REGIONS[1]
    assert tuple(recording.processes) == PROCESSES
    assert recording.processes[:1] == PROCESSES[:1]


def test_of_frameworks_every_line_is_a_reading(tmp_path: Path) -> None:
    """The last one counts for the totals; a damaged one is left out."""
    path = tmp_path / "x.jsonl"
    with Made(path) as writer:
        for at in (1.0, 2.0, 3.0):
            writer.write_framework(FRAMEWORKS[0]._replace(at_seconds=at, in_use_bytes=int(at)))
    recording = load(str(path))
    assert [memory.in_use_bytes for memory in recording.framework_readings] == [1, 2, 3]
    assert [memory.in_use_bytes for memory in recording.frameworks] == [3]

    path.write_bytes(path.read_bytes().replace(b'"in_use_bytes":2,', b'"in_use_bytes":' + b"9" * 30 + b","))
    damaged = load(str(path))
    assert [memory.in_use_bytes for memory in damaged.framework_readings] == [1, 3]
    assert len(damaged.problems) == 1


def test_metrics_are_a_sequence_over_lines_of_many_rows(tmp_path: Path) -> None:
    """Iterated, indexed and sliced in both directions."""
    metrics = load(str(make_full(tmp_path / "x.jsonl"))).metrics

    assert tuple(metrics) == METRICS
    assert len(metrics) == 3
    assert [metrics[index] for index in (0, 1, 2, -1)] == [*METRICS, METRICS[-1]]
    assert metrics[1:] == METRICS[1:]
    assert metrics[::-1] == METRICS[::-1]
    with pytest.raises(IndexError):
        metrics[3]


def test_without_metrics_there_are_none(tmp_path: Path) -> None:
    """An empty sequence, not an error."""
    assert len(load(str(make_plain(tmp_path / "x.jsonl"))).metrics) == 0


def test_a_number_out_of_range_is_found_on_access(tmp_path: Path) -> None:
    """The line has the right shape; it is left out with a note, and by index it is an error."""
    path = make_plain(tmp_path / "x.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    again = lines[3].replace(b'"at":3.0', b'"at":4.0')
    lines[4:4] = [again.replace(b'"system_ram":7', b'"system_ram":' + b"7" * 40), again]
    path.write_bytes(b"".join(lines))
    recording = load(str(path))

    assert not recording.problems
    assert [sample.at_seconds for sample in recording.samples] == [1.0, 2.0, 3.0, 4.0]
    assert len(tuple(recording.problems)) == 1
    assert "The line at byte" in recording.problems[0]
    with pytest.raises(RecordingError, match="damaged"):
        recording.samples[3]


def test_totals_of_a_cut_recording_skip_a_damaged_last_line(tmp_path: Path) -> None:
    """And an impossible peak."""
    path = make_plain(tmp_path / "x.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)[:4]
    lines[2] = lines[2].replace(b"200000000", b"9" * 30)
    lines.append(lines[3].replace(b'"readings":10', b'"readings":' + b"9" * 30))
    path.write_bytes(b"".join(lines))
    recording = load(str(path))

    assert recording.totals.at_seconds == 3.0
    assert recording.totals.peaks.ram.main.total_bytes == 300 * 10**6
    assert len(recording.problems) == 1


def test_damaged_metrics_regions_and_processes_are_noted(tmp_path: Path) -> None:
    """The others are still there."""
    path = make_full(tmp_path / "x.jsonl")
    text = path.read_text()
    text = text.replace('"loss":[1.5]', '"loss":["no"]').replace('"calls":30', '"calls":0.5')
    path.write_text(text.replace('"name":"python"', '"name":5'))
    recording = load(str(path))

    assert (tuple(recording.metrics), recording.metrics[0]) == (METRICS[1:], METRICS[1])
    assert tuple(recording.regions) == REGIONS[:1]
    assert tuple(recording.processes) == PROCESSES[1:]
    assert len(recording.problems) == 3


def test_metrics_may_be_written_with_spaces(tmp_path: Path) -> None:
    """As any JSON."""
    path = make_full(tmp_path / "x.jsonl")
    path.write_text(
        path.read_text().replace('{"metrics":{', '{ "metrics": {').replace('{"sample":{', '{ "sample": {')
    )
    recording = load(str(path))

    assert tuple(recording.metrics) == METRICS
    assert len(tuple(recording.samples)) == 3


def test_a_replaced_file_is_not_mistaken_for_the_loaded_one(tmp_path: Path) -> None:
    """And a removed one is an error."""
    path = make_plain(tmp_path / "x.jsonl")
    samples = load(str(path)).samples
    path.rename(tmp_path / "y.jsonl")
    with pytest.raises(RecordingError, match="No such file"):
        samples[0]
    make_plain(path)
    with pytest.raises(RecordingError, match="was replaced"):
        samples[0]


def test_a_growing_recording_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """Later lines need another load."""
    with Made(tmp_path / "x.jsonl") as writer:
        writer.write_sample(plain_sample(1.0))
        before = load(str(tmp_path / "x.jsonl"))
        writer.write_sample(plain_sample(2.0))

    assert len(before.samples) == len(tuple(before.samples)) == 1
    assert load(str(tmp_path / "x.jsonl")).totals.readings == 20


def test_peaks_in_every_sample_are_merged_without_decoding_each(tmp_path: Path, decoded: list[bytes]) -> None:
    """Lines that differ only in digits have the same fields; a damaged one is left out."""
    samples = tuple(plain_sample(float(at), 100 * at) for at in range(1, 3001))
    path = write(tmp_path / "x.jsonl", run(samples=samples, end=None))
    assert load(str(path)).totals.peaks == samples[-1].peaks
    assert len(decoded) < 100

    content = path.read_bytes()
    at = content.rindex(b'"peaks":')
    assert b"300000" in content[at:]
    path.write_bytes(content[:at] + content[at:].replace(b"300000", b"3" * 30))
    assert load(str(path)).totals.peaks == samples[-2].peaks


def test_a_line_that_holds_two_is_damage() -> None:
    """Lines that are decoded together must not hide it."""
    with pytest.raises(WRONG_DATA):
        decode_events([b'{"event":{"at":1,"kind":"note"}}],[{"event":{"at":2,"kind":"note"}}\n'])

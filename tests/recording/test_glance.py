"""A recording by its first and last lines."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from builders import MB, found, gpu, header, together, totals
from gpu_tracker.core.errors import RecordingError
from gpu_tracker.core.model import End, Event, GpuPeaks, GpuProcessPeak, Parts, Peaks, RamPeak
from gpu_tracker.recording.follow import follow_path
from gpu_tracker.recording.glance import glance
from gpu_tracker.recording.growing import GrowingRecording
from gpu_tracker.recording.reader import load
from gpu_tracker.recording.schema import encode_event
from recorded import interval, run, write

SAMPLES = (interval(1.0, 100), interval(2.0, 450), interval(3.0, 450))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A finished run."""
    return write(tmp_path / "x.jsonl", run(events=(found(gpu()),), samples=SAMPLES))


def test_a_glance_gives_what_reading_gives(path: Path) -> None:
    """Except for the samples."""
    whole, seen = load(str(path)), glance(str(path))

    assert seen.samples == ()
    assert seen[2:5] == whole[2:5]
    for part in ("header", "problems", "regions", "metrics", "processes"):
        assert tuple(getattr(seen, part)) == tuple(getattr(whole, part))


@pytest.mark.uncovered
def test_any_prefix_gives_the_same_as_reading(path: Path) -> None:
    """Cut at every byte: time, CPU time and peaks so far, or a refusal."""
    content = path.read_bytes()
    first_line = content.index(b"\n")
    for length in reversed(range(len(content))):
        os.truncate(path, length)
        if length < first_line:
            with pytest.raises(RecordingError):
                glance(str(path))
            continue
        whole, quick = load(str(path)), glance(str(path))
        assert quick.header == whole.header
        assert quick.events == whole.events
        assert quick.totals.at_seconds == whole.totals.at_seconds
        assert quick.totals.cpu_seconds.main == whole.totals.cpu_seconds.main
        assert quick.totals.peaks == whole.totals.peaks
        assert quick.end == whole.end


def test_a_long_last_line_is_read_whole(tmp_path: Path) -> None:
    """However many processes it lists."""
    many = tuple(GpuProcessPeak("GPU-0", pid, "python" * 10, pid) for pid in range(2000))
    finished = run(totals=run().totals._replace(peaks=Peaks(ram=together(RamPeak(MB)), gpu_processes=many)))
    path = write(tmp_path / "x.jsonl", finished)

    assert path.stat().st_size > 100_000
    assert glance(str(path)).totals == finished.totals


def test_a_recording_of_samples_only_gives_its_last(tmp_path: Path) -> None:
    """A long one, so that neither end has all of it."""
    path = write(
        tmp_path / "x.jsonl", run(samples=tuple(interval(float(n), 5) for n in range(1000)), end=None)
    )

    assert glance(str(path)).totals.at_seconds == 999.0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"totals"', b'"tables"'),
        (b'"at_seconds":10.0', b'"at_seconds":1e300'),
        (b'"cpu_seconds":[10.0', b'"cpu_seconds":[1e999'),
        (b'"reason":"exited"', b'"reason":{}'),
        (b'"exit_code":0', b'"exit_code":1e10'),
        (b'"reason":"exited"', b'"reason":' + b"[" * 100_000),
        (b'"ram":[[500000000', b'"ram":[' + b"[" * 100_000),
    ],
    ids=lambda part: repr(part[:30]),
)
def test_a_damaged_end_is_no_end(path: Path, old: bytes, new: bytes) -> None:
    """The ending is not guessed."""
    before, end = path.read_bytes().split(b'{"end"')
    assert old in end
    path.write_bytes(before + b'{"end"' + end.replace(old, new, 1))
    with pytest.raises(RecordingError, match=r"is damaged: The line at byte \d+ of the recording"):
        glance(str(path))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"version":1', b'"version":true'),
        (b'"version":1', b'"version":1.0'),
        (b'"sleep_seconds":1.0', b'"sleep_seconds":"x"'),
        (b'"pid":100', b'"pid":' + b"[" * 100_000),
    ],
    ids=lambda part: repr(part[:30]),
)
def test_a_damaged_header_is_no_header(path: Path, old: bytes, new: bytes) -> None:
    """As for the reader."""
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(RecordingError):
        glance(str(path))


@pytest.mark.parametrize(
    "rest", [b"\n", b"\n \n\n", b'{"event":{"at":9,"kind":"note"}}\n', b"nonsense\n", b"{"]
)
def test_lines_after_the_end_do_not_hide_it(path: Path, rest: bytes) -> None:
    """The run has ended."""
    whole = glance(str(path))
    path.write_bytes(path.read_bytes() + rest)

    assert whole.end is not None
    assert (glance(str(path)).end, glance(str(path)).totals) == (whole.end, whole.totals)


def test_a_device_that_is_found_late_is_known(tmp_path: Path) -> None:
    """Its driver was slow, or the job logged much before."""
    peaks = totals().peaks._replace(gpus=(GpuPeaks("GPU-0", used_bytes=5, job_bytes=Parts(4, 0, 4)),))
    path = write(tmp_path / "x.jsonl", run(totals=totals(peaks=peaks)))
    _put_before_the_end(path, _many_samples(tmp_path), found(gpu()))

    assert glance(str(path)).events == load(str(path)).events == (found(gpu()),)


def test_a_late_note_on_unattributed_memory_is_found(tmp_path: Path) -> None:
    """If a device has grown without an owner."""
    peaks = totals().peaks._replace(gpus=(GpuPeaks("GPU-0", used_bytes=5, grown_bytes=4),))
    path = write(tmp_path / "x.jsonl", run(totals=totals(peaks=peaks), events=(found(gpu()),)))
    note = Event(9.0, "unattributed", "The owner is not known.")
    _put_before_the_end(path, _many_samples(tmp_path), note)

    assert glance(str(path)).events == (found(gpu()), note)


def test_a_sparse_file_is_not_read(path: Path) -> None:
    """3 GB of holes, and a line after them."""
    content = path.read_bytes()
    start = content.index(b"\n") + 1
    for rest in (b"\nnonsense\n", b"\n" + b'{"end":\xff}\n'):
        path.write_bytes(content[:start])
        os.truncate(path, 3 * 10**9)
        with path.open("ab") as file:
            file.write(rest)
        with pytest.raises(RecordingError, match=r"is damaged: The line at byte \d+ of the recording"):
            glance(str(path))


@pytest.mark.parametrize("n_bytes", [0, 2 * 2**20])
def test_holes_at_the_end_are_what_a_full_disk_leaves(path: Path, n_bytes: int) -> None:
    """As whoever loads it sees it, however long it is: it has its end, or has none."""
    content = path.read_bytes()
    note = b'{"gaps":{"long_names":0,"refused_regions":0,"refusing_processes":0,"unfollowed_processes":0,"lost_metrics":0}}\n'
    first = content.index(b"\n") + 1
    for known in (content, content[:first]):
        path.write_bytes(known[:first] + note * (n_bytes // len(note)) + known[first:])
        os.truncate(path, 3 * 10**9)
        found, loaded = glance(str(path)), load(str(path))

        assert (found.end, found.totals) == (loaded.end, loaded.totals)
        assert not loaded.problems


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    """Opening one without a writer would block."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecordingError, match="it is not a regular file"):
        glance(str(tmp_path / "pipe"))


@pytest.mark.parametrize("content", [b"", b"nonsense\n", b'{"sample":{}}\n', b"[]\n"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    """As by the reader."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(RecordingError):
        glance(str(path))


def test_a_newer_version_is_refused_and_a_missing_file_too(tmp_path: Path) -> None:
    """With the reader's message."""
    path = write(tmp_path / "x.jsonl", run(events=(Event(0.0, "note", "?"),)))
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":99'))
    with pytest.raises(RecordingError, match="version 99"):
        glance(str(path))
    with pytest.raises(RecordingError, match="Cannot read"):
        glance(str(tmp_path / "none.jsonl"))
    assert header().version == 1


def _many_samples(tmp_path: Path) -> bytes:
    """More lines than the head of a file holds."""
    many = write(
        tmp_path / "many.jsonl", run(samples=tuple(interval(n / 100, 5) for n in range(500)), end=None)
    )
    _, samples = many.read_bytes().split(b"\n", 1)
    return samples


def _put_before_the_end(path: Path, samples: bytes, event: Event) -> None:
    """The samples, then the event, as if it had come late."""
    *lines, end = path.read_bytes().splitlines(keepends=True)
    line = json.dumps({"event": encode_event(event)}).encode()
    path.write_bytes(b"".join((*lines, samples, line, b"\n", end)))


def test_a_long_recording_without_an_end_is_not_read_whole(tmp_path: Path) -> None:
    """Its peaks and devices are found nevertheless, wherever they are."""
    samples = [interval(n / 100, 5) for n in range(60_000)]
    samples[12_000:] = [interval(sample.at_seconds, 900) for sample in samples[12_000:]]
    path = write(tmp_path / "x.jsonl", run(samples=tuple(samples), end=None))
    lines = path.read_bytes().splitlines(keepends=True)
    lines.insert(30_000, json.dumps({"event": encode_event(found(gpu()))}, separators=(",", ":")).encode())
    lines[30_000] += b"\n"
    path.write_bytes(b"".join(lines))
    whole, quick = load(str(path)), glance(str(path))

    assert len(quick.samples) < len(whole.samples) == 60_000
    assert quick.events == whole.events == (found(gpu()),)
    assert quick.totals.peaks == whole.totals.peaks
    assert quick.totals.at_seconds == whole.totals.at_seconds
    assert quick.samples[-1] == whole.samples[-1]


@pytest.mark.parametrize("line", [b'{"sample":{}}\n', b"\n", b"nonsense\n"])
def test_a_file_of_useless_lines_is_not_read_to_its_end(path: Path, line: bytes) -> None:
    """A few of them are left out, but there may be a billion. How the job ended is read from the last line all the same."""
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(first + b"\n" + 5000 * line + rest)
    assert load(str(path)).end is not None
    path.write_bytes(first + b"\n" + 20_000 * line + rest)
    read = load(str(path))

    stopped_at = len(first) + 1 + 9999 * len(line)
    sentence = f"The recording was read only up to byte {stopped_at}: 10000 lines are damaged or empty."
    assert (read.end, read.problems[0]) == (glance(str(path)).end, sentence)
    assert read.end is not None
    path.write_bytes(path.read_bytes() + b"{}\n")
    assert load(str(path)).end is None
    with pytest.raises(RecordingError, match=sentence):
        glance(str(path))


@pytest.mark.parametrize("first", [b"", b'{"event":{"at":1.0,"kind":"note","text":"x"}}\n'])
def test_the_last_sample_is_found_before_many_other_lines(tmp_path: Path, first: bytes) -> None:
    """A job that was cut off may have logged much since, and in another block than its peaks."""
    samples = (interval(1.0, 900), *(interval(float(second), 100) for second in range(2, 8000)))
    path = write(tmp_path / "x.jsonl", run(samples=samples))
    lines = path.read_bytes().splitlines(keepends=True)[:-1]
    metrics = b'{"metrics":{"at":[1.0],"step":[1],"name":["loss"],"value":[1.0]}}\n' * 50_000
    path.write_bytes(b"".join(lines[:-1]) + first + lines[-1] + metrics)

    assert path.stat().st_size - len(metrics) > 2**20
    assert glance(str(path)).totals.at_seconds == load(str(path)).totals.at_seconds == 7999.0
    assert glance(str(path)).totals.peaks == load(str(path)).totals.peaks


@pytest.mark.parametrize(("counted", "expected"), [(0.0, 57.0), (58.5, 58.5)], ids=["older", "counted"])
def test_what_followed_a_lost_sampler_was_not_read(tmp_path: Path, counted: float, expected: float) -> None:
    """Older recordings do not count it, but their last sample tells."""
    summed = totals(at_seconds=60.0, unread_seconds=counted)
    lost = run(samples=SAMPLES, totals=summed, end=End("sampler lost", 0, summed, 0.0, 0))
    made = str(write(tmp_path / "x.jsonl", lost))
    growing = GrowingRecording(follow_path(made))
    growing.look_at_all()

    for read in (glance(made), load(made), growing.data):
        assert (read.totals.at_seconds, read.totals.unread_seconds) == (60.0, expected)


def test_a_sampler_that_was_lost_before_its_first_sample_read_nothing(tmp_path: Path) -> None:
    """All of the time."""
    summed = totals(at_seconds=60.0)
    lost = run(totals=summed, end=End("sampler lost", 0, summed, 0.0, 0))
    made = str(write(tmp_path / "x.jsonl", lost))
    growing = GrowingRecording(follow_path(made))
    growing.look_at_all()

    for read in (glance(made), load(made), growing.data):
        assert read.totals.unread_seconds == 60.0


def test_of_two_ends_the_first_counts(path: Path) -> None:
    """As for whoever reads all of it."""
    path.write_bytes(
        path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1].replace(b"exited", b"ended")
    )
    seen, whole = glance(str(path)).end, load(str(path)).end

    assert seen is not None
    assert (seen.reason, seen) == ("exited", whole)

"""A recording by its first and last lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import MB, found, gpu, header
from gpu_tracker.errors import RecordingError
from gpu_tracker.model import GpuProcessPeak, Mark, Peaks, RamPeak
from gpu_tracker.recording.glance import glance
from gpu_tracker.recording.reader import load
from recorded import run, window, write

SAMPLES = (window(1.0, 100), window(2.0, 900), window(3.0, 900))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A finished run."""
    return write(tmp_path / "x.jsonl", run(marks=(found(gpu()),), samples=SAMPLES))


def test_a_glance_tells_what_reading_tells(path: Path) -> None:
    """But for the samples."""
    whole, seen = load(str(path)), glance(str(path))

    assert seen.samples == ()
    assert seen[2:5] == whole[2:5]
    for part in ("header", "problems", "regions", "metrics", "processes"):
        assert tuple(getattr(seen, part)) == tuple(getattr(whole, part))


def test_any_prefix_tells_the_same_as_reading(path: Path) -> None:
    """Cut at every byte: time, CPU time and peaks so far, or a refusal."""
    content = path.read_bytes()
    first_line = content.index(b"\n")
    for length in range(len(content)):
        path.write_bytes(content[:length])
        if length < first_line:
            with pytest.raises(RecordingError):
                glance(str(path))
            continue
        whole, quick = load(str(path)), glance(str(path))
        assert quick.header == whole.header
        assert quick.marks == whole.marks
        assert quick.totals.at_seconds == whole.totals.at_seconds
        assert quick.totals.main_cpu_seconds == whole.totals.main_cpu_seconds
        assert quick.totals.peaks == whole.totals.peaks
        assert quick.end == whole.end


def test_a_long_last_line_is_read_whole(tmp_path: Path) -> None:
    """However many processes it names."""
    many = tuple(GpuProcessPeak("GPU-0", pid, "python" * 10, pid) for pid in range(2000))
    finished = run(totals=run().totals._replace(peaks=Peaks(combined_ram=RamPeak(MB), gpu_processes=many)))
    path = write(tmp_path / "x.jsonl", finished)

    assert path.stat().st_size > 100_000
    assert glance(str(path)).totals == finished.totals


def test_a_recording_of_samples_only_is_as_good_as_its_last(tmp_path: Path) -> None:
    """A long one, so that neither end holds all of it."""
    path = write(tmp_path / "x.jsonl", run(samples=tuple(window(float(n), 5) for n in range(1000)), end=None))

    assert glance(str(path)).totals.at_seconds == 999.0


def test_a_damaged_end_is_left_to_the_reader(path: Path) -> None:
    """Which forgives it and says so."""
    path.write_bytes(path.read_bytes().replace(b'"totals"', b'"tables"'))

    assert glance(str(path)).problems


@pytest.mark.parametrize("content", [b"", b"nonsense\n", b'{"sample":{}}\n', b"[]\n"])
def test_what_is_no_recording_is_refused(tmp_path: Path, content: bytes) -> None:
    """As by the reader."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(RecordingError):
        glance(str(path))


def test_a_newer_version_is_refused_and_a_missing_file_too(tmp_path: Path) -> None:
    """In the reader's words."""
    path = write(tmp_path / "x.jsonl", run(marks=(Mark(0.0, "note", "?"),)))
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":99'))
    with pytest.raises(RecordingError, match="version 99"):
        glance(str(path))
    with pytest.raises(RecordingError, match="Cannot read"):
        glance(str(tmp_path / "none.jsonl"))
    assert header().version == 1

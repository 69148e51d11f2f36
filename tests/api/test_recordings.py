"""`load` gives a recording to whoever analyses it."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

import gpu_tracker as gput
from builders import gpu
from gpu_tracker.analysis.tables import make_table
from gpu_tracker.core.errors import RecordingError, UsageError
from recorded import CALLS, FRAMEWORKS, METRICS, PROCESSES, REGIONS, make_full, make_plain


@pytest.fixture
def full(tmp_path: Path) -> gput.Recording:
    """A recording with everything."""
    return gput.load(make_full(tmp_path / "x.jsonl"))


def test_a_recording_shows_its_parts(full: gput.Recording) -> None:
    """Header, samples, regions, metrics, processes, frameworks, devices, summary."""
    assert full.header.host == "node1"
    assert len(full.samples) == 3
    assert (tuple(full.region_totals), tuple(full.metric_rows)) == (REGIONS, METRICS)
    assert (full.regions, full.metrics) == (full.report.regions, full.report.metrics)
    assert {type(region) for region in full.regions} == {gput.Region}
    assert {type(metric) for metric in full.metrics} == {gput.Metric}
    assert tuple(full.calls) == CALLS
    assert tuple(full.processes) == PROCESSES
    assert tuple(full.frameworks) == FRAMEWORKS
    assert full.gpus == (gpu()._replace(label="0"), gpu(1, None)._replace(label="1"))
    assert full.summary.seconds == 10.0
    assert full.report.ending == "exited"
    assert full.is_complete
    assert [note.partition(":")[0] for note in full.notes] == ["Names of regions"]
    assert full.problems == ()
    assert repr(full).endswith("3 samples, complete>")


def test_one_that_was_cut_off_says_so(tmp_path: Path) -> None:
    """It is not complete, and a note tells from when on nothing is known."""
    path = make_plain(tmp_path / "x.jsonl")
    path.write_bytes(path.read_bytes()[:-10])
    os.utime(path, (0, 0))
    recording = gput.load(str(path))

    assert not recording.is_complete
    assert "The recording was cut off at 3 s" in recording.notes[-1]
    assert "cut off" in repr(recording)


def test_what_is_no_recording_is_an_error(tmp_path: Path) -> None:
    """One kind of it."""
    with pytest.raises(RecordingError):
        gput.load(tmp_path)


@pytest.mark.parametrize(
    "table", ["samples", "regions", "calls", "metrics", "processes", "frameworks", "gpus"]
)
@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("make", [make_plain, make_full])
def test_frames_have_the_same_columns_and_rows(
    tmp_path: Path, make: object, library: str, table: str
) -> None:
    """Whichever library, and also without any row."""
    pytest.importorskip({"arrow": "pyarrow"}.get(library, library))
    recording = gput.load(make(tmp_path / "x.jsonl"))  # type: ignore[operator]
    frame = getattr(recording, f"to_{library}")(table)
    names = {"arrow": "column_names"}.get(library, "columns")
    wanted = make_table(recording._values, table)

    assert list(getattr(frame, names)) == [column.name for column in wanted.columns]
    assert (frame.num_rows if library == "arrow" else len(frame)) == len(list(wanted.rows()))


def test_pandas_keeps_what_is_not_known_apart_from_zero(full: gput.Recording) -> None:
    """Whole numbers stay whole."""
    pandas = pytest.importorskip("pandas")
    frame = full.to_pandas()

    assert frame["gpu1_job_bytes"].dtype == "Int64"
    assert frame["gpu1_job_bytes"][0] is pandas.NA
    assert frame["gpu1_job_bytes"][1] == 0
    assert math.isnan(frame["gpu1_utilization_percent"][0])
    assert frame["combined_ram_bytes_max"][1] == 6


def test_polars_and_arrow_keep_null_apart_from_zero(full: gput.Recording) -> None:
    """The same for the other two."""
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")

    assert full.to_polars()["gpu1_job_bytes"].to_list() == [None, 0, 0]
    assert full.to_polars()["gpu1_job_bytes"].dtype == polars.Int64
    assert full.to_arrow()["gpu1_job_bytes"].to_pylist() == [None, 0, 0]


def test_a_table_that_does_not_exist_is_refused(full: gput.Recording) -> None:
    """With those that do."""
    with pytest.raises(UsageError, match="samples, regions, calls, metrics, processes, frameworks, gpus"):
        full.to_pandas("steps")


def test_a_recording_is_found_again_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are read when they are looked at, wherever the program is by then."""
    make_plain(tmp_path / "x.jsonl")
    monkeypatch.chdir(tmp_path)
    recording = gput.load("x.jsonl")
    monkeypatch.chdir("/")

    assert len(tuple(recording.samples)) == 3


def test_damage_that_is_found_late_is_in_the_notes(tmp_path: Path) -> None:
    """Regions and metrics are decoded for the report."""
    path = make_full(tmp_path / "x.jsonl")
    text = path.read_text().replace('"wall_seconds":2.5', '"wall_seconds":"2.5"')
    path.write_text(text.replace('"loss":[1.5]', '"loss":["low"]'))

    assert sum("is damaged and was left out" in note for note in gput.load(path).notes) == 2

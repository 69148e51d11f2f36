"""A recording as tables."""

from __future__ import annotations

import math
from array import array
from pathlib import Path

import pytest

from builders import found, gpu, gpu_totals, recording, sample, totals
from gpu_tracker.analysis.tables import TABLES, Column, Table, make_table
from gpu_tracker.core.model import Event, GpuSample, Parts, Peaks, Spread
from gpu_tracker.recording.reader import load
from recorded import make_full, make_plain, write


def test_columns_of_samples_have_units_and_one_set_per_device(tmp_path: Path) -> None:
    """In the order of the devices found."""
    table = make_table(load(str(make_full(tmp_path / "x.jsonl"))), "samples")
    names = [column.name for column in table.columns]

    assert names[:4] == ["at_seconds", "readings", "late_seconds", "main_cpu_seconds"]
    assert "combined_ram_bytes_max" in names
    assert names.index("gpu0_used_bytes") < names.index("gpu1_used_bytes")
    assert names[-6:] == [
        "gpu1_job_bytes_unknown_seconds",
        "gpu1_used_bytes_unknown_seconds",
        "gpu1_traffic",
        "gpu1_job_bytes_gap_seconds",
        "gpu1_used_bytes_gap_seconds",
        "gpu1_utilization_gap_seconds",
    ]
    assert all(len(row) == len(names) for row in table.rows())


def test_unknown_is_not_zero(tmp_path: Path) -> None:
    """For a device before it was found, and for an unreported figure."""
    table = make_table(load(str(make_full(tmp_path / "x.jsonl"))), "samples")
    columns = dict(
        zip((column.name for column in table.columns), zip(*table.rows(), strict=True), strict=True)
    )

    assert columns["gpu1_job_bytes"] == (None, 0, 0)
    assert columns["gpu0_used_bytes"] == (None, None, None)
    assert columns["gpu1_job_percent"] == (None, None, None)
    assert columns["gpu1_limited_seconds"] == (None, '[["heat", 1.0]]', '[["heat", 1.0]]')


def test_memory_of_which_nothing_was_read_is_empty(tmp_path: Path) -> None:
    """In rows and in arrays of pandas, which are read without making each sample."""
    unread = sample(1.0, ram_bytes=Parts(*[Spread(None, None, None)] * 3))
    path = write(tmp_path / "x.jsonl", recording(samples=(unread, sample(2.0))))
    table = make_table(load(str(path)), "samples")
    places = [place for place, column in enumerate(table.columns) if "_ram_bytes_" in column.name]
    first, second = table.rows()
    assert {first[place] for place in places} == {None}
    assert {second[place] for place in places} == {0, 5}

    pandas = pytest.importorskip("pandas")
    assert table.read_arrays is not None
    arrays = table.read_arrays(pandas)
    assert all(math.isnan(arrays[place][0]) and not math.isnan(arrays[place][1]) for place in places)


def test_every_logged_number_is_a_row(tmp_path: Path) -> None:
    """A point without numbers is kept too."""
    rows = list(make_table(load(str(make_full(tmp_path / "x.jsonl"))), "metrics").rows())

    assert rows == [
        (0, 0.5, 100, 1, "loss", 1.5),
        (0, 0.5, 100, 1, "lr", 1e-30),
        (1, 1.5, 101, None, "loss", 0.0),
        (2, 2.0, 0, None, None, None),
    ]


def test_paths_are_json_and_booleans_are_numbers(tmp_path: Path) -> None:
    """So that any format can hold them."""
    recording = load(str(make_full(tmp_path / "x.jsonl")))
    regions = make_table(recording, "regions")
    gpus = make_table(recording, "gpus")

    assert [row[1] for row in regions.rows()] == ['["epoch"]', '["epoch", "a/b"]']
    place = gpus.columns.index(Column("is_visible", "integer"))
    assert [row[place] for row in gpus.rows()] == [1, 1]


def test_a_recording_without_gpus_has_no_columns_for_them(tmp_path: Path) -> None:
    """Tables without rows still have columns."""
    recording = load(str(make_plain(tmp_path / "x.jsonl")))

    assert not [column for column in make_table(recording, "samples").columns if "gpu" in column.name]
    for name in TABLES:
        assert make_table(recording, name).columns


def test_zero_is_not_known_of_a_device_that_does_not_list_the_job() -> None:
    """Its growth is an estimate of the whole run, not of a moment."""
    counters, peaks = gpu_totals()
    peaks = peaks._replace(job_bytes=Parts(None, None, None), has_job=False)
    shown = recording(
        events=(found(gpu()), Event(1.0, "unattributed", "?")),
        samples=(sample(1.0, gpus=(GpuSample("GPU-0", 3000, 0, 50.0, 0.0),), peaks=Peaks(gpus=(peaks,))),),
        totals=totals(gpu_counters=(counters,), peaks=totals().peaks._replace(gpus=(peaks,))),
    )
    table = make_table(shown, "samples")
    (row,) = table.rows()
    known = {column.name: value for column, value in zip(table.columns, row, strict=True)}

    assert (known["gpu0_used_bytes"], known["gpu0_job_bytes"], known["gpu0_job_percent"]) == (
        3000,
        None,
        None,
    )


def test_columns_are_kept_small() -> None:
    """Integers become objects only if one of them is not known."""
    columns = (Column("a", "integer"), Column("b", "real"), Column("c", "integer"), Column("d", "text"))
    rows = [(1, 0.5, 7, "x"), (2, None, None, None), (3, 2, None, "y")]
    whole, real, gaps, text = Table("t", columns, lambda: iter(rows)).to_columns()

    assert whole == array("q", [1, 2, 3])
    assert real[0] == 0.5
    assert math.isnan(real[1])
    assert (gaps, text) == ([7, None, None], ["x", None, "y"])

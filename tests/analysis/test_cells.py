"""Rows of cells."""

from __future__ import annotations

import pytest

from builders import recording
from gpu_tracker.analysis.cells import CellUse, measure_cell, rank_cells
from gpu_tracker.reports.build import build
from rich import make_rich

EMPTY = CellUse(1, "a", 1.0, 0.5, 10, None, 100, None, None, "stopped")


def test_a_row_has_the_first_line_and_what_was_held_and_grown() -> None:
    """RAM as the process has read it, memory of devices as the sampler has."""
    made = make_rich()
    assert made.end is not None
    report = build(made._replace(end=made.end._replace(gpu_growth_bytes=-300)))
    use = measure_cell(7, "\n  # fit\nmodel.fit()", 5_000, report.summary, "stopped")

    assert (use.number, use.code, use.ram_bytes) == (7, "# fit", 5_000)
    assert use.gpu_bytes == -300
    assert use.peak_ram_bytes == report.summary.ram.combined.total_bytes
    assert use.seconds == report.summary.seconds


def test_what_no_sample_tells_is_not_known() -> None:
    """An empty cell without samples or devices."""
    report = build(recording())

    use = measure_cell(1, "", 0, report.summary, "raised")

    assert (use.code, use.gpu_bytes, use.peak_gpu_bytes, use.ending) == ("", None, None, "raised")


@pytest.mark.parametrize(("by", "order"), [("memory", [2, 3, 1]), ("gpu", [3, 1, 2]), ("time", [1, 3, 2])])
def test_cells_are_ranked(by: str, order: list[int]) -> None:
    """By what they hold, by how long devices were busy, by time."""
    cells = [
        EMPTY._replace(number=1, seconds=9.0),
        EMPTY._replace(number=2, ram_bytes=20, gpu_bytes=50),
        EMPTY._replace(number=3, ram_bytes=30, seconds=3.0, gpu_percent=80.0),
    ]

    assert [cell.number for cell in rank_cells(cells, by)] == order

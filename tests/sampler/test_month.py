"""A month on an artificial clock, recorded by the real sampler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_tracker.analysis.regions import summarize_metrics, summarize_regions
from gpu_tracker.recording.reader import load

MONTH = Path(__file__).parents[2] / "benchmarks" / "workloads" / "month.py"


@pytest.mark.uncovered
@pytest.mark.timeout(600)
@pytest.mark.repeats(few=3, soak=30)
def test_a_month_with_gpus_regions_and_metrics_fits_into_forty_megabytes(
    tmp_path: Path, repeats: int
) -> None:
    """No peak is lost, however short, nor its moment, and all totals are exact. It is a month in the soak test, else days."""
    path = tmp_path / "month.jsonl"
    command = [sys.executable, str(MONTH), str(path), "8", "20", "2", str(repeats)]
    truth = json.loads(subprocess.check_output(command, text=True))
    recording = load(path)
    peaks = recording.totals.peaks
    moment = truth["peak_seconds"]
    interval = next(sample for sample in recording.samples if sample.at_seconds >= moment)

    assert truth["bytes"] < 40e6
    assert peaks.ram.main.total_bytes == interval.ram_bytes.main.high == truth["peak_bytes"]
    assert [gpu.job_bytes.combined for gpu in peaks.gpus] == [truth["peak_bytes"]] * 8
    assert [gpu.job_bytes for gpu in interval.gpus] == [truth["peak_bytes"]] * 8
    assert recording.totals.readings == truth["readings"] + 2
    regions = summarize_regions(recording)
    assert len(regions) == 20
    assert {region.peak_ram_bytes for region in regions} == {truth["peak_bytes"]}
    assert {region.gpu_bytes for region in regions} == {8 * truth["peak_bytes"]}
    for metric in summarize_metrics(recording):
        assert (metric.logged, metric.maximum) == (truth["logged"], truth["peak_metric"])
        peak = max(recording.metrics, key=lambda row: row.values.get(metric.name, 0.0))
        assert (peak.at_seconds, peak.step) == (moment, moment)

"""The figures that are compared."""

from __future__ import annotations

import math

import pytest

from builders import MB, found, gpu, gpu_totals, recording, totals
from gpu_tracker.analysis.measures import Subject, measure
from gpu_tracker.core.figures import LAST_METRIC, REGION, RUN, humanize
from gpu_tracker.core.model import End, Event, MetricRow, Parts, RecordingData
from recorded import part


def on_gpus(*events: Event, known: bool = True) -> RecordingData:
    """A job on one device."""
    counters, peaks = gpu_totals()
    if not known:
        peaks = peaks._replace(job_bytes=Parts(None, None, None))
    summed = totals(
        gpu_counters=(counters,),
        peaks=totals().peaks._replace(gpus=(peaks,), gpu_bytes=Parts(0, 0, 2000 * MB)),
    )
    return recording(events=(found(gpu()), *events), totals=summed)


def overall(shown: RecordingData) -> dict[str, float | None]:
    """The figures of the whole run, by name."""
    values = measure(shown).values
    return {figure.name: values[Subject(figure)] for figure in RUN}


def test_a_run_without_gpus_has_no_gpu_figures() -> None:
    """Not zero."""
    assert overall(recording()) == {
        "time": 10.0,
        "cpu_time": 10.0,
        "mean_cores": 1.0,
        "peak_ram": 500 * MB,
        "peak_gpu_ram": None,
        "gpu_utilization": None,
        "energy": None,
    }


def test_a_run_on_a_gpu_has_gpu_figures() -> None:
    """Memory of the job, utilization and energy of its devices."""
    values = overall(on_gpus())

    assert (values["peak_gpu_ram"], values["gpu_utilization"], values["energy"]) == (2000 * MB, 50.0, 2500.0)


def test_unattributed_memory_is_compared_as_estimated() -> None:
    """By the growth of the device's memory since the start."""
    assert overall(on_gpus(Event(1.0, "unattributed", "?"), known=False))["peak_gpu_ram"] == 2500 * MB
    assert overall(on_gpus(known=False))["peak_gpu_ram"] is None


def test_regions_and_metrics_are_figures_too() -> None:
    """A region that was never left has no time."""
    open_part = part(1, path=("open",), open_calls=1)
    step = part(1, 2.0, 4.0, cpu_seconds=3.0)
    values = measure(
        recording(regions=(step, open_part), metrics=(MetricRow(1.0, {"loss": 0.5}),), end=None)
    ).values
    of_step = {figure.name: values[Subject(figure, ("step",))] for figure in REGION}

    assert (of_step["time"], of_step["calls"], of_step["time_per_call"], of_step["mean_cores"]) == (
        6,
        2,
        3,
        0.5,
    )
    assert values[Subject(REGION[0], ("open",))] is None
    assert values[Subject(LAST_METRIC, metric="loss")] == 0.5


def test_nan_is_not_known() -> None:
    """Wherever the file comes from."""
    assert overall(recording(totals=totals(at_seconds=math.nan)))["time"] is None


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "bytes", "-"),
        (1.5, "seconds", "1.5 s"),
        (2e9, "bytes", "2 GB"),
        (10.0, "joules", "10 J"),
        (49.6, "percent", "50 %"),
        (1.234567, "cores", "1.23"),
        (0.1234567, "number", "0.123457"),
        (12, "count", "12"),
    ],
)
def test_a_figure_is_shown_in_its_unit(value: float | None, unit: str, text: str) -> None:
    """An unknown one as a dash."""
    assert humanize(value, unit) == text


@pytest.mark.parametrize(
    ("end", "failure"),
    [
        (None, "no end: killed, or still running"),
        (End("exited", 3, totals(), 0.0, 0), "exit code 3"),
        (End("exited", -9, totals(), 0.0, 0), "killed by signal 9"),
        (End("abandoned", None, totals(), 0.0, 0), "abandoned"),
        (End("sampler lost", 0, totals(), 0.0, 0), "sampler lost"),
        (End("exited", 0, totals(), 0.0, 0), ""),
        (End("stopped", None, totals(), 0.0, 0), ""),
        (End("ended", 0, totals(), 0.0, 0), ""),
        (End("ended", 3, totals(), 0.0, 0), "exit code 3"),
        (End("ended", None, totals(), 0.0, 0), "exit code not known"),
    ],
)
def test_a_run_that_did_not_succeed_says_why(end: End | None, failure: str) -> None:
    """It passes no limit."""
    assert measure(recording(end=end)).failure == failure

"""What the figures of samples mean as columns."""

from __future__ import annotations

from math import isnan
from typing import Any

from builders import gpu_totals, sample
from gpu_tracker.core.columns import SampleColumns
from gpu_tracker.core.model import GpuSample, Sample, add_parts
from gpu_tracker.recording.figures import explain, list_figures, transpose


def columns_of(*samples: Sample) -> SampleColumns:
    """The columns of these samples."""
    return explain(transpose(map(list_figures, samples)))


def throttled(at: float, *reasons: tuple[str, float]) -> Sample:
    """An interval in which clocks had been throttled for so long."""
    counters = gpu_totals()[0]._replace(limited_seconds=reasons)
    return sample(at, gpus=(GpuSample("GPU-0"),), gpu_counters=(counters,))


def shown(column: Any) -> list[float | None]:
    """With None for what is not known."""
    return [None if isnan(value) else value for value in column]


def test_counters_become_rates() -> None:
    """Of the root, its descendants, both and the machine, each over its interval."""
    columns = columns_of(
        sample(0.0),
        sample(2.0, cpu_seconds=add_parts(1.0, 3.0), system_cpu_seconds=8.0),
        sample(3.0, cpu_seconds=add_parts(1.0, 3.5), system_cpu_seconds=10.0),
    )

    assert shown(columns.cpu_cores.main) == [None, 0.5, 0.0]
    assert shown(columns.cpu_cores.descendants) == [None, 1.5, 0.5]
    assert shown(columns.cpu_cores.combined) == [None, 2.0, 0.5]
    assert shown(columns.machine_cores) == [None, 4.0, 2.0]


def test_a_counter_that_was_corrected_has_no_rate_there() -> None:
    """Unknown is not 0."""
    columns = columns_of(sample(1.0), sample(2.0, cpu_seconds=add_parts(0.5, 0.0)), sample(3.0))

    assert shown(columns.cpu_cores.main) == [1.0, None, 2.5]


def test_samples_in_any_order_are_sorted_by_time() -> None:
    """A recording may come from anywhere, even from before its start."""
    columns = columns_of(sample(2.0, threads=2), sample(-1.0, threads=0), sample(1.0, threads=1))

    assert shown(columns.threads) == [0, 1, 2]
    assert shown(columns.start_seconds) == [-1.0, -1.0, 1.0]


def test_readings_of_a_stopped_sampler_say_nothing_of_the_gap() -> None:
    """A small delay is no gap."""
    columns = columns_of(
        sample(1.0, late_seconds=0.5), sample(60.0, late_seconds=58.5), sample(61.0, late_seconds=9.0)
    )

    assert shown(columns.read_since_seconds) == [0.0, 59.5, 61.0]
    assert shown(columns.start_seconds) == [0.0, 1.0, 60.0]


def test_throttling_is_told_for_each_interval_by_reason() -> None:
    """A reason that was not seen yet is 0 where the device was read, and unknown where it was not."""
    columns = columns_of(
        sample(1.0),
        throttled(2.0),
        throttled(3.0, ("power", 0.5)),
        throttled(4.0, ("power", 1.25), ("heat", 1.0)),
    )
    seconds = columns.gpus["GPU-0"].throttled_seconds

    assert shown(seconds["power"]) == [None, 0.0, 0.5, 0.75]
    assert shown(seconds["heat"]) == [None, 0.0, 0.0, 1.0]


def test_a_recording_without_samples_has_empty_columns() -> None:
    """As if cut off at the start."""
    columns = columns_of()

    assert not columns.end_seconds
    assert not columns.ram_bytes.main.high
    assert not columns.gpus

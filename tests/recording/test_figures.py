"""What the figures of samples mean as columns."""

from __future__ import annotations

from array import array
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from builders import gpu_totals, sample
from gpu_tracker.core.columns import SampleColumns
from gpu_tracker.core.model import GpuSample, Parts, Sample, Spread, Stalls, TreeCounters, add_parts
from gpu_tracker.recording.figures import Key, explain, list_figures, merge, transpose

if TYPE_CHECKING:
    from collections.abc import Callable


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


@given(
    st.lists(st.just(nan) | st.integers(0, 10**12) | st.floats(0, 1e12), max_size=12),
    st.integers(1, 5),
    st.sampled_from(
        ["at", "readings", "threads", "main_ram_low", "main_ram_mean", "main_ram_high", "power_watts"]
    ),
)
def test_rows_are_merged_to_longer_intervals(column: list[float], n_rows: int, figure: str) -> None:
    """Of each few the extreme, the sum, the mean or the last one, as far as they are known."""
    key = Key(figure)
    groups = [column[first : first + n_rows] for first in range(0, len(column), n_rows)]
    known = [[value for value in group if not isnan(value)] for group in groups]
    rules: dict[str, Callable[[list[float]], float]] = {
        "at": lambda values: values[-1],
        "readings": sum,
        "main_ram_low": min,
        "main_ram_mean": lambda values: sum(values) / len(values),
        "power_watts": lambda values: sum(values) / len(values),
    }
    expected = rules.get(figure, max)

    merged = merge({key: array("d", column)}, n_rows)
    assert shown(merged[key]) == [expected(values) if values else None for values in known]


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


def test_cpu_time_before_the_first_sample_counts() -> None:
    """No time has passed there, so it belongs to the interval that follows."""
    columns = columns_of(
        sample(0.0, cpu_seconds=add_parts(0.25, 0.0)), sample(1.0, cpu_seconds=add_parts(0.5, 0.0))
    )

    assert shown(columns.cpu_cores.main) == [None, 0.5]


def test_a_counter_that_was_corrected_has_no_rate_there() -> None:
    """Unknown is not 0."""
    columns = columns_of(sample(1.0), sample(2.0, cpu_seconds=add_parts(0.5, 0.0)), sample(3.0))

    assert shown(columns.cpu_cores.main) == [1.0, None, 2.5]


def test_samples_in_any_order_are_sorted_by_time() -> None:
    """A recording may come from anywhere. Those that came too late are counted."""
    columns = columns_of(
        sample(2.0, threads=2), sample(0.5, threads=0), sample(1.0, threads=1), sample(3.0, threads=3)
    )

    assert shown(columns.threads) == [0, 1, 2, 3]
    assert shown(columns.start_seconds) == [0.0, 0.5, 1.0, 2.0]
    assert (columns.disordered_samples, columns.impossible_samples) == (2, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        sample(-1.0),
        sample(2.0, threads=-1),
        sample(2.0, cpu_seconds=add_parts(-5.0, 0.0)),
        sample(2.0, system_ram_bytes=2**60),
        sample(2.0, gpus=(GpuSample("GPU-0", utilization_percent=900.0),)),
        sample(2.0, gpus=(GpuSample("GPU-0", power_watts=-1.0),)),
        sample(2.0, ram_bytes=Parts(*(Spread(5, 4, 6),) * 3)),
        sample(2.0, ram_bytes=Parts(*(Spread(5, 5, 3),) * 3)),
    ],
)
def test_samples_that_cannot_be_are_left_out(wrong: Sample) -> None:
    """And counted: before the start, below zero, above what any machine has."""
    columns = columns_of(sample(1.0), wrong, sample(3.0))

    assert shown(columns.end_seconds) == [1.0, 3.0]
    assert shown(columns.start_seconds) == [0.0, 1.0]
    assert (columns.disordered_samples, columns.impossible_samples) == (0, 1)


def test_what_is_not_known_is_possible() -> None:
    """Wherever it is not known."""
    reading = GpuSample("GPU-0", utilization_percent=5.0)
    columns = columns_of(sample(1.0, gpus=(GpuSample("GPU-0"),)), sample(2.0, gpus=(reading,)), sample(3.0))

    assert shown(columns.gpus["GPU-0"].utilization_percent) == [None, 5.0, None]
    assert columns.impossible_samples == 0


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


def test_what_was_moved_before_the_first_reading_counts_from_the_start() -> None:
    """Counters of the job start at 0 with it, those of the machine when they are first read."""
    columns = columns_of(
        sample(0.0),
        sample(0.5),
        sample(2.0, counters=TreeCounters(read_bytes=0, written_bytes=100), stalls=Stalls(cpu_seconds=0.0)),
        sample(3.0, counters=TreeCounters(read_bytes=7, written_bytes=100), stalls=Stalls(cpu_seconds=0.5)),
    )

    assert shown(columns.written_bytes_per_second) == [None, 50.0, 50.0, 0.0]
    assert shown(columns.read_bytes_per_second) == [None, 0.0, 0.0, 7.0]
    assert shown(columns.stalled.cpu) == [None, None, None, 0.5]

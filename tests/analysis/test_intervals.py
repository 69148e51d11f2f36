"""Intervals have the figures of their row, and None for what is not known."""

from __future__ import annotations

import pytest

from builders import gpu, sample
from gpu_tracker.analysis.intervals import read_interval
from gpu_tracker.core.model import GpuSample, Parts, Spread, add_parts
from gpu_tracker.recording.figures import explain, list_figures, transpose

DEVICE = gpu(0)


def columns_of(*samples: object) -> object:
    """The columns of some samples."""
    return explain(transpose(map(list_figures, samples)))  # type: ignore[arg-type]


def test_counters_become_rates_and_sizes_stay_sizes() -> None:
    """Half a second of CPU time in a quarter of a second is two cores."""
    ram = Parts(Spread(1, 2, 3), Spread(0, 0, 0), Spread(1, 2, 3))
    before = sample(1.0, cpu_seconds=add_parts(1.0, 0.0))
    after = sample(1.25, cpu_seconds=add_parts(1.25, 0.25), ram_bytes=ram, threads=7, processes=3)
    interval = read_interval(columns_of(before, after), ())  # type: ignore[arg-type]

    assert (interval.start_seconds, interval.end_seconds) == (1.0, 1.25)
    assert interval.cpu_cores == 2.0
    assert (interval.ram_bytes, interval.highest_ram_bytes) == (2, 3)
    assert (interval.threads, interval.processes, interval.gpus) == (7, 3, ())
    assert interval.read_bytes_per_second is None


def test_the_short_rest_at_the_end_says_nothing_of_the_machine() -> None:
    """Its clock is too coarse for that; that of the job is not."""
    samples = [sample(at, cpu_seconds=add_parts(at, 0.0), system_cpu_seconds=at) for at in (0.0, 1.0, 1.1)]
    columns = columns_of(*samples)
    rest, whole, first = (read_interval(columns, (), row) for row in (-1, 1, 0))  # type: ignore[arg-type]

    assert rest.cpu_cores == pytest.approx(1.0)
    assert rest.machine_cores is None
    assert rest.ram_bytes == whole.ram_bytes
    assert (whole.cpu_cores, whole.machine_cores) == (1.0, 1.0)
    assert first.end_seconds == 0.0


def test_memory_of_which_nothing_was_read_is_not_known() -> None:
    """Zero would be a measured zero."""
    unread = Parts(*[Spread(None, None, None)] * 3)
    interval = read_interval(columns_of(sample(1.0, ram_bytes=unread)), ())  # type: ignore[arg-type]

    assert (interval.ram_bytes, interval.highest_ram_bytes) == (None, None)


def test_a_device_has_its_name_and_its_figures() -> None:
    """What its driver does not say is None; a device without figures is left out."""
    figures = GpuSample(DEVICE.uuid, used_bytes=5, job_bytes=None, utilization_percent=40)
    interval = read_interval(columns_of(sample(1.0, gpus=(figures,))), (DEVICE, gpu(9)))  # type: ignore[arg-type]

    (device,) = interval.gpus
    assert (device.uuid, device.name, device.label) == (DEVICE.uuid, DEVICE.name, DEVICE.label)
    assert (device.used_bytes, device.job_bytes, device.utilization_percent) == (5, None, 40)

"""Figures of a running job under the names that other programs get."""

from __future__ import annotations

import pytest

from builders import gpu, recording, sample
from gpu_tracker.analysis.intervals import GpuInterval, Interval
from gpu_tracker.analysis.published import (
    Published,
    make_point,
    publish,
    share_out_logged,
    share_out_steps,
    sum_up,
)
from gpu_tracker.core.figures import GPU_NOW, GPU_SO_FAR, JOB_NOW, JOB_SO_FAR
from gpu_tracker.core.model import GpuCounters, MetricRow, TreeCounters, add_parts
from recorded import interval as make_sample, run

MB = 10**6
DEVICE = GpuInterval("0", "GPU-0", "A100", 40_000, 3 * MB, None, 50.0, 25.0, 250.0, None, 1410.0)
INTERVAL = Interval(9.0, 10.0, 1.5, None, 500.0 * MB, 510.0 * MB, 2000.0 * MB, 5, 2, 100.0, None, (DEVICE,))


def test_what_is_known_is_published() -> None:
    """Of the interval and since the start, of the job and of each device that it may use; nothing else."""
    hidden = gpu(1)._replace(is_visible=False)
    at_ten = make_sample(
        10.0,
        500,
        cpu_seconds=add_parts(12.0, 3.0),
        counters=TreeCounters(read_bytes=4096),
        gpu_counters=(GpuCounters("GPU-0", energy_joules=700.0),),
    )
    published = publish(INTERVAL, at_ten, [gpu(0), hidden])

    assert published.seconds == 10.0
    assert published.values == {
        "cpu_cores": 1.5,
        "ram_bytes": 500 * MB,
        "highest_ram_bytes": 510 * MB,
        "machine_ram_bytes": 2000 * MB,
        "threads": 5,
        "processes": 2,
        "read_bytes_per_second": 100,
        "elapsed_seconds": 10.0,
        "peak_ram_bytes": 500 * MB,
        "cpu_seconds": 15.0,
        "read_bytes": 4096,
    }
    (device,) = published.gpus
    assert (device.number, device.uuid) == ("0", "GPU-0")
    assert device.values == {
        "used_bytes": 3 * MB,
        "utilization_percent": 50.0,
        "job_percent": 25.0,
        "power_watts": 250.0,
        "sm_clock_mhz": 1410.0,
        "memory_bytes": 40_000 * MB,
        "energy_joules": 700.0,
    }


def test_every_figure_has_a_row_in_the_table() -> None:
    """Nothing has a name that the documents do not list."""
    device = GpuInterval("0", "GPU-0", "A100", 1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    everything = INTERVAL._replace(machine_cores=1.0, written_bytes_per_second=1.0, gpus=(device,))
    at_one = make_sample(
        1.0, 1, counters=TreeCounters(1, 1), gpu_counters=(GpuCounters("GPU-0", energy_joules=1.0),)
    )
    published = publish(everything, at_one, [gpu(0)])

    assert {*published.values} == {figure.name for figure in (*JOB_NOW, *JOB_SO_FAR)}
    assert {*published.gpus[0].values} == {figure.name for figure in (*GPU_NOW, *GPU_SO_FAR)}


def test_devices_of_two_vendors_are_told_apart() -> None:
    """Each vendor counts from 0; a device keeps its name when another is found."""
    nvidia = gpu(0)
    amd = nvidia._replace(uuid="pci-0000:03:00.0", vendor="amd")
    intel = nvidia._replace(uuid="pci-0000:04:00.0", vendor="intel")

    found = publish(INTERVAL, sample(10.0), [nvidia, gpu(1), amd, intel]).gpus

    assert [device.number for device in found] == ["0", "1", "0-2", "0-3"]
    assert "used_bytes" not in found[1].values


def test_a_point_is_one_flat_table_of_the_interval() -> None:
    """With the time of day, without what is counted since the start."""
    point = make_point(publish(INTERVAL, sample(10.0), [gpu(0)])._replace(step=700.0), 1000.0)

    assert (point.at_seconds, point.step) == (1010.0, 700)
    assert point.values["gpu_tracker/elapsed_seconds"] == 10.0
    assert point.values["gpu_tracker/cpu_cores"] == 1.5
    assert point.values["gpu_tracker/gpu0/used_bytes"] == 3 * MB
    assert not {"gpu_tracker/cpu_seconds", "gpu_tracker/gpu0/memory_bytes"} & {*point.values}


def test_seconds_stand_in_for_a_step() -> None:
    """Before the first one is logged."""
    assert make_point(Published(10.9, {}), 1000.0).step == 10


@pytest.mark.parametrize(
    ("ends", "found", "left"),
    [
        ([], [], [(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)]),
        ([0.5], [None], [(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)]),
        ([0.5, 2.0], [None, 20.0], [(2.0, 20.0), (3.0, 30.0)]),
        ([1.5, 2.0, 2.5, 9.0], [10.0, 20.0, 20.0, 30.0], [(3.0, 30.0)]),
    ],
)
def test_steps_count_from_their_moment_on(
    ends: list[float], found: list[float | None], left: list[tuple[float, float]]
) -> None:
    """Processes may write theirs in any order."""
    assert share_out_steps([(2.0, 20.0), (1.0, 10.0), (3.0, 30.0)], ends) == (found, left)
    assert share_out_steps([], ends) == ([None] * len(ends), [])


def test_each_interval_has_the_values_that_were_logged_in_it() -> None:
    """The last of each, wherever it was written; what comes after the last interval waits for the next."""
    rows = [
        MetricRow(1.8, {"loss": 0.4}),
        MetricRow(0.5, {"loss": 0.9, "lr": 1.0}),
        MetricRow(1.0, {"loss": 0.8}),
        MetricRow(3.5, {"loss": 0.1}),
    ]
    values, later = share_out_logged(rows, [1.0, 2.0, 3.0])

    assert values == [{"loss": 0.8, "lr": 1.0}, {"loss": 0.4}, {}]
    assert later == [rows[-1]]
    assert share_out_logged(rows, []) == ([], sorted(rows, key=lambda row: row.at_seconds))


def test_a_run_is_summed_up() -> None:
    """What is not known, as of devices, is left out."""
    assert sum_up(run(10.0, 500)) == {
        "gpu_tracker/run/time": 10.0,
        "gpu_tracker/run/cpu_time": 10.0,
        "gpu_tracker/run/mean_cores": 1.0,
        "gpu_tracker/run/peak_ram": 500 * MB,
    }
    assert "gpu_tracker/run/peak_gpu_ram" not in sum_up(recording())

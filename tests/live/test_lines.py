"""The output of `watch` into a pipe."""

from __future__ import annotations

import json

import pytest

from gpu_tracker.core.model import GpuShares
from gpu_tracker.core.observation import MachineState
from gpu_tracker.live.lines import build_lines, build_object, head_line, render_object
from observed import MIB, observation, process, reading, vendor


def test_a_line_per_device_under_column_names() -> None:
    """Every figure below its name, unknown ones as dashes."""
    blind = reading(1, used_bytes=None, utilization_percent=None, lists_processes=False)
    seen = vendor(reading(0), blind, processes=(process(),))
    before, now = observation(seen, at=100.0), observation(seen, at=102.0)
    first, second = build_lines(before, now)
    names = head_line().removeprefix("# ").split()
    shown = dict(zip(names, first.split(), strict=True))

    assert (shown["gpu"], shown["used_MiB"], shown["gpu_%"], shown["procs"]) == ("0", "10240", "55", "1")
    assert (shown["cpu_%"], shown["ram_MiB"]) == ("50", str(16 * 10**9 // MIB))
    assert len(first) == len(second) == len(head_line())
    assert second.split()[2:5] == ["-", "40960", "-"]
    assert second.split()[9] == "-"


def test_a_machine_without_gpus_has_one_line() -> None:
    """For its CPU and memory."""
    (line,) = build_lines(None, observation(machine=MachineState(8, None)))

    assert len(line.split()) == len(head_line().removeprefix("# ").split())
    assert set(line.split()[1:]) == {"-"}


def test_an_object_is_json_without_what_only_totals_are_made_of() -> None:
    """Samples of the driver are dated by a clock of ours, and their limits may be infinite, which JSON cannot hold."""
    seen = vendor(reading(samples=((1.0, 50.0),), shares=GpuShares(((1.0, 50.0),)), activity_seconds=1.0))
    shown = json.loads(render_object(build_object(None, observation(seen))), parse_constant=pytest.fail)

    assert not {"samples", "shares", "has_lost_list", "activity_seconds"} & shown["gpus"][0].keys()


def test_an_object_has_everything_in_base_units() -> None:
    """And null for unknown values."""
    seen = vendor(reading(power_watts=None), processes=(process(),))
    shown = json.loads(render_object(build_object(observation(seen, at=100.0), observation(seen, at=102.0))))
    (device,) = shown["gpus"]
    (on_it,) = device["processes"]

    assert shown["machine"]["busy_cores"] == 4.0
    assert (device["uuid"], device["power_watts"], device["temperature_celsius"]) == ("GPU-0", None, 61.0)
    assert device["used_bytes"] + device["reserved_bytes"] + device["free_bytes"] == device["memory_bytes"]
    assert (on_it["pid"], on_it["command"], on_it["busy_cores"]) == (4242, "python train.py", 2.0)
    assert shown["time"][10] == "T"
    assert shown["notes"] == []

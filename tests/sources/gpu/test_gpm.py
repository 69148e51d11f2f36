"""How much of a device works: two samples of its counters, through the real nvidia-ml-py, on a simulated driver library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from math import nan
from pathlib import Path
from typing import Any

import pytest

from nvml_simulator import Code, Generation, Simulator

TESTS = Path(__file__).parents[2]
FIGURES = ("sm_percent", "occupancy_percent", "tensor_percent", "bandwidth_percent")

# Reads once a second by a clock of its own; the driver refreshes its counters every 100 ms of the real one.
READ = """
import json, sys, time
sys.path.insert(0, {tests!r})
from nvml_simulator import Simulator
from gpu_tracker.sources.gpu import nvml
from gpu_tracker.sources.gpu.belief import BelievedSource
clock = 100.0
with Simulator.open() as hardware:
    source = BelievedSource(nvml.connect(lambda: clock))
    readings = []
    for number in range({times}):
        {before}
        readings.append([device._asdict() for device in source.read(None).devices])
        clock += {step}
        time.sleep(0.15)
    held = hardware.held_gpm_samples()
    notes, reasons = source.take_notes(), [key for key in source.reasons]
    source.close()
    print(json.dumps(dict(readings=readings, notes=notes, reasons=reasons, held=held,
        left=hardware.held_gpm_samples(), calls=hardware.calls())))
"""


def read(hardware: Simulator, times: int = 3, before: str = "pass", step: float = 1.0) -> Any:
    """What the source says, reading by reading."""
    program = READ.format(tests=str(TESTS), times=times, before=before, step=step)
    environment = {**os.environ, **hardware.environment()}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    return json.loads(done.stdout)


def pick(result: Any, device: int = 0) -> list[list[float | None]]:
    """The figures of one device, reading by reading."""
    return [[devices[device][figure] for figure in FIGURES] for devices in result["readings"]]


UNKNOWN = [None] * 4


def test_activity_is_the_mean_between_two_samples(hardware: Simulator) -> None:
    """Nothing is known before the second; of a device without such counters nothing ever is, and no note is made."""
    hardware.set_activity(0, busy=98, sm=31, occupancy=12, tensor=5, bandwidth=40)
    result = read(hardware)

    first, *others = pick(result)
    assert first == UNKNOWN
    assert others == [pytest.approx([31, 12, 5, 40])] * 2
    assert [devices[0]["activity_seconds"] for devices in result["readings"]] == pytest.approx([0, 1, 1])
    assert pick(result, 1) == [UNKNOWN] * 3
    assert (result["notes"], result["reasons"]) == ([], [])


def test_one_pair_of_samples_is_held_and_freed_at_the_end(hardware: Simulator) -> None:
    """However often it is read; and a sample is taken about once a second only."""
    hardware.set_activity(0, sm=31)
    result = read(hardware, times=12, step=0.25)

    assert (result["held"], result["left"]) == (2, 0)
    assert result["calls"]["nvmlGpmSampleAlloc"] == result["calls"]["nvmlGpmSampleFree"] == 2
    assert result["calls"]["nvmlGpmSampleGet"] == 3
    seconds = [devices[0]["activity_seconds"] for devices in result["readings"]]
    assert seconds == pytest.approx([0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])
    assert pick(result)[4:] == [pytest.approx([31, 0, 0, 0])] * 8


def test_what_changes_between_two_samples_counts_with_its_time(hardware: Simulator) -> None:
    """Busy for a part of the time."""
    hardware.set_activity(0, sm=80)
    body = "hardware.set_activity(0, sm=0) if number == 1 else None"
    first, second, third = (row[0] for row in pick(read(hardware, before=body)))

    assert first is None
    assert third == pytest.approx(0.0)
    assert second is not None
    assert 40 < second < 80


@pytest.mark.parametrize("function", ["nvmlGpmSampleGet", "nvmlGpmMetricsGet"])
def test_errors_in_the_middle_leave_a_gap_that_the_next_pair_covers(
    hardware: Simulator, function: str
) -> None:
    """The sample before is kept, so that nothing is missing in the mean after it; no sample is lost."""
    hardware.set_activity(0, sm=50)
    hardware.fail(function, Code.UNKNOWN, after=1, times=1)
    result = read(hardware, times=5)

    shown = [row[0] for row in pick(result)]
    seconds = [devices[0]["activity_seconds"] for devices in result["readings"]]
    failed = 1 if function == "nvmlGpmSampleGet" else 2
    assert shown[failed] is None
    assert shown[failed + 1 :] == pytest.approx([50] * (4 - failed))
    assert seconds[failed : failed + 2] == pytest.approx([0, 2])
    assert result["notes"] == ["GPU 0 could not be read for a while: Unknown Error."]
    assert result["left"] == 0


def test_a_value_that_is_none_is_not_used(hardware: Simulator) -> None:
    """Nor does it cost the others; it is said once."""
    hardware.set_activity(0, sm=nan, occupancy=12, tensor=None, bandwidth=40)
    result = read(hardware)

    assert pick(result)[1:] == [[None, pytest.approx(12), None, pytest.approx(40)]] * 2
    assert result["notes"] == ["GPU 0 reports an impossible SM activity (nan), which is not used."]


@pytest.mark.parametrize(
    ("function", "code", "held"),
    [
        ("nvmlGpmQueryDeviceSupport", Code.UNKNOWN, 0),
        ("nvmlGpmSampleAlloc", Code.UNKNOWN, 0),
        ("nvmlGpmSampleGet", Code.NOT_SUPPORTED, 2),
    ],
)
def test_counters_that_cannot_be_read_cost_nothing_else(
    hardware: Simulator, function: str, code: Code, held: int
) -> None:
    """Whether the driver says so at once or later."""
    hardware.set_activity(0, sm=50)
    hardware.set_utilization(0, 98)
    hardware.fail(function, code, after=1 if function == "nvmlGpmSampleAlloc" else 0)
    result = read(hardware)

    assert pick(result) == [UNKNOWN] * 3
    assert {devices[0]["utilization_percent"] for devices in result["readings"]} == {98}
    assert (result["held"], result["left"]) == (held, 0)


def test_older_drivers_have_no_such_calls(hardware: Simulator) -> None:
    """Everything else is read."""
    hardware.set_activity(0, sm=50)
    hardware.set_generation(Generation.V2)
    result = read(hardware)

    assert pick(result) == [UNKNOWN] * 3
    assert not any("SM activity" in note for note in result["notes"])


def test_an_instance_has_the_activity_and_the_utilization_of_its_part(hardware: Simulator) -> None:
    """Which the driver reports in no other way; of a part that two share neither is that of one of them."""
    hardware.add_device(uuid="GPU-split", mig_capable=True)
    alone, *pair = (hardware.add_mig_instance(2, gpu_instance=gpu_instance) for gpu_instance in (1, 2, 2))
    hardware.set_activity(alone, busy=90, sm=20)
    for one in pair:
        hardware.set_activity(one, busy=90, sm=20)
    result = read(hardware, times=4, step=0.5)

    assert pick(result, 3) == [UNKNOWN, UNKNOWN, *[pytest.approx([20, 0, 0, 0])] * 2]
    busy = [devices[3]["utilization_percent"] for devices in result["readings"]]
    assert busy == [None, None, *[pytest.approx(90)] * 2]
    samples = [devices[3]["samples"] for devices in result["readings"]]
    assert samples == [None, None, [[101.0, pytest.approx(90)]], []]
    assert pick(result, 4) == pick(result, 5) == [UNKNOWN] * 4
    assert pick(result, 2) == [UNKNOWN] * 4  # the whole device

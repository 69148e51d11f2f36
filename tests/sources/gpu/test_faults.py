"""Xid errors and memory errors, through the real nvidia-ml-py, on a simulated driver library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nvml_simulator import Code, Simulator

TESTS = Path(__file__).parents[2]

# Reads once a second by a clock of its own; each line of `acts` is done before the reading of that number.
READ = """
import json, sys
sys.path.insert(0, {tests!r})
from nvml_simulator import Simulator
from gpu_tracker.sources.gpu import nvml
clock = 100.0
with Simulator.open() as hardware:
    source = nvml.connect(lambda: clock)
    faults, acts = [], {acts!r}
    for number in range({times}):
        exec(acts.get(number, "pass"))
        faults.append([list(fault[:3]) for fault in source.read({pids}).faults])
        clock += {step}
    held = hardware.held_event_sets()
    notes = source.take_notes()
    source.close()
    print(json.dumps(dict(faults=faults, notes=notes, held=held, left=hardware.held_event_sets())))
"""


def read(
    hardware: Simulator,
    acts: dict[int, str],
    times: int = 3,
    pids: str = "frozenset()",
    step: float = 1.0,
) -> Any:
    """What the source says, reading by reading."""
    program = READ.format(tests=str(TESTS), acts=acts, times=times, pids=pids, step=step)
    environment = {**os.environ, **hardware.environment()}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    return json.loads(done.stdout)


def test_each_fault_is_told_once_by_its_device(hardware: Simulator) -> None:
    """An Xid by its number, memory errors by how many there are more than before."""
    hardware.report_xid(0, 13)  # before anybody listened
    result = read(
        hardware,
        {
            1: "hardware.report_xid(0, 31); hardware.report_xid(0, 31); hardware.report_xid(1, 79)",
            2: "hardware.add_memory_errors(1, corrected=3, uncorrected=1)",
            3: "hardware.add_memory_errors(1, corrected=2)",
        },
        times=5,
    )

    assert result["faults"] == [
        [],
        [["GPU-0", "Xid", 31], ["GPU-0", "Xid", 31], ["GPU-1", "Xid", 79]],
        [["GPU-1", "corrected", 3], ["GPU-1", "uncorrected", 1]],
        [["GPU-1", "corrected", 2]],
        [],
    ]
    assert result["notes"] == []


def test_what_is_created_is_freed(hardware: Simulator) -> None:
    """One set of events for each device."""
    result = read(hardware, {})

    assert (result["held"], result["left"]) == (2, 0)


def test_who_looks_at_everything_does_not_listen(hardware: Simulator) -> None:
    """Live views show no faults."""
    result = read(hardware, {1: "hardware.report_xid(0, 31)"}, pids="None")

    assert (result["faults"], result["held"]) == ([[], [], []], 0)


def test_errors_of_the_driver_are_told_at_once_and_memory_errors_once_a_second(hardware: Simulator) -> None:
    """The first may be why the job has just ended; counting the others costs more."""
    act = "hardware.report_xid(0, 31); hardware.add_memory_errors(0, corrected=1)"
    result = read(hardware, {1: act}, times=6, step=0.25)

    assert [[fault[1] for fault in faults] for faults in result["faults"]] == [
        [],
        ["Xid"],
        [],
        [],
        ["corrected"],
        [],
    ]


@pytest.mark.parametrize(("gpu_instance", "places"), [(None, [0, 1, 2]), (1, [0]), (2, [1, 2])])
def test_a_fault_of_a_split_device_is_that_of_its_instances(
    hardware: Simulator, gpu_instance: int | None, places: list[int]
) -> None:
    """Or of some, if the driver says of which."""
    whole = hardware.add_device(mig_capable=True)
    uuids = [f"MIG-{number}" for number in range(3)]
    for uuid, number in zip(uuids, (1, 2, 2), strict=True):
        hardware.add_mig_instance(whole, uuid=uuid, gpu_instance=number)
    result = read(hardware, {1: f"hardware.report_xid({whole}, 94, gpu_instance={gpu_instance})"})

    assert result["faults"][1] == [[uuids[place], "Xid", 94] for place in places]


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("nvmlEventSetCreate", Code.UNKNOWN),
        ("nvmlDeviceRegisterEvents", Code.NOT_SUPPORTED),
        ("nvmlEventSetWait_v2", Code.GPU_IS_LOST),
        ("nvmlEventSetFree", Code.UNINITIALIZED),
    ],
)
def test_a_device_that_reports_no_errors_is_not_worth_a_note(
    hardware: Simulator, function: str, code: Code
) -> None:
    """Nor does it cost the memory errors, which are counted by other means."""
    hardware.fail(function, code)
    result = read(
        hardware, {1: "hardware.report_xid(0, 31)", 2: "hardware.add_memory_errors(0, uncorrected=1)"}
    )
    kinds = [fault[1] for faults in result["faults"] for fault in faults]

    assert kinds == (["Xid"] if function == "nvmlEventSetFree" else []) + ["uncorrected"]
    assert result["notes"] == []


def test_a_device_without_ecc_has_no_memory_errors(hardware: Simulator) -> None:
    """As most of those for play; also if the count is unknown for a while."""
    hardware.fail("nvmlDeviceGetTotalEccErrors", Code.NOT_SUPPORTED, 0)
    hardware.fail("nvmlDeviceGetTotalEccErrors", Code.UNKNOWN, 1, after=4, times=2)
    acts = {1: "[hardware.add_memory_errors(device, corrected=1) for device in (0, 1)]"}
    result = read(hardware, acts, times=4)

    assert [[fault[1:] for fault in faults] for faults in result["faults"]] == [
        [],
        [],
        [["corrected", 1]],
        [],
    ]
    assert result["notes"] == []


def test_a_counter_that_goes_back_or_wild_adds_nothing(hardware: Simulator) -> None:
    """What it counts afterwards counts."""
    acts = {
        1: "hardware.add_memory_errors(0, uncorrected=-1)",
        2: "hardware.add_memory_errors(0, uncorrected=2**63)",
        3: "hardware.add_memory_errors(0, uncorrected=2)",
    }
    result = read(hardware, acts, times=4)

    assert [[fault[1:] for fault in faults] for faults in result["faults"]] == [
        [],
        [],
        [],
        [["uncorrected", 2]],
    ]

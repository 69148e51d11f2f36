"""`gpu-tracker doctor`: what can be measured, and the exit code for scripts."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import COMMAND, MIB, Run
from nvml_simulator import Code, Simulator
from sources.gpu.smi_stage import Stage, device


def diagnose(run: Run, *options: str, **environment: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the checks."""
    done = run("doctor", "--json", *options, **environment)
    told = json.loads(done.stdout)

    assert done.stderr == ""
    assert told["is_fine"] == (done.returncode == 0)
    return done.returncode, told["checks"]


def faults(checks: list[dict[str, Any]]) -> list[str]:
    """What cannot be measured."""
    return [check["what"] for check in checks if check["state"] == "failed"]


def test_a_machine_in_order(run: Run, hardware: Simulator, occupant: Callable[..., int]) -> None:
    """Everything has its line, and the exit code is 0."""
    hardware.set_process(0, occupant(), 100 * MIB)
    code, checks = diagnose(run)
    told = {(check["group"], check["what"]): check for check in checks}

    assert code == 0
    assert told["GPUs", "NVIDIA"]["text"] == "2 devices read through nvml, driver 550.54.15"
    assert told["GPU 0: NVIDIA A100 (GPU-0)", "processes"]["text"] == "1 running"
    assert told["processes", "tree"]["text"] == "read through procfs"
    assert told["allocation", "cores"]["state"] == "fine"
    assert {"versions", "processes", "allocation", "recording", "GPUs"} <= {group for group, _ in told}


def test_no_driver_is_no_fault(run: Run) -> None:
    """A sentence says that there is no GPU."""
    code, checks = diagnose(run, LD_LIBRARY_PATH="")

    assert code == 0
    assert checks[-1]["text"] == "No GPU found; everything else is measured."


@pytest.mark.parametrize(
    "code", [Code.DRIVER_NOT_LOADED, Code.VERSION_MISMATCH, Code.NO_PERMISSION, Code.UNKNOWN]
)
def test_a_driver_that_does_not_start_is_a_fault(run: Run, hardware: Simulator, code: Code) -> None:
    """Whatever it says."""
    hardware.fail("nvmlInit*", code)
    exit_code, checks = diagnose(run)

    assert exit_code == 1
    assert faults(checks) == ["NVIDIA"]


def test_a_denied_device_is_a_fault(run: Run, hardware: Simulator) -> None:
    """The others are measured."""
    hardware.deny(1)
    code, checks = diagnose(run)

    assert code == 1
    assert len(faults(checks)) == 1
    assert any(check["group"].startswith("GPU 0") for check in checks)


@pytest.mark.parametrize("after", [0, 1])
def test_a_lost_device_is_a_fault(run: Run, hardware: Simulator, after: int) -> None:
    """Whether it was gone before it was opened or after."""
    if after:
        hardware.fail("nvmlDeviceGetMemoryInfo*", Code.GPU_IS_LOST, device=1, after=after)
    else:
        hardware.lose(1)
    code, checks = diagnose(run)

    assert code == 1
    assert len(faults(checks)) == 1
    (advice,) = (check for check in checks if check["what"] == "what to do")
    assert advice["group"].startswith("GPU 1")


def test_a_driver_without_a_device_says_so(library: Path, tmp_path: Path) -> None:
    """It is not a machine without GPUs: one may only have to be requested."""
    with Simulator(library, tmp_path / "empty") as hardware:
        environment = {**os.environ, **hardware.environment()}
        doctor, query, run = (
            subprocess.run([COMMAND, *words], env=environment, capture_output=True, text=True)
            for words in (("doctor",), ("query",), ("run", "--no-record", "sleep", "0.5"))
        )

    assert doctor.returncode == 0
    assert "Everything on this machine can be measured except as marked above." in doctor.stdout
    assert query.returncode == 1
    for shown in (doctor.stdout, query.stderr, run.stdout + run.stderr):
        assert "The NVIDIA driver is loaded, but reports no device;" in " ".join(shown.split())


def test_a_denied_figure_is_a_fault_and_one_that_is_not_there_is_none(run: Run, hardware: Simulator) -> None:
    """The reason tells them apart."""
    hardware.fail("nvmlDeviceGetPowerUsage*", Code.NOT_SUPPORTED)
    assert diagnose(run)[0] == 0
    hardware.fail("nvmlDeviceGetTemperature", Code.NO_PERMISSION, device=0)
    code, checks = diagnose(run)

    assert (code, faults(checks)) == (1, ["temperature"])


@pytest.mark.parametrize("code", [Code.NO_PERMISSION, Code.UNKNOWN])
@pytest.mark.parametrize(
    ("function", "what"),
    [
        ("nvmlDeviceGetTotalEccErrors", "memory errors"),
        ("nvmlDeviceRegisterEvents", "errors (Xid)"),
        ("nvmlGpmQueryDeviceSupport", "activity"),
        ("nvmlGpmSampleGet", "activity"),
        ("nvmlDeviceGetFieldValues", "links"),
        ("nvmlDeviceGetSamples", "driver's samples"),
        ("nvmlDeviceGetMigMode", "MIG instances"),
        ("nvmlDeviceGetAccountingMode", "accounting"),
        ("nvmlDeviceGetAccountingPids", "accounting"),
        ("nvmlDeviceGetEnforcedPowerLimit", "power limit"),
        ("nvmlDeviceGetMaxClockInfo", "highest clock"),
        ("nvmlDeviceGetTemperatureThreshold", "temperature limit"),
    ],
)
def test_what_is_measured_besides_is_checked_too(
    run: Run, hardware: Simulator, function: str, what: str, code: Code
) -> None:
    """A device need not have it; but if it is denied or fails, that is said, with a cure."""
    hardware.set_activity(0)
    hardware.set_accounting(0, True)
    assert diagnose(run)[0] == 0
    hardware.fail(function, code)
    status, checks = diagnose(run)
    texts = " ".join(check["text"] for check in checks)

    assert status == 1
    assert what in faults(checks)
    assert ("administrator rights" if code is Code.NO_PERMISSION else "reset the device") in texts


def test_a_denied_name_is_a_fault(run: Run, hardware: Simulator) -> None:
    """What the device is called instead is no name."""
    hardware.fail("nvmlDeviceGetName", Code.NO_PERMISSION, device=0)
    done = run("doctor", "--json")
    (check,) = (one for one in json.loads(done.stdout)["checks"] if one["what"] == "name")

    assert (done.returncode, check["state"]) == (1, "failed")
    assert check["group"].startswith("GPU 0")


def test_a_driver_that_hangs_is_a_fault_and_costs_a_second(run: Run, hardware: Simulator) -> None:
    """Everything else is told all the same."""
    hardware.delay("nvmlDeviceGetUtilizationRates", 60_000)
    start = time.monotonic()
    code, checks = diagnose(run, "--timeout", "1")

    assert time.monotonic() - start < 10
    assert (code, faults(checks)) == (1, ["NVIDIA"])
    assert any("has not answered within 1 s" in check["text"] for check in checks)
    assert any(check["group"] == "allocation" for check in checks)


@pytest.mark.parametrize("function", ["nvmlInit*", "nvmlDeviceGetMemoryInfo*"])
def test_a_driver_that_crashes_is_a_fault_and_costs_no_other_check(
    run: Run, hardware: Simulator, function: str
) -> None:
    """With the cause, and what to do."""
    hardware.crash(function)
    code, checks = diagnose(run)

    assert (code, faults(checks)) == (1, ["drivers"])
    assert len(checks) > 10
    assert "the library of a GPU driver crashed: reinstall that driver." in checks[-1]["text"]


def test_people_get_signs_and_a_verdict(run: Run) -> None:
    """In ASCII where nothing else can be shown."""
    plain, unicode = run("doctor", PYTHONIOENCODING="ascii"), run("doctor", PYTHONIOENCODING="utf-8")

    assert plain.stdout.isascii()
    assert "\n  + NVIDIA " in plain.stdout
    assert "\n  ✓ NVIDIA " in unicode.stdout
    has_meters = "\n  ✓ processors" in unicode.stdout
    verdict = "Everything on this machine can be measured" + ("" if has_meters else " except as marked above")
    assert unicode.stdout.endswith(f"{verdict}.\n")


def test_the_exit_codes_are_documented(run: Run) -> None:
    """Where one looks for them."""
    assert "Exit code 0:" in run("doctor", "--help").stdout


def test_slurm_and_a_place_that_cannot_be_written_are_told(run: Run, tmp_path: Path) -> None:
    """The one is good to know, the other only a warning."""
    (tmp_path / "gpu-tracker-runs").write_text("a file is no directory")
    code, checks = diagnose(run, SLURM_JOB_ID="77", SLURM_CPUS_ON_NODE="1")
    told = {check["what"]: check for check in checks}

    assert code == 0
    assert told["Slurm"]["text"] == "SLURM_JOB_ID=77 SLURM_CPUS_ON_NODE=1"
    assert told["gpu-tracker-runs"]["state"] == "warning"
    assert told["cores"]["text"].endswith("(Slurm)") or told["cores"]["text"].startswith("1 of 1 ")


def test_another_process_source_is_named(run: Run) -> None:
    """With what it cannot do."""
    _, checks = diagnose(run, GPU_TRACKER_SOURCE="portable")
    told = {check["what"]: check for check in checks}

    assert told["tree"]["text"] == "read through portable"
    assert told["peaks"]["state"] == "warning"


def test_without_the_library_nothing_fails_and_the_cure_is_named(run: Run, tmp_path: Path) -> None:
    """nvidia-smi is read instead; what it does not report is said, and not called measured."""
    stage = Stage(tmp_path)
    stage.show(gpus=[device(0)])
    path = f"{stage.folder}{os.pathsep}{os.environ['PATH']}"
    done = run("doctor", LD_LIBRARY_PATH="", PATH=path)
    diagnosis = json.loads(run("doctor", "--json", LD_LIBRARY_PATH="", PATH=path).stdout)
    by_name = {check["what"]: check for check in diagnosis["checks"]}

    assert (diagnosis["is_fine"], diagnosis["is_complete"], done.returncode) == (True, False, 0)
    assert (by_name["nvml"]["state"], by_name["energy"]["state"]) == ("warning", "nothing")
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in by_name["nvml"]["text"]
    assert by_name["energy"]["text"] == "nvidia-smi does not report energy; the driver's library does."
    assert done.stdout.endswith("\nEverything on this machine can be measured except as marked above.\n")


@pytest.mark.parametrize("sizes", [(None,), (MIB, None)])
def test_processes_without_their_memory_are_a_fault(
    run: Run, hardware: Simulator, occupant: Callable[..., int], sizes: tuple[int | None, ...]
) -> None:
    """Even if it is reported for some; a dead process in the list is none."""
    for size in sizes:
        hardware.set_process(0, occupant(), size)
    hardware.set_process(1, 2**22 + 1, MIB, lingers=True)
    done = run("doctor")

    assert done.returncode == 1
    assert "not their memory: for MIG instances this requires root" in done.stdout
    assert "Everything on this machine" not in done.stdout
    assert "container" not in done.stdout.split("GPUs")[1]

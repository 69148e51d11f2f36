"""What is said about GPUs is true, through the whole tool, on a simulated driver that does what drivers do in the field."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from end_to_end.launch import COMMAND_LINE, TESTS
from gpu_tracker import load
from gpu_tracker.core.model import GpuSample
from nvml_simulator import PARTLY_BUSY_PERCENT, Code, Simulator
from patience import wait_until

# A starved simulator delivers its samples late, as no driver does.
pytestmark = pytest.mark.timed

MIB = 2**20
BEYOND_PIDS = 2**22 + 1  # no process ever has such a number


def call(hardware: Simulator, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`gpu-tracker` with this driver."""
    environment = {**os.environ, **hardware.environment(), "PYTHONPATH": str(TESTS)}
    command = [COMMAND_LINE, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def track(hardware: Simulator, *job: str, sleep: float = 0.2) -> tuple[dict[str, Any], Any]:
    """The report of a Python program under `gpu-tracker run`, and the truth that it has printed."""
    report = hardware.path.with_name("report.json")
    # A busy machine may make readings cost more than usual: what is asserted of notes is about GPUs.
    often = ("--sleep-time", str(sleep), "--max-overhead", "0.5")
    options = ("--no-record", *often, "-f", "json", "-o", str(report))
    done = call(hardware, "run", *options, "--", sys.executable, *job)
    assert done.returncode == 0, done.stderr
    return json.loads(report.read_text()), json.loads(done.stdout or "null")


# ---- Processes that are not there.

HOLD = """
import json, os, sys, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    for device, size in enumerate(map(int, sys.argv[1:])):
        simulator.set_process(device, os.getpid(), size)
    time.sleep(1.5)
print(json.dumps(sum(map(int, sys.argv[1:]))))
"""


@pytest.mark.parametrize("kind", ["compute", "graphics", "mps"])
def test_a_dead_process_in_the_drivers_list_costs_only_itself(hardware: Simulator, kind: Any) -> None:
    """The job's memory is right, nothing is blamed, and every row of a query comes."""
    hardware.set_process(0, BEYOND_PIDS, 700 * MIB, kind, lingers=True)
    hardware.set_process(1, BEYOND_PIDS + 1, None, kind, lingers=True)
    hardware.set_process(1, os.getpid(), 300 * MIB)
    report, truth = track(hardware, "-c", HOLD, str(2048 * MIB), str(4096 * MIB))
    fields = "--process-fields=pid,gpu_uuid,used_memory"
    rows = call(hardware, "query", fields, "--format=csv,noheader,nounits", "-lms", "50", "--count", "3")

    assert report["summary"]["gpu_bytes"] == {"main": truth, "descendants": 0, "combined": truth}
    assert [gpu["basis"] for gpu in report["summary"]["gpus"]] == ["sampled", "sampled"]
    assert report["notes"] == []
    assert (rows.stdout.splitlines(), rows.stderr) == (
        [
            f"{BEYOND_PIDS}, GPU-0, 700",
            f"{os.getpid()}, GPU-1, 300",
            f"{BEYOND_PIDS + 1}, GPU-1, [N/A]",
        ]
        * 3,
        "",
    )


def test_a_dead_process_alone_in_the_list_of_a_busy_device_costs_only_itself(hardware: Simulator) -> None:
    """It has come and gone while we watch, or was there before; there is no container to blame, and nobody to name."""
    job = """
import json, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    time.sleep(0.5)
    simulator.set_process(0, 2**22 + 2, 700 << 20, lingers=True)
    time.sleep(4)
print(json.dumps(0))
"""
    hardware.set_process(1, BEYOND_PIDS, 700 * MIB, lingers=True)
    for device in range(2):
        hardware.set_utilization(device, 50)
    report, truth = track(hardware, "-c", job)
    hardware.remove_process(0, BEYOND_PIDS + 1)
    diagnosis = call(hardware, "doctor")

    assert [gpu["job_bytes"]["combined"] for gpu in report["summary"]["gpus"]] == [truth, truth]
    assert [gpu["job_mean_percent"] for gpu in report["summary"]["gpus"]] == [truth, truth]
    assert report["notes"] == []
    assert (diagnosis.returncode, "in a container" in diagnosis.stdout) == (0, False)
    assert "1 of 1 listed cannot be found here: ended, or of another PID namespace." in diagnosis.stdout


def test_a_process_that_dies_and_stays_listed_costs_only_itself(hardware: Simulator) -> None:
    """A worker of the job, in the middle of it."""
    job = """
import json, os, subprocess, time
from nvml_simulator import Simulator
with Simulator.open() as simulator, subprocess.Popen(["sleep", "600"]) as worker:
    simulator.set_process(0, os.getpid(), 2 << 30)
    simulator.set_process(0, worker.pid, 4 << 30, lingers=True)
    time.sleep(0.7)
    worker.kill()
    worker.wait()
    simulator.set_process(0, os.getpid(), 5 << 30)
    time.sleep(1.2)
print(json.dumps([5 << 30, 4 << 30, 6 << 30]))
"""
    report, truth = track(hardware, "-c", job)

    assert list(report["summary"]["gpu_bytes"].values()) == truth
    assert report["notes"] == []


# ---- What is not known.

UNKNOWN = {"main": None, "descendants": None, "combined": None}
# Seconds, then what it holds in turn.
TURNS = """
import json, os, sys, time
from end_to_end.workloads.on_gpu import load_driver
from nvml_simulator import Simulator
driver = load_driver()
with Simulator.open() as simulator:
    time.sleep(0.6)
    for size in json.loads(sys.argv[1]):
        simulator.set_process(0, os.getpid(), size)
        time.sleep(0.8)
"""


def test_memory_that_the_driver_does_not_report_is_never_zero(hardware: Simulator, tmp_path: Path) -> None:
    """As under WSL: not in a report, nor in any table or list made of it."""
    folder = tmp_path / "runs"
    program = (sys.executable, "-c", TURNS, "[null]")
    assert call(hardware, "run", "--record", str(folder), "--", *program).returncode == 0
    (recording,) = map(str, folder.glob("*.jsonl"))
    table = tmp_path / "samples.csv"
    call(hardware, "export", recording, "-o", str(table))
    header, *rows = (line.split(",") for line in table.read_text().splitlines())
    report = json.loads(call(hardware, "report", recording, "-f", "json").stdout)
    (listed,) = json.loads(call(hardware, "ls", str(folder), "-f", "json").stdout)
    combined = json.loads(call(hardware, "combine", recording, "-f", "json").stdout)
    compared = json.loads(call(hardware, "compare", recording, recording, "-f", "json").stdout)

    assert report["summary"]["gpu_bytes"] == UNKNOWN
    used, other = report["summary"]["gpus"]
    assert (used["job_bytes"], used["basis"]) == (UNKNOWN, "unknown")
    assert other["job_bytes"]["combined"] == 0
    assert [process["used_bytes"] for process in report["summary"]["gpu_processes"]] == [None]
    assert rows[-1][header.index('"gpu0_job_bytes"')] == ""
    assert listed["values"]["peak_gpu_ram"] is None
    assert combined["values"]["peak_gpu_ram"] is None
    (memory,) = (row for row in compared["figures"] if row["figure"] == "peak_gpu_ram")
    assert [group["values"] for group in memory["groups"]] == [[], []]
    assert "job not measured" in call(hardware, "report", recording).stdout


def test_memory_that_is_reported_for_a_while_counts(hardware: Simulator) -> None:
    """Before and after it is not."""
    report, _ = track(hardware, "-c", TURNS, f"[null, {MIB}, null]")

    assert report["summary"]["gpu_bytes"]["combined"] == MIB


@pytest.mark.skipif(
    os.geteuid() != 0 or subprocess.run(["unshare", "-pf", "true"], check=False).returncode != 0,
    reason="a PID namespace needs root",
)
def test_process_ids_of_the_host_in_a_container(hardware: Simulator, tmp_path: Path) -> None:
    """What the job holds is not known, and why is said by every command; one dead process is no such sign."""
    report_path = tmp_path / "report.json"
    environment = {**os.environ, **hardware.environment(), "PYTHONPATH": str(TESTS)}

    def contain(*arguments: str) -> str:
        command = ["unshare", "--pid", "--fork", "--mount-proc", COMMAND_LINE, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    options = ("--no-record", "-f", "json", "-o", str(report_path))
    hardware.set_pid_namespace(offset=4_000_000)
    contain("run", *options, "--", sys.executable, "-c", TURNS, f"[{MIB}]")
    report = json.loads(report_path.read_text())
    hardware.set_process(0, BEYOND_PIDS, MIB, foreign=True)
    diagnosis = contain("doctor")

    assert report["summary"]["gpu_bytes"] == UNKNOWN
    assert "docker run --pid=host" in diagnosis
    assert "Everything on this machine can be measured" not in diagnosis


LISTED = """
import json, os, sys, time
from nvml_simulator import Simulator
kinds, sizes = json.loads(sys.argv[1]), json.loads(sys.argv[2])
with Simulator.open() as simulator:
    for kind, size in zip(kinds, sizes):
        simulator.set_process(0, os.getpid(), size, kind)
    time.sleep(1.5)
print(json.dumps(None))
"""


@pytest.mark.parametrize("code", [Code.NO_PERMISSION, Code.UNKNOWN])
@pytest.mark.parametrize(
    ("failing", "kinds"), [("MPSCompute", ["mps"]), ("Graphics", ["compute", "graphics"])]
)
def test_a_list_that_fails_leaves_nothing_known(
    hardware: Simulator, failing: str, kinds: list[str], code: Code
) -> None:
    """Of a process that may be in it, or have its larger figure there; and `doctor` says so."""
    hardware.fail(f"nvmlDeviceGet{failing}RunningProcesses*", code)
    report, truth = track(hardware, "-c", LISTED, json.dumps(kinds), "[1048576, 3145728]")
    diagnosis = call(hardware, "doctor")

    assert report["summary"]["gpu_bytes"]["combined"] is truth
    assert report["summary"]["gpus"][0]["basis"] == "unknown"
    assert report["notes"]
    assert (diagnosis.returncode, "Everything on this machine can be measured" in diagnosis.stdout) == (
        1,
        False,
    )


def test_a_device_that_may_not_be_looked_into_may_hold_anything(hardware: Simulator, tmp_path: Path) -> None:
    """A limit on all devices together cannot be checked then, however little is on the other one."""
    hardware.fail("nvmlDeviceGet*RunningProcesses*", Code.NO_PERMISSION, device=0)
    recording = str(tmp_path / "x.jsonl")
    program = (sys.executable, "-c", HOLD, str(8192 * MIB), str(MIB))
    assert call(hardware, "run", "--record", recording, "--", *program).returncode == 0
    report = json.loads(call(hardware, "report", recording, "-f", "json").stdout)
    checked = call(hardware, "compare", recording, recording, "--fail-if", "peak_gpu_ram > 4GB")
    combined = json.loads(call(hardware, "combine", recording, "-f", "json").stdout)
    text = call(hardware, "report", recording).stdout

    assert report["summary"]["gpu_bytes"]["combined"] is None
    assert report["summary"]["gpus"][1]["job_bytes"]["combined"] == MIB
    assert checked.returncode == 2
    assert combined["values"]["peak_gpu_ram"] is None
    assert "not known whether the job used them: GPU 0" in text


@pytest.mark.parametrize(
    "trouble",
    [
        "simulator.hang('nvmlDeviceGet*')",
        "simulator.fail('nvmlDeviceGet*', Code.GPU_IS_LOST)",
        "simulator.fail('nvmlDeviceGet*RunningProcesses*', Code.UNKNOWN)",
        "simulator.set_process(0, os.getpid(), None)",
    ],
    ids=["hangs", "lost", "lists nothing", "no sizes"],
)
def test_a_limit_on_memory_that_is_unknown_for_most_of_the_time_is_not_met(
    hardware: Simulator, tmp_path: Path, trouble: str
) -> None:
    """The job may have held more since; a limit that it exceeded before is broken all the same."""
    job = f"""
import os, time
from nvml_simulator import Code, Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 1 << 30)
    time.sleep(1)
    {trouble}
    time.sleep(5)
"""
    recording = str(tmp_path / "x.jsonl")
    options = ("--record", recording, "--sleep-time", "0.2", "--fail-if", "peak_gpu_ram > 8GB")
    run = call(hardware, "run", *options, "--", sys.executable, "-c", job)
    hardware.clear_rules()
    compared, broken = (
        call(hardware, "compare", recording, recording, "--fail-if", f"peak_gpu_ram > {size}")
        for size in ("8GB", "1GB")
    )

    assert (run.returncode, compared.returncode, broken.returncode) == (2, 2, 1)
    assert "used at least 1.07 GB, not measured all the time" in run.stderr


def test_a_job_that_ends_before_a_reading_may_have_held_anything(hardware: Simulator) -> None:
    """Zero would be made up: nothing was read while it ran, and a limit on it could not be checked."""
    report_path = hardware.path.with_name("report.json")
    options = ("--no-record", "--fail-if", "peak_gpu_ram > 1MB", "-f", "json", "-o", str(report_path))
    done = call(hardware, "run", *options, "--", "true")
    report = json.loads(report_path.read_text())

    assert done.returncode == 2
    assert report["summary"]["gpu_bytes"] == UNKNOWN
    assert {gpu["job_mean_percent"] for gpu in report["summary"]["gpus"]} == {None}


def test_a_short_lived_process_that_stays_listed_is_no_container(hardware: Simulator) -> None:
    """Its parent has loaded the driver, and is not listed."""
    job = """
import json, os, subprocess, time
from end_to_end.workloads.on_gpu import load_driver
from nvml_simulator import Simulator
driver = load_driver()
with Simulator.open() as simulator:
    time.sleep(0.8)
    with subprocess.Popen(["true"]) as worker:
        pass
    simulator.set_process(0, worker.pid, 4 << 30, lingers=True)
    time.sleep(2)
print(json.dumps(4 << 30))
"""
    report, truth = track(hardware, "-c", job)

    assert report["summary"]["gpus"][0]["used_bytes"] == truth
    assert not any("container" in note or "docker" in note for note in report["notes"])


def test_samples_of_a_job_that_is_not_listed_hold_no_zeros(hardware: Simulator, tmp_path: Path) -> None:
    """As with MPS before Volta: only the server is listed, and grows."""
    recording, table = str(tmp_path / "x.jsonl"), tmp_path / "x.json"
    job = f"""
import os, time
from end_to_end.workloads.on_gpu import load_driver
from nvml_simulator import Simulator
driver = load_driver()
with Simulator.open() as simulator:
    time.sleep(0.6)
    simulator.set_process(0, {os.getpid()}, 2 << 30, sm_percent=90)
    time.sleep(2.5)
"""
    hardware.set_process(0, os.getpid(), MIB)
    options = ("--record", recording, "--sleep-time", "0.2")
    call(hardware, "run", *options, "--", sys.executable, "-c", job)
    call(hardware, "export", recording, "-o", str(table))
    samples = json.loads(table.read_text())["samples"]

    assert {(row["gpu0_job_bytes"], row["gpu0_job_percent"]) for row in samples} == {(None, None)}
    assert {row["gpu1_job_bytes"] for row in samples} <= {0, None}
    assert max(row["gpu0_used_bytes"] or 0 for row in samples) == 2 << 30


def test_a_recording_that_is_cut_off_says_nothing_of_a_job_before_its_first_sample(
    hardware: Simulator, tmp_path: Path
) -> None:
    """The driver samples once a second, and every beginning of the recording is that of a killed run."""
    job = """
import os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 1 << 30, sm_percent=80)
    time.sleep(6)
"""
    recording, beginning = tmp_path / "x.jsonl", tmp_path / "y.jsonl"
    options = ("--record", str(recording), "--sleep-time", "0.5")
    with hardware.sampling(1):
        call(hardware, "run", *options, "--", sys.executable, "-c", job)
    lines = recording.read_text().splitlines(keepends=True)
    percents = []
    for number, line in enumerate(lines, 1):
        if line.startswith('{"sample"'):
            beginning.write_text("".join(lines[:number]))
            found = load(str(beginning)).summary.gpus[:1]
            percents += [gpu.job_mean_percent for gpu in found if gpu.mean_percent and gpu.is_expected]

    assert None in percents
    assert 0 not in percents
    assert percents[-1] == pytest.approx(80, abs=25)


# ---- What a diagnosis leaves out.


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("nvmlDeviceGetHandleByIndex*", Code.NOT_SUPPORTED),
        ("nvmlDeviceGetCount*", Code.NOT_SUPPORTED),
        ("nvmlDeviceGetCurrentClocks*Reasons", Code.NO_PERMISSION),
    ],
)
def test_a_diagnosis_is_not_fine_without_a_device_or_its_throttling(
    hardware: Simulator, function: str, code: Code
) -> None:
    """What is missing is named."""
    hardware.fail(function, code)
    diagnosis = call(hardware, "doctor")

    assert (diagnosis.returncode, "Everything on this machine" in diagnosis.stdout) == (1, False)


@pytest.mark.parametrize(
    ("n_bytes", "reason"), [(0, "file too short"), (9000, "it crashes (signal ")], ids=["empty", "cut off"]
)
def test_a_library_that_cannot_be_loaded_is_a_failure_with_its_reason(
    hardware: Simulator, tmp_path: Path, n_bytes: int, reason: str
) -> None:
    """It is there, so this is no machine without a driver; a run goes on without it."""
    library = "libnvidia-ml.so.1"
    content = Path(hardware.environment()["LD_LIBRARY_PATH"].split(":")[0], library).read_bytes()
    (tmp_path / library).write_bytes(content[:n_bytes])
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    doctor, run = (
        subprocess.run(
            [COMMAND_LINE, *arguments], env=environment, capture_output=True, text=True, timeout=120
        )
        for arguments in (("doctor",), ("run", "--no-record", "-f", "json", "--", "sleep", "0.5"))
    )
    report = json.loads(run.stderr)

    assert doctor.returncode == 1
    assert "Everything on this machine" not in doctor.stdout
    for text in (" ".join(doctor.stdout.split()), *report["notes"]):
        assert f"the driver's library ({library}) cannot be loaded: " in text
        assert reason in text
        assert "Install the driver again" in text
    assert report["summary"]["ram"]["combined"]["total_bytes"] > 0


# ---- Counters that are wrong.


def test_energy_drawn_while_its_counter_fails_counts_with_its_time(hardware: Simulator) -> None:
    """The counter goes on meanwhile, so nothing is missing."""
    job = """
import time
from nvml_simulator import Code, Simulator
with Simulator.open() as simulator:
    simulator.set_power_watts(0, 100)
    time.sleep(1)
    simulator.fail("nvmlDeviceGetTotalEnergyConsumption", Code.UNKNOWN)
    time.sleep(2)
    simulator.clear_rules()
    time.sleep(2)
"""
    hardware.set_power_watts(0, 100)
    report, _ = track(hardware, "-c", job)
    gpu = report["summary"]["gpus"][0]

    assert gpu["mean_watts"] == pytest.approx(100, abs=10)
    assert gpu["energy_seconds"] == pytest.approx(report["summary"]["seconds"], abs=0.5)


@pytest.mark.parametrize("seconds", [1.6, 2.5])
def test_a_counter_of_energy_that_stands_still_for_a_while_is_said(
    hardware: Simulator, seconds: float
) -> None:
    """What the device drew meanwhile is estimated from its power, and so is the sum."""
    job = f"""
import json, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    began = time.monotonic()
    time.sleep(1)
    simulator.hold_energy(0)
    time.sleep({seconds})
    simulator.hold_energy(0, holds=False)
    time.sleep(1)
print(json.dumps(time.monotonic() - began))
"""
    hardware.set_power_watts(0, 200)
    report, truth = track(hardware, "-c", job)
    gpu = report["summary"]["gpus"][0]

    assert gpu["energy_basis"] == "estimate"
    assert gpu["energy_joules"] == pytest.approx(200 * truth, rel=0.1)
    (note,) = report["notes"]
    assert note.startswith("The energy counter of NVIDIA GPU 0 stood still for ")


def test_a_device_without_any_memory_has_none_in_use(hardware: Simulator) -> None:
    """Zero bytes of zero are not measured."""
    hardware.add_device(memory_total_bytes=0, memory_reserved_bytes=0)
    report, _ = track(hardware, "-c", "pass")

    assert report["summary"]["gpus"][-1]["used_bytes"] is None


def test_energy_that_jumps_is_left_out_and_said(hardware: Simulator) -> None:
    """Once, with the time that is missing."""
    job = """
import json, os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 1 << 20)
    time.sleep(1)
    simulator.set_energy_joules(0, 1e9, integrates=True)
    time.sleep(1)
    simulator.set_energy_joules(0, 3e9, integrates=True)
    time.sleep(1)
"""
    report, _ = track(hardware, "-c", job)
    gpu = report["summary"]["gpus"][0]
    (note,) = report["notes"]
    start = "The energy counter of NVIDIA GPU 0 jumped by more than the device can draw, or began again: "

    assert note.startswith(start)
    assert note.endswith(" of the time.")
    missing = report["summary"]["seconds"] - gpu["energy_seconds"]
    assert 0 < missing < 2
    assert gpu["mean_watts"] == pytest.approx(50, abs=10)


def test_utilization_without_the_drivers_samples_is_an_estimate(hardware: Simulator) -> None:
    """In the report and in its text; with them it is not."""
    job = """
import os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 1 << 20, sm_percent=40)
    time.sleep(1.5)
"""
    polled, _ = track(hardware, "-c", job)
    text = call(hardware, "run", "--no-record", "--", sys.executable, "-c", job).stderr
    with hardware.sampling(7):
        sampled, _ = track(hardware, "-c", job)

    assert [one["summary"]["gpus"][0]["utilization_basis"] for one in (polled, sampled)] == [
        "estimate",
        "sampled",
    ]
    assert " % busy on average (estimate" in text


# ---- How much of a device works.


def test_a_busy_device_whose_multiprocessors_have_no_work_is_found(hardware: Simulator) -> None:
    """From the driver's counters to the sentence, and a device without such counters is not judged."""
    hardware.set_activity(0, busy=98, sm=31, occupancy=12, tensor=5, bandwidth=40)
    hardware.set_utilization(0, 98)
    job = """
import os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 1 << 30)
    time.sleep(6)
"""
    report, _ = track(hardware, "-c", job, sleep=0.1)
    active, other = (gpu["activity"] for gpu in report["summary"]["gpus"])

    means = {"sm_percent": 31, "occupancy_percent": 12, "tensor_percent": 5, "bandwidth_percent": 40}
    assert active == pytest.approx(means)
    assert set(other.values()) == {None}
    (found,) = (one for one in report["findings"] if one["rule"] == "sm-ineffective")
    assert found["sentence"] == "GPU 0 was 98 % busy, but only 31 % of its multiprocessors had work."


@pytest.mark.timed
@pytest.mark.parametrize(
    "change", ["None, None, None, None", "4e9, 1e9, None, None, counted=0, is_short=True"]
)
def test_traffic_that_is_not_counted_any_more_is_said(hardware: Simulator, change: str) -> None:
    """Whether the counters fail, or begin again as some that are too short to be believed."""
    hardware.set_traffic(0, 4e9, 1e9, None, None)
    job = f"""
import time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    time.sleep(2.5)
    simulator.set_traffic(0, {change})
    time.sleep(3)
"""
    report, _ = track(hardware, "-c", job, sleep=0.2)
    traffic = report["summary"]["gpus"][0]["traffic"]

    assert 0 < traffic["pcie_received_bytes"] < 4e9 * 3
    (note,) = report["notes"]
    assert note.startswith("NVIDIA GPU 0 did not count what went through PCIe for ")
    assert note.endswith(": it was at least as much as is reported.")


@pytest.mark.timed
def test_links_and_processes_are_told_apart(hardware: Simulator) -> None:
    """What went through PCIe, and which process kept the device busy; the truth is set in the driver."""
    hardware.set_traffic(0, 4e9, 1e9, None, None)
    hardware.set_power_watts(0, 100.0)
    job = """
import os, subprocess, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    with subprocess.Popen(["sleep", "6"]) as child:
        simulator.set_process(0, os.getpid(), 1 << 30, sm_percent=60)
        simulator.set_process(0, child.pid, 1 << 30, sm_percent=20)
"""
    with hardware.sampling(6, keeps_every_sample=True):
        report, _ = track(hardware, "-c", job, sleep=0.2)
    gpu = report["summary"]["gpus"][0]
    traffic, uses = gpu["traffic"], report["summary"]["gpu_uses"]

    assert traffic["pcie_received_bytes"] == pytest.approx(4e9 * report["summary"]["seconds"], rel=0.05)
    assert traffic["pcie_sent_bytes"] == pytest.approx(traffic["pcie_received_bytes"] / 4, rel=0.01)
    assert traffic["nvlink_sent_bytes"] is None
    # They take turns: each is named in every other sample. Together they did what the device did.
    seconds = report["summary"]["seconds"]
    main, child = uses
    assert main["gpu_seconds"] == pytest.approx(0.45 * seconds, rel=0.15)
    assert child["gpu_seconds"] == pytest.approx(0.15 * seconds, rel=0.25)
    assert main["gpu_joules"] == pytest.approx(gpu["energy_joules"] * 45 / 60, rel=0.25)
    assert child["gpu_joules"] == pytest.approx(gpu["energy_joules"] * 15 / 60, rel=0.35)


# ---- Drivers that hang.

SLEEP = "import time; time.sleep({seconds})"


@pytest.mark.parametrize(
    "function", ["dlopen", "nvmlInit*", "nvmlDeviceGetCount*", "nvmlDeviceGetComputeRunningProcesses*"]
)
def test_a_driver_that_hangs_from_the_start_is_said(hardware: Simulator, function: str) -> None:
    """Everything else is measured, and what the job holds there is not known."""
    hardware.hang(function)
    report, _ = track(hardware, "-c", SLEEP.format(seconds=1))
    summary = report["summary"]

    (note,) = report["notes"]
    assert note == (
        "The NVIDIA driver did not answer from the start to the end: GPU figures of that time are missing."
    )
    assert summary["gpu_bytes"] == {"main": None, "descendants": None, "combined": None}
    assert summary["ram"]["combined"]["total_bytes"] > 0


@pytest.mark.parametrize(
    "function",
    ["nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetMemoryInfo*", "nvmlDeviceGetProcessUtilization"],
)
@pytest.mark.parametrize("ends", [True, False])
def test_a_driver_that_hangs_meanwhile_is_said_with_the_time(
    hardware: Simulator, function: str, ends: bool
) -> None:
    """From the last reading on, until it answers again or to the end."""
    job = f"""
import json, os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 1 << 30)
    time.sleep(1)
    simulator.hang({function!r})
    hung = time.time()
    time.sleep(3)
    if {ends}:
        simulator.clear_rules()
        answered = time.time()
        simulator.set_process(0, os.getpid(), 2 << 30)
        time.sleep(1.5)
print(json.dumps([hung, answered] if {ends} else [hung]))
"""
    report, truth = track(hardware, "-c", job)
    (note,) = report["notes"]
    said = [float(word) for word in note.replace("the end", "").split() if word.replace(".", "").isdigit()]

    assert note.startswith("The NVIDIA driver did not answer from ")
    truth = [at - datetime.fromisoformat(report["header"]["started_at"]).timestamp() for at in truth]
    # A reading in between, and what a busy machine adds.
    assert said == pytest.approx(truth, abs=1)
    assert report["summary"]["gpus"][0]["job_bytes"]["combined"] == (2 if ends else 1) << 30
    # What came to the other device for most of the time is not known; the total is that of the rest.
    assert report["summary"]["gpus"][1]["job_bytes"]["combined"] is None
    assert report["summary"]["gpu_bytes"]["combined"] == (2 if ends else 1) << 30
    for gpu in report["summary"]["gpus"]:
        assert gpu["job_bytes_unknown_seconds"] == pytest.approx(3, abs=1)


# Holds 8 GiB for half a second while the driver does this, or to the end; before and after, 1 GiB.
SPIKE_UNSEEN = """
import os, signal, sys, time
from nvml_simulator import Code, Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 1 << 30)
    time.sleep(1.5)
    lists = "nvmlDeviceGetComputeRunningProcesses*"
    tracker = simulator.clients()[-1]
    if sys.argv[1] == "hang":
        simulator.hang(lists)
        time.sleep(0.05)
    elif sys.argv[1] == "fail":
        simulator.fail(lists, Code.UNKNOWN)
    elif sys.argv[1] == "lose":
        simulator.lose(0)
    elif sys.argv[1] == "stop":
        os.kill(tracker, signal.SIGSTOP)
    simulator.set_process(0, os.getpid(), 8 << 30)
    time.sleep(0.6)
    if sys.argv[2] == "meanwhile":
        simulator.set_process(0, os.getpid(), 1 << 30)
        simulator.clear_rules()
        simulator.recover(0)
        os.kill(tracker, signal.SIGCONT)
        time.sleep(1)
"""


@pytest.mark.parametrize(
    ("how", "when"),
    [
        ("hang", "meanwhile"),
        ("fail", "meanwhile"),
        ("lose", "meanwhile"),
        ("stop", "meanwhile"),
        ("hang", "to the end"),
        ("fail", "to the end"),
        ("lose", "to the end"),
    ],
)
def test_a_limit_is_not_met_while_nobody_looks(
    hardware: Simulator, tmp_path: Path, how: str, when: str
) -> None:
    """However short that is: the figure is a lower bound, and the gate says that it could not be checked."""
    recording = tmp_path / "run.jsonl"
    gates = ("--fail-if", "peak_gpu_ram > 4GiB", "--sleep-time", "0.1", "--max-overhead", "0.5")
    run = call(
        hardware,
        "run",
        "--record",
        str(recording),
        *gates,
        "--",
        sys.executable,
        "-c",
        SPIKE_UNSEEN,
        how,
        when,
    )
    gpu = load(recording).summary.gpus[0]

    assert run.returncode == 2, run.stderr
    assert "Not checked: peak_gpu_ram > 4GiB: " in run.stderr
    assert "used at least 1.07 GB, " in run.stderr
    assert gpu.job_bytes.combined == 1 << 30
    assert gpu.job_bytes_gap_seconds > 0.3
    again = call(hardware, "compare", str(recording), "--fail-if", "peak_gpu_ram > 512MiB")
    assert again.returncode == 1, "what is broken by the least it may have been is broken"


def test_a_limit_on_utilization_is_not_met_while_it_is_not_reported(
    hardware: Simulator, tmp_path: Path
) -> None:
    """It is somewhere between what it was at least and at most, of a time that is shorter than a second."""
    job = """
import json, sys, time
from nvml_simulator import Code, Simulator
with Simulator.open() as simulator:
    began = time.monotonic()
    time.sleep(2)
    for function in sys.argv[1:]:
        simulator.fail(function, Code.UNKNOWN)
    time.sleep(0.1)
    simulator.set_utilization(0, 100)
    missed = time.monotonic()
    time.sleep(0.6)
    missed = time.monotonic() - missed
    simulator.set_utilization(0, 0)
    simulator.clear_rules()
    time.sleep(2)
print(json.dumps(100 * missed / (time.monotonic() - began)))
"""
    recording = tmp_path / "run.jsonl"
    options = ("--record", str(recording), "--gpu-uuids", "0")
    hardware.set_utilization(0, 0)
    run = call(hardware, "run", *options, "--", sys.executable, "-c", job, *UTILIZATION)
    truth = json.loads(run.stdout)
    gpu = load(recording).summary.gpus[0]

    assert 0.3 < gpu.utilization_gap_seconds < 1.5
    below, above = (f"gpu_utilization > {percent:.1f}%" for percent in (truth - 2, truth + 40))
    assert call(hardware, "compare", str(recording), "--fail-if", below).returncode == 2
    assert call(hardware, "compare", str(recording), "--fail-if", above).returncode == 0


@pytest.mark.parametrize("slow", ["", "nvmlDeviceGetTemperature*"])
def test_a_limit_on_a_run_without_trouble_is_checked(hardware: Simulator, slow: str) -> None:
    """Nothing is missing then, so that it is met; figures that are slow to read, and read once a second, are no trouble."""
    if slow:
        hardware.delay(slow, 150)
    options = ("--no-record", "--fail-if", "peak_gpu_ram > 4GiB")
    run = call(hardware, "run", *options, "--", sys.executable, "-c", HOLD, str(1 << 30), str(1 << 30))

    assert (run.returncode, "did not answer" in run.stderr) == (0, False), run.stderr


# Idle for so many seconds, then busy for three times as long, while the driver does this.
WORK_UNSEEN = """
import json, os, sys, time
from nvml_simulator import Code, Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 20 << 30)
    time.sleep(float(sys.argv[1]))
    for function in sys.argv[3:]:
        simulator.hang(function) if sys.argv[2] == "hang" else simulator.fail(function, Code.UNKNOWN, device=0)
    if sys.argv[2] == "lose":
        simulator.lose(0)
    blind = time.time()
    simulator.set_utilization(0, 100)
    time.sleep(3 * float(sys.argv[1]))
print(json.dumps(blind))
"""
UTILIZATION = (
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetSamples",
    "nvmlDeviceGetProcessUtilization",
)


@pytest.mark.parametrize(
    ("trouble", "figures", "mean"),
    [
        (
            ("hang", "nvmlDeviceGetMemoryInfo*"),
            GpuSample._fields[1:],
            None,
        ),  # a driver that was lost leaves no 0 %
        (("lose",), GpuSample._fields[1:], 0),
        (("fail", *UTILIZATION), ("utilization_percent", "job_percent"), 0),
    ],
    ids=["hang", "lose", "fail"],
)
def test_what_is_not_read_is_unknown_in_samples_means_findings_and_limits(
    hardware: Simulator, tmp_path: Path, trouble: tuple[str, ...], figures: tuple[str, ...], mean: int | None
) -> None:
    """A job is not idle because it was when the driver was last heard."""
    path, table, rules = (tmp_path / name for name in ("run.jsonl", "run.csv", "rules.ini"))
    rules.write_text("[all]\nleast_intervals = 5\n")
    options = ("--record", str(path), "--tracking-file", str(table), "--sleep-time", "0.1")
    done = call(hardware, "run", *options, "--", sys.executable, "-c", WORK_UNSEEN, "2", *trouble)
    assert done.returncode == 0, done.stderr
    run = load(path)
    began = datetime.fromisoformat(run.header.started_at).timestamp()
    blind = json.loads(done.stdout.splitlines()[0]) - began + 1
    unseen = [sample.gpus[0] for sample in run.samples if sample.at_seconds > blind]

    assert len(unseen) > 20
    assert {getattr(gpu, figure) for gpu in unseen for figure in figures} == {None}
    row = table.read_text().splitlines()[-10].split(",")
    assert row[8:10] == ["", ""]
    busy = "utilization not measured" if mean is None else " s of the time), peak 0 %"
    assert busy in done.stderr
    shown = json.loads(call(hardware, "report", str(path), "-f", "json", "--rules", str(rules)).stdout)
    gpu = shown["summary"]["gpus"][0]
    assert gpu["mean_percent"] == mean
    assert gpu["utilization_seconds"] < shown["summary"]["seconds"] / 2
    assert [one["rule"] for one in shown["findings"] if one["rule"].startswith("gpu-")] == []
    (note,) = [note for note in shown["notes"] if " to the end" in note or " on: " in note]
    assert re.search(r" from [\d.]+ s ", note)
    gate = ("compare", str(path), "--fail-if", "gpu_utilization < 20%")
    assert call(hardware, *gate).returncode == 2
    assert call(hardware, *gate, "--allow-missing").returncode == 0


@pytest.mark.parametrize("command", [("doctor",), ("query",), ("watch", "--once")])
def test_a_driver_that_cannot_be_loaded_is_named_in_time(
    hardware: Simulator, command: tuple[str, ...]
) -> None:
    """Within the user's patience, and no process of ours is left."""
    hardware.hang("dlopen")
    done = call(hardware, *command, "--timeout", "1")

    assert "The NVIDIA driver has not answered within 1 s." in done.stdout + done.stderr
    wait_until(lambda: not find_users_of(hardware), "no process of ours is left")


def test_a_job_whose_gpus_are_named_does_not_wait_for_a_driver_that_hangs(hardware: Simulator) -> None:
    """The names are taken as they are, and everything else is measured."""
    hardware.hang("nvmlInit*")
    done = call(hardware, "run", "--no-record", "-f", "json", "--guuids", "GPU-0", "--", "sleep", "1")
    report = json.loads(done.stderr)

    assert report["header"]["gpu_uuids"] == ["GPU-0"]
    assert report["summary"]["ram"]["combined"]["total_bytes"] > 0


def find_users_of(hardware: Simulator) -> list[str]:
    """The processes that were started with this driver."""
    state = f"={hardware.path}\0".encode()

    def has_driver(process: Path) -> bool:
        try:
            return state in (process / "environ").read_bytes()
        except OSError:
            return False

    return [str(process) for process in Path("/proc").glob("[0-9]*") if has_driver(process)]


def test_a_driver_that_prints_disturbs_nothing(hardware: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does its text reach anybody."""
    monkeypatch.setenv("NVML_SIMULATOR_PRINTS", "1")
    report, truth = track(hardware, "-c", HOLD, str(MIB), str(MIB))
    answers = [call(hardware, *command) for command in (("query",), ("watch", "--once"), ("doctor",))]

    assert report["summary"]["gpu_bytes"]["combined"] == truth
    assert report["notes"] == []
    assert [(answer.returncode, answer.stderr) for answer in answers] == [(0, "")] * 3
    assert not any("nvmlDevice" in answer.stdout for answer in answers)


def test_a_reading_that_is_missing_at_the_end_is_said(hardware: Simulator) -> None:
    """A job shorter than a reading: nothing is known of what it held, and no zero is made up."""
    hardware.delay("nvmlDeviceGetMemoryInfo*", 700)
    report, _ = track(hardware, "-c", "pass")

    (note,) = report["notes"]
    assert "did not answer from the start to the end" in note
    assert report["summary"]["gpu_bytes"]["combined"] is None


# ---- The job's own utilization.

# Starts so many workers, and says which, and when they have ended.
CREW = "for number in $(seq $0); do sleep 4 & echo $!; done; wait; date +%s.%N"


@pytest.mark.parametrize(
    ("sleep", "hertz", "workers", "gpus", "keeps_every_sample"),
    [
        (0.05, 1, 1, 1, True),
        (0.05, 10, 3, 2, True),
        (0.25, 1, 3, 1, False),
        (1, 3, 1, 2, False),
        (1, 7, 2, 1, True),
        (10, 2, 2, 1, True),
        (10, 10, 3, 2, False),
    ],
)
def test_no_new_sample_is_not_zero_percent(
    hardware: Simulator, sleep: float, hertz: float, workers: int, gpus: int, keeps_every_sample: bool
) -> None:
    """However often we read and the driver samples, and whichever worker each sample names."""
    report_path = hardware.path.with_name("report.json")
    options = ("--no-record", "--sleep-time", str(sleep), "-f", "json", "-o", str(report_path))
    command = [COMMAND_LINE, "run", *options, "--", "sh", "-c", CREW, str(workers * gpus)]
    with (
        hardware.sampling(hertz, keeps_every_sample=keeps_every_sample),
        subprocess.Popen(
            command, env={**os.environ, **hardware.environment()}, stdout=subprocess.PIPE, text=True
        ) as job,
    ):
        assert job.stdout is not None
        for number, line in zip(range(workers * gpus), job.stdout, strict=False):
            hardware.set_process(number % gpus, int(line), MIB, sm_percent=79)
        begun = time.time()
        busy_seconds = float(job.stdout.readline()) - begun
    report = json.loads(report_path.read_text())
    used = [gpu for gpu in report["summary"]["gpus"] if gpu["is_expected"]]

    assert (job.returncode, [gpu["gpu"]["ordinal"] for gpu in used]) == (0, list(range(gpus)))
    # On a machine that is slow to begin, the job has waited before.
    percent = 79 * busy_seconds / report["summary"]["seconds"]
    assert [gpu["job_mean_percent"] for gpu in used] == pytest.approx([percent] * gpus, abs=3)
    assert report["summary"]["gpu_bytes"]["combined"] == workers * gpus * MIB


@pytest.mark.parametrize("gpus", [2, 8])
def test_a_driver_that_keeps_only_the_newest_sample_is_asked_in_time(hardware: Simulator, gpus: int) -> None:
    """However many devices there are, and within the usual budget: beside another's process, whose samples take turns with the job's."""
    for number in range(2, gpus):
        hardware.add_device(uuid=f"GPU-{number}", memory_reserved_bytes=0)
    report_path = hardware.path.with_name("report.json")
    command = [
        COMMAND_LINE,
        "run",
        "--no-record",
        "-f",
        "json",
        "-o",
        str(report_path),
        "--",
        "sh",
        "-c",
        CREW,
        "1",
    ]
    with (
        subprocess.Popen(["sleep", "60"]) as tenant,
        hardware.sampling(6, keeps_every_sample=False),
        subprocess.Popen(
            command, env={**os.environ, **hardware.environment()}, stdout=subprocess.PIPE, text=True
        ) as job,
    ):
        assert job.stdout is not None
        pid = int(job.stdout.readline())
        for number in range(gpus):
            hardware.set_process(number, tenant.pid, MIB, sm_percent=60)
            hardware.set_process(number, pid, MIB, sm_percent=60)
        begun = time.time()
        busy_seconds = float(job.stdout.readline()) - begun
        tenant.kill()
    summary = json.loads(report_path.read_text())["summary"]

    percent = 30 * busy_seconds / summary["seconds"]
    assert [gpu["job_mean_percent"] for gpu in summary["gpus"]] == pytest.approx([percent] * gpus, abs=3)


WORK = """
import os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 1 << 30, sm_percent=60)
    time.sleep({seconds})
"""


@pytest.mark.parametrize(
    ("sleep", "hertz", "burst_seconds", "keeps_every_sample"),
    [(1, 6, 0.2, False), (0.05, 10, 0.3, False), (10, 10, 0.5, True), (1, 3, 1, False), (0.2, 2, 1, True)],
)
def test_a_job_that_works_in_bursts_is_as_busy_as_the_drivers_samples(
    hardware: Simulator, sleep: float, hertz: float, burst_seconds: float, keeps_every_sample: bool
) -> None:
    """A device that was busy for a part of the driver's period does not make the job busy for all of it."""

    def is_busy(at_seconds: float) -> bool:
        return at_seconds % (2 * burst_seconds) < burst_seconds

    with hardware.sampling(hertz, keeps_every_sample=keeps_every_sample, is_busy=is_busy):
        report, _ = track(hardware, "-c", WORK.format(seconds=8), sleep=sleep)
    gpu = report["summary"]["gpus"][0]
    named = sum(is_busy(number / hertz) for number in range(int(8 * hertz))) / int(8 * hertz)
    device = 60 * named + PARTLY_BUSY_PERCENT * (1 - named)

    # The job may have begun late: its share of what the device did is not changed by that.
    assert gpu["job_mean_percent"] == pytest.approx(gpu["mean_percent"] * 60 * named / device, abs=3)
    assert gpu["mean_percent"] == pytest.approx(device, abs=15)


@pytest.mark.parametrize(
    ("sleep", "hertz", "process_hertz", "delay_seconds", "keeps_every_sample"),
    [
        (1, 6, 7.2, 0.0613, False),
        (0.2, 6, 3, 0.02, True),
        (1, 6, 6, 1 / 12, False),
        (1, 10, 1, 0.05, False),
        (0.05, 10, 1, 0.0, True),
        (10, 1, 10, 0.03, True),
        (1, 1, 10, 0.03, False),
    ],
)
@pytest.mark.parametrize("busy_seconds", [1.37, 0.82])
def test_processes_need_not_be_sampled_at_the_instants_of_their_device(
    hardware: Simulator,
    sleep: float,
    hertz: float,
    process_hertz: float,
    delay_seconds: float,
    keeps_every_sample: bool,
    busy_seconds: float,
) -> None:
    """While it works, the job uses three fifths of a device that it has to itself: all the time, or in bursts."""
    with hardware.sampling(
        hertz,
        process_hertz=process_hertz,
        process_delay_seconds=delay_seconds,
        keeps_every_sample=keeps_every_sample,
        is_busy=lambda at_seconds: at_seconds % 1.37 < busy_seconds,
    ):
        # So long that one sample of a process more or less is within the limit.
        seconds = max(10, 24 / process_hertz)
        report, _ = track(hardware, "-c", WORK.format(seconds=seconds), sleep=sleep)
    gpu = report["summary"]["gpus"][0]

    assert gpu["job_mean_percent"] == pytest.approx(0.6 * gpu["mean_percent"], abs=3)
    assert gpu["mean_percent"] == pytest.approx(100 * busy_seconds / 1.37, abs=15)


@pytest.mark.parametrize("keeps_every_sample", [True, False])
def test_a_share_of_a_device_that_chance_has_chosen_is_an_estimate(
    hardware: Simulator, keeps_every_sample: bool
) -> None:
    """Each sample names the job or somebody else, never both."""
    hardware.set_process(0, 1, 1 << 30, sm_percent=60)
    with hardware.sampling(6, keeps_every_sample=keeps_every_sample):
        report, _ = track(hardware, "-c", WORK.format(seconds=6), sleep=1)
    gpu = report["summary"]["gpus"][0]

    assert gpu["job_utilization_basis"] == "estimate"
    assert gpu["job_mean_percent"] == pytest.approx(gpu["mean_percent"] / 2, abs=5)


@pytest.mark.parametrize("keeps_every_sample", [True, False])
def test_workers_that_are_named_one_at_a_time_did_what_their_device_did(
    hardware: Simulator, keeps_every_sample: bool
) -> None:
    """The job has it to itself, so what a sample says of one of them is not the whole."""
    job = """
import subprocess
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    workers = [subprocess.Popen(["sleep", "6"]) for _ in range(3)]
    for worker, percent in zip(workers, (20, 30, 80)):
        simulator.set_process(0, worker.pid, 1 << 30, sm_percent=percent)
    for worker in workers:
        worker.wait()
"""
    with hardware.sampling(6, keeps_every_sample=keeps_every_sample):
        report, _ = track(hardware, "-c", job, sleep=1)
    gpu = report["summary"]["gpus"][0]

    assert gpu["job_utilization_basis"] == "sampled"
    assert gpu["job_mean_percent"] == pytest.approx(gpu["mean_percent"], abs=3)
    assert gpu["mean_percent"] > 40


@pytest.mark.parametrize(("hertz", "keeps_every_sample"), [(6, False), (10, False), (6, True)])
def test_processes_that_live_shorter_than_our_sleep_are_the_jobs(
    hardware: Simulator, hertz: float, keeps_every_sample: bool
) -> None:
    """One after the other: they have the device to themselves, so that their share is the device's."""
    job = """
import subprocess
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    for number in range(20):
        with subprocess.Popen(["sleep", "0.4"]) as child:
            simulator.set_process(0, child.pid, 1 << 30, sm_percent=80)
        simulator.remove_process(0, child.pid)
"""
    with hardware.sampling(hertz, keeps_every_sample=keeps_every_sample):
        report, _ = track(hardware, "-c", job, sleep=1)
    gpu = report["summary"]["gpus"][0]

    assert gpu["job_mean_percent"] == pytest.approx(gpu["mean_percent"], abs=3)
    assert gpu["mean_percent"] > 40


@pytest.mark.parametrize("milliseconds", [50, 100, 300])
def test_a_driver_that_is_slow_all_the_time_says_no_less(hardware: Simulator, milliseconds: int) -> None:
    """The job's share, the joules and their seconds are of the same time."""
    job = f"""
import os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 1 << 30, sm_percent=70)
    simulator.delay("nvmlDeviceGet*", {milliseconds})
    time.sleep(12)
"""
    hardware.set_power_watts(0, 100)
    hardware.set_energy_joules(0, 5000, integrates=True)
    with hardware.sampling(6, keeps_every_sample=False):
        report, _ = track(hardware, "-c", job, sleep=1)
    gpu = report["summary"]["gpus"][0]

    assert gpu["job_mean_percent"] == pytest.approx(gpu["mean_percent"], abs=3)
    assert gpu["mean_percent"] == pytest.approx(70, abs=15)
    assert gpu["mean_watts"] == pytest.approx(100, abs=2)


@pytest.mark.parametrize("milliseconds", [70, 200])
def test_lists_that_are_slow_from_the_start_say_no_less(hardware: Simulator, milliseconds: int) -> None:
    """There are six: the job works before the first have come."""
    hardware.delay("nvmlDeviceGet*RunningProcesses*", milliseconds)
    with hardware.sampling(6):
        report, _ = track(hardware, "-c", WORK.format(seconds=8), sleep=1)
    gpu = report["summary"]["gpus"][0]

    assert gpu["job_mean_percent"] == pytest.approx(gpu["mean_percent"], abs=3)
    assert gpu["mean_percent"] == pytest.approx(60, abs=10)
    assert report["notes"] == []


def test_a_process_id_that_was_the_jobs_is_not_its_for_ever(hardware: Simulator) -> None:
    """A worker ends, and later somebody else has its process ID."""
    job = """
import json, subprocess, time
from nvml_simulator import Simulator
def work(pid, percent, seconds):
    for _ in range(int(seconds * 6)):
        time.sleep(1 / 6)
        now = time.time_ns() // 1000
        simulator.push_process_utilization_sample(0, pid, percent, timestamp_us=now)
        simulator.push_sample(0, "gpu_utilization", 100, timestamp_us=now)
with Simulator.open() as simulator:
    with subprocess.Popen(["sleep", "600"]) as child:
        simulator.set_process(0, child.pid, 1 << 30)
        work(child.pid, 50, 2)
        child.kill()
    time.sleep(0.5)
    work(child.pid, 90, 6)
print(json.dumps(50 * 2 / 8.5))
"""
    report, truth = track(hardware, "-c", job, sleep=1)

    assert report["summary"]["gpus"][0]["job_mean_percent"] == pytest.approx(truth, abs=4)


@pytest.mark.parametrize("step_seconds", [-3600, -0.7, 5, 3600])
@pytest.mark.parametrize("keeps_every_sample", [True, False])
def test_a_clock_that_is_set_does_not_make_a_busy_job_idle(
    hardware: Simulator, step_seconds: float, keeps_every_sample: bool
) -> None:
    """The driver's, by which it dates its samples."""

    def stamp(at_seconds: float) -> float:
        return at_seconds + (step_seconds if at_seconds > 3 else 0.0)

    with hardware.sampling(6, keeps_every_sample=keeps_every_sample, stamp_seconds=stamp):
        report, _ = track(hardware, "-c", WORK.format(seconds=9), sleep=1)
    gpu = report["summary"]["gpus"][0]

    assert gpu["job_mean_percent"] == pytest.approx(gpu["mean_percent"], abs=3)
    assert gpu["mean_percent"] == pytest.approx(60, abs=10)


def test_a_driver_may_have_a_clock_of_its_own(hardware: Simulator) -> None:
    """As one that counts since the machine was started."""
    with hardware.sampling(6, stamp_seconds=lambda at_seconds: at_seconds - 1.7e9):
        report, _ = track(hardware, "-c", WORK.format(seconds=6), sleep=1)
    gpu = report["summary"]["gpus"][0]

    assert gpu["job_mean_percent"] == pytest.approx(gpu["mean_percent"], abs=3)
    assert gpu["mean_percent"] == pytest.approx(60, abs=10)


@pytest.mark.parametrize(
    "function", ["nvmlDeviceGetMemoryInfo*", "nvmlDeviceGetSamples", "*ProcessUtilization"]
)
@pytest.mark.parametrize("milliseconds", [700, 1500])
def test_a_slow_driver_does_not_make_a_busy_job_look_idle(
    hardware: Simulator, function: str, milliseconds: int
) -> None:
    """Whichever call is slow: the job has the device to itself, so that its share is the device's."""
    job = f"""
import json, os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 1 << 30, sm_percent=79)
    time.sleep(1)
    simulator.delay({function!r}, {milliseconds})
    time.sleep(5)
    simulator.clear_rules()
    time.sleep(1)
print(json.dumps(79))
"""
    with hardware.sampling(7):
        report, truth = track(hardware, "-c", job)
    gpu = report["summary"]["gpus"][0]

    assert gpu["job_mean_percent"] == pytest.approx(gpu["mean_percent"], abs=3)
    assert gpu["job_mean_percent"] > truth / 2


def test_a_busy_device_whose_samples_do_not_name_the_job(hardware: Simulator) -> None:
    """As with MPS, or by the process IDs of another namespace: zero percent would be made up."""
    job = """
import json, os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 2 << 30)
    simulator.set_utilization(0, 60)
    time.sleep(5)
print(json.dumps(60))
"""
    report, truth = track(hardware, "-c", job)
    gpu = report["summary"]["gpus"][0]

    assert gpu["job_mean_percent"] is None
    assert gpu["mean_percent"] == pytest.approx(truth, abs=15)
    assert gpu["job_bytes"]["combined"] == 2 << 30
    (note,) = report["notes"]
    assert "names none of the processes that it lists" in note


def test_what_a_server_of_mps_uses_is_not_taken_for_its_clients(hardware: Simulator) -> None:
    """Also if the job has started the server itself, and only for a few seconds."""
    job = """
import os, subprocess, time
from nvml_simulator import Simulator
with Simulator.open() as simulator, subprocess.Popen(["sleep", "600"]) as server:
    simulator.set_process(0, server.pid, 300 << 20, sm_percent=95)
    simulator.set_process(0, os.getpid(), 2 << 30, "mps")
    time.sleep(5)
    server.kill()
"""
    with hardware.sampling(6):
        report, _ = track(hardware, "-c", job, sleep=1)
    gpu = report["summary"]["gpus"][0]
    (note,) = report["notes"]

    assert "names none of the processes that it lists" in note
    assert gpu["job_mean_percent"] is None
    assert gpu["mean_percent"] > 60


def test_memory_that_the_driver_does_not_report_has_a_reason(hardware: Simulator) -> None:
    """As under WSL."""
    job = """
import json, os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), None)
    time.sleep(1.5)
print(json.dumps(None))
"""
    report, truth = track(hardware, "-c", job)
    (note,) = report["notes"]

    assert report["summary"]["gpu_bytes"]["combined"] is truth
    assert note.startswith("GPU 0 lists processes of the job without their memory (")


# ---- Devices that are lost, and come back.


def test_a_device_that_returns_is_measured_again(hardware: Simulator) -> None:
    """What it did meanwhile is missing, and said; the other is measured all the time."""
    job = """
import json, os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 1 << 30)
    simulator.set_process(1, os.getpid(), 1 << 30)
    time.sleep(1)
    lost = time.monotonic()
    simulator.lose(0)
    time.sleep(1)
    simulator.recover(0)
    lost = time.monotonic() - lost
    simulator.set_process(0, os.getpid(), 5 << 30)
    time.sleep(2.5)
print(json.dumps(lost))
"""
    report, lost_seconds = track(hardware, "-c", job)

    assert [gpu["job_bytes"]["combined"] for gpu in report["summary"]["gpus"]] == [5 << 30, 1 << 30]
    lost, unread = report["notes"]
    assert lost == "GPU 0 was lost; its figures are missing until it returns."
    missing = re.match(r"NVIDIA GPU 0 could not be read for ([\d.]+) s from ", unread)
    assert missing is not None
    assert float(missing[1]) == pytest.approx(lost_seconds, abs=1), "it is looked for again at once"


# Holds 2 GiB on the first device all the time; until the given second that cannot be opened, or never if nothing follows.
UNOPENED = """
import os, sys, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 2 << 30)
    time.sleep(float(sys.argv[1]))
    if float(sys.argv[2]):
        simulator.recover(0)
        simulator.clear_rules()
        time.sleep(float(sys.argv[2]))
"""


def make_unopened(hardware: Simulator, how: str) -> None:
    """From the start."""
    if how == "lost":
        hardware.lose(0)
    elif how == "lost behind its handle":
        hardware.fail("nvmlDeviceGet[!HC]*", Code.GPU_IS_LOST, device=0)
    else:
        hardware.fail("nvmlDeviceGetHandleByIndex*", Code.UNKNOWN, device=0)


@pytest.mark.parametrize("how", ["lost", "lost behind its handle", "unknown"])
def test_a_device_that_cannot_be_opened_may_hold_anything(
    hardware: Simulator, tmp_path: Path, how: str
) -> None:
    """Totals are not known, and no limit on them is met."""
    make_unopened(hardware, how)
    recording = str(tmp_path / "run.jsonl")
    options = ("--record", recording, "--fail-if", "peak_gpu_ram > 1GB")
    run = call(hardware, "run", *options, "--", sys.executable, "-c", UNOPENED, "1.5", "0")
    summary = load(recording).summary

    assert tuple(summary.gpu_bytes) == (None, None, None)
    assert (summary.has_unread_gpus, [gpu.gpu.ordinal for gpu in summary.gpus]) == (True, [1])
    assert (run.returncode, "Not checked" in run.stderr) == (2, True)


@pytest.mark.parametrize("how", ["lost", "lost behind its handle", "unknown"])
def test_a_device_that_can_be_opened_later_is_measured(hardware: Simulator, how: str) -> None:
    """From then on; what came before is known to be missing."""
    make_unopened(hardware, how)
    report, _ = track(hardware, "-c", UNOPENED, "1", "5")
    summary = report["summary"]

    assert summary["gpu_bytes"]["combined"] == 2 << 30
    assert summary["has_unread_gpus"] is False
    assert [gpu["job_bytes"]["combined"] for gpu in summary["gpus"]] == [2 << 30, 0]
    assert 1 < summary["gpus"][0]["job_bytes_unknown_seconds"] < 5


def test_a_device_that_the_job_cannot_use_need_not_be_opened(
    hardware: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one that is denied."""
    hardware.lose(0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    hidden, _ = track(hardware, "-c", HOLD, "0", str(2048 * MIB))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    hardware.recover(0)
    hardware.deny(0)
    denied, _ = track(hardware, "-c", HOLD, "0", str(2048 * MIB))

    for summary in (hidden["summary"], denied["summary"]):
        assert (summary["gpu_bytes"]["combined"], summary["has_unread_gpus"]) == (2048 * MIB, False)


# ---- Devices that are new.


@pytest.mark.parametrize("is_instance", [False, True])
def test_a_device_that_appears_is_measured_from_then_on(hardware: Simulator, is_instance: bool) -> None:
    """A card that is plugged in, or a device that is split: they are found within a second or two."""
    appear = (
        'add_mig_instance(0, uuid="MIG-0", memory_total_bytes=10 << 30)'
        if is_instance
        else 'add_device(uuid="GPU-2")'
    )
    job = f"""
import os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(1, os.getpid(), 1 << 30)
    time.sleep(1)
    new = simulator.{appear}
    simulator.set_process(new, os.getpid(), 5 << 30)
    time.sleep(3)
"""
    report, _ = track(hardware, "-c", job)
    held = {gpu["gpu"]["uuid"]: gpu["job_bytes"]["combined"] for gpu in report["summary"]["gpus"]}

    assert held["MIG-0" if is_instance else "GPU-2"] == 5 << 30
    assert report["summary"]["gpu_bytes"]["combined"] == 6 << 30


def test_an_instance_that_is_made_just_before_the_end_may_have_held_anything(
    hardware: Simulator, tmp_path: Path
) -> None:
    """It is found at the end, and no limit on it is met."""
    job = """
import os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(1, os.getpid(), 1 << 30)
    time.sleep(1)
    new = simulator.add_mig_instance(0, uuid="MIG-0", memory_total_bytes=10 << 30)
    simulator.set_process(new, os.getpid(), 5 << 30)
    time.sleep(0.3)
"""
    recording = tmp_path / "run.jsonl"
    options = ("--record", str(recording), "--fail-if", "peak_gpu_ram > 2GB")
    run = call(hardware, "run", *options, "--", sys.executable, "-c", job)
    summary = load(recording).summary

    assert "MIG-0" in {gpu.gpu.uuid for gpu in summary.gpus}
    # The whole device may have been read meanwhile, with what its instance holds.
    assert run.returncode in (1, 2)
    assert "NVIDIA GPU 0:0 was found only at " in run.stderr


def test_a_driver_that_is_loaded_again_is_asked_again(hardware: Simulator) -> None:
    """The old one answers nothing any more."""
    job = """
import os, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    simulator.set_process(0, os.getpid(), 1 << 30)
    time.sleep(1)
    simulator.reload()
    time.sleep(1)
    simulator.set_process(0, os.getpid(), 5 << 30)
    time.sleep(1)
"""
    report, _ = track(hardware, "-c", job)
    gpu = report["summary"]["gpus"][0]

    assert gpu["job_bytes"]["combined"] == 5 << 30
    assert gpu["job_bytes_gap_seconds"] > 0, "found again at once, but not without a reading that failed"
    assert len(report["notes"]) <= 4

"""What is said about GPUs is true, through the whole tool, on a simulated driver that does what drivers do in the field."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from end_to_end.launch import COMMAND_LINE, TESTS
from gpu_tracker import load
from nvml_simulator import Code, Simulator
from patience import wait_until

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
    options = ("--no-record", "--sleep-time", str(sleep), "-f", "json", "-o", str(report))
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


# ---- Counters that are wrong.


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
    start = "The energy counter of NVIDIA GPU 0 jumped by more than any device draws: its energy is without "

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
    # What came to the other device is not known if the driver never answers again.
    assert report["summary"]["gpu_bytes"]["combined"] == (2 << 30 if ends else None)


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

# Starts so many workers, and says which.
CREW = "for number in $(seq $0); do sleep 4 & echo $!; done; wait"


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
        begun = 0.0
        for number, line in enumerate(job.stdout):
            hardware.set_process(number % gpus, int(line), MIB, sm_percent=79)
            begun = time.monotonic()
        busy_seconds = time.monotonic() - begun
    report = json.loads(report_path.read_text())
    used = [gpu for gpu in report["summary"]["gpus"] if gpu["is_expected"]]

    assert (job.returncode, [gpu["gpu"]["ordinal"] for gpu in used]) == (0, list(range(gpus)))
    # On a machine that is slow to begin, the job has waited before.
    percent = 79 * min(1.0, busy_seconds / report["summary"]["seconds"])
    assert [gpu["job_mean_percent"] for gpu in used] == pytest.approx([percent] * gpus, abs=3)
    assert report["summary"]["gpu_bytes"]["combined"] == workers * gpus * MIB


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

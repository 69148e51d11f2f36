"""Containers and MPS, as they are reported from the field: what is said of memory and utilization is the simulator's truth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from end_to_end.launch import COMMAND_LINE, TESTS
from nvml_simulator import Simulator

# A starved simulator delivers its samples late, as no driver does.
pytestmark = pytest.mark.timed

MIB = 2**20
BEYOND_PIDS = 2**22 + 1  # no process ever has such a number
ON_GPU = TESTS / "end_to_end" / "workloads" / "on_gpu.py"
# Also where a busy machine makes every reading cost more than usual: what is asserted of notes is about GPUs.
OFTEN = ("--sleep-time", "0.2", "--max-overhead", "0.5")
CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc")

needs_container = pytest.mark.skipif(
    os.geteuid() != 0 or subprocess.run(["unshare", "-pf", "true"], check=False).returncode != 0,
    reason="a PID namespace needs root",
)

# Starts programs at once, waits for all of them, and passes on what they print.
CREW = """
import subprocess, sys
words = [line.split() for line in sys.argv[1:]]
for worker in [subprocess.Popen([sys.executable, *word]) for word in words]:
    worker.wait()
"""
# The same figures, through the Python interface.
TRACKED = """
import json, subprocess, sys
import gpu_tracker as gput
with gput.Tracker(sleep_time=0.2, max_overhead=0.5) as tracker:
    subprocess.run([sys.executable, "-c", *sys.argv[1:]], check=True, stdout=subprocess.DEVNULL)
gpu = tracker.report.summary.gpus[0]
print(json.dumps({
    "bytes": tracker.report.summary.gpu_bytes._asdict(), "basis": gpu.basis,
    "job": gpu.job_mean_percent, "notes": list(tracker.notes),
}))
"""


class Scene:
    """Commands on the simulated driver, in a container or not."""

    def __init__(self, hardware: Simulator, folder: Path, prefix: tuple[str, ...] = ()) -> None:
        self.hardware = hardware
        self._report = folder / "report.json"
        self._prefix = prefix

    def call(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        environment = {**os.environ, **self.hardware.environment(), "PYTHONPATH": str(TESTS)}
        return subprocess.run(
            [*self._prefix, *command], env=environment, capture_output=True, text=True, timeout=120
        )

    def track(self, *jobs: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The report of a program that starts all of these, and what they have printed."""
        options = ("--no-record", *OFTEN, "-f", "json", "-o", str(self._report))
        done = self.call(COMMAND_LINE, "run", *options, "--", sys.executable, "-c", CREW, *jobs)
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(self._report.read_text())
        return report, [json.loads(line) for line in done.stdout.splitlines()]

    def track_by_api(self, *jobs: str) -> dict[str, Any]:
        """The same figures from a Tracker."""
        done = self.call(sys.executable, "-c", TRACKED, CREW, *jobs)
        assert done.returncode == 0, done.stderr
        figures: dict[str, Any] = json.loads(done.stdout)
        return figures


def hold(seconds: float, mib: int, percent: int | str = 0, kind: str = "compute") -> str:
    """A process on the first device."""
    return f"{ON_GPU} {seconds} {mib} {percent} {kind}"


def unite(spans: Sequence[tuple[float, float]]) -> float:
    """How long at least one of these lasted."""
    total, until = 0.0, float("-inf")
    for began, ended in sorted(spans):
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return total


# ---- A container whose process IDs are translated.


@needs_container
def test_a_container_with_translated_process_ids(hardware: Simulator, tmp_path: Path) -> None:
    """The job's memory and utilization are its own; what other containers hold is only in the total."""
    hardware.set_pid_namespace(hides_foreign=True)
    hardware.set_process(0, BEYOND_PIDS, 3000 * MIB, sm_percent=0, foreign=True)
    scene = Scene(hardware, tmp_path, CONTAINER)
    jobs = (hold(2.5, 800), hold(2.5, 300))
    report, _ = scene.track(*jobs)
    gpu = report["summary"]["gpus"][0]

    assert report["summary"]["gpu_bytes"] == {"main": 0, "descendants": 1100 * MIB, "combined": 1100 * MIB}
    assert (gpu["used_bytes"], gpu["basis"], report["notes"]) == (4100 * MIB, "sampled", [])
    assert scene.track_by_api(*jobs) == {
        "bytes": {"main": 0, "descendants": 1100 * MIB, "combined": 1100 * MIB},
        "basis": "sampled",
        "job": pytest.approx(0),
        "notes": [],
    }


@needs_container
@pytest.mark.parametrize("kind", ["compute", "mps"])
def test_a_dead_process_in_a_container_costs_only_itself(
    hardware: Simulator, tmp_path: Path, kind: Any
) -> None:
    """It is the only one that the driver lists, until the job comes; a job without GPU holds nothing."""
    hardware.set_process(0, BEYOND_PIDS, 700 * MIB, kind, lingers=True)
    hardware.set_utilization(0, 50)
    scene = Scene(hardware, tmp_path, CONTAINER)
    idle, _ = scene.track(f"{TESTS / 'end_to_end' / 'workloads' / 'sleeper.py'} 1")
    busy, _ = scene.track(hold(2, 800))

    assert [gpu["job_bytes"]["combined"] for gpu in idle["summary"]["gpus"]] == [0, 0]
    assert idle["notes"] == []
    assert busy["summary"]["gpu_bytes"]["combined"] == 800 * MIB
    assert busy["summary"]["gpus"][0]["basis"] == "sampled"
    assert [note for note in busy["notes"] if "--pid=host" in note] == []


# ---- A container in which the driver shows the host's process IDs.


@needs_container
def test_a_container_that_shows_process_ids_of_the_host(hardware: Simulator, tmp_path: Path) -> None:
    """What the job holds is estimated by what has grown, its utilization is not known, and every command names the cure."""
    hardware.set_pid_namespace(offset=4_000_000)
    hardware.set_process(0, BEYOND_PIDS - 4_000_000, 3000 * MIB, foreign=True)
    scene = Scene(hardware, tmp_path, CONTAINER)
    job = (
        f"{TESTS / 'end_to_end' / 'workloads' / 'sleeper.py'} 1",
        hold(4, 800, 60),
    )
    report, _ = scene.track(*job)
    gpu = report["summary"]["gpus"][0]
    figures = scene.track_by_api(*job)

    assert (gpu["basis"], gpu["job_mean_percent"]) == ("estimate", None)
    assert gpu["job_bytes"]["combined"] == 800 * MIB
    (note,) = report["notes"]
    assert "docker run --pid=host" in note
    assert (figures["basis"], figures["job"]) == ("estimate", None)
    (note,) = figures["notes"]
    assert "docker run --pid=host" in note


@needs_container
def test_a_short_job_that_is_not_listed_is_no_job_without_memory(hardware: Simulator, tmp_path: Path) -> None:
    """It has ended before it was certain that it would not be listed."""
    hardware.set_pid_namespace(offset=4_000_000)
    report, _ = Scene(hardware, tmp_path, CONTAINER).track(hold(0.5, 800))
    gpu = report["summary"]["gpus"][0]

    assert (gpu["basis"], gpu["job_bytes"]["combined"]) == ("estimate", 800 * MIB)
    assert any("docker run --pid=host" in note for note in report["notes"])


# Of the host's processes, one has the same ID as the job in its container.
NAMESAKE = """
import os, sys, time
from end_to_end.workloads.on_gpu import load_driver
from nvml_simulator import Simulator
driver = load_driver()
with Simulator.open() as simulator:
    time.sleep(0.8)
    simulator.set_process(0, os.getpid(), 1 << 30)
    time.sleep(float(sys.argv[1]))
    simulator.set_process(0, os.getpid(), 9 << 30, "graphics", foreign=True)
    time.sleep(1.5)
"""


@needs_container
@pytest.mark.parametrize("seconds", [0, 1.5])
def test_a_process_of_the_host_with_the_same_id_is_not_the_job(
    hardware: Simulator, tmp_path: Path, seconds: float
) -> None:
    """Whether it comes together with the job's own or later."""
    program = tmp_path / "namesake.py"
    program.write_text(NAMESAKE)
    hardware.set_pid_namespace(offset=4_000_000)
    report, _ = Scene(hardware, tmp_path, CONTAINER).track(f"{program} {seconds}")

    assert report["summary"]["gpu_bytes"] == {"main": None, "descendants": None, "combined": None}
    assert report["summary"]["gpus"][0]["basis"] == "estimate"
    assert report["summary"]["gpu_processes"] == []
    assert any("docker run --pid=host" in note for note in report["notes"])


# Loads the driver, and holds memory under an ID that does not exist here.
HELD_ON_THE_HOST = """
import sys, time
from end_to_end.workloads.on_gpu import load_driver
from nvml_simulator import Simulator
driver = load_driver()
with Simulator.open() as simulator:
    time.sleep(1.5)
    simulator.set_process(0, 54321, 2 << 30, foreign=True)
    time.sleep(2)
"""


@needs_container
@pytest.mark.parametrize("has_driver", [True, False])
def test_processes_of_the_host_that_were_there_before_are_not_the_job(
    hardware: Simulator, tmp_path: Path, has_driver: bool
) -> None:
    """One has the ID that a process of the job will have; nothing of it is ever reported as the job's."""
    program = tmp_path / "held.py"
    program.write_text(HELD_ON_THE_HOST if has_driver else "import time; time.sleep(2)")
    for pid in range(1, 30):
        hardware.set_process(0, pid, 1 << 30, foreign=True)
    scene = Scene(hardware, tmp_path, CONTAINER)
    report, _ = scene.track(str(program))
    figures = scene.track_by_api("import time; time.sleep(1)") if has_driver else None

    assert report["summary"]["gpu_bytes"] == {"main": None, "descendants": None, "combined": None}
    assert report["summary"]["gpu_processes"] == []
    assert report["summary"]["gpus"][0]["basis"] == ("estimate" if has_driver else "unknown")
    assert len([note for note in report["notes"] if "docker run --pid=host" in note]) == 1
    assert figures is None or figures["bytes"]["combined"] is None


# Uses no GPU. A process of the host comes that has the same ID; another one was there before.
LATE_NAMESAKE = """
import os, sys, time
from nvml_simulator import Simulator
with Simulator.open() as simulator:
    time.sleep(float(sys.argv[1]))
    simulator.set_process(0, os.getpid(), 9 << 30, foreign=True)
    time.sleep(2)
"""

# Starts a process under an ID that the driver lists already.
LATER_NAMESAKE = """
import os, time
time.sleep(0.8)
with open("/proc/sys/kernel/ns_last_pid", "w") as file:
    file.write("499")
pid = os.fork()
if pid:
    os.waitpid(pid, 0)
else:
    time.sleep(2)
    os._exit(pid != 0)
"""


def expect_nothing_known(report: dict[str, Any]) -> None:
    """The job's memory is unknown, with one reason."""
    assert report["summary"]["gpu_bytes"] == {"main": None, "descendants": None, "combined": None}
    assert report["summary"]["gpu_processes"] == []
    assert report["summary"]["gpus"][0]["basis"] == "unknown"
    (note,) = report["notes"]
    assert "not known" in note
    assert "docker run --pid=host" in note


@needs_container
@pytest.mark.parametrize("seconds", [0.8, 1.3])
@pytest.mark.parametrize("has_stranger", [True, False])
def test_a_namesake_that_comes_beside_another_process_of_the_host_is_not_the_job(
    hardware: Simulator, tmp_path: Path, seconds: float, has_stranger: bool
) -> None:
    """However shortly before it was found that nobody of the job has loaded the driver."""
    program = tmp_path / "namesake.py"
    program.write_text(LATE_NAMESAKE)
    if has_stranger:
        hardware.set_process(0, BEYOND_PIDS, 2 << 30, foreign=True)
    report, _ = Scene(hardware, tmp_path, CONTAINER).track(f"{program} {seconds}")

    expect_nothing_known(report)


@needs_container
def test_a_process_that_was_listed_before_it_existed_is_not_the_job(
    hardware: Simulator, tmp_path: Path
) -> None:
    """Also if it is found by its parents, before it is among the processes of the job."""
    program = tmp_path / "namesake.py"
    program.write_text(LATER_NAMESAKE)
    hardware.set_process(0, 500, 4 << 30, foreign=True)
    report, _ = Scene(hardware, tmp_path, CONTAINER).track(str(program))

    expect_nothing_known(report)


@needs_container
def test_a_short_job_in_a_container_is_measured(hardware: Simulator, tmp_path: Path) -> None:
    """If the list is right, its first reading counts."""
    report, _ = Scene(hardware, tmp_path, CONTAINER).track(hold(0.5, 800))

    assert report["summary"]["gpu_bytes"]["combined"] == 800 * MIB


# ---- MPS.


def test_clients_of_mps_hold_their_own_memory_and_not_the_servers(
    hardware: Simulator, tmp_path: Path
) -> None:
    """The server is nobody's; if the driver names only the server, the clients' share is not known."""
    with subprocess.Popen(["sleep", "600"]) as server:
        try:
            hardware.set_process(0, server.pid, 2000 * MIB, sm_percent=60)
            with hardware.sampling(7):
                scene = Scene(hardware, tmp_path)
                jobs = (hold(5, 500, 0, "mps"), hold(5, 250, 0, "mps"))
                report, _ = scene.track(*jobs)
                figures = scene.track_by_api(*jobs)
        finally:
            server.kill()
    gpu = report["summary"]["gpus"][0]

    assert report["summary"]["gpu_bytes"]["combined"] == 750 * MIB
    assert (gpu["used_bytes"], gpu["basis"]) == (2750 * MIB, "sampled")
    assert gpu["mean_percent"] == pytest.approx(60, abs=3)
    assert gpu["job_mean_percent"] is None
    (note,) = report["notes"]
    assert "MPS" in note
    assert "container" not in note
    assert (figures["bytes"]["combined"], figures["job"]) == (750 * MIB, None)


def test_a_server_of_mps_that_holds_everything_for_its_clients(hardware: Simulator, tmp_path: Path) -> None:
    """As before Volta: the clients are not listed. What has grown is an estimate, and nothing says 0 %."""
    with subprocess.Popen(["sleep", "600"]) as server:
        try:
            hardware.set_process(0, server.pid, 100 * MIB, sm_percent=60)
            with hardware.sampling(7):
                scene = Scene(hardware, tmp_path)
                grow = (
                    "import time\n"
                    "from nvml_simulator import Simulator\n"
                    "from end_to_end.workloads.on_gpu import load_driver\n"
                    "driver = load_driver(); time.sleep(1)\n"
                    "with Simulator.open() as simulator:\n"
                    f"    simulator.set_process(0, {server.pid}, 600 << 20, sm_percent=60); time.sleep(3)"
                )
                client = tmp_path / "client.py"
                client.write_text(grow)
                report, _ = scene.track(str(client))
        finally:
            server.kill()
    gpu = report["summary"]["gpus"][0]

    assert (gpu["job_bytes"]["combined"], gpu["basis"]) == (500 * MIB, "estimate")
    assert gpu["job_mean_percent"] is None
    (note,) = report["notes"]
    assert "MPS" in note


# ---- Workers that are busy in turn.


def test_three_workers_that_are_busy_at_random(hardware: Simulator, tmp_path: Path) -> None:
    """Each sample names one of those that are busy at that instant."""
    scene = Scene(hardware, tmp_path)
    jobs = tuple(hold(7, mib, "random") for mib in (100, 200, 400))
    with hardware.sampling(10):
        report, told = scene.track(*jobs)
        figures = scene.track_by_api(*jobs)
    gpu = report["summary"]["gpus"][0]
    busy = unite([(began, ended) for worker in told for began, ended in worker["busy"]])
    truth = 80 * busy / report["summary"]["seconds"]

    assert report["summary"]["gpu_bytes"] == {"main": 0, "descendants": 700 * MIB, "combined": 700 * MIB}
    # A sample every tenth of a second, and some thirty changes.
    assert gpu["mean_percent"] == pytest.approx(truth, abs=5)
    assert gpu["job_mean_percent"] == pytest.approx(truth, abs=5)
    assert (gpu["utilization_basis"], report["notes"]) == ("sampled", [])
    assert (figures["bytes"]["combined"], figures["notes"]) == (700 * MIB, [])


# ---- Faults.


def test_faults_of_the_jobs_devices_are_told(
    hardware: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the one by which it ends; those of a device that it may not use are not its own."""
    hardware.add_device()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    program = tmp_path / "failing.py"
    program.write_text(
        "import sys, time\n"
        "from nvml_simulator import Simulator\n"
        "with Simulator.open() as hardware:\n"
        "    time.sleep(1)\n"
        "    hardware.report_xid(0, 13); hardware.report_xid(0, 13); hardware.report_xid(1, 74)\n"
        "    hardware.add_memory_errors(0, corrected=5)\n"
        "    time.sleep(2)\n"
        "    hardware.report_xid(0, 79)\n"
    )
    report, _ = Scene(hardware, tmp_path).track(str(program))
    findings = {finding["rule"]: finding for finding in report["findings"]}

    assert report["notes"] == [
        "GPU 0: the driver reports Xid 13: a kernel failed, often by an index out of range.",
        "GPU 0: 5 corrected memory errors (ECC).",
        "GPU 0: the driver reports Xid 79: the device has fallen off the bus.",
        "GPU 0: Xid 13 was reported 2 times in all.",
    ]
    assert findings["gpu-faults"]["severity"] == "serious"
    assert "Xid 79" in findings["gpu-faults"]["sentence"]
    assert findings["gpu-faults"]["start_seconds"] == pytest.approx(3, abs=1)


def test_a_fault_is_judged_however_short_the_run_was(hardware: Simulator, tmp_path: Path) -> None:
    """It is what people want to know of a job that ended too early."""
    program = tmp_path / "failing.py"
    program.write_text(
        "import time\n"
        "from nvml_simulator import Simulator\n"
        "with Simulator.open() as hardware:\n"
        "    time.sleep(0.5)\n"
        "    hardware.report_xid(0, 79)\n"
    )
    report, _ = Scene(hardware, tmp_path).track(str(program))

    assert [finding["rule"] for finding in report["findings"]] == ["gpu-faults"]


@pytest.mark.parametrize("seconds", [0, 0.1, 0.2])
def test_memory_errors_just_before_the_end_are_found(
    hardware: Simulator, tmp_path: Path, seconds: float
) -> None:
    """They may be why it ended."""
    program = tmp_path / "failing.py"
    program.write_text(
        "import time\n"
        "from nvml_simulator import Simulator\n"
        "with Simulator.open() as hardware:\n"
        "    time.sleep(1.5)\n"
        "    hardware.add_memory_errors(0, uncorrected=2)\n"
        f"    time.sleep({seconds})\n"
    )
    report, _ = Scene(hardware, tmp_path).track(str(program))

    assert report["notes"] == ["GPU 0: 2 uncorrected memory errors (ECC)."]
    assert [finding["rule"] for finding in report["findings"]] == ["gpu-faults"]

"""Devices of every vendor, through the whole tool: real processes, real paths, the driver or the kernel's files made up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from end_to_end.launch import COMMAND_LINE, TESTS
from nvml_simulator import Simulator, build
from sources.gpu.fake_devices import GIB, FakeMachine, write_files
from sources.gpu.smi_stage import Stage, app, device

MIB = 2**20
ENTER = 'mount --bind "$1" /sys && shift && exec "$@"'


def track(
    job: str, *options: str, prefix: tuple[str, ...] = (), environment: dict[str, str] | None = None
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The report of a Python job under `gpu-tracker run`, and its devices by UUID."""
    command = [sys.executable, "-c", f"import os, sys, time; sys.path.insert(0, {str(TESTS)!r})\n{job}"]
    done = subprocess.run(
        [*prefix, COMMAND_LINE, "run", "--no-record", "-f", "json", "-o", "-", *options, "--", *command],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report, {gpu["gpu"]["uuid"]: gpu for gpu in report["summary"]["gpus"]}


def has_everything_else(report: dict[str, Any]) -> bool:
    """Whether time, CPU and RAM were measured, whatever became of the GPUs."""
    summary = report["summary"]
    return bool(
        summary["seconds"]
        and summary["cpu"]["combined"]["seconds"]
        and summary["ram"]["combined"]["total_bytes"]
    )


def list_notes(report: dict[str, Any]) -> list[str]:
    """But for those on counters of energy, which are files here that nobody changes."""
    return [note for note in report["notes"] if not note.startswith("The energy counter of AMD GPU")]


# ---- nvidia-smi, where the library is not.


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A fake nvidia-smi; nothing of it may be left, when what was under way has been told."""
    stage = Stage(tmp_path)
    yield stage
    assert stage.count_running(lambda number: number == 0) == 0


def test_without_the_library_nvidia_smi_tells(stage: Stage) -> None:
    """Memory of the device and of the job; and its children are gone with the job."""
    scene = {"gpus": [device(0), device(1)], "apps": [app(0, 0, "1500")]}
    job = (
        "import json\n"
        f"scene = {scene!r}; scene['apps'][0]['pid'] = str(os.getpid())\n"
        f"open({str(stage.folder / 'draft')!r}, 'w').write(json.dumps(scene))\n"
        f"os.rename({str(stage.folder / 'draft')!r}, {str(stage.folder / 'scene.json')!r})\n"
        "time.sleep(2.5)"
    )
    report, gpus = track(job, environment={"PATH": f"{stage.folder}{os.pathsep}{os.environ['PATH']}"})
    first = gpus[device(0)["uuid"]]

    assert first["gpu"]["source"] == "nvidia_smi"
    assert (first["used_bytes"], first["job_bytes"]["combined"]) == (2048 * MIB, 1500 * MIB)
    assert (first["mean_percent"], first["utilization_basis"]) == (pytest.approx(55), "estimate")
    assert [gpu["is_expected"] for gpu in gpus.values()] == [True, False]
    assert has_everything_else(report)


def test_an_nvidia_smi_that_babbles_costs_nothing_but_its_own_figures(stage: Stage) -> None:
    """One sentence, and the rest of the report."""
    stage.path.unlink()
    stage.path.write_text("#!/bin/sh\nhead -c 3000 /dev/urandom\n")
    stage.path.chmod(0o755)
    report, gpus = track(
        "time.sleep(0.5)", environment={"PATH": f"{stage.folder}{os.pathsep}{os.environ['PATH']}"}
    )

    assert (gpus, len(report["notes"])) == ({}, 1)
    assert report["notes"][0].startswith("No NVIDIA GPU was measured: ")
    assert has_everything_else(report)


# ---- The kernel's files, at their real paths.


def why_impossible() -> str:
    """What is missing here, or nothing."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return "a mount namespace needs root and unshare"
    if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return "mount namespaces are not allowed here"
    return ""


needs_namespace = pytest.mark.skipif(bool(why_impossible()), reason=why_impossible())


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """An AMD card and an Intel one."""
    machine = FakeMachine(tmp_path)
    machine.add_amd_card(0, "0000:03:00.0", 100)
    machine.add_intel_card(1, "0000:00:02.0", "i915", {})
    return machine


def inside(machine: FakeMachine) -> tuple[str, ...]:
    """The words that put a command on that machine."""
    return ("unshare", "--mount", "sh", "-c", ENTER, "sh", str(machine.sys))


@needs_namespace
def test_a_vendor_that_never_answers_leaves_no_total_of_the_others(
    machine: FakeMachine, tmp_path: Path
) -> None:
    """What the job holds on the device that is read is known, what it holds in all is not."""
    with Simulator(build(tmp_path), tmp_path / "state") as hardware:
        hardware.hang("nvmlInit*")
        job = (
            "from pathlib import Path\nfrom sources.gpu.fake_devices import FakeMachine\n"
            f"FakeMachine(Path({str(tmp_path)!r})).set_kfd_bytes(os.getpid(), {{100: {2 * GIB}}}); time.sleep(1.5)"
        )
        report, gpus = track(job, prefix=inside(machine), environment=hardware.environment())

    summary = report["summary"]
    assert gpus[f"GPU-{100:016x}"]["job_bytes"]["combined"] == 2 * GIB
    assert "The NVIDIA driver did not answer from the start to the end" in list_notes(report)[-1]
    assert set(summary["gpu_bytes"].values()) == {None}
    assert (summary["gpu_capacity_bytes"], summary["has_unread_gpus"]) == (None, True)


@needs_namespace
def test_all_vendors_at_once(machine: FakeMachine, tmp_path: Path) -> None:
    """NVIDIA by its library, AMD and Intel by the kernel's files; the job is on two of them."""
    with Simulator(build(tmp_path), tmp_path / "state") as hardware:
        hardware.add_device(uuid="GPU-green", memory_reserved_bytes=0)
        job = (
            "from pathlib import Path\n"
            "from nvml_simulator import Simulator\nfrom sources.gpu.fake_devices import FakeMachine\n"
            f"FakeMachine(Path({str(tmp_path)!r})).set_kfd_bytes(os.getpid(), {{100: {2 * GIB}}})\n"
            "with Simulator.open() as hardware:\n"
            f"    hardware.set_process(0, os.getpid(), {700 * MIB}); time.sleep(1.5)"
        )
        report, gpus = track(job, prefix=inside(machine), environment=hardware.environment())
        only_amd, _ = track(
            "time.sleep(0.3)", "--gpu", "amd", prefix=inside(machine), environment=hardware.environment()
        )

    assert [gpu["gpu"]["vendor"] for gpu in gpus.values()] == ["amd", "intel", "nvidia"]
    assert gpus["GPU-green"]["job_bytes"]["combined"] == 700 * MIB
    assert gpus[f"GPU-{100:016x}"]["job_bytes"]["combined"] == 2 * GIB
    assert report["summary"]["gpu_bytes"]["combined"] == 700 * MIB + 2 * GIB
    assert [gpu["gpu"]["vendor"] for gpu in only_amd["summary"]["gpus"]] == ["amd"]


@needs_namespace
def test_utilization_that_rocm_does_not_report_is_not_zero(machine: FakeMachine, tmp_path: Path) -> None:
    """Although the job was not on the card at first, and did nothing then."""
    job = (
        "from pathlib import Path\nfrom sources.gpu.fake_devices import FakeMachine\n"
        f"time.sleep(0.8); FakeMachine(Path({str(tmp_path)!r})).set_kfd_bytes(os.getpid(), {{100: {GIB}}})\n"
        "time.sleep(0.8)"
    )
    _, gpus = track(job, "--gpu", "amd", prefix=inside(machine))
    (card,) = gpus.values()

    assert (card["job_bytes"]["combined"], card["job_mean_percent"]) == (GIB, None)


@needs_namespace
def test_a_card_that_is_pulled_out_is_lost_and_nothing_else(machine: FakeMachine, tmp_path: Path) -> None:
    """One sentence; the other card and the job's own figures go on."""
    machine.add_amd_card(2, "0000:83:00.0", 200)
    job = (
        "from pathlib import Path\nfrom sources.gpu.fake_devices import FakeMachine\n"
        f"machine = FakeMachine(Path({str(tmp_path)!r}))\n"
        f"machine.set_kfd_bytes(os.getpid(), {{100: {GIB}, 200: {GIB}}}); time.sleep(0.8)\n"
        "machine.remove_card(0, '0000:03:00.0'); time.sleep(0.5)\n"
        f"machine.set_kfd_bytes(os.getpid(), {{200: {3 * GIB}}}); time.sleep(0.8)"
    )
    report, gpus = track(job, "--gpu", "amd", prefix=inside(machine))

    assert [gpu["job_bytes"]["combined"] for gpu in gpus.values()] == [GIB, 3 * GIB]
    lost, unread = list_notes(report)
    assert "was lost" in lost
    assert unread.startswith("AMD GPU 0 could not be read for ")
    assert has_everything_else(report)


@needs_namespace
def test_files_full_of_garbage_are_said_and_forgotten(machine: FakeMachine) -> None:
    """No figure of that card, all the others."""
    files = ("mem_info_vram_used", "gpu_busy_percent")
    write_files(machine.find_device("0000:03:00.0"), dict.fromkeys(files, "\x00\xff none of your business"))
    report, gpus = track("time.sleep(0.6)", "--gpu", "amd", prefix=inside(machine))
    (card,) = gpus.values()

    assert (card["used_bytes"], card["mean_percent"]) == (None, None)
    assert card["max_celsius"] is not None
    assert len(report["notes"]) == 1
    assert has_everything_else(report)


# ---- Names for devices.


@pytest.fixture
def hardware(tmp_path: Path) -> Iterator[Simulator]:
    """Two NVIDIA devices of different names."""
    with Simulator(build(tmp_path), tmp_path / "state") as simulator:
        simulator.add_device(uuid="GPU-aaaa-1", name="NVIDIA A100", memory_reserved_bytes=0)
        simulator.add_device(uuid="GPU-bbbb-2", name="NVIDIA T4", memory_reserved_bytes=0)
        yield simulator


@pytest.mark.parametrize("name", ["1", "GPU-bbbb-2", "GPU-b", "nvidia t4"])
def test_a_device_has_many_names(hardware: Simulator, name: str) -> None:
    """Its number, its UUID, the beginning of that, and what it is called."""
    _, gpus = track("time.sleep(0.3)", "--guuids", name, environment=hardware.environment())

    assert [gpu["is_expected"] for gpu in gpus.values()] == [False, True]


def test_the_environment_says_which_devices_are_the_jobs(hardware: Simulator) -> None:
    """As long as the job is on none of them."""
    variables = {"CUDA_VISIBLE_DEVICES": "GPU-bbbb-2", **hardware.environment()}
    _, allowed = track("time.sleep(0.3)", environment=variables)
    job = "from nvml_simulator import Simulator\nSimulator.open().set_process(0, os.getpid(), 5); time.sleep(0.8)"
    _, used = track(job, environment=variables)

    assert [gpu["is_expected"] for gpu in allowed.values()] == [False, True]
    assert [gpu["is_expected"] for gpu in used.values()] == [True, False]


def test_a_device_that_does_not_exist_is_refused_before_the_job_starts(
    hardware: Simulator, tmp_path: Path
) -> None:
    """With those that do."""
    trace = tmp_path / "trace"
    done = subprocess.run(
        [COMMAND_LINE, "run", "--no-record", "--guuids", "GPU-c", "--", "touch", str(trace)],
        env={**os.environ, **hardware.environment()},
        capture_output=True,
        text=True,
    )

    assert (done.returncode, trace.exists()) == (2, False)
    assert "GPU UUID of GPU-c is not valid. Available UUIDs are: GPU-aaaa-1, GPU-bbbb-2" in done.stderr


NVITOP = """
import json, nvitop
wholes = nvitop.PhysicalDevice.all()
devices = [part for whole in wholes for part in (whole.mig_devices() or [whole])]
print(json.dumps([[device.uuid(), device.memory_used(), device.memory_total()] for device in devices]))
"""
OURS = """
import json, gpu_tracker as gput
print(json.dumps([[gpu.label, gpu.uuid, gpu.memory_used_bytes, gpu.memory_total_bytes] for gpu in gput.gpus()]))
"""


@needs_namespace
def test_instances_beside_whole_devices_of_three_vendors(machine: FakeMachine, tmp_path: Path) -> None:
    """Each has one name wherever it is shown or asked for, and what nvitop and gpustat report of those they know."""
    with Simulator(build(tmp_path), tmp_path / "state") as hardware:
        hardware.add_device(uuid="GPU-whole", memory_reserved_bytes=0)
        split = hardware.add_device(uuid="GPU-split", memory_reserved_bytes=0, mig_capable=True)
        parts = [hardware.add_mig_instance(split, uuid=f"MIG-{number}") for number in range(2)]
        hardware.set_extra_used_bytes(0, 300 * MIB)
        environment = hardware.environment()
        job = (
            "from nvml_simulator import Simulator\n"
            "with Simulator.open() as hardware:\n"
            f"    hardware.set_process({parts[1]}, os.getpid(), {500 * MIB})\n"
            f"    hardware.set_process(0, os.getpid(), {200 * MIB}); time.sleep(1.5)"
        )
        report, gpus = track(job, prefix=inside(machine), environment=environment)
        named, _ = track(job, "--guuids", "nvidia:1:1,amd:0", prefix=inside(machine), environment=environment)

        def ask(*command: str) -> str:
            done = subprocess.run(
                [*inside(machine), *command],
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
            return done.stdout

        query = ask(
            COMMAND_LINE, "query", "--query-gpu=index,uuid,memory.used", "--format=csv,noheader,nounits"
        )
        one = ask(COMMAND_LINE, "query", "--query-gpu=uuid", "--format=csv,noheader", "-i", "nvidia:1:0")
        watched = json.loads(ask(COMMAND_LINE, "watch", "--json"))
        polled = json.loads(ask(sys.executable, "-c", OURS))
        nvitop = json.loads(ask(sys.executable, "-c", NVITOP))
        gpustat = json.loads(ask(sys.executable, "-m", "gpustat", "--json"))

    labels = {"GPU-whole": "nvidia:0", "MIG-0": "nvidia:1:0", "MIG-1": "nvidia:1:1"}
    others = {f"GPU-{100:016x}": "amd:0"}
    known = {uuid: gpu["gpu"]["label"] for uuid, gpu in gpus.items()}
    intel = next(uuid for uuid, label in known.items() if label == "intel:0")
    assert known == {**labels, **others, intel: "intel:0"}
    assert gpus["MIG-1"]["job_bytes"]["combined"] == 500 * MIB
    assert gpus["GPU-whole"]["job_bytes"]["combined"] == 200 * MIB
    assert report["summary"]["gpu_bytes"]["combined"] == 700 * MIB
    assert set(named["header"]["gpu_uuids"]) == {"MIG-1", *others}

    rows = [row.split(", ") for row in query.splitlines()]
    shown = {**known, "GPU-split": "nvidia:1"}
    assert {uuid: index for index, uuid, _ in rows} == shown
    assert one == "MIG-0\n"
    assert {gpu["uuid"]: gpu["label"] for gpu in watched["gpus"]} == shown
    assert {uuid: label for label, uuid, *_ in polled} == known

    # The job has ended.
    used = {uuid: int(text) for _, uuid, text in rows if uuid in labels}
    assert used == {"GPU-whole": 300, "MIG-0": 0, "MIG-1": 0}
    ours = [[uuid, used_bytes, size] for _, uuid, used_bytes, size in polled if uuid in labels]
    assert sorted(ours) == sorted(nvitop)
    assert gpustat["gpus"][0]["memory.used"] == 300

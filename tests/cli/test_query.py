"""`gpu-tracker query`: nvidia-smi's recipes, with another first word."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import COMMAND, MIB, Run
from gpu_tracker.core.vendors import VENDORS, explain_request
from nvml_simulator import Code, Simulator

RECIPE = (
    "--query-gpu=timestamp,pstate,temperature.gpu,utilization.gpu,utilization.memory,"
    "memory.total,memory.free,memory.used"
)


def ask_others(hardware: Simulator, code: str) -> Any:
    """What another client says of the same devices."""
    output = subprocess.check_output(
        [sys.executable, "-c", code], env={**os.environ, **hardware.environment()}, text=True
    )
    return json.loads(output)


def test_the_recipe_works_with_another_first_word(run: Run, hardware: Simulator) -> None:
    """Headings, units and shape are nvidia-smi's."""
    hardware.set_utilization(1, 55, 12)
    done = run("query", RECIPE, "--format=csv", "-l", "1", "-t", "--count", "1")
    heading, first, second = done.stdout.splitlines()

    assert (done.returncode, done.stderr) == (0, "")
    assert heading == (
        "timestamp, pstate, temperature.gpu, utilization.gpu [%], utilization.memory [%], "
        "memory.total [MiB], memory.free [MiB], memory.used [MiB]"
    )
    assert first.split(", ")[1:] == ["P0", "40", "0 %", "0 %", "40960 MiB", "40448 MiB", "0 MiB"]
    assert second.split(", ")[1:4] == ["P0", "41", "55 %"]


def test_without_heading_and_units(run: Run) -> None:
    """As scripts like it."""
    done = run("query", "--query-gpu=index,memory.total,utilization.gpu", "--format=csv,noheader,nounits")

    assert done.stdout == "0, 40960, 0\n1, 40960, 0\n"


def test_the_figures_are_those_of_other_tools(
    run: Run, hardware: Simulator, occupant: Callable[..., int]
) -> None:
    """Field by field: pynvml, gpustat and nvitop on the same driver."""
    pid = occupant()
    hardware.set_process(1, pid, 1234 * MIB, sm_percent=33)
    hardware.set_utilization(1, 55, 12)
    hardware.set_clocks_mhz(1, sm=1000, memory=900)
    names = (
        "index,name,uuid,pci.bus_id,driver_version,memory.total,memory.used,memory.free,utilization.gpu,"
        "utilization.memory,temperature.gpu,power.draw,clocks.sm,clocks.mem,fan.speed,enforced.power.limit"
    )
    done = run("query", "--fields", names, "--format", "json", "-i", "1")
    ours = json.loads(done.stdout)
    pynvml = ask_others(
        hardware,
        "import json\n"
        "from pynvml import *\n"
        "nvmlInit(); h = nvmlDeviceGetHandleByIndex(1); m = nvmlDeviceGetMemoryInfo(h, nvmlMemory_v2)\n"
        "u = nvmlDeviceGetUtilizationRates(h)\n"
        "print(json.dumps([nvmlDeviceGetIndex(h), nvmlDeviceGetName(h), nvmlDeviceGetUUID(h),\n"
        "nvmlDeviceGetPciInfo(h).busId, nvmlSystemGetDriverVersion(), m.total, m.used, m.free, u.gpu, u.memory,\n"
        "nvmlDeviceGetTemperature(h, 0), nvmlDeviceGetPowerUsage(h) / 1000, nvmlDeviceGetClockInfo(h, 1),\n"
        "nvmlDeviceGetClockInfo(h, 2), nvmlDeviceGetFanSpeed(h), nvmlDeviceGetEnforcedPowerLimit(h) / 1000]))",
    )
    gpustat = json.loads(
        subprocess.check_output(
            [sys.executable, "-m", "gpustat", "--json"], env={**os.environ, **hardware.environment()}
        )
    )["gpus"][1]
    nvitop = ask_others(
        hardware,
        "import json, nvitop; d = nvitop.Device.all()[1]\n"
        "print(json.dumps([d.memory_used(), d.memory_free(), d.gpu_utilization(), d.temperature(), d.power_usage()]))",
    )

    assert list(ours.values()) == pynvml
    assert ours["memory.used"] == gpustat["memory.used"] * MIB
    assert ours["utilization.gpu"] == gpustat["utilization.gpu"]
    assert ours["temperature.gpu"] == gpustat["temperature.gpu"]
    assert nvitop == [ours["memory.used"], ours["memory.free"], ours["utilization.gpu"], 41, 61250]


def test_processes_can_be_queried(run: Run, hardware: Simulator, occupant: Callable[..., int]) -> None:
    """By nvidia-smi's names, and with the user."""
    pid = occupant()
    hardware.set_process(0, pid, 77 * MIB)
    done = run("query", "--query-compute-apps=pid,process_name,used_memory,user", "--format=csv")

    assert done.stdout.splitlines() == [
        "pid, process_name, used_gpu_memory [MiB], user",
        f"{pid}, sleep, 77 MiB, {pwd.getpwuid(os.getuid()).pw_name}",
    ]


def test_what_a_device_does_not_tell_is_not_available(run: Run, hardware: Simulator) -> None:
    """And not worth a word beside the table."""
    hardware.fail("nvmlDeviceGetFanSpeed*", Code.NOT_SUPPORTED)
    done = run("query", "--fields", "fan.speed,index", "--format", "csv,noheader")

    assert (done.stdout, done.stderr) == ("[N/A], 0\n[N/A], 1\n", "")


def test_every_name_of_nvidia_smi_is_answered(run: Run, hardware: Simulator) -> None:
    """By the device, or with the reason why none can; the truth is in the simulated driver."""
    names = (Path(__file__).parents[1] / "live" / "nvidia_smi_550.txt").read_text().split()
    done = run("query", f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits", "-i", "1")
    row = dict(zip(names, done.stdout.rstrip("\n").split(", "), strict=True))
    never = {
        "driver_model.current",
        "driver_model.pending",
        "fabric.health.bandwidth",
        "pcie.link.gen.hostmax",
    }
    without_mig = {"mig.mode.current", "mig.mode.pending"}

    assert {name for name, cell in row.items() if cell == "[N/A]"} == never | without_mig
    assert [line.split()[1] for line in done.stderr.splitlines()] == sorted(never)
    truth = {
        "addressing_mode": "HMM",
        "c2c.mode": "Disabled",
        "clocks_throttle_reasons.supported": "0x00000000000001FF",
        "ecc.errors.corrected.volatile.l1_cache": "1001",
        "ecc.errors.uncorrected.aggregate.sram": "2171",
        "ecc.errors.uncorrected.volatile.total": "2091",
        "ecc.mode.pending": "Enabled",
        "encoder.stats.averageLatency": "1234",
        "fabric.clusterUuid": "ab" * 16,
        "fabric.state": "Completed",
        "gom.pending": "Compute",
        "gsp.mode.default": "Disabled",
        "inforom.ecc": "6.16",
        "pci.baseClass": "0x3",
        "pci.device_id": "0x20B010DE",
        "pcie.link.width.max": "16",
        "power.draw.average": "62.25",
        "power.draw.instant": "63.25",
        "power.min_limit": "100.00",
        "protected_memory.used": "16",
        "reset_status.drain_and_reset_recommended": "Yes",
        "retired_pages.dbe": "5",
        "retired_pages.pending": "Yes",
        "temperature.gpu.tlimit": "51",
        "temperature.memory": "48",
        "utilization.jpeg": "12",
        "utilization.ofa": "22",
        "vgpu_device_capability.heterogeneous_timeSlice_profile": "Yes",
        "vgpu_driver_capability.heterogenous_multivGPU": "Yes",
    }
    assert {name: row[name] for name in truth} == truth


def test_a_lost_device_has_no_invented_uuid(run: Run, hardware: Simulator) -> None:
    """It cannot tell its own; who asks for the other one is not told of it."""
    hardware.lose(1)
    fields = ("query", "--query-gpu=index,uuid", "--format=csv,noheader")
    both, first = run(*fields), run(*fields, "-i", "0")
    told = json.loads(run("query", "--fields=uuid", "--format=json", "-i", "1").stdout)
    (_, lost) = json.loads(run("watch", "--json").stdout)["gpus"]

    assert both.stdout == "0, GPU-0\n1, [GPU is lost]\n"
    assert "GPU 1" in both.stderr
    assert (first.stdout, first.stderr) == ("0, GPU-0\n", "")
    assert (told["uuid"], lost["uuid"]) == (None, None)


def test_the_words_of_a_format_have_any_order(run: Run) -> None:
    """As for nvidia-smi, which needs to be told that it is CSV."""
    for words in ("noheader,nounits,csv", "nounits, csv ,noheader"):
        done = run("query", "--query-gpu=index,memory.total", f"--format={words}", "-i", "1")
        assert (done.returncode, done.stdout) == (0, "1, 40960\n")
    for words in ("noheader", "csv,json", ""):
        done = run("query", "--query-gpu=index", f"--format={words}")
        assert done.returncode == 2
        assert f"Unknown format {words!r}." in done.stderr


def test_instances_are_told_apart(run: Run, hardware: Simulator) -> None:
    """By the number of their device and their own; either may be asked for."""
    for number in range(2):
        hardware.add_mig_instance(1, uuid=f"MIG-{number}", memory_total_bytes=(10 + number) << 30)
    rows = [
        run(
            "query", "--query-gpu=index,memory.total,count", "--format=csv,noheader", *which
        ).stdout.splitlines()
        for which in ((), ("-i", "1"), ("-i", "1:1"), ("-i", "nvidia:0"))
    ]

    first, whole, *instances = rows[0]
    assert whole == "1, 40960 MiB, 2"
    assert instances == ["1:0, 10240 MiB, 2", "1:1, 11264 MiB, 2"]
    assert rows[1:] == [[whole, *instances], instances[1:], [first]]


def test_throttling_reasons_are_told_one_by_one(run: Run, hardware: Simulator) -> None:
    """By both names of each."""
    hardware.set_throttle_reasons(0, 0x4 | 0x40)
    reasons = ["sw_power_cap", "hw_thermal_slowdown", "hw_slowdown"]
    names = [
        f"{group}.{reason}"
        for reason in reasons
        for group in ("clocks_event_reasons", "clocks_throttle_reasons")
    ]
    done = run("query", f"--query-gpu={','.join(names)}", "--format=csv,noheader", "-i", "0")

    assert done.stdout == "Active, Active, Active, Active, Not Active, Not Active\n"


def test_a_driver_is_asked_only_for_what_is_wanted(run: Run, hardware: Simulator) -> None:
    """Some details take milliseconds each."""
    run("query", "--query-gpu=pstate,index", "--format=csv")

    assert "nvmlDeviceGetPerformanceState" in hardware.calls()
    assert "nvmlDeviceGetMemoryErrorCounter" not in hardware.calls()


def test_a_denied_device_costs_only_its_own_row(run: Run, hardware: Simulator) -> None:
    """It is said beside the table."""
    hardware.deny(0)
    done = run("query", "--fields", "index,count", "--format", "csv,noheader")

    assert done.stdout == "1, 1\n"
    assert done.stderr.startswith("gpu-tracker: GPU 0")
    assert done.stderr.count("\n") == 1


def test_devices_are_chosen_by_any_of_their_names(run: Run) -> None:
    """Index, UUID or place on the bus."""
    for which in ("1", "GPU-1", "00000000:02:00.0"):
        assert run("query", "--fields=index", "--format=csv,noheader", "-i", which).stdout == "1\n"
    wrong = run("query", "-i", "7")

    assert wrong.returncode == 2
    assert wrong.stderr == "gpu-tracker: There is no GPU '7'. GPUs: 0 (GPU-0), 1 (GPU-1).\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--fields", "memory.usd"], "Unknown field 'memory.usd'. Did you mean memory.used or"),
        (["--format", "xml"], "Unknown format 'xml'."),
        (["--format", "csv,loud"], "Unknown format 'csv,loud'."),
        (["-l", "soon"], "-l: 'soon' is not a number."),
        (["-l", "0"], "-l of 0 is invalid."),
        (["--count", "0"], "--count of '0' is not a whole number"),
        (["--timeout", "nan"], "--timeout of nan is invalid."),
        (["-f", "/nowhere/file"], "Cannot write to /nowhere/file"),
        (
            ["--fields", "index", "--process-fields", "pid"],
            "GPUs and processes cannot be queried at the same time.",
        ),
    ],
)
def test_nonsense_is_refused_in_one_sentence(run: Run, arguments: list[str], sentence: str) -> None:
    """Before any driver is asked."""
    done = run("query", *arguments)

    assert done.returncode == 2
    assert done.stderr.startswith(f"gpu-tracker: {sentence}")
    assert done.stderr.count("\n") == 1


def test_fields_are_listed(run: Run) -> None:
    """Without any device, under both spellings."""
    ours, theirs = run("query", "--help-fields"), run("query", "--help-query-gpu")

    assert ours.stdout == theirs.stdout
    assert "temperature.gpu, temperature " in ours.stdout
    assert "used_gpu_memory, used_memory" in run("query", "--help-process-fields").stdout


def test_a_machine_without_gpus_says_why(run: Run) -> None:
    """And the exit code tells scripts."""
    done = run("query", LD_LIBRARY_PATH="")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("gpu-tracker: No GPU found.")


def test_a_driver_that_hangs_is_not_a_machine_without_gpus(run: Run, hardware: Simulator) -> None:
    """The reason comes first."""
    hardware.hang("nvmlDeviceGetUtilizationRates")
    done = run("query", "--timeout", "0.5")

    assert done.returncode == 1
    assert done.stderr.startswith("gpu-tracker: The NVIDIA driver has not answered within 0.5 s.")
    assert "No GPU found" not in done.stderr


def test_a_lost_device_has_its_row(run: Run, hardware: Simulator) -> None:
    """As in nvidia-smi, in its place; also in JSON and in a watch."""
    hardware.lose(0)
    fields = "--fields=index,name,memory.used"
    table = run("query", fields, "--format=csv,noheader")
    objects = run("query", fields, "--format=json").stdout.splitlines()
    watched = json.loads(run("watch", "--once", "--json").stdout)

    assert table.stdout.splitlines() == ["0, [GPU is lost], [GPU is lost]", "1, NVIDIA A100, 0 MiB"]
    assert json.loads(objects[0]) == {"index": 0, "name": None, "memory.used": None}
    assert [(gpu["ordinal"], gpu["used_bytes"]) for gpu in watched["gpus"]] == [(0, None), (1, 0)]
    assert "GPU 0 was lost" in table.stderr


def test_processes_that_only_draw_are_no_compute_apps(run: Run, hardware: Simulator) -> None:
    """As in nvidia-smi; all of them are there under our own name of the option."""
    hardware.set_process(0, os.getpid(), 100 * MIB)
    hardware.set_process(1, os.getppid(), 50 * MIB, "graphics")
    compute, every = (
        run("query", f"{option}=pid", "--format=csv,noheader").stdout.split()
        for option in ("--query-compute-apps", "--process-fields")
    )

    assert compute == [str(os.getpid())]
    assert every == [str(os.getpid()), str(os.getppid())]


@pytest.mark.parametrize("n_denied", [1, 2])
def test_processes_that_no_device_lists_are_told_by_the_exit_code(
    run: Run, hardware: Simulator, n_denied: int
) -> None:
    """No rows could mean that there are no processes."""
    for device in range(n_denied):
        hardware.fail("nvmlDeviceGet*RunningProcesses*", Code.NO_PERMISSION, device=device)
    done = run("query", "--query-compute-apps=pid", "--format=csv,noheader")

    assert (done.returncode, done.stdout) == (n_denied == 2, "")
    assert done.stderr.count("administrator rights") == n_denied


def test_a_driver_that_cannot_list_processes_is_a_reason(run: Run, hardware: Simulator) -> None:
    """Of every device that was asked for."""
    hardware.fail("nvmlDeviceGet*RunningProcesses*", Code.NOT_SUPPORTED)
    done = run("query", "--query-compute-apps=pid", "--format=csv,noheader", "-i", "1")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "gpu-tracker: GPU 1 does not report processes.\n"


@pytest.mark.parametrize("command", ["query", "run", "doctor", "gpus"])
def test_devices_that_a_container_asks_for_come_with_the_cure(run: Run, command: str) -> None:
    """Without NVIDIA's container runtime: the same sentence from every command, once."""
    variables = {"LD_LIBRARY_PATH": "", "NVIDIA_VISIBLE_DEVICES": "all"}
    cure = explain_request(VENDORS["nvidia"], variables)
    assert cure is not None
    if command == "gpus":
        done = subprocess.run(
            [sys.executable, "-c", "import gpu_tracker; print(gpu_tracker.gpus())"],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
        )
    else:
        done = run(command, *(("--no-record", "true") if command == "run" else ()), **variables)
    shown = " ".join((done.stdout + done.stderr).split())

    assert shown.count(cure) == 1
    assert "No GPU found; `gpu-tracker doctor`" not in shown


def test_a_driver_that_hangs_does_not_hang_the_user(run: Run, hardware: Simulator) -> None:
    """One sentence, in time."""
    hardware.delay("nvmlDeviceGetUtilizationRates", 60_000)
    start = time.monotonic()
    done = run("query", "--timeout", "0.5")

    assert time.monotonic() - start < 10
    assert done.returncode == 1
    assert "has not answered within 0.5 s" in done.stderr


def test_a_loop_goes_on_until_it_is_interrupted(hardware: Simulator, tmp_path: Path) -> None:
    """Each row is out at once, the heading only once, and Ctrl-C is the normal end."""
    process = subprocess.Popen(
        [COMMAND, "query", "--fields=index,utilization.gpu", "-i", "0", "-lms", "100"],
        env={**os.environ, **hardware.environment()},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        lines = [process.stdout.readline() for _ in range(3)]
        hardware.set_utilization(0, 99)
        while process.stdout.readline() != "0, 99 %\n":
            pass
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()

    assert lines == ["index, utilization.gpu [%]\n", "0, 0 %\n", "0, 0 %\n"]
    assert "index" not in rest
    assert process.wait(timeout=10) == 0


def test_a_loop_ends_when_nobody_reads_it(hardware: Simulator) -> None:
    """`| head -1` is enough to stop it."""
    process = subprocess.Popen(
        [COMMAND, "query", "-lms", "50"], env={**os.environ, **hardware.environment()}, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()

    assert process.wait(timeout=10) == 0


def test_rows_can_go_to_a_file(run: Run, tmp_path: Path) -> None:
    """As with nvidia-smi's `-f`."""
    done = run("query", "--fields=index", "-f", "log.csv")

    assert done.stdout == ""
    assert (tmp_path / "log.csv").read_text() == "index\n0\n1\n"

"""NVIDIA devices, through the real nvidia-ml-py, on a simulated driver library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gpu_tracker.sources.gpu import nvml, nvml_lists
from nvml_simulator import Code, Generation, Simulator, build

MIB = 2**20
TESTS = Path(__file__).parents[2]

# A fake training process that holds memory on the simulated devices and prints what its tracker reports.
TRAINING = """
import json, os, subprocess, sys, time
sys.path.insert(0, {tests!r})
from nvml_simulator import Simulator
import gpu_tracker as gput
from gpu_tracker.reports.contract import render
MIB = 2**20
def wait_until_devices_are_read():
    while all(gpu.used_bytes is None for gpu in tracker.report.summary.gpus): time.sleep(0.01)
with Simulator.open() as hardware:
    tracker = gput.Tracker(sleep_time=0.1, max_overhead=0.5, gpu_ram_unit="mebibytes", **{options!r})
    with tracker:
        {body}
    usage = tracker.resource_usage
    gpus = tracker.report.summary.gpus
    print(json.dumps(dict(
        ram=vars(usage.max_gpu_ram), busy=vars(usage.gpu_utilization.gpu_percentages),
        counts=[usage.gpu_utilization.system_gpu_count, usage.gpu_utilization.n_expected_gpus],
        cpu=usage.cpu_utilization.main.mean_sum_percent, rss=usage.max_ram.main.total_rss,
        peaks=[gpu.job_bytes.combined for gpu in gpus], clients=hardware.clients(), pid=os.getpid(),
        bases=[gpu.basis for gpu in gpus], energy=[gpu.energy_joules for gpu in gpus],
        mean=[gpu.mean_percent for gpu in gpus], most=[gpu.max_percent for gpu in gpus],
        by_job=[gpu.job_mean_percent for gpu in gpus], limited=[gpu.throttled for gpu in gpus],
        hottest=[gpu.max_celsius for gpu in gpus], expected=[gpu.is_expected for gpu in gpus],
        processes=[[p.pid, p.used_bytes, p.basis] for p in tracker.report.summary.gpu_processes],
        # That this machine was busy is none of the driver's trouble.
        notes=[note for note in tracker.notes if not note.startswith("Nothing was measured")],
        truth=globals().get("truth"), seconds=globals().get("seconds"), readings=tracker.report.summary.readings, text=render(tracker.report, "text"))))
"""


def run(hardware: Simulator, *arguments: str) -> Any:
    """Run Python with the simulated driver; its output as JSON."""
    environment = {**os.environ, **hardware.environment()}
    command = [sys.executable, *arguments]
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)


def train(hardware: Simulator, body: str, **options: Any) -> Any:
    """Run a fake training under a tracker and return what the tracker reports."""
    body = body.replace("\n", "\n        ")
    return run(hardware, "-c", TRAINING.format(tests=str(TESTS), options=options, body=body))


def test_memory_belongs_to_the_processes_that_hold_it(hardware: Simulator) -> None:
    """Main, a child, and other processes; per device and in total, at one moment."""
    hardware.set_process(0, 1, 3000 * MIB)
    result = train(
        hardware,
        """
hardware.set_process(0, os.getpid(), 1000 * MIB)
hardware.set_process(1, os.getpid(), 500 * MIB, kind="graphics")
hardware.set_process(1, os.getpid(), 500 * MIB, kind="compute")
child = subprocess.Popen(["sleep", "60"])
time.sleep(0.5)
hardware.set_process(0, child.pid, 250 * MIB)
time.sleep(0.6)
child.kill(); child.wait()
hardware.remove_process(0, os.getpid())
time.sleep(0.4)
""",
    )

    assert (result["ram"]["main"], result["ram"]["descendents"], result["ram"]["combined"]) == (
        1500,
        250,
        1750,
    )
    assert (result["ram"]["system"], result["ram"]["system_capacity"]) == (4750, 2 * 40960)
    assert result["peaks"] == [1250 * MIB, 500 * MIB]
    assert result["notes"] == []


def test_utilization_is_that_of_the_devices_named(hardware: Simulator) -> None:
    """Mean and maximum; duplicates do not count twice."""
    body = "hardware.set_utilization(0, 80); hardware.set_utilization(1, 40); time.sleep(0.8)"
    both, named = train(hardware, body), train(hardware, body, gpu_uuids=["GPU-1", "GPU-1"])

    assert both["busy"]["max_sum_percent"] == 120
    assert both["busy"]["max_hardware_percent"] == 60
    assert named["busy"]["max_sum_percent"] == 40
    assert named["busy"]["mean_hardware_percent"] == pytest.approx(40)
    assert (both["counts"], named["counts"]) == ([2, 2], [2, 1])


def test_the_driver_is_never_loaded_into_the_users_process(hardware: Simulator) -> None:
    """Only the sampler loads it, because a driver does not survive a fork."""
    result = train(hardware, "time.sleep(0.3)")

    assert result["clients"]
    assert result["pid"] not in result["clients"]


def test_a_device_name_that_does_not_exist_is_refused(hardware: Simulator) -> None:
    """With a list of those that do."""
    code = "import gpu_tracker; gpu_tracker.Tracker(gpu_uuids={'GPU-7'})"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **hardware.environment()},
        stderr=subprocess.PIPE,
        text=True,
    )

    assert "UsageError: GPU UUID of GPU-7 is not valid. Available UUIDs are: GPU-0, GPU-1" in result.stderr


def test_an_unsupported_figure_of_one_device_costs_nothing_else(hardware: Simulator) -> None:
    """It is noted once, and everything else goes on."""
    hardware.fail("nvmlDeviceGetUtilizationRates", Code.NOT_SUPPORTED, device=0)
    hardware.set_utilization(1, 30)
    result = train(
        hardware,
        "for device in (0, 1): hardware.set_process(device, os.getpid(), 700 * MIB)\ntime.sleep(0.6)",
    )

    assert result["ram"]["main"] == 1400
    assert result["busy"]["max_sum_percent"] == 30
    assert result["notes"] == ["GPU 0 does not report utilization."]


def test_memory_that_the_driver_does_not_attribute_is_not_zero_bytes_of_ours(hardware: Simulator) -> None:
    """N/A for a process leaves the device's own figure."""
    result = train(
        hardware,
        "hardware.set_process(0, os.getpid(), None)\n"
        "hardware.set_extra_used_bytes(0, 100 * MIB)\ntime.sleep(0.5)",
    )

    assert (result["ram"]["main"], result["ram"]["system"]) == (0, 100)


def test_a_machine_without_the_driver_gives_the_reason() -> None:
    """One sentence, and nothing is loaded."""
    reason = nvml.why_absent()

    assert reason is None or "has no NVIDIA driver library" in reason


READ = """
import json, sys, time
from gpu_tracker.sources import NotAvailableError
from gpu_tracker.sources.gpu import nvml
from gpu_tracker.live.smi_names import GPU_FIELDS
EVERY_DETAIL = [field.name for field in GPU_FIELDS]
try:
    source = nvml.connect(time.monotonic)
except NotAvailableError as error:
    print(json.dumps(dict(absent=str(error))))
    sys.exit()
for _ in range({times}):
    readings = source.read({pids})
print(json.dumps(dict(
    gpus=[gpu._asdict() for gpu in source.gpus], devices=[device._asdict() for device in readings.devices],
    processes=[process._asdict() for process in readings.processes], notes=source.take_notes(),
    high_waters=[peak._asdict() for peak in readings.high_waters], details=source.read_details(EVERY_DETAIL),
    reasons=[[*key, text] for key, text in source.reasons.items()])))
source.close()
"""


def read(hardware: Simulator, times: int = 1, pids: str = "None") -> Any:
    """The devices by our source."""
    return run(hardware, "-c", READ.format(times=times, pids=pids))


def ask_gpustat(hardware: Simulator) -> Any:
    """The devices by gpustat."""
    return run(hardware, "-m", "gpustat", "--json")["gpus"]


def ask_nvitop(hardware: Simulator) -> Any:
    """Memory, utilization and processes by nvitop."""
    return run(
        hardware,
        "-c",
        "import json, time, nvitop\nrows = []\nfor device in nvitop.Device.all():\n"
        "    device.processes(); time.sleep(0.05)\n"
        "    people = device.processes()\n"
        "    for one in people.values(): one.update_gpu_status()\n"
        "    rows.append([device.memory_used(), device.gpu_utilization(),"
        "        sorted([p.pid, p.gpu_memory()] for p in people.values())])\n"
        "print(json.dumps(rows))",
    )


def ask_pynvml(hardware: Simulator) -> Any:
    """Memory (version 1), utilization and compute processes by nvidia-ml-py."""
    return run(
        hardware,
        "-c",
        "import json, pynvml as n\nn.nvmlInit()\nrows = []\nfor i in range(n.nvmlDeviceGetCount()):\n"
        "    h = n.nvmlDeviceGetHandleByIndex(i)\n"
        "    rows.append([n.nvmlDeviceGetMemoryInfo(h).used, n.nvmlDeviceGetUtilizationRates(h).gpu,"
        "        sorted([p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(h))])\n"
        "print(json.dumps(rows))",
    )


def ours_as_rows(result: Any) -> Any:
    """Our readings in the form of the others'."""
    return [
        [
            device["used_bytes"],
            device["utilization_percent"],
            sorted([p["pid"], p["used_bytes"]] for p in result["processes"] if p["uuid"] == device["uuid"]),
        ]
        for device in result["devices"]
    ]


def test_the_other_tools_agree_with_us(hardware: Simulator) -> None:
    """With the same driver they give the same figures."""
    pid = os.getpid()
    hardware.set_process(0, pid, 1234 * MIB)
    hardware.set_process(1, os.getppid(), 99 * MIB)
    hardware.set_utilization(0, 55)
    hardware.set_utilization(1, 5)
    ours, gpustat = read(hardware), ask_gpustat(hardware)

    expected = [[1234 * MIB, 55, [[pid, 1234 * MIB]]], [99 * MIB, 5, [[os.getppid(), 99 * MIB]]]]
    assert ours_as_rows(ours) == ask_nvitop(hardware) == ask_pynvml(hardware) == expected
    assert [(gpu["memory.used"], gpu["utilization.gpu"]) for gpu in gpustat] == [(1234, 55), (99, 5)]
    assert gpustat[0]["processes"][0]["gpu_memory_usage"] == 1234
    assert gpustat[0]["temperature.gpu"] == ours["devices"][0]["temperature_celsius"] == 40


def test_where_we_differ_from_the_others() -> None:
    """A process in both lists: nvitop shows the last, nvidia-ml-py two entries; we take the larger, once."""
    lists = [("compute", [(7, 100), (8, 2**64 - 1), (9, 2**64 - 1)]), ("graphics", [(7, 60), (8, 5)])]

    assert nvml_lists.merge_processes(lists) == {
        7: (100, "compute+graphics"),
        8: (5, "compute+graphics"),
        9: (None, "compute"),
    }


@pytest.mark.parametrize(
    ("generation", "driver"),
    [
        (Generation.V1, "418.226.00"),
        (Generation.V2, "470.57.02"),
        (Generation.V3_WIDE_ENTRIES, "535.54.03"),
        (Generation.V3, "550.54.15"),
    ],
)
def test_drivers_of_every_age(tmp_path: Path, generation: Generation, driver: str) -> None:
    """Entries of 16, 24 and, by mistake, 32 bytes; memory with and without a separate reserve."""
    with Simulator(
        build(tmp_path, generation), tmp_path / "state", driver_version=driver, generation=generation
    ) as hardware:
        hardware.add_device(memory_reserved_bytes=500 * MIB)
        for pid, size in ((os.getpid(), 1000), (os.getppid(), 200), (1, None)):
            hardware.set_process(0, pid, None if size is None else size * MIB)
        result = read(hardware)
        (device,) = result["devices"]
        has_v2 = generation >= Generation.V3_WIDE_ENTRIES

        assert {p["pid"]: p["used_bytes"] for p in result["processes"]} == {
            os.getpid(): 1000 * MIB,
            os.getppid(): 200 * MIB,
            1: None,
        }
        assert device["used_bytes"] == (1200 if has_v2 else 1700) * MIB
        assert device["reserved_bytes"] == (500 * MIB if has_v2 else None)
        assert any("includes the NVIDIA driver's own reserve" in note for note in result["notes"]) != has_v2
        assert result["gpus"][0]["driver"] == driver
        # nvidia-ml-py misreads the wide entries, and asks older drivers for a list that they do not have.
        if generation >= Generation.V3_WIDE_ENTRIES:
            agrees = ask_pynvml(hardware)[0][2] == ours_as_rows(result)[0][2]
            assert agrees == (generation is Generation.V3)


def test_mig_instances_are_devices(hardware: Simulator) -> None:
    """Memory per instance, and never the whole device's utilization; that has its temperature and power, but no job can use it."""
    hardware.add_device(uuid="GPU-split", mig_capable=True)
    hardware.set_temperature_celsius(2, 61)
    hardware.set_power_watts(2, 250.0)
    first = hardware.add_mig_instance(2, uuid="MIG-a", memory_total_bytes=4864 * MIB)
    hardware.add_mig_instance(2, uuid="MIG-b", memory_total_bytes=4864 * MIB)
    hardware.set_process(first, os.getpid(), 300 * MIB)
    result = read(hardware)
    instances = [gpu for gpu in result["gpus"] if gpu["parent_uuid"]]

    assert [gpu["uuid"] for gpu in result["gpus"]] == ["GPU-0", "GPU-1", "GPU-split", "MIG-a", "MIG-b"]
    assert [gpu["uuid"] for gpu in result["gpus"] if gpu["is_split"]] == ["GPU-split"]
    whole = result["devices"][2]
    assert (whole["temperature_celsius"], whole["power_watts"]) == (61, 250.0)
    assert (whole["utilization_percent"], whole["lists_processes"]) == (None, True)
    of_a_job = read(hardware, pids=f"frozenset([{os.getpid()}])")
    assert [device["uuid"] for device in of_a_job["devices"]] == ["GPU-0", "GPU-1", "MIG-a", "MIG-b"]
    assert {gpu["parent_uuid"] for gpu in instances} == {"GPU-split"}
    assert {gpu["memory_bytes"] for gpu in instances} == {4864 * MIB}
    # In the oldest drivers these were their UUIDs.
    assert [gpu["old_uuid"].startswith("MIG-GPU-split/") for gpu in instances] == [True, True]
    assert len({gpu["old_uuid"] for gpu in result["gpus"]}) == 3
    assert [device["used_bytes"] for device in result["devices"][3:]] == [300 * MIB, 0]
    assert [device["utilization_percent"] for device in result["devices"][3:]] == [None, None]
    assert [(p["uuid"], p["pid"], p["used_bytes"]) for p in result["processes"]] == [
        ("MIG-a", os.getpid(), 300 * MIB)
    ]


def test_instances_that_share_memory_count_once(hardware: Simulator) -> None:
    """Two for computing in one of the GPU, and one apart."""
    hardware.add_device(uuid="GPU-split", mig_capable=True)
    for uuid, gpu_instance in (("MIG-a", 1), ("MIG-b", 1), ("MIG-c", 2)):
        hardware.add_mig_instance(2, uuid=uuid, gpu_instance=gpu_instance)
    result = read(hardware)

    parts = {gpu["uuid"]: gpu["shares_memory_with"] for gpu in result["gpus"]}
    assert [parts[uuid] for uuid in ("MIG-a", "MIG-b", "MIG-c")] == [None, "MIG-a", None]


def test_memory_that_instances_share_is_one_capacity(hardware: Simulator) -> None:
    """And what is used of it counts once."""
    hardware.add_device(uuid="GPU-split", mig_capable=True)
    first, second, _ = (
        hardware.add_mig_instance(2, memory_total_bytes=4864 * MIB, gpu_instance=gpu_instance)
        for gpu_instance in (1, 1, 2)
    )
    for instance in (first, second):
        hardware.set_extra_used_bytes(instance, 300 * MIB)
    result = train(hardware, "wait_until_devices_are_read()")

    assert (result["ram"]["system_capacity"], result["ram"]["system"]) == (2 * 40960 + 2 * 4864, 300)


def test_limits_of_a_device_are_read_once(hardware: Simulator) -> None:
    """What it does not report is not known, and no note is made of it."""
    hardware.fail("nvmlDeviceGetTemperatureThreshold", Code.NOT_SUPPORTED, device=1)
    hardware.fail("nvmlDeviceGetEnforcedPowerLimit", Code.NO_PERMISSION, device=1)
    result = read(hardware, times=3)
    limits = [
        (gpu["power_limit_watts"], gpu["top_sm_clock_mhz"], gpu["slowdown_celsius"]) for gpu in result["gpus"]
    ]

    assert limits == [(300.0, 1410.0, 92.0), (None, 1410.0, None)]
    assert result["notes"] == []
    assert hardware.calls()["nvmlDeviceGetTemperatureThreshold"] == 2


@pytest.mark.serial
def test_a_whole_training_is_reported_exactly(hardware: Simulator) -> None:
    """It allocates, frees, forks workers, and ends: peaks, energy and utilization match what it did."""
    hardware.set_energy_joules(0, 1000)
    hardware.set_energy_joules(1, 0, integrates=True)
    result = train(
        hardware,
        """
truth, began = 0.0, time.monotonic()
for step, percent in enumerate([20, 100, 60, 20]):
    if step == 1:
        hardware.set_process(0, os.getpid(), 2000 * MIB, sm_percent=20)
        worker = subprocess.Popen(["sleep", "60"])
        hardware.set_process(1, worker.pid, 700 * MIB)
    if step == 3:
        hardware.set_process(0, os.getpid(), 100 * MIB, sm_percent=20)
        worker.kill(); worker.wait()
    hardware.set_utilization(0, percent)
    step_began = time.monotonic()
    for sample in range(8):  # a sample covers the past, not the future
        time.sleep(0.1)
        hardware.push_sample(0, "gpu_utilization", percent)
    truth += percent * (time.monotonic() - step_began)
    hardware.set_energy_joules(0, 1000 + 250 * (step + 1))
seconds = time.monotonic() - began
truth /= seconds
hardware.set_temperature_celsius(0, 71)
""",
    )

    assert result["peaks"] == [2000 * MIB, 700 * MIB]
    assert [used for _, used, _ in result["processes"]] == [2000 * MIB, 700 * MIB]
    assert result["ram"]["combined"] == 2700
    assert result["energy"] == [1000, pytest.approx(50 * result["seconds"], rel=0.1)]
    assert result["mean"][0] == pytest.approx(result["truth"], abs=1)
    assert result["most"][0] == 100
    assert result["expected"] == [True, True]
    assert result["notes"] == []


def test_processes_that_have_ended_are_in_the_drivers_accounting(hardware: Simulator) -> None:
    """If it is on, a peak between two readings is exact, even of a process that has ended."""
    hardware.set_accounting(0, True)
    hardware.set_process(0, 1, 5000 * MIB)
    result = train(
        hardware,
        """
time.sleep(0.4)
worker = subprocess.Popen(["sleep", "60"])
time.sleep(0.4)
hardware.set_process(0, worker.pid, 900 * MIB)
hardware.set_process(0, worker.pid, 10 * MIB)
time.sleep(1.5)
worker.kill(); worker.wait()
time.sleep(0.3)
""",
    )

    assert result["peaks"][0] == 900 * MIB
    assert (result["ram"]["descendents"], result["ram"]["main"]) == (900, 0)
    assert [entry[1:] for entry in result["processes"]] == [[900 * MIB, "exact"]]
    assert result["bases"][0] == "exact"
    assert hardware.calls().get("nvmlDeviceSetAccountingMode") is None


@pytest.mark.parametrize("trouble", ["an account fails", "all fail", "a process was never seen"])
def test_an_account_that_is_missing_makes_no_peak_exact(hardware: Simulator, trouble: str) -> None:
    """It may have been that of the job's largest process; what fails is said."""
    hardware.set_accounting(0, True)
    functions = {
        "an account fails": "nvmlDeviceGetAccountingStats",
        "all fail": "nvmlDeviceGetAccountingPids",
    }
    result = train(
        hardware,
        f"""
wait_until_devices_are_read()
hardware.set_process(0, os.getpid(), 900 * MIB)
time.sleep(1.5)
trouble = {functions.get(trouble)!r}
if trouble:
    hardware.fail(trouble, {Code.UNKNOWN:d})
else:
    worker = subprocess.Popen(["true"])
    hardware.add_account(0, worker.pid, 5000 * MIB, begun_seconds_ago=0)
    worker.wait()
time.sleep(0.3)
""",
    )

    assert result["bases"][0] == "sampled"
    said = [note for note in result["notes"] if "GPU 0 could not report its accounting of processes" in note]
    assert len(said) == (0 if trouble == "a process was never seen" else 1)


def test_an_account_without_a_size_is_none(hardware: Simulator) -> None:
    """The job's memory is that of the list, and everything else is read as ever."""
    hardware.set_accounting(0, True)
    result = train(
        hardware,
        """
wait_until_devices_are_read()
hardware.add_account(0, os.getpid(), None, begun_seconds_ago=0)
hardware.set_accounting(0, True)
hardware.set_process(1, os.getpid(), 900 * MIB)
time.sleep(1.5)
hardware.set_process(1, os.getpid(), 2000 * MIB)
time.sleep(0.5)
""",
    )

    assert result["peaks"] == [0, 2000 * MIB]
    assert result["bases"] == ["sampled", "sampled"]
    assert result["notes"] == []


def test_an_account_that_was_not_read_in_the_end_is_not_exact(hardware: Simulator) -> None:
    """It fails after two seconds: what the process holds later is known from its list only."""
    hardware.set_accounting(0, True)
    result = train(
        hardware,
        """
wait_until_devices_are_read()
hardware.set_process(0, os.getpid(), 900 * MIB)
hardware.set_process(0, os.getpid(), 10 * MIB)
time.sleep(1.5)
hardware.fail("nvmlDeviceGetAccountingStats", 999)
hardware.set_process(0, os.getpid(), 5000 * MIB)
hardware.set_process(0, os.getpid(), 10 * MIB)
time.sleep(0.5)
""",
    )

    assert result["peaks"][0] == 900 * MIB
    assert result["bases"][0] == "sampled"
    assert [entry[1:] for entry in result["processes"]] == [[900 * MIB, "sampled"]]


def test_the_account_of_an_earlier_process_is_not_the_jobs(hardware: Simulator) -> None:
    """It had the same ID; what the job holds itself counts, and so does a process that has ended."""
    hardware.set_accounting(0, True)
    hardware.set_accounting(1, True)
    result = train(
        hardware,
        """
wait_until_devices_are_read()
hardware.add_account(0, os.getpid(), 5000 * MIB, begun_seconds_ago=5000)
hardware.add_account(1, os.getpid(), 5000 * MIB, begun_seconds_ago=5000)
worker = subprocess.Popen(["sleep", "60"])
hardware.set_process(1, worker.pid, 900 * MIB)
time.sleep(0.5)
hardware.set_process(1, worker.pid, 10 * MIB)
worker.kill(); worker.wait()
time.sleep(1.5)
""",
    )

    assert result["peaks"] == [0, 900 * MIB]
    assert result["bases"] == ["sampled", "exact"]


@pytest.mark.parametrize(("device_percent", "percent_of_process"), [(50, 30.0), (30, 30.0), (10, 10.0)])
def test_utilization_of_processes_comes_from_the_drivers_ring(
    hardware: Simulator, device_percent: int, percent_of_process: float
) -> None:
    """Over the last second, in which a sample without the process counts too; without any sample it is idle.

    It is never more than that of the device: what is idle at an instant is named at none.
    """
    pid, now = os.getpid(), time.time_ns() // 1000 + 10**7
    hardware.set_utilization(0, device_percent)
    hardware.set_process(0, pid, MIB)
    for percent, named, at in ((90, pid, 0), (30, pid, 1), (80, 999999, 2), (255, pid, 3)):
        hardware.push_process_utilization_sample(0, named, percent, timestamp_us=now + 100_000 * at)
    with hardware.sampling(0.01, stamp_seconds=lambda at: at + 10):
        busy = read(hardware, times=3)
    hardware.remove_process(0, pid)
    hardware.set_process(1, pid, MIB)
    quiet = read(hardware, times=3)

    assert [(p["pid"], p["utilization_percent"]) for p in busy["processes"]] == [
        (pid, pytest.approx(percent_of_process))
    ]
    assert [p["utilization_percent"] for p in quiet["processes"]] == [0.0]


def test_a_busy_device_that_names_no_process_leaves_their_utilization_unknown(hardware: Simulator) -> None:
    """From the first reading on, as with MPS; that is not the same as idle."""
    hardware.set_utilization(0, 70)
    hardware.set_process(0, os.getpid(), MIB)
    with hardware.sampling(10):
        result = read(hardware, times=3)

    assert [p["utilization_percent"] for p in result["processes"]] == [None]


def test_a_job_that_the_driver_does_not_list(hardware: Simulator) -> None:
    """Its memory is then an estimate, with a reason; where there is no container, none is blamed."""
    hardware.set_pid_namespace(offset=4_000_000)
    result = train(
        hardware,
        """
import ctypes, mmap, tempfile
library = open(tempfile.mkdtemp() + "/libcuda.so.1", "w+b")
library.truncate(4096)
loaded = mmap.mmap(library.fileno(), 4096)
wait_until_devices_are_read()  # what is held beyond that has grown
hardware.set_process(0, os.getpid(), 800 * MIB)
time.sleep(2)
""",
    )

    assert result["ram"]["main"] == 0
    assert (result["peaks"][0], result["bases"][0]) == (800 * MIB, "estimate")
    (note,) = result["notes"]
    assert "the driver does not say what its processes hold (as with MPS, " in note
    assert note.endswith("since the start is an estimate.")
    assert "839 MB (estimate)" in " ".join(result["text"].split())


def test_a_driver_that_translates_process_ids_is_trusted(hardware: Simulator) -> None:
    """It leaves out processes of other namespaces."""
    hardware.set_pid_namespace(hides_foreign=True)
    hardware.set_process(0, 5_000_000, 300 * MIB, foreign=True)
    result = train(hardware, "hardware.set_process(0, os.getpid(), 800 * MIB); time.sleep(0.5)")

    assert (result["ram"]["main"], result["bases"][0], result["notes"]) == (800, "sampled", [])


def test_a_device_without_memory_of_its_own(hardware: Simulator) -> None:
    """GB10, Jetson, GH200: the driver answers N/A, but lists processes."""
    for function in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2"):
        hardware.fail(function, Code.NOT_SUPPORTED, device=0)
    hardware.set_process(0, os.getpid(), 300 * MIB)
    result = read(hardware)

    assert (result["gpus"][0]["memory_bytes"], result["devices"][0]["used_bytes"]) == (None, None)
    assert result["processes"][0]["used_bytes"] == 300 * MIB
    assert result["devices"][1]["used_bytes"] == 0
    assert "GPU 0 reports no memory of its own, as a device that uses RAM." in result["notes"]


def test_a_denied_device_is_noted_and_the_others_go_on(hardware: Simulator) -> None:
    """The driver counts devices that may not be opened."""
    hardware.deny(0)
    result = read(hardware)

    assert [gpu["uuid"] for gpu in result["gpus"]] == ["GPU-1"]
    assert result["notes"] == ["GPU 0 requires administrator rights."]


def test_a_lost_device_ends_and_the_others_go_on(hardware: Simulator) -> None:
    """Its figures until then are kept."""
    result = train(
        hardware,
        """
for device in (0, 1): hardware.set_process(device, os.getpid(), 600 * MIB)
time.sleep(0.5)
hardware.lose(0)
time.sleep(0.5)
hardware.set_process(1, os.getpid(), 900 * MIB)
time.sleep(0.5)
""",
    )

    assert result["peaks"] == [600 * MIB, 900 * MIB]
    lost, unread = result["notes"]
    assert lost == "GPU 0 was lost; its figures are missing until it returns."
    assert unread.startswith("NVIDIA GPU 0 could not be read for ")


def test_temporary_trouble_is_a_gap(hardware: Simulator) -> None:
    """Two unknown errors: noted once, retried later, nothing else is affected."""
    hardware.fail("nvmlDeviceGetMemoryInfo_v2", Code.UNKNOWN, device=0, times=2)
    result = train(hardware, "hardware.set_process(0, os.getpid(), 400 * MIB)\ntime.sleep(3.5)")

    assert result["ram"]["system"] == 400
    assert result["ram"]["main"] == 400
    assert result["notes"] == ["GPU 0 could not be read for a while: Unknown Error."]


def test_a_reserve_that_is_not_reported_for_a_while_is_not_taken_for_memory_in_use(
    hardware: Simulator,
) -> None:
    """A driver that has reported it apart has not become an old one."""
    hardware.fail("nvmlDeviceGetMemoryInfo_v2", Code.NOT_SUPPORTED, device=0, after=3, times=2)
    result = train(hardware, "hardware.set_process(0, os.getpid(), 400 * MIB)\ntime.sleep(3.5)")

    assert result["ram"]["system"] == 400
    assert result["notes"] == ["GPU 0 did not report memory used for a while."]


def test_throttling_is_explained(hardware: Simulator) -> None:
    """By heat, for the whole time."""
    hardware.set_throttle_reasons(0, 0x20 | 0x40 | 0x1)
    result = train(hardware, "hardware.set_process(0, os.getpid(), MIB); time.sleep(1)")

    assert result["limited"][0] == [["heat", 1.0]]
    assert "throttled by heat for 100 % of the time" in result["text"]


def test_unsupported_figures_are_one_sentence(hardware: Simulator) -> None:
    """Not one per figure."""
    for name in ("TotalEnergyConsumption", "PowerUsage", "ClockInfo", "Temperature"):
        hardware.fail(f"nvmlDeviceGet{name}", Code.NOT_SUPPORTED, device=0)
    result = read(hardware, times=3)

    assert result["notes"] == ["GPU 0 does not report power, temperature, SM clock, memory clock and energy."]
    assert {figure for _, figure, _ in result["reasons"]} >= {"power_watts", "energy_joules"}


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        (Code.VERSION_MISMATCH, "reboot"),
        (Code.DRIVER_NOT_LOADED, "modprobe"),
        (Code.NO_PERMISSION, "/dev/nvidia"),
        (Code.UNKNOWN, "restart"),
        (Code.INVALID_ARGUMENT, "install the driver again or reboot"),
        (Code.LIBRARY_NOT_FOUND, "install the driver again or reboot"),
    ],
)
def test_a_driver_that_cannot_be_opened_has_a_reason_and_a_fix(
    hardware: Simulator, code: Code, fix: str
) -> None:
    """In one message."""
    hardware.fail("nvmlInitWithFlags", code)
    result = read(hardware)

    assert result["absent"].startswith("No NVIDIA GPU was measured: the driver reports: ")
    assert fix in result["absent"]
    assert ".." not in result["absent"]


def test_a_driver_older_than_the_binding_is_opened_all_the_same(hardware: Simulator) -> None:
    """By the calls that it has; if those fail, too, that is said."""
    hardware.fail("nvmlInitWithFlags", Code.FUNCTION_NOT_FOUND)
    hardware.fail("nvmlDeviceGetPciInfo_v3", Code.FUNCTION_NOT_FOUND)
    assert [gpu["bus_id"] for gpu in read(hardware)["gpus"]] == ["0000:01:00.0", "0000:02:00.0"]
    hardware.fail("nvmlDeviceGetPciInfo_v2", Code.NO_PERMISSION)
    assert [gpu["bus_id"] for gpu in read(hardware)["gpus"]] == ["", ""]
    hardware.fail("nvmlInit_v2", Code.DRIVER_NOT_LOADED)
    assert "modprobe" in read(hardware)["absent"]


@pytest.mark.serial
def test_a_slow_driver_delays_nothing_else(hardware: Simulator) -> None:
    """Each of its calls takes 300 ms: processes are sampled as often as without it."""
    hardware.delay("nvmlDeviceGet*", 300)
    body = "import zlib\nend = time.monotonic() + 2\nwhile time.monotonic() < end: zlib.crc32(bytes(10**6))"
    slow = train(hardware, body)
    hardware.clear_rules()
    quick = train(hardware, body)

    assert slow["readings"] > 0.8 * quick["readings"]
    assert slow["cpu"] == pytest.approx(quick["cpu"], rel=0.2)


@pytest.mark.parametrize(
    ("version", "is_wide"),
    [("535.43.02", True), ("535.86.10", True), ("535.104.05", False), ("550.54", False), ("?", False)],
)
def test_the_drivers_with_the_wide_entries(version: str, is_wide: bool) -> None:
    """By their version."""
    assert nvml_lists.is_wide_entry_driver(version) == is_wide

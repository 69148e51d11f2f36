"""NVIDIA devices, through the real nvidia-ml-py, on a simulated driver library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tracker.sources.gpu import nvml
from nvml_simulator import Code, Generation, Simulator, build

MIB = 2**20
TESTS = Path(__file__).parents[2]

# A fake training process: it holds memory on the simulated devices, does as it is told, and tells the truth.
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
        peaks=[gpu.job_bytes.combined for gpu in gpus], notes=tracker.notes, clients=hardware.clients(), pid=os.getpid(),
        bases=[gpu.basis for gpu in gpus], energy=[gpu.energy_joules for gpu in gpus],
        mean=[gpu.mean_percent for gpu in gpus], most=[gpu.max_percent for gpu in gpus],
        by_job=[gpu.job_mean_percent for gpu in gpus], limited=[gpu.throttled for gpu in gpus],
        hottest=[gpu.max_celsius for gpu in gpus], expected=[gpu.is_expected for gpu in gpus],
        processes=[[p.pid, p.used_bytes, p.basis] for p in tracker.report.summary.gpu_processes],
        truth=globals().get("truth"), looks=tracker.report.summary.readings, text=render(tracker.report, "text"))))
"""


@pytest.fixture
def hardware(library: Path, tmp_path: Path) -> Iterator[Simulator]:
    """Two devices of 40 GiB."""
    with Simulator(library, tmp_path / "state") as simulator:
        for number in range(2):
            simulator.add_device(uuid=f"GPU-{number}", memory_reserved_bytes=0)
        yield simulator


def train(hardware: Simulator, body: str, **options: Any) -> dict[str, Any]:
    """Run a fake training under a tracker and return what the tracker said."""
    code = TRAINING.format(tests=str(TESTS), options=options, body=body.replace("\n", "\n        "))
    output = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **hardware.environment()},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    result: dict[str, Any] = json.loads(output)
    return result


def test_memory_belongs_to_the_processes_that_hold_it(hardware: Simulator) -> None:
    """Main, a child, and strangers; per device and together, at one moment."""
    hardware.set_process(0, 1, 3000 * MIB)
    told = train(
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

    assert (told["ram"]["main"], told["ram"]["descendents"], told["ram"]["combined"]) == (1500, 250, 1750)
    assert (told["ram"]["system"], told["ram"]["system_capacity"]) == (4750, 2 * 40960)
    assert told["peaks"] == [1250 * MIB, 500 * MIB]
    assert told["notes"] == []


def test_utilization_is_that_of_the_devices_named(hardware: Simulator) -> None:
    """The mean and the most; duplicates do not count twice."""
    body = "hardware.set_utilization(0, 80); hardware.set_utilization(1, 40); time.sleep(0.8)"
    both, named = train(hardware, body), train(hardware, body, gpu_uuids=["GPU-1", "GPU-1"])

    assert both["busy"]["max_sum_percent"] == 120
    assert both["busy"]["max_hardware_percent"] == 60
    assert named["busy"]["max_sum_percent"] == 40
    assert named["busy"]["mean_hardware_percent"] == pytest.approx(40)
    assert (both["counts"], named["counts"]) == ([2, 2], [2, 1])


def test_the_driver_is_never_loaded_into_the_users_process(hardware: Simulator) -> None:
    """Only the sampler talks to it: a driver does not survive a fork."""
    told = train(hardware, "time.sleep(0.3)")

    assert told["clients"]
    assert told["pid"] not in told["clients"]


def test_a_device_name_that_does_not_exist_is_refused(hardware: Simulator) -> None:
    """With those that do."""
    code = "import gpu_tracker; gpu_tracker.Tracker(gpu_uuids={'GPU-7'})"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **hardware.environment()},
        stderr=subprocess.PIPE,
        text=True,
    )

    assert "ValueError: GPU UUID of GPU-7 is not valid. Available UUIDs are: GPU-0, GPU-1" in result.stderr


def test_what_one_device_cannot_say_costs_nothing_else(hardware: Simulator) -> None:
    """Not supported on one device: said once, and everything else goes on."""
    hardware.fail("nvmlDeviceGetUtilizationRates", Code.NOT_SUPPORTED, device=0)
    hardware.set_utilization(1, 30)
    told = train(
        hardware,
        "for device in (0, 1): hardware.set_process(device, os.getpid(), 700 * MIB)\ntime.sleep(0.6)",
    )

    assert told["ram"]["main"] == 1400
    assert told["busy"]["max_sum_percent"] == 30
    assert told["notes"] == ["GPU 0 does not tell its utilization."]


def test_memory_that_the_driver_does_not_attribute_is_not_zero_bytes_of_ours(hardware: Simulator) -> None:
    """N/A for a process leaves the device's own figure."""
    told = train(
        hardware,
        "hardware.set_process(0, os.getpid(), None)\n"
        "hardware.set_memory(0, extra_used_bytes=100 * MIB)\ntime.sleep(0.5)",
    )

    assert (told["ram"]["main"], told["ram"]["system"]) == (0, 100)


def test_a_machine_without_the_driver_says_so() -> None:
    """One sentence, and nothing is loaded."""
    reason = nvml.why_absent()

    assert reason is None or "there is no NVIDIA driver library" in reason


def clients_table(hardware: Simulator, code: str) -> Any:
    """What another tool says of the same devices."""
    output = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **hardware.environment()},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    return json.loads(output)


LOOK = """
import json, sys, time
from gpu_tracker.sources import NotAvailableError
from gpu_tracker.sources.gpu import nvml
try:
    source = nvml.connect(time.monotonic)
except NotAvailableError as error:
    print(json.dumps(dict(absent=str(error))))
    sys.exit()
for _ in range({times}):
    look = source.read({pids})
print(json.dumps(dict(
    gpus=[gpu._asdict() for gpu in source.gpus], devices=[device._asdict() for device in look.devices],
    processes=[process._asdict() for process in look.processes], notes=source.take_notes(),
    high_waters=[mark._asdict() for mark in look.high_waters], details=source.read_details(),
    reasons=[[*key, text] for key, text in source.reasons.items()])))
source.close()
"""


def look(hardware: Simulator, times: int = 1, pids: str = "None") -> Any:
    """What our source says of the devices."""
    return clients_table(hardware, LOOK.format(times=times, pids=pids))


def ask_gpustat(hardware: Simulator) -> Any:
    """What gpustat says of them."""
    return json.loads(
        subprocess.run(
            [sys.executable, "-m", "gpustat", "--json"],
            env={**os.environ, **hardware.environment()},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    )["gpus"]


def ask_nvitop(hardware: Simulator) -> Any:
    """What nvitop says: memory, utilization, processes with their memory and SM utilization."""
    return clients_table(
        hardware,
        "import json, time, nvitop\nrows = []\nfor device in nvitop.Device.all():\n"
        "    device.processes(); time.sleep(0.05)\n"
        "    people = device.processes()\n"
        "    for one in people.values(): one.update_gpu_status()\n"
        "    rows.append([device.memory_used(), device.gpu_utilization(),"
        "        sorted([p.pid, p.gpu_memory()] for p in people.values())])\n"
        "print(json.dumps(rows))",
    )


def ask_pynvml(hardware: Simulator) -> Any:
    """What nvidia-ml-py says by itself: memory of version 1, utilization, compute processes."""
    return clients_table(
        hardware,
        "import json, pynvml as n\nn.nvmlInit()\nrows = []\nfor i in range(n.nvmlDeviceGetCount()):\n"
        "    h = n.nvmlDeviceGetHandleByIndex(i)\n"
        "    rows.append([n.nvmlDeviceGetMemoryInfo(h).used, n.nvmlDeviceGetUtilizationRates(h).gpu,"
        "        sorted([p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(h))])\n"
        "print(json.dumps(rows))",
    )


def ours_as_rows(told: Any) -> Any:
    """Our look in the shape of the others'."""
    return [
        [
            device["used_bytes"],
            device["utilization_percent"],
            sorted([p["pid"], p["used_bytes"]] for p in told["processes"] if p["uuid"] == device["uuid"]),
        ]
        for device in told["devices"]
    ]


def test_the_other_tools_agree_with_us(hardware: Simulator) -> None:
    """The same driver, the same figures."""
    pid = os.getpid()
    hardware.set_process(0, pid, 1234 * MIB)
    hardware.set_process(1, os.getppid(), 99 * MIB)
    hardware.set_utilization(0, 55)
    hardware.set_utilization(1, 5)
    ours, gpustat = look(hardware), ask_gpustat(hardware)

    expected = [[1234 * MIB, 55, [[pid, 1234 * MIB]]], [99 * MIB, 5, [[os.getppid(), 99 * MIB]]]]
    assert ours_as_rows(ours) == ask_nvitop(hardware) == ask_pynvml(hardware) == expected
    assert [(gpu["memory.used"], gpu["utilization.gpu"]) for gpu in gpustat] == [(1234, 55), (99, 5)]
    assert gpustat[0]["processes"][0]["gpu_memory_usage"] == 1234
    assert gpustat[0]["temperature.gpu"] == ours["devices"][0]["temperature_celsius"] == 40


def test_where_we_differ_from_the_others() -> None:
    """In both lists at once: nvitop shows the last, nvidia-ml-py two entries; we take the larger, once.

    Merging is ours alone, so it is tested on values.
    """
    lists = [("compute", [(7, 100), (8, 2**64 - 1), (9, 2**64 - 1)]), ("graphics", [(7, 60), (8, 5)])]

    assert nvml.merge_processes(lists) == {
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
    """Entries of 16, 24 and, by mistake, 32 bytes; memory with and without the reserve told apart."""
    with Simulator(
        build(tmp_path, generation), tmp_path / "state", driver_version=driver, generation=generation
    ) as hardware:
        hardware.add_device(memory_reserved_bytes=500 * MIB)
        for pid, size in ((os.getpid(), 1000), (os.getppid(), 200), (1, None)):
            hardware.set_process(0, pid, None if size is None else size * MIB)
        told = look(hardware)
        (device,) = told["devices"]
        has_v2 = generation >= Generation.V3_WIDE_ENTRIES

        assert {p["pid"]: p["used_bytes"] for p in told["processes"]} == {
            os.getpid(): 1000 * MIB,
            os.getppid(): 200 * MIB,
            1: None,
        }
        assert device["used_bytes"] == (1200 if has_v2 else 1700) * MIB
        assert device["reserved_bytes"] == (500 * MIB if has_v2 else None)
        assert any("reserves for itself" in note for note in told["notes"]) != has_v2
        assert told["gpus"][0]["driver"] == driver
        # nvidia-ml-py takes the wide entries for usual ones, and asks older drivers for a list they do not have.
        if generation >= Generation.V3_WIDE_ENTRIES:
            agrees = ask_pynvml(hardware)[0][2] == ours_as_rows(told)[0][2]
            assert agrees == (generation is Generation.V3)


def test_instances_of_a_split_device_are_devices(hardware: Simulator) -> None:
    """Memory per instance, and never the whole device's utilization."""
    hardware.add_device(uuid="GPU-split", mig_capable=True)
    first = hardware.add_mig_instance(2, uuid="MIG-a", memory_total_bytes=4864 * MIB)
    hardware.add_mig_instance(2, uuid="MIG-b", memory_total_bytes=4864 * MIB)
    hardware.set_process(first, os.getpid(), 300 * MIB)
    told = look(hardware)
    instances = [gpu for gpu in told["gpus"] if gpu["parent_uuid"]]

    assert [gpu["uuid"] for gpu in told["gpus"]] == ["GPU-0", "GPU-1", "MIG-a", "MIG-b"]
    assert {gpu["parent_uuid"] for gpu in instances} == {"GPU-split"}
    assert {gpu["memory_bytes"] for gpu in instances} == {4864 * MIB}
    assert [device["used_bytes"] for device in told["devices"][2:]] == [300 * MIB, 0]
    assert [device["utilization_percent"] for device in told["devices"][2:]] == [None, None]
    assert [(p["uuid"], p["pid"], p["used_bytes"]) for p in told["processes"]] == [
        ("MIG-a", os.getpid(), 300 * MIB)
    ]


@pytest.mark.serial
def test_a_whole_training_is_told_exactly(hardware: Simulator) -> None:
    """It allocates, frees, forks workers, and ends: peaks, energy and utilization against what it did."""
    hardware.set_energy_joules(0, 1000)
    hardware.set_energy_joules(1, 0)
    told = train(
        hardware,
        """
truth, began = 0.0, time.monotonic()
for step, percent in enumerate([20, 100, 60, 20]):
    if step == 1:
        hardware.set_process(0, os.getpid(), 2000 * MIB)
        worker = subprocess.Popen(["sleep", "60"])
        hardware.set_process(1, worker.pid, 700 * MIB)
    if step == 3:
        hardware.set_process(0, os.getpid(), 100 * MIB)
        worker.kill(); worker.wait()
    hardware.set_utilization(0, percent)
    step_began = time.monotonic()
    for sample in range(8):  # a sample tells what has been, not what will be
        time.sleep(0.1)
        hardware.push_sample(0, "gpu_utilization", percent)
    truth += percent * (time.monotonic() - step_began)
    hardware.set_energy_joules(0, 1000 + 250 * (step + 1))
truth /= time.monotonic() - began
hardware.set_temperature_celsius(0, 71)
""",
    )

    assert told["peaks"] == [2000 * MIB, 700 * MIB]
    assert [used for _, used, _ in told["processes"]] == [2000 * MIB, 700 * MIB]
    assert told["ram"]["combined"] == 2700
    assert told["energy"] == [1000, 0]
    assert told["mean"][0] == pytest.approx(told["truth"], abs=1)
    assert told["most"][0] == 100
    assert told["expected"] == [True, True]
    assert told["notes"] == []


def test_processes_that_have_ended_are_in_the_drivers_books(hardware: Simulator) -> None:
    """Where accounting is on, a peak that no look has met is exact, also of a process that has gone."""
    hardware.set_accounting(0, True)
    hardware.set_process(0, 1, 5000 * MIB)
    told = train(
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

    assert told["peaks"][0] == 900 * MIB
    assert (told["ram"]["descendents"], told["ram"]["main"]) == (900, 0)
    assert [entry[1:] for entry in told["processes"]] == [[900 * MIB, "exact"]]
    assert told["bases"][0] == "exact"
    assert hardware.calls().get("nvmlDeviceSetAccountingMode") is None


def test_what_each_process_does_comes_from_the_drivers_ring(hardware: Simulator) -> None:
    """Old entries, impossible figures and strangers do not count; silence is zero percent."""
    pid, now = os.getpid(), time.time_ns() // 1000 + 10**7
    hardware.set_process(0, pid, MIB)
    hardware.push_process_utilization_sample(0, pid, 90, timestamp_us=now)
    code = LOOK.format(times=1, pids="None").replace(
        "for _ in range(1):",
        "source.read(None)\n"
        f"import sys; sys.path.insert(0, {str(TESTS)!r})\nfrom nvml_simulator import Simulator\n"
        "with Simulator.open() as hardware:\n"
        f"    for pid, percent, at in (({pid}, 30, 1), ({pid}, 50, 2), (999999, 80, 3)):\n"
        f"        hardware.push_process_utilization_sample(0, pid, percent, timestamp_us={now} + at)\n"
        "for _ in range(1):",
    )
    told = clients_table(hardware, code)
    quiet = look(hardware, times=3)

    assert [(p["pid"], p["utilization_percent"]) for p in told["processes"]] == [(pid, 50.0)]
    assert [p["utilization_percent"] for p in quiet["processes"]] == [0.0]


def test_process_ids_of_the_host_are_not_taken_for_ours(hardware: Simulator) -> None:
    """Inside a container an older driver tells the host's; the job's memory is then an estimate, and says why."""
    hardware.set_pid_namespace(offset=4_000_000)
    told = train(
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

    assert told["ram"]["main"] == 0
    assert (told["peaks"][0], told["bases"][0]) == (800 * MIB, "estimate")
    (note,) = told["notes"]
    assert "docker run --pid=host" in note
    assert note.endswith("is an estimate of it.")
    assert "839 MB (estimate) of" in told["text"]


def test_a_driver_that_translates_process_ids_is_believed(hardware: Simulator) -> None:
    """Strangers of other namespaces are left out by the driver, ours are ours."""
    hardware.set_pid_namespace(hides_foreign=True)
    hardware.set_process(0, 5_000_000, 300 * MIB, foreign=True)
    told = train(hardware, "hardware.set_process(0, os.getpid(), 800 * MIB); time.sleep(0.5)")

    assert (told["ram"]["main"], told["bases"][0], told["notes"]) == (800, "sampled", [])


def test_a_device_without_memory_of_its_own(hardware: Simulator) -> None:
    """GB10, Jetson, GH200: the driver answers N/A, the processes are told all the same."""
    for function in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2"):
        hardware.fail(function, Code.NOT_SUPPORTED, device=0)
    hardware.set_process(0, os.getpid(), 300 * MIB)
    told = look(hardware)

    assert (told["gpus"][0]["memory_bytes"], told["devices"][0]["used_bytes"]) == (None, None)
    assert told["processes"][0]["used_bytes"] == 300 * MIB
    assert told["devices"][1]["used_bytes"] == 0
    assert any("part of the RAM" in note for note in told["notes"])


def test_a_denied_device_is_named_with_the_cure_and_the_others_go_on(hardware: Simulator) -> None:
    """Devices that may not be opened are counted by the driver all the same."""
    hardware.deny(0)
    told = look(hardware)

    assert [gpu["uuid"] for gpu in told["gpus"]] == ["GPU-1"]
    assert told["notes"] == ["GPU 0 may not be opened by this user: ask an administrator for access."]


def test_a_lost_device_ends_and_the_others_go_on(hardware: Simulator) -> None:
    """Its figures are those up to then."""
    told = train(
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

    assert told["peaks"] == [600 * MIB, 900 * MIB]
    assert told["notes"] == ["GPU 0 was lost; its figures are those up to then."]


def test_trouble_is_a_gap_and_passes(hardware: Simulator) -> None:
    """An unknown error twice, then all is well: said once, asked again later, nothing else suffers."""
    hardware.fail("nvmlDeviceGetMemoryInfo_v2", Code.UNKNOWN, device=0, times=2)
    told = train(hardware, "hardware.set_process(0, os.getpid(), 400 * MIB)\ntime.sleep(3.5)")

    assert told["ram"]["system"] == 400
    assert told["ram"]["main"] == 400
    assert told["notes"] == ["GPU 0 could not be read for a while: Unknown Error."]


def test_clocks_that_are_held_down_are_explained(hardware: Simulator) -> None:
    """By heat for the whole time: that is why it was slow."""
    hardware.set_throttle_reasons(0, 0x20 | 0x40 | 0x1)
    told = train(hardware, "hardware.set_process(0, os.getpid(), MIB); time.sleep(1)")

    assert told["limited"][0] == [["heat", 1.0]]
    assert "clocks held down by heat for 100 % of the time" in told["text"]


def test_what_a_device_cannot_tell_is_one_sentence(hardware: Simulator) -> None:
    """Not one for every figure."""
    for name in ("TotalEnergyConsumption", "PowerUsage", "ClockInfo", "Temperature"):
        hardware.fail(f"nvmlDeviceGet{name}", Code.NOT_SUPPORTED, device=0)
    told = look(hardware, times=3)

    assert told["notes"] == ["GPU 0 does not tell its power, temperature, SM clock, memory clock and energy."]
    assert {figure for _, figure, _ in told["reasons"]} >= {"power_watts", "energy_joules"}


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        (Code.VERSION_MISMATCH, "reboot"),
        (Code.DRIVER_NOT_LOADED, "modprobe"),
        (Code.NO_PERMISSION, "/dev/nvidia"),
        (Code.UNKNOWN, "restart"),
    ],
)
def test_a_driver_that_cannot_be_opened_says_why_and_what_helps(
    hardware: Simulator, code: Code, cure: str
) -> None:
    """One sentence, and the cure."""
    hardware.fail("nvmlInitWithFlags", code)
    told = look(hardware)

    assert told["absent"].startswith("No NVIDIA GPU was measured: the driver says: ")
    assert cure in told["absent"]
    assert ".." not in told["absent"]


@pytest.mark.serial
def test_a_slow_driver_delays_nobody(hardware: Simulator) -> None:
    """Each of its calls takes 300 ms: processes are looked at as often as without it."""
    hardware.delay("nvmlDeviceGet*", 300)
    body = "import zlib\nend = time.monotonic() + 2\nwhile time.monotonic() < end: zlib.crc32(bytes(10**6))"
    slow = train(hardware, body)
    hardware.clear_rules()
    quick = train(hardware, body)

    assert slow["looks"] > 0.8 * quick["looks"]
    assert slow["cpu"] == pytest.approx(quick["cpu"], rel=0.2)


@pytest.mark.parametrize(
    ("version", "is_wide"),
    [("535.43.02", True), ("535.86.10", True), ("535.104.05", False), ("550.54", False), ("?", False)],
)
def test_the_drivers_with_the_wide_entries(version: str, is_wide: bool) -> None:
    """Known by their numbers."""
    assert nvml.is_wide_entry_driver(version) == is_wide


PERCENTS = st.integers(0, 300)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 100), PERCENTS)), st.integers(0, 100))
def test_means_by_process_are_percentages(samples: list[tuple[int, int, int]], since: int) -> None:
    """Whatever is in the ring."""
    means, newest = nvml.mean_by_pid(samples, since)

    assert all(mean is None or 0 <= mean <= 100 for mean in means.values())
    assert newest == max([since, *(at for _, at, _ in samples)])
    assert {pid for pid, mean in means.items() if mean is not None} == {
        pid for pid, at, percent in samples if at > since and percent <= 100
    }

"""NVIDIA devices, through the real nvidia-ml-py, on a simulated driver library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_tracker.sources import nvml
from nvml_simulator import Code, Simulator, build

MIB = 2**20
TESTS = Path(__file__).parent.parent

# A fake training process: it holds memory on the simulated devices, does as it is told, and tells the truth.
TRAINING = """
import json, os, subprocess, sys, time
sys.path.insert(0, {tests!r})
from nvml_simulator import Simulator
import gpu_tracker as gput
MIB = 2**20
with Simulator.open() as hardware:
    tracker = gput.Tracker(sleep_time=0.1, gpu_ram_unit="mebibytes", **{options!r})
    with tracker:
        {body}
    usage = tracker.resource_usage
    gpus = tracker.report.summary.gpus
    print(json.dumps(dict(
        ram=vars(usage.max_gpu_ram), busy=vars(usage.gpu_utilization.gpu_percentages),
        counts=[usage.gpu_utilization.system_gpu_count, usage.gpu_utilization.n_expected_gpus],
        cpu=usage.cpu_utilization.main.mean_sum_percent, rss=usage.max_ram.main.total_rss,
        peaks=[gpu.combined_bytes for gpu in gpus], notes=tracker.notes, clients=hardware.clients(), pid=os.getpid())))
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulated driver, compiled once."""
    return build(tmp_path_factory.mktemp("nvml"))


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
    told = train(hardware, "hardware.set_process(0, os.getpid(), 700 * MIB); time.sleep(0.6)")

    assert told["ram"]["main"] == 700
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


def test_gpustat_and_nvitop_agree_with_us(hardware: Simulator) -> None:
    """The same driver, the same figures."""
    pid = os.getpid()
    hardware.set_process(0, pid, 1234 * MIB)
    hardware.set_utilization(0, 55)
    ours = clients_table(
        hardware,
        "import json, time; from gpu_tracker.sources import nvml; source = nvml.connect(time.monotonic);"
        "look = source.read(None); print(json.dumps([look.devices[0].used_bytes,"
        "look.devices[0].utilization_percent, [[p.pid, p.used_bytes] for p in look.processes]]))",
    )
    gpustat = json.loads(
        subprocess.run(
            [sys.executable, "-m", "gpustat", "--json"],
            env={**os.environ, **hardware.environment()},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    )["gpus"][0]
    nvitop = clients_table(
        hardware,
        "import json, nvitop; device = nvitop.Device.all()[0]; print(json.dumps([device.memory_used(),"
        "device.gpu_utilization(), [[p.pid, p.gpu_memory()] for p in device.processes().values()]]))",
    )

    assert ours == nvitop == [1234 * MIB, 55, [[pid, 1234 * MIB]]]
    assert (gpustat["memory.used"], gpustat["utilization.gpu"]) == (1234, 55)
    assert gpustat["processes"][0]["gpu_memory_usage"] == 1234

"""`gpu_tracker.gpus()`: the devices as they are now, for scripts."""

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

import gpu_tracker
from nvml_simulator import Code, Simulator

MIB = 2**20

SCRIPT = """
import json, os, sys, time
import gpu_tracker as gput
{body}
foreign = [name for name, module in sys.modules.items()
    if 'site-packages' in (getattr(module, '__file__', None) or '') and not name.startswith('gpu_tracker')]
foreign = [name for name in foreign if not name.startswith(('_distutils', 'coverage', 'a1_', '__editable__', '_virtualenv'))]
print(json.dumps(dict(told=told, foreign=foreign, threads=len(os.listdir('/proc/self/task')),
    fds=len(os.listdir('/proc/self/fd')))))
"""


@pytest.fixture
def hardware(library: Path, tmp_path: Path) -> Iterator[Simulator]:
    """One device of 40 GiB."""
    with Simulator(library, tmp_path / "state") as simulator:
        simulator.add_device(uuid="GPU-0", name="NVIDIA A100", power_watts=61.0)
        yield simulator


def run(hardware: Simulator, body: str, **environment: str) -> tuple[dict[str, Any], str]:
    """What a script told, and what it said on standard error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT.format(body=body)],
        env={**os.environ, **hardware.environment(), **environment},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_device_tells_what_it_is_and_does(hardware: Simulator) -> None:
    """Bytes, percent, watts and degrees, with who is on it."""
    body = (
        "(gpu,) = gput.gpus()\n"
        "public = lambda value: {name: getattr(value, name) for name in dir(type(value))\n"
        "    if isinstance(getattr(type(value), name), property)}\n"
        "told = {**public(gpu), 'processes': [*map(public, gpu.processes)], 'reasons': gpu.reasons}"
    )
    with subprocess.Popen(["sleep", "60"]) as occupant:
        hardware.set_process(0, occupant.pid, 1234 * MIB, sm_percent=33)
        hardware.set_utilization(0, 55, 12)
        told, said = run(hardware, body)
        occupant.kill()
    gpu = told["told"]
    (process,) = gpu.pop("processes")

    assert gpu == {
        "index": 0,
        "label": "0",
        "uuid": "GPU-0",
        "name": "NVIDIA A100",
        "vendor": "nvidia",
        "memory_total_bytes": 40960 * MIB,
        "memory_used_bytes": 1234 * MIB,
        "memory_free_bytes": (40960 - 512 - 1234) * MIB,
        "utilization_percent": 55.0,
        "memory_utilization_percent": 12.0,
        "temperature_celsius": 40,
        "power_watts": 61.0,
        "sm_clock_mhz": 1410,
        "sm_percent": None,
        "memory_clock_mhz": 1215,
        "reasons": {},
    }
    assert (process["pid"], process["command"]) == (occupant.pid, "sleep 60")
    assert (process["used_bytes"], process["utilization_percent"]) == (1234 * MIB, 33.0)
    assert said == ""


def test_a_device_whose_driver_does_not_tell_its_uuid_has_none(hardware: Simulator) -> None:
    """Its figures are told nevertheless."""
    hardware.fail("nvmlDeviceGetUUID", Code.NO_PERMISSION)
    body = "told = [(gpu.uuid, gpu.memory_total_bytes) for gpu in gput.gpus()]"
    told, _ = run(hardware, body)

    assert told["told"] == [[None, 40960 * MIB]]


def test_the_script_keeps_nothing_of_it(hardware: Simulator) -> None:
    """No driver, no third-party module, no thread, no descriptor, and soon no process."""
    told, _ = run(
        hardware,
        "fds = len(os.listdir('/proc/self/fd'))\ngput.gpus()\ngput.gpus()\ntold = [fds, os.getpid()]",
    )
    fds, pid = told["told"]

    assert told["foreign"] == []
    assert told["threads"] == 1
    assert told["fds"] == fds
    assert pid not in hardware.clients()
    assert len(hardware.clients()) == 2


def test_a_child_subreaper_is_left_without_zombies(hardware: Simulator) -> None:
    """A program that inherits orphans, like process 1 of a container, gets none of ours."""
    body = (
        "import ctypes\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        "for _ in range(3): gput.gpus()\n"
        "try: told = os.waitpid(-1, os.WNOHANG)\n"
        "except ChildProcessError: told = 'no children'"
    )

    assert run(hardware, body)[0]["told"] == "no children"


def test_an_instance_knows_the_device_that_it_is_a_part_of(hardware: Simulator) -> None:
    """Which has the temperature and the power, and is not in the list: no program can use it."""
    hardware.add_device(uuid="GPU-split", mig_capable=True)
    hardware.set_temperature_celsius(1, 61)
    hardware.add_mig_instance(1, uuid="MIG-a")
    body = (
        "told = [[gpu.label, gpu.temperature_celsius, gpu.parent and [gpu.parent.label, gpu.parent.temperature_celsius]]"
        " for gpu in gput.gpus()]"
    )
    (whole, instance) = run(hardware, body)[0]["told"]

    assert (whole[0], whole[2]) == ("0", None)
    assert instance == ["1:0", None, ["1", 61.0]]


def test_a_device_is_immutable(hardware: Simulator) -> None:
    """What was measured stays what it was."""
    body = (
        "(gpu,) = gput.gpus()\ntry:\n gpu.index = 7\n told = 'changed'\n"
        "except AttributeError:\n told = isinstance(gpu, gput.Device)"
    )

    assert run(hardware, body)[0]["told"] is True


def test_what_is_not_known_is_none_with_its_reason(hardware: Simulator) -> None:
    """And is no reason to say anything."""
    hardware.fail("nvmlDeviceGetPowerUsage*", Code.NOT_SUPPORTED)
    told, said = run(hardware, "(gpu,) = gput.gpus()\ntold = [gpu.power_watts, list(gpu.reasons)]")

    assert told["told"] == [None, ["power_watts"]]
    assert said == ""


def test_a_machine_without_gpus_has_none(hardware: Simulator) -> None:
    """An empty list, and silence."""
    assert run(hardware, "told = gput.gpus()", LD_LIBRARY_PATH="") == (
        {"told": [], "foreign": [], "threads": 1, "fds": 4},
        "",
    )


def test_a_driver_that_hangs_costs_the_timeout_and_a_sentence(hardware: Simulator) -> None:
    """Once, however often the script asks."""
    hardware.delay("nvmlDeviceGetUtilizationRates", 60_000)
    start = time.monotonic()
    told, said = run(hardware, "told = gput.gpus(timeout_seconds=0.3) + gput.gpus(timeout_seconds=0.3)")

    assert time.monotonic() - start < 10
    assert told["told"] == []
    assert said.count("has not answered within 0.3 s") == 1


def test_a_driver_that_crashes_costs_its_devices_and_a_sentence(
    hardware: Simulator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not the script."""
    hardware.crash("nvmlInit*")
    for name, value in hardware.environment().items():
        monkeypatch.setenv(name, value)

    assert gpu_tracker.gpus() == []
    assert "the library of a GPU driver crashed" in caplog.text


def test_the_names_are_public() -> None:
    """Loaded when first used, like the others."""
    assert {"Device", "DeviceProcess", "gpus"} <= set(gpu_tracker.__all__)
    assert gpu_tracker.gpus.__doc__ is not None
    assert gpu_tracker.Device.__name__ == "Device"
    assert dir(gpu_tracker) == sorted(gpu_tracker.__all__)


@pytest.mark.parametrize("argument", [-1, 0, float("nan"), float("inf"), True, "0", None])
def test_a_number_that_is_no_timeout_is_refused(argument: Any) -> None:
    """One sentence: it is not an index, and no driver is blamed."""
    with pytest.raises(gpu_tracker.UsageError) as caught:
        gpu_tracker.gpus(argument)

    assert str(caught.value) == (
        f"gpus({argument!r}): the argument is how long to wait for a driver, at least 0.1 seconds. "
        "It returns every GPU: gpus()[0] is the first."
    )


def test_polling_keeps_one_process_which_ends_by_itself(hardware: Simulator) -> None:
    """From the third call on; a forked process has its own; nobody has to close anything."""
    body = (
        "import os, time, warnings\n"
        "from gpu_tracker.api import devices\n"
        "def find_pid(): return devices._kept._client and devices._kept._client._sampler.pid\n"
        "gput.gpus()\n"
        "first = len(gput.gpus()), find_pid()\n"
        "polled = [(len(gput.gpus()), find_pid()) for _ in range(3)]\n"
        "reading, writing = os.pipe()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os.write(writing, b'%d %d' % (len(gput.gpus()), bool(find_pid())))\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "forked = os.read(reading, 100).decode()\n"
        "os.close(reading); os.close(writing)\n"
        "after = len(gput.gpus()), find_pid()\n"
        "is_there = lambda: os.path.exists(f'/proc/{after[1]}')\n"
        "was_there = is_there()\n"
        "deadline = time.monotonic() + 60\n"
        "while is_there() and time.monotonic() < deadline: time.sleep(0.1)\n"
        "is_gone = not is_there()\n"
        "again = len(gput.gpus())\n"
        "told = dict(first=first, polled=polled, forked=forked, after=after, was_there=was_there, is_gone=is_gone, again=again)"
    )
    told = run(hardware, body)[0]["told"]

    assert told["first"] == [1, None]
    pid = told["after"][1]
    assert told["polled"] == [[1, pid]] * 3
    assert told["forked"] == "1 0"
    assert (told["was_there"], told["is_gone"], told["again"]) == (True, True, 1)


def test_a_kept_process_that_was_killed_is_replaced(hardware: Simulator) -> None:
    """Without a word: the answer is there."""
    body = (
        "import os, signal\n"
        "from gpu_tracker.api import devices\n"
        "gput.gpus(); gput.gpus(); gput.gpus()\n"
        "pid = devices._kept._client._sampler.pid\n"
        "os.kill(pid, signal.SIGKILL)\n"
        "told = len(gput.gpus()), devices._kept._client._sampler.pid != pid"
    )
    told, said = run(hardware, body)

    assert (told["told"], said) == ([1, True], "")


def test_several_threads_ask_at_once(hardware: Simulator) -> None:
    """None waits for another."""
    body = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "gput.gpus(); gput.gpus()\n"
        "with ThreadPoolExecutor(8) as pool: told = [len(found) for found in pool.map(lambda _: gput.gpus(), range(16))]"
    )

    assert run(hardware, body)[0]["told"] == [1] * 16


def test_those_that_this_process_may_use(hardware: Simulator) -> None:
    """By its environment as it is now."""
    hardware.add_device(uuid="GPU-1")
    body = "told = [gpu.uuid for gpu in gput.gpus(visible=True)]"

    assert run(hardware, body)[0]["told"] == ["GPU-0", "GPU-1"]
    assert run(hardware, body, CUDA_VISIBLE_DEVICES="1", CUDA_DEVICE_ORDER="PCI_BUS_ID")[0]["told"] == [
        "GPU-1"
    ]
    assert run(hardware, body, CUDA_VISIBLE_DEVICES="")[0]["told"] == []


def test_a_kept_process_that_was_stopped_is_replaced(hardware: Simulator) -> None:
    """And does not stay behind."""
    body = (
        "import os, signal\n"
        "from gpu_tracker.api import devices\n"
        "for _ in range(3): gput.gpus()\n"
        "pid = devices._kept._client._sampler.pid\n"
        "os.kill(pid, signal.SIGSTOP)\n"
        "told = len(gput.gpus(timeout_seconds=0.5)), devices._kept._client._sampler.pid != pid\n"
        "deadline = time.monotonic() + 60\n"
        "while os.path.exists(f'/proc/{pid}') and time.monotonic() < deadline: time.sleep(0.05)\n"
        "told = (*told, os.path.exists(f'/proc/{pid}'))"
    )
    told, said = run(hardware, "import time\n" + body)

    assert (told["told"], said) == ([1, True, False], "")

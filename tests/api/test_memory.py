"""`memory()` and `reclaim()`: in programs on the simulated driver, with a stand-in for PyTorch's allocator."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from framework_job import PRELUDE
from nvml_simulator import Code, Simulator

MIB = 2**20
TESTS = Path(__file__).parent.parent


@pytest.fixture
def hardware(hardware: Simulator) -> Simulator:
    """Another process holds some of the first device."""
    hardware.set_process(0, 1, 2000 * MIB)
    return hardware


def run(code: str, **environment: str) -> Any:
    """What a program has in its variable `told`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{PRELUDE}{code}\nprint(json.dumps(told))"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def in_mib(sizes: list[int | None]) -> list[int | None]:
    """Rounded to whole ones."""
    return [None if size is None else size // MIB for size in sizes]


def test_a_device_is_split_to_the_byte(hardware: Simulator) -> None:
    """Tensors, cached, context, others, free; the other device is unused."""
    parts, peak, unused, text = run(
        "hold(9000, 12000); hold(7000, 12000); memory = gput.memory(); gpu, other = memory.gpus\n"
        "told = [gpu.parts, gpu.peak_tensors_bytes, other.parts, str(memory)]",
        **hardware.environment(),
    )

    assert in_mib(parts) == [7000, 5000, 600, 2000, 40960 - 12600 - 2000]
    assert in_mib([peak]) == [9000]
    assert in_mib(unused) == [None, None, None, 0, 40960]
    assert "GPU 0: this process holds 13.2 GB of 40 GiB: tensors 7.34 GB (peak 9.44 GB), cached" in text


def test_a_device_that_was_not_used_stays_unused(hardware: Simulator) -> None:
    """PyTorch is imported, nothing of it is called; no driver comes into the process."""
    told = run(
        "import torch\n"
        "memory = gput.memory()\n"
        "told = [torch.cuda.calls, memory.gpus[0].process_bytes, 'pynvml' in sys.modules]",
        **hardware.environment(),
    )

    assert told == [[], 0, False]


def test_only_devices_that_the_process_may_use_are_listed(hardware: Simulator) -> None:
    """As `CUDA_VISIBLE_DEVICES` says."""
    told = run(
        "told = [gpu.uuid for gpu in gput.memory().gpus]",
        **{**hardware.environment(), "CUDA_VISIBLE_DEVICES": "1"},
    )

    assert told == ["GPU-1"]


def test_what_the_driver_hides_is_not_known(hardware: Simulator) -> None:
    """None, never 0; what the framework says is known all the same."""
    hardware.fail("nvmlDeviceGet*RunningProcesses*", Code.NOT_SUPPORTED)
    told = run(
        "hold(9000, 12000); gpu = gput.memory().gpus[0]\n"
        "told = [gpu.process_bytes, gpu.context_bytes, gpu.others_bytes, gpu.tensors_bytes, gpu.cached_bytes]",
        **hardware.environment(),
    )

    assert in_mib(told) == [None, None, None, 9000, 3000]


CHILD = "x = b'x' * 200_000_000; print('ready', flush=True); input()"


def test_ram_is_that_of_the_process_and_of_its_tree() -> None:
    """Against what each of them has by itself; without a GPU there is none."""
    process, tree, capacity, source, gpus, machine = run(
        f"child = subprocess.Popen([sys.executable, '-c', {CHILD!r}], stdin=-1, stdout=-1)\n"
        "child.stdout.readline()\n"
        "kept = b'x' * 100_000_000\n"
        "memory = gput.memory()\n"
        "child.communicate(b'\\n')\n"
        "alone = gput.memory()\n"
        "assert alone.ram.tree_bytes < memory.ram.tree_bytes - 190_000_000\n"
        "told = [*memory.ram, memory.gpus, os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')]"
    )

    assert 100_000_000 < process < 190_000_000
    assert process + 190_000_000 < tree < process + 260_000_000
    assert 0 < capacity <= machine
    assert source in ("machine", "cgroup", "Slurm")
    assert gpus == []


FAILED = """
def train():
    batch = bytearray(150_000_000)
    raise ValueError("no")
try:
    train()
except ValueError as error:
    sys.last_value, sys.last_traceback = error, error.__traceback__
class Node: pass
node = Node(); node.self, node.load = node, bytearray(100_000_000)
gc.disable()
del node
"""


def test_a_traceback_and_garbage_are_given_back() -> None:
    """Each step says what came of it; the traceback can still be printed."""
    frames, garbage, cached, text, printed = run(
        f"{FAILED}import traceback\n"
        "reclaimed = gput.reclaim()\n"
        "told = [*reclaimed.steps, reclaimed.cached_bytes, str(reclaimed),"
        " ''.join(traceback.format_exception(None, sys.last_value, sys.last_traceback))]"
    )

    assert (frames[0], frames[1]) == ("frames of the last traceback", 1)
    assert 140_000_000 < frames[2] < 160_000_000
    assert (garbage[0], garbage[3:], cached) == ("garbage", [None, None], None)
    assert 90_000_000 < garbage[2] < 110_000_000
    assert [line.split(" ")[-2:] for line in text.splitlines()] == [["given", "back"]] * 2
    assert "in train" in printed


def test_the_cache_is_emptied_only_if_asked(hardware: Simulator) -> None:
    """Then it says what the driver got back."""
    kept, emptied, held = run(
        "hold(9000, 12000)\n"
        "kept, emptied = gput.reclaim(), gput.reclaim(empty_cache=True)\n"
        "import torch\n"
        "told = [kept, emptied, torch.cuda.devices[0]['reserved_bytes']['all']['current']]",
        **hardware.environment(),
    )

    assert [step[0] for step in kept[0]] == ["frames of the last traceback", "garbage"]
    assert in_mib([kept[1], held]) == [3000, 9000]
    assert emptied[0][-1][:2] == ["cache of the framework", 0]
    assert in_mib(emptied[0][-1][3:]) == [0, 3000]
    assert emptied[1] == 0


REAL_TORCH = """
import torch
def train():
    weights = torch.zeros(30_000_000)
    raise ValueError("no")
try:
    train()
except ValueError as error:
    sys.last_value = error
told = [gput.reclaim().steps[0].ram_bytes, gput.memory().gpus, torch.cuda.is_initialized()]
"""


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed (make test WITH=frameworks)"
)
def test_tensors_of_a_failed_training_are_given_back() -> None:
    """The real PyTorch, on the CPU; no device is initialised."""
    code = f"sys.path.remove({str(TESTS / 'stand_ins')!r})\n{REAL_TORCH}"
    ram_bytes, gpus, is_initialized = run(code)

    assert 115_000_000 < ram_bytes < 125_000_000
    assert (gpus, is_initialized) == ([], False)


FIRST = """
import gc, json, sys, gpu_tracker as gput
class Circle:
    def __init__(self):
        self.own, self.content = self, bytearray(b"x" * 80_000_000)
gc.collect()
was_on = SWITCH
Circle()
reclaimed = gput.reclaim()
print(json.dumps([[step.ram_bytes // 1_000_000 for step in reclaimed.steps], gc.isenabled()]))
"""


@pytest.mark.parametrize(("switch", "is_on"), [("gc.enable()", True), ("gc.disable()", False)])
def test_the_first_call_measures_what_it_collects(switch: str, is_on: bool) -> None:
    """Loading what it is made of collects nothing; afterwards the collector is on or off as before."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST.replace("SWITCH", switch)], capture_output=True, text=True, check=True
    )
    (frames, garbage), is_enabled = json.loads(done.stdout)

    assert frames in (-1, 0)
    assert 75 <= garbage <= 81
    assert is_enabled is is_on

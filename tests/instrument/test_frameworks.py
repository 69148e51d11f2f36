"""GPU memory of frameworks: read inside the process, compared with the driver, and never disturbed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import gpu_tracker as gput
from framework_job import PRELUDE
from gpu_tracker.core.model import FrameworkReading
from gpu_tracker.instrument.frameworks import FrameworkWatch, is_worth_watching, read_frameworks
from nvml_simulator import Simulator

MIB = 2**20
TESTS = Path(__file__).parent.parent
COMMAND = os.path.join(os.path.dirname(sys.executable), "gpu-tracker")

# The Python half of the real PyTorch, over counters as its native half returns them.
REAL_TORCH = """
import json, sys, torch
from gpu_tracker.instrument.frameworks import is_worth_watching, read_frameworks
found = [is_worth_watching(sys.modules), read_frameworks(sys.modules)]
def stats(device):
    zero = {pool: dict(current=0, peak=0, allocated=0, freed=0) for pool in ("all", "small_pool", "large_pool")}
    used = {**zero, "all": dict(current=5, peak=9, allocated=14, freed=9)}
    return dict(allocated_bytes=used if device else zero, reserved_bytes=used if device else zero, num_alloc_retries=3, num_ooms=1)
class Properties:
    uuid = "1b9ab2ea"
torch.version.cuda = "12.8"
torch._C._cuda_getDeviceCount = lambda: 2
torch._C._cuda_memoryStats = stats
torch.cuda._get_device_properties = lambda device: Properties
before = is_worth_watching(sys.modules), read_frameworks(sys.modules), torch.cuda.is_initialized()
torch.cuda._initialized = True
torch.cuda._is_in_bad_fork = lambda: False
print(json.dumps([*found, *before, read_frameworks(sys.modules)]))
"""
REAL_JAX = """
import json, sys, jax
from gpu_tracker.instrument.frameworks import is_worth_watching, read_frameworks
def ask():
    return [is_worth_watching(sys.modules), read_frameworks(sys.modules)]
from jax._src.xla_bridge import backends_are_initialized
found = [*ask(), backends_are_initialized()]
jax.numpy.ones(3).block_until_ready()
print(json.dumps([*found, *ask(), backends_are_initialized()]))
"""
REAL_TENSORFLOW = """
import json, sys, tensorflow
from gpu_tracker.instrument.frameworks import is_worth_watching, read_frameworks
from tensorflow.python.eager import context
def ask():
    return [is_worth_watching(sys.modules), read_frameworks(sys.modules), getattr(context._context, "_initialized", False)]
found = ask()
tensorflow.constant([1.0]) + 1
print(json.dumps([*found, *ask()]))
"""


def run(code: str) -> Any:
    """The output of a new interpreter, as JSON."""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, timeout=110, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def needs(name: str) -> pytest.MarkDecorator:
    """Skip unless it is installed."""
    return pytest.mark.skipif(
        importlib.util.find_spec(name) is None, reason=f"{name} is not installed (make test WITH=frameworks)"
    )


@needs("torch")
def test_only_an_initialised_pytorch_is_read() -> None:
    """A CPU build reports nothing, a used device does; an unused one stays unused."""
    plain_is_worth, plain, is_worth, before, is_initialized, after = run(REAL_TORCH)

    assert (plain_is_worth, plain) == (False, [])
    assert (is_worth, before, is_initialized) == (True, [], False)
    assert [FrameworkReading(*one) for one in after] == [
        FrameworkReading("PyTorch", "cuda:1", "1b9ab2ea", 5, 9, 5, 9, 3, 1)
    ]


DATA_LOADER = """
import json, os, torch
import gpu_tracker as gput
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, index):
        with gput.region("item"):
            return float(index)
with gput.Tracker(disable_logs=True) as tracker:
    for epoch in range(2):
        with gput.region("epoch"):
            assert sum(len(batch) for batch in DataLoader(Numbers(), batch_size=3, num_workers=2)) == 12
print(json.dumps([[region.path, region.processes, region.calls] for region in tracker.report.regions]))
"""


@needs("torch")
def test_workers_of_a_data_loader_have_regions() -> None:
    """Two per epoch; their regions are inside the epoch in which they were forked."""
    assert run(DATA_LOADER) == [[["epoch"], 1, 2], [["epoch", "item"], 4, 24]]


@needs("jax")
def test_reading_does_not_initialise_jax() -> None:
    """Before the first operation nothing is read; a CPU has no allocator."""
    assert run(REAL_JAX) == [False, [], False, True, [], True]


@needs("tensorflow")
def test_reading_does_not_initialise_tensorflow() -> None:
    """The same."""
    assert run(REAL_TENSORFLOW) == [False, [], False, True, [], True]


def test_jax_and_tensorflow_report_what_is_in_use() -> None:
    """As their allocators on a GPU do."""
    stats = {"bytes_in_use": 5, "peak_bytes_in_use": 9, "pool_bytes": 20, "peak_pool_bytes": 30}
    devices = [
        SimpleNamespace(memory_stats=stats.copy),
        SimpleNamespace(memory_stats=lambda: {"bytes_in_use": 1, "peak_bytes_in_use": 2}),
        SimpleNamespace(memory_stats=lambda: None),
    ]
    client = SimpleNamespace(local_devices=lambda: devices)
    context = SimpleNamespace(
        _initialized=True,
        list_logical_devices=lambda kind: [kind],
        get_memory_info=lambda name: {"current": 3, "peak": 4},
    )
    modules = {
        "jax._src.xla_bridge": SimpleNamespace(_backends={"cuda": client}),
        "tensorflow.python.eager.context": SimpleNamespace(_context=context),
    }

    assert is_worth_watching(modules)
    assert [one[3:7] for one in read_frameworks(modules)] == [
        (5, 9, 20, 30),
        (1, 2, None, None),
        (3, 4, None, None),
    ]


def test_a_framework_that_has_changed_is_unknown() -> None:
    """Half imported, without its parts, or raising: the others are still read."""

    def fail() -> None:
        raise RuntimeError("half imported")

    context = SimpleNamespace(
        _initialized=True,
        list_logical_devices=lambda kind: [kind],
        get_memory_info=lambda name: {"current": 3, "peak": 4},
    )
    modules = {
        "torch": SimpleNamespace(cuda=SimpleNamespace(is_initialized=fail)),
        "jax._src.xla_bridge": SimpleNamespace(_backends={"cuda": SimpleNamespace()}),
        "tensorflow.python.eager.context": SimpleNamespace(_context=context),
    }

    assert [one.framework for one in read_frameworks(modules)] == ["TensorFlow"]
    assert read_frameworks({"torch": SimpleNamespace()}) == []


def test_a_watch_without_a_tracker_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silently."""
    monkeypatch.setitem(sys.modules, "torch", _load_stand_in())
    sys.modules["torch"].cuda.hold(0, MIB, 2 * MIB)
    watch = FrameworkWatch(str(tmp_path / "gone"), was_running_before=False)
    watch.start()
    watch.close()

    assert list(tmp_path.iterdir()) == []


def _load_stand_in() -> Any:
    spec = importlib.util.spec_from_file_location("torch", TESTS / "stand_ins" / "torch.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# From 3.12 on Python warns of every fork beside a thread.
IN_SPITE_OF_THREADS = "-Wignore:This process:DeprecationWarning"

# ---- Through the whole tool, on the simulated driver.


@pytest.fixture
def hardware(hardware: Simulator) -> Simulator:
    """Another process holds some of the first device."""
    hardware.set_process(0, 1, 2000 * MIB)
    return hardware


def track(hardware: Simulator, code: str, *prefix: str) -> gput.Recording:
    """The recording of a job that holds memory on the first device."""
    path = hardware.path.with_name("x.jsonl")
    done = subprocess.run(
        [*prefix, sys.executable, IN_SPITE_OF_THREADS, "-c", f"{PRELUDE}record = {str(path)!r}\n{code}"],
        env={**os.environ, **hardware.environment()},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return gput.load(path)


def in_mib(*sizes: int | None) -> list[int | None]:
    """Rounded to whole ones."""
    return [None if size is None else size // MIB for size in sizes]


def test_memory_is_split_to_the_byte(hardware: Simulator) -> None:
    """Tensors, cache, context, other processes, free; with a peak that no reading can have seen."""
    recording = track(
        hardware,
        """
import torch
with gput.Tracker(sleep_time=0.1, record=record, max_overhead=0.5):
    hold(9000, 12000)
    hold(7000, 12000)
    time.sleep(1.6)
    assert threading.active_count() == 1
""",
    )
    (memory,) = recording.frameworks
    (summary,) = recording.report.frameworks

    assert (memory.framework, memory.device, memory.uuid) == ("PyTorch", "cuda:0", "GPU-0")
    assert in_mib(memory.in_use_bytes, memory.held_bytes) == [7000, 12000]
    assert in_mib(memory.peak_in_use_bytes, memory.peak_held_bytes) == [9000, 12000]
    assert memory.peak_in_use_basis == "exact"
    assert in_mib(memory.split_in_use_bytes, summary.cached_bytes, summary.context_bytes) == [7000, 5000, 600]
    assert in_mib(memory.split_process_bytes, memory.split_others_bytes) == [12600, 2000]
    assert in_mib(memory.split_free_bytes) == [40960 - 12600 - 2000]
    assert summary.gpu is not None
    assert summary.gpu.ordinal == 0


def test_an_earlier_peak_is_not_attributed_to_what_is_tracked(hardware: Simulator) -> None:
    """And the user's own peaks are left alone."""
    recording = track(
        hardware,
        """
import torch
hold(30000, 31000)
hold(100, 200)
with gput.Tracker(sleep_time=0.1, record=record, max_overhead=0.5):
    time.sleep(0.3)
    hold(300, 400)
    time.sleep(1.5)
assert torch.cuda.devices[0]["allocated_bytes"]["all"]["peak"] == 30000 * MIB
""",
    )
    (memory,) = recording.frameworks

    assert in_mib(memory.peak_in_use_bytes, memory.peak_held_bytes) == [300, 400]
    assert memory.peak_in_use_basis == "sampled"
    assert in_mib(memory.split_process_bytes, memory.split_held_bytes) == [1000, 400]


@pytest.mark.serial
def test_a_framework_that_is_imported_later_is_read_at_the_end(hardware: Simulator) -> None:
    """The allocator has kept its peaks."""
    recording = track(
        hardware,
        """
with gput.Tracker(sleep_time=0.1, record=record, max_overhead=0.5):
    hold(9000, 12000)
    hold(1000, 2000)
""",
    )
    (memory,) = recording.frameworks

    assert in_mib(memory.peak_in_use_bytes, memory.peak_held_bytes) == [9000, 12000]
    assert memory.peak_in_use_basis == "exact"
    assert in_mib(memory.split_process_bytes, memory.split_held_bytes) == [2600, 2000]


def test_an_unused_device_stays_unused(hardware: Simulator) -> None:
    """No context is created, nothing is counted."""
    recording = track(
        hardware,
        """
import torch
with gput.Tracker(sleep_time=0.1, record=record, max_overhead=0.5):
    time.sleep(1.3)
assert torch.cuda.calls == [], torch.cuda.calls
""",
    )

    assert list(recording.frameworks) == []


def test_processes_of_a_command_report_if_they_have_regions(hardware: Simulator, tmp_path: Path) -> None:
    """Each its own, even one that is killed; with their allocation failures."""
    recording = track(
        hardware,
        """
import signal, torch
with gput.region("train"):
    pid = os.fork()
    if not pid:
        with gput.region("eval"):
            torch.cuda.devices[0]["num_ooms"] = 1
            hold(500, 600)
            time.sleep(2.5)
            os.kill(os.getpid(), signal.SIGKILL)
    hold(9000, 12000)
    torch.cuda.devices[0]["num_alloc_retries"] = 3
    time.sleep(1.5)
    os.waitpid(pid, 0)
""",
        COMMAND,
        *f"run --st 0.1 --record {tmp_path / 'x.jsonl'} -o {tmp_path / 'report'} --".split(),
    )
    parent, child = sorted(recording.frameworks, key=lambda memory: memory.pid)
    text = (tmp_path / "report").read_text()

    assert in_mib(parent.split_process_bytes, parent.split_held_bytes) == [12600, 12000]
    assert in_mib(child.peak_in_use_bytes, child.split_process_bytes) == [500, 1200]
    assert (parent.flushes, child.failures) == (3, 1)
    assert f"GPU 0, process {parent.pid}: tensors peak 9.44 GB (exact)" in text
    assert "flushed its cache 3 times under memory pressure" in text
    assert "ran out of memory once" in text


HOOKED = """
import os, sys, time
import torch
from nvml_simulator import Simulator
assert hook_free == [path for path in sys.path if "hook" in path], sys.path
assert "gpu_tracker.instrument.frameworks" in sys.modules
torch.cuda.hold(0, 9000 * 2**20, 12000 * 2**20)
with Simulator.open() as hardware:
    hardware.set_process(0, os.getpid(), 12600 * 2**20)
time.sleep(2.5)
"""


def test_a_program_without_gpu_tracker_is_read_on_request(hardware: Simulator, tmp_path: Path) -> None:
    """Its own `sitecustomize` runs as usual."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.hook_free = []")
    (tmp_path / "train.py").write_text(HOOKED)
    path = os.pathsep.join((str(tmp_path / "site"), str(TESTS), str(TESTS / "stand_ins")))
    done = run_hooked(tmp_path, [str(tmp_path / "train.py")], {**hardware.environment(), "PYTHONPATH": path})
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    (memory,) = gput.load(tmp_path / "x.jsonl").frameworks

    assert in_mib(memory.peak_in_use_bytes, memory.split_process_bytes) == [9000, 12600]


def test_a_python_that_cannot_be_hooked_runs_all_the_same(tmp_path: Path) -> None:
    """It may ignore the environment, or be too old."""
    done = run_hooked(tmp_path, ["-I", "-c", "print(1)"], {})

    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_a_start_that_fails_without_us_fails_with_us(tmp_path: Path) -> None:
    """And the error is shown."""
    (tmp_path / "sitecustomize.py").write_text("raise ImportError('of the user')")
    done = run_hooked(tmp_path, ["-c", "print(1)"], {"PYTHONPATH": str(tmp_path)})

    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "ImportError: of the user" in done.stderr


def run_hooked(
    folder: Path, arguments: list[str], environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Python with those arguments, without gpu_tracker."""
    options = f"--frameworks --st 0.1 --record {folder / 'x.jsonl'} -o {folder / 'report'}"
    return subprocess.run(
        [COMMAND, "run", *options.split(), "--", sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
    )

"""Memory as it is now: what each part of a device is for."""

from __future__ import annotations

import pytest

from gpu_tracker.analysis.memory import GpuMemory, split_gpus
from gpu_tracker.core.model import FrameworkReading, Gpu, GpuProcessReading, GpuReading
from gpu_tracker.core.observation import Device, DeviceProcess, Holder

OWN, OTHER = 10, 20
TORCH = FrameworkReading("PyTorch", "cuda:0", "0", 900, 950, 1200, 1300)
TENSORFLOW = FrameworkReading("TensorFlow", "GPU:0", "", 700, 800)


def device(number: int = 0, *, lists: bool = True, **held: int | None) -> Device:
    """One of 4000 bytes, of which its processes hold these."""
    uuid = f"GPU-{number}"
    pids = {"own": OWN, "other": OTHER}
    processes = tuple(
        DeviceProcess(GpuProcessReading(uuid, pids[name], size), Holder(pids[name]))
        for name, size in held.items()
    )
    used = sum(size or 0 for size in held.values())
    reading = GpuReading(uuid, used_bytes=used, reserved_bytes=100, lists_processes=lists)
    return Device(Gpu(number, uuid, "A100", 4000), reading, {}, processes, {})


def split(one: Device, *readings: FrameworkReading) -> GpuMemory:
    """The parts of one device."""
    (memory,) = split_gpus([one], OWN, readings)
    return memory


def test_the_parts_and_the_reserve_are_the_whole() -> None:
    """Tensors, cache, context, others, free."""
    memory = split(device(own=1500, other=400), TORCH)

    assert memory.parts == (900, 300, 300, 400, 2000)
    assert sum(part or 0 for part in memory.parts) + 100 == memory.total_bytes
    assert (memory.process_bytes, memory.peak_tensors_bytes) == (1500, 950)


def test_without_a_framework_only_the_driver_speaks() -> None:
    """What the process holds is known, and not for what."""
    memory = split(device(own=1500, other=400))

    assert memory.parts == (None, None, None, 400, 2000)
    assert memory.process_bytes == 1500


def test_a_process_that_is_not_listed_holds_nothing() -> None:
    """Unless a framework says otherwise: then the list is not complete."""
    assert split(device(other=400)).process_bytes == 0
    assert split(device(other=400)).others_bytes == 400

    memory = split(device(other=400), TORCH)

    assert memory.parts == (900, 300, None, None, 3500)
    assert memory.process_bytes is None


@pytest.mark.parametrize("one", [device(own=None, other=400), device(lists=False)])
def test_what_the_driver_does_not_say_is_not_known(one: Device) -> None:
    """Never zero."""
    memory = split(one, TORCH)

    assert (memory.process_bytes, memory.context_bytes, memory.others_bytes) == (None, None, None)


def test_a_framework_without_a_cache_leaves_the_rest_unknown() -> None:
    """It is on the only device that the process uses."""
    memory = split(device(own=1500), TENSORFLOW)

    assert memory.parts == (700, None, None, 0, 2400)


def test_frameworks_on_one_device_add_up() -> None:
    """Each device gets its own."""
    second = TORCH._replace(framework="other", in_use_bytes=50, held_bytes=50)
    elsewhere = TORCH._replace(uuid="1", in_use_bytes=1, held_bytes=1)
    first, other = split_gpus([device(own=1500), device(1, own=1)], OWN, [TORCH, second, elsewhere])

    assert first.parts[:3] == (950, 300, 250)
    assert other.parts[:3] == (1, 0, 0)


def test_a_framework_on_an_unknown_device_is_on_none() -> None:
    """Two devices, and it does not say which."""
    memories = split_gpus([device(own=1), device(1, own=1)], OWN, [TENSORFLOW])

    assert [memory.tensors_bytes for memory in memories] == [None, None]

"""What frameworks held on devices over time."""

from __future__ import annotations

from gpu_tracker.analysis.held_memory import collect_held
from gpu_tracker.core.model import FrameworkMemory


def read(at: float, in_use: int, held: int | None, *, pid: int = 1, uuid: str = "GPU-0") -> FrameworkMemory:
    """One reading of PyTorch."""
    return FrameworkMemory(pid, "PyTorch", "cuda:0", uuid, at, in_use, in_use, "exact", held)


def test_processes_on_a_device_are_added() -> None:
    """Each counts with its last reading; what reports no cache has none."""
    (device,) = collect_held(
        [read(1.0, 10, 20), read(3.0, 30, 40), read(2.0, 5, None, pid=2), read(4.0, 0, 0, pid=2)]
    )

    assert device.uuid == "GPU-0"
    assert list(device.at_seconds) == [1.0, 2.0, 3.0, 4.0]
    assert list(device.in_use_bytes) == [10.0, 15.0, 35.0, 30.0]
    assert list(device.held_bytes) == [20.0, 25.0, 45.0, 40.0]


def test_a_device_may_be_identified_late_or_never() -> None:
    """Readings before that count for it, too."""
    (device,) = collect_held([read(1.0, 10, 20, uuid=""), read(2.0, 30, 40), read(3.0, 1, 1, pid=2, uuid="")])

    assert list(device.at_seconds) == [1.0, 2.0]
    assert collect_held([]) == ()

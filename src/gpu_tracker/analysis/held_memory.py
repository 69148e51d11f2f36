"""What frameworks held on the devices over time: for charts. Pure."""

from __future__ import annotations

from array import array

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.columns import Column
    from ..core.model import FrameworkMemory


class HeldMemory(NamedTuple):
    """What the frameworks of a job held on one device, whenever one of them was read."""

    uuid: str
    at_seconds: Column
    in_use_bytes: Column
    held_bytes: Column
    """With what they had cached, as far as they report it."""


def collect_held(readings: Iterable[FrameworkMemory]) -> tuple[HeldMemory, ...]:
    """By device. Until a framework is read again, it counts with its last reading."""
    ordered = sorted(readings, key=lambda memory: memory.at_seconds)
    # A device may be identified after the first readings of it.
    uuids = {_name(memory): memory.uuid for memory in ordered}
    devices: dict[str, HeldMemory] = {}
    latest: dict[tuple[int, str, str], tuple[int, int]] = {}
    for memory in ordered:
        name, sizes = _name(memory), (memory.in_use_bytes, _find_held(memory))
        if uuids[name]:
            device = devices.setdefault(
                uuids[name], HeldMemory(uuids[name], array("d"), array("d"), array("d"))
            )
            _add(device, memory.at_seconds, latest.get(name, (0, 0)), sizes)
            latest[name] = sizes
    return tuple(devices.values())


def _add(device: HeldMemory, at_seconds: float, before: tuple[int, int], now: tuple[int, int]) -> None:
    """What one framework holds now, beside the others."""
    device.at_seconds.append(at_seconds)
    for column, old, new in zip((device.in_use_bytes, device.held_bytes), before, now, strict=True):
        column.append((column[-1] if column else 0.0) + new - old)


def _name(memory: FrameworkMemory) -> tuple[int, str, str]:
    return memory.pid, memory.framework, memory.device


def _find_held(memory: FrameworkMemory) -> int:
    return memory.in_use_bytes if memory.held_bytes is None else memory.held_bytes

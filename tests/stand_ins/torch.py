"""A stand-in for PyTorch in test jobs: the few functions that are read, over a fake allocator."""

from __future__ import annotations

from typing import Any


class _Version:
    cuda = "12.8"


class _Properties:
    def __init__(self, uuid: str) -> None:
        self.uuid = uuid


class _Cuda:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.devices = [_make_stats(), _make_stats()]
        self.has_begun = False

    def is_initialized(self) -> bool:
        return self.has_begun

    def device_count(self) -> int:
        self.calls.append("device_count")
        return len(self.devices)

    def memory_stats_as_nested_dict(self, device: int) -> dict[str, Any]:
        self.calls.append("memory_stats_as_nested_dict")
        return self.devices[device]

    def get_device_properties(self, device: int) -> _Properties:
        return _Properties(f"{device}")

    def empty_cache(self) -> None:
        """Give back what is not in use, as the real one does."""
        for device in self.devices:
            device["reserved_bytes"]["all"]["current"] = device["allocated_bytes"]["all"]["current"]

    def hold(self, device: int, in_use: int, held: int) -> None:
        """Set the memory in use and held."""
        self.has_begun = True
        for name, size in (("allocated_bytes", in_use), ("reserved_bytes", held)):
            counter = self.devices[device][name]["all"]
            counter["current"] = size
            counter["peak"] = max(counter["peak"], size)


def _make_stats() -> dict[str, Any]:
    return {
        **{name: {"all": {"current": 0, "peak": 0}} for name in ("allocated_bytes", "reserved_bytes")},
        "num_alloc_retries": 0,
        "num_ooms": 0,
    }


version = _Version()
cuda = _Cuda()

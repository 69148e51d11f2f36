"""Know what your job really used: RAM, CPU, GPU memory, GPU utilization and time of a task and its descendants.

Public names only. They are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from .version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api import Tracker as Tracker
    from .api import track as track
    from .comparing import ComparisonReport as ComparisonReport
    from .comparing import compare as compare
    from .devices import Device as Device
    from .devices import DeviceProcess as DeviceProcess
    from .devices import gpus as gpus
    from .recordings import Recording as Recording
    from .recordings import load as load
    from .regions import log as log
    from .regions import region as region

__all__ = [
    "ComparisonReport",
    "Device",
    "DeviceProcess",
    "Recording",
    "Tracker",
    "__version__",
    "compare",
    "gpus",
    "load",
    "log",
    "region",
    "track",
]


_ROOMS = {
    "ComparisonReport": "comparing",
    "Device": "devices",
    "DeviceProcess": "devices",
    "Recording": "recordings",
    "Tracker": "api",
    "compare": "comparing",
    "gpus": "devices",
    "load": "recordings",
    "log": "regions",
    "region": "regions",
    "track": "api",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "tracker":
        return import_module(".tracker", __name__)
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    globals()[name] = value  # from now on it is found at once
    return value

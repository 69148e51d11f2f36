"""Know what your job really used: RAM, CPU, GPU memory, GPU utilization and time of a task and its descendants.

Public names only. They are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from .core.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api import tracker as tracker
    from .api.comparisons import ComparisonReport as ComparisonReport
    from .api.comparisons import compare as compare
    from .api.devices import Device as Device
    from .api.devices import DeviceProcess as DeviceProcess
    from .api.devices import gpus as gpus
    from .api.recordings import Recording as Recording
    from .api.recordings import load as load
    from .api.regions import log as log
    from .api.regions import region as region
    from .api.track import Tracker as Tracker
    from .api.track import track as track

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
    "ComparisonReport": "api.comparisons",
    "Device": "api.devices",
    "DeviceProcess": "api.devices",
    "Recording": "api.recordings",
    "Tracker": "api.track",
    "compare": "api.comparisons",
    "gpus": "api.devices",
    "load": "api.recordings",
    "log": "api.regions",
    "region": "api.regions",
    "track": "api.track",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "tracker":  # where the paper's classes are
        return import_module(".api.tracker", __name__)
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f".{_ROOMS[name]}", __name__), name)
    globals()[name] = value  # from now on it is found at once
    return value

"""Know what your job really used: RAM, CPU, GPU memory, GPU utilization and time of a task and its descendants.

Public names only. They are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from .version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api import Tracker as Tracker
    from .api import track as track
    from .devices import Device as Device
    from .devices import DeviceProcess as DeviceProcess
    from .devices import gpus as gpus
    from .recordings import Recording as Recording
    from .recordings import load as load

__all__ = ["Device", "DeviceProcess", "Recording", "Tracker", "__version__", "gpus", "load", "track"]


def __getattr__(name: str) -> object:
    if name in ("Tracker", "track"):
        from . import api

        return getattr(api, name)
    if name in ("Device", "DeviceProcess", "gpus"):
        from . import devices

        return getattr(devices, name)
    if name in ("Recording", "load"):
        from . import recordings

        return getattr(recordings, name)
    if name == "tracker":
        from importlib import import_module

        return import_module(".tracker", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

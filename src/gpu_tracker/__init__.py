"""Measures the RAM, CPU, GPU memory, GPU utilization and time of a job and all its descendants.

Public names only. They are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from sys import is_finalizing as _is_finalizing

from .core.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Self

    from .analysis.job import Combined as Combined
    from .analysis.regions import Metric as Metric, Region as Region
    from .analysis.summary import Summary as Summary
    from .api import tracker as tracker
    from .api.comparisons import ComparisonReport as ComparisonReport, compare as compare
    from .api.devices import gpus as gpus
    from .api.recordings import Recording as Recording, combine as combine, load as load
    from .api.regions import log as log, region as region
    from .api.track import track as track
    from .api.tracker import Tracker as Tracker
    from .core.errors import (
        RecordingError as RecordingError,
        TrackerError as TrackerError,
        UsageError as UsageError,
    )
    from .core.model import (
        Call as Call,
        MetricRow as MetricRow,
        RegionTotals as RegionTotals,
        Sample as Sample,
    )
    from .core.observation import Device as Device, DeviceProcess as DeviceProcess
    from .reports.build import Report as Report

# Public name → the module that has it.
_MODULES = {
    "Call": "core.model",
    "Combined": "analysis.job",
    "ComparisonReport": "api.comparisons",
    "Device": "core.observation",
    "DeviceProcess": "core.observation",
    "Metric": "analysis.regions",
    "MetricRow": "core.model",
    "Recording": "api.recordings",
    "RecordingError": "core.errors",
    "Region": "analysis.regions",
    "RegionTotals": "core.model",
    "Report": "reports.build",
    "Sample": "core.model",
    "Summary": "analysis.summary",
    "Tracker": "api.tracker",
    "TrackerError": "core.errors",
    "UsageError": "core.errors",
    "combine": "api.recordings",
    "compare": "api.comparisons",
    "gpus": "api.devices",
    "load": "api.recordings",
    "log": "api.regions",
    "region": "api.regions",
    "track": "api.track",
}

_HARMLESS = ("log", "region")  # they must never end a program

__all__ = [*_MODULES, "__version__"]  # noqa: PLE0604 - its keys are strings


class _Idle:
    """A region where the real one cannot be loaded: it does nothing. Called without a name, it is `log`."""

    def __init__(self, name: str = "", **_: object) -> None:
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, function: object) -> object:
        return function


def _say_unfollowed() -> None:
    """What `instrument.outbox` leaves in the mailbox, with nothing loaded and no descriptor."""
    import os

    mailbox = os.environ.get("GPU_TRACKER_MAILBOX", "").partition(os.pathsep)[0]
    try:
        writer = f"{os.getpid()}-{os.stat('/proc/self/ns/pid').st_ino}"
        os.mknod(f"{mailbox}/{writer}-{0:08x}.unfollowed", 0o600)
    except OSError:
        pass  # it is there already, or there is no tracker


def __getattr__(name: str) -> object:
    # Not importlib: what is loaded already needs no descriptor.
    if name == "tracker":  # where the paper's classes are
        return __import__(f"{__name__}.api.tracker", fromlist=(name,))
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _is_finalizing() and name in _HARMLESS:
        return _Idle  # a thread that was stopped may have been loading it
    try:
        value: object = getattr(__import__(f"{__name__}.{_MODULES[name]}", fromlist=(name,)), name)
    except (ImportError, OSError, MemoryError, RecursionError) as error:
        # No descriptor, no memory, another root: a region must not end the program. The next use tries again.
        if name not in _HARMLESS or isinstance(error, TimeoutError):
            raise
        _say_unfollowed()
        return _Idle
    globals()[name] = value  # from now on it is found at once
    return value


def __dir__() -> list[str]:
    return __all__

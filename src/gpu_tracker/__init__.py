"""Measures the RAM, CPU, GPU memory, GPU utilization and time of a job and all its descendants.

Public names only. They are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from .core.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
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

__all__ = [*_MODULES, "__version__"]  # noqa: PLE0604 - its keys are strings


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "tracker":  # where the paper's classes are
        return import_module(".api.tracker", __name__)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value  # from now on it is found at once
    return value


def __dir__() -> list[str]:
    return __all__

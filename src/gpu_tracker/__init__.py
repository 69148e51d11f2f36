"""Measures the RAM, CPU, GPU memory, GPU utilization and time of a job and all its descendants.

Public names only. They are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import atexit as _atexit
import os as _os
import sys as _sys
from _thread import RLock as _RLock
from sys import is_finalizing as _is_finalizing

from .core.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typing_extensions import Self

    from . import sinks as sinks, sub_tracker as sub_tracker, tracker as tracker
    from .analysis.findings.finding import Finding as Finding
    from .analysis.intervals import GpuInterval as GpuInterval, Interval as Interval
    from .analysis.job import Combined as Combined
    from .analysis.memory import GpuMemory as GpuMemory, RamMemory as RamMemory
    from .analysis.regions import Metric as Metric, Region as Region
    from .analysis.summary import Summary as Summary
    from .api.code_blocks import SubTracker as SubTracker, sub_track as sub_track
    from .api.comparisons import ComparisonReport as ComparisonReport, compare as compare
    from .api.devices import gpus as gpus
    from .api.experiments import experiment as experiment
    from .api.following import follow as follow
    from .api.loops import step as step, watch as watch
    from .api.memory import memory as memory
    from .api.recordings import Recording as Recording, combine as combine, load as load
    from .api.regions import log as log, region as region
    from .api.sub_tracking import (
        SubTrackingAnalyzer as SubTrackingAnalyzer,
        TrackingComparison as TrackingComparison,
    )
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
    from .recording.follow import News as News
    from .reports.build import Report as Report
    from .reports.experiment import ExperimentReport as ExperimentReport
    from .reports.memory import Memory as Memory, Reclaimed as Reclaimed

# Public name → the module that has it.
_MODULES = {
    "Call": "core.model",
    "Combined": "analysis.job",
    "ComparisonReport": "api.comparisons",
    "Device": "core.observation",
    "DeviceProcess": "core.observation",
    "ExperimentReport": "reports.experiment",
    "Finding": "analysis.findings.finding",
    "GpuInterval": "analysis.intervals",
    "GpuMemory": "analysis.memory",
    "Interval": "analysis.intervals",
    "Memory": "reports.memory",
    "Metric": "analysis.regions",
    "MetricRow": "core.model",
    "News": "recording.follow",
    "RamMemory": "analysis.memory",
    "Reclaimed": "reports.memory",
    "Recording": "api.recordings",
    "RecordingError": "core.errors",
    "Region": "analysis.regions",
    "RegionTotals": "core.model",
    "Report": "reports.build",
    "Sample": "core.model",
    "SubTracker": "api.code_blocks",
    "SubTrackingAnalyzer": "api.sub_tracking",
    "Summary": "analysis.summary",
    "Tracker": "api.tracker",
    "TrackerError": "core.errors",
    "TrackingComparison": "api.sub_tracking",
    "UsageError": "core.errors",
    "combine": "api.recordings",
    "compare": "api.comparisons",
    "experiment": "api.experiments",
    "follow": "api.following",
    "gpus": "api.devices",
    "load": "api.recordings",
    "log": "api.regions",
    "memory": "api.memory",
    "region": "api.regions",
    "step": "api.loops",
    "sub_track": "api.code_blocks",
    "track": "api.track",
    "watch": "api.loops",
}

# Not names of one thing each: where the paper's classes are, those for code blocks, and sinks.
_PACKAGES = ("sinks", "sub_tracker", "tracker")

__all__ = [*_MODULES, "__version__", "reclaim", "sinks"]  # noqa: PLE0604 - its keys are strings


class _Idle:
    """A region where the real one cannot be loaded: it does nothing. Called without a name, it is `log` or `step`."""

    def __init__(self, name: object = "", *_: object, code_block_name: object = "", **__: object) -> None:
        self.name = self.code_block_name = name or code_block_name
        self.sub_tracking_file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, function: object) -> object:
        return function


def _hand_back(loader: object, *_: object, **__: object) -> object:
    """`watch` where the real one cannot be loaded."""
    return loader


# They must never end a program: what stands in for them.
_HARMLESS = {
    "SubTracker": _Idle,
    "log": _Idle,
    "region": _Idle,
    "step": _Idle,
    "sub_track": _Idle,
    "watch": _hand_back,
}


class _Remains(type(_sys)):  # type: ignore[misc] # the class of modules
    """This module when the interpreter ends. Python clears its names, while objects that are deleted later may still use regions."""

    def __getattribute__(
        self,
        name: str,
        harmless: Mapping[str, object] = _HARMLESS,
        is_finalizing: Callable[[], bool] = _is_finalizing,
        find: Callable[[object, str], object] = object.__getattribute__,
    ) -> object:
        if name in harmless and is_finalizing():
            return find(self, "__dict__").get(name) or harmless[name]  # type: ignore[attr-defined]
        return super().__getattribute__(name)


_atexit.register(setattr, _sys.modules[__name__], "__class__", _Remains)


def _load_outbox() -> None:
    """In a job. Before it forks: a child that cannot reach the mailbox, having changed its user or root, notes that in what both share."""
    if "GPU_TRACKER_MAILBOX" in _os.environ:
        try:
            from .instrument import outbox  # noqa: F401
        except (ImportError, OSError, MemoryError, RecursionError) as error:
            if isinstance(error, TimeoutError):
                raise


def _say_unfollowed(name: str) -> None:
    """What `instrument.outbox` leaves in the mailbox, with nothing loaded for that and no descriptor."""
    import os
    import sys

    mailbox = os.environ.get("GPU_TRACKER_MAILBOX", "").partition(os.pathsep)[0]
    try:
        writer = f"{os.getpid()}-{os.stat('/proc/self/ns/pid').st_ino}"
        os.mknod(f"{mailbox}/{writer}-{0:08x}.unfollowed", 0o600)
    except FileExistsError:
        pass
    except OSError as error:
        has_ended = isinstance(error, FileNotFoundError) and _is_gone(mailbox)
        if mailbox and not has_ended:
            outbox = sys.modules.get(f"{__name__}.instrument.outbox")
            if outbox is not None:
                outbox.note_for_others(is_of_metrics=name == "log")
            _say_once(
                f"Regions and metrics of process {os.getpid()} are not recorded: {error.strerror}: {mailbox}"
            )


def _is_gone(mailbox: str) -> bool:
    """As `instrument.mailbox` tells it."""
    import os

    place, _, name = mailbox.rpartition("/")
    try:
        around = os.stat(os.path.dirname(place))
    except OSError:
        return False
    return f".{around.st_dev:x}_{around.st_ino:x}" in name


_said: list[str] = []


def _say_once(text: str) -> None:
    import sys

    if text not in _said:
        _said.append(text)
        try:
            sys.stderr.write(f"gpu_tracker: {text}\n")
        except (OSError, ValueError, AttributeError):
            pass  # there is none


def reclaim(empty_cache: bool = False) -> Reclaimed:
    """Get back memory that nobody needs: frames of the last traceback, then garbage. What each step gave is in the result.

    A traceback keeps the variables of every function it went through, which may be a whole model; they are forgotten, so
    a debugger (`%debug`) finds none. The cache of PyTorch is emptied only if asked: this process would only have to fill it again, so it
    helps other processes alone.
    """
    # Here rather than loaded when it is first used: garbage would be collected by that, unnoticed.
    import gc

    was_on = gc.isenabled()
    gc.disable()
    try:
        from .api.memory import reclaim

        return reclaim(empty_cache)
    finally:
        if was_on:
            gc.enable()


_loading = _RLock()
"""Held while a name is loaded, and while this process is forked: a child in which a thread was loading could never load again."""
_LONGEST_LOADING_SECONDS = 5.0


def _is_loading() -> bool:
    """Whether this thread is, further up."""
    return bool(_loading._is_owned())  # type: ignore[attr-defined] # noqa: SLF001 - as Condition asks it


def _wait_for_loading() -> None:
    _loading.acquire(True, _LONGEST_LOADING_SECONDS)


def _go_on_after_fork() -> None:
    if _is_loading():
        _loading.release()


def _forget_after_fork() -> None:
    global _loading
    _loading = _RLock()


if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(
        before=_wait_for_loading, after_in_parent=_go_on_after_fork, after_in_child=_forget_after_fork
    )


_load_outbox()


def __getattr__(name: str) -> object:
    # Not importlib: what is loaded already needs no descriptor.
    if name in _PACKAGES:
        return __import__(f"{__name__}.{name}", fromlist=(name,))
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _HARMLESS and (_is_finalizing() or _is_loading()):
        # A thread that was stopped may have been loading it; or we were, and a signal handler or finalizer has interrupted us.
        return _HARMLESS[name]
    is_held = _loading.acquire(True, _LONGEST_LOADING_SECONDS)
    try:
        value: object = getattr(__import__(f"{__name__}.{_MODULES[name]}", fromlist=(name,)), name)
    except (ImportError, OSError, MemoryError, RecursionError) as error:
        # No descriptor, no memory, another root: a region must not end the program. The next use tries again.
        if name not in _HARMLESS or isinstance(error, TimeoutError):
            raise
        _say_unfollowed(name)
        return _HARMLESS[name]
    finally:
        if is_held:
            _loading.release()
    globals()[name] = value  # from now on it is found at once
    return value


def load_ipython_extension(shell: object) -> None:
    """What `%load_ext gpu_tracker` calls: it adds the magic `%track`."""
    from .integrations.ipython import add_magic

    add_magic(shell)


def unload_ipython_extension(shell: object) -> None:
    """What `%unload_ext gpu_tracker` calls."""
    from .integrations.ipython import remove_magic

    remove_magic(shell)


def __dir__() -> list[str]:
    return __all__

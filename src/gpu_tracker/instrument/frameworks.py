"""GPU memory of PyTorch, JAX and TensorFlow by their own figures, read inside the process that uses them.

Only what already runs is read: nothing is imported, no device initialised, no counter reset. Some of this is not public
API, so any error only means that nothing is known; it never disturbs the job.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import RLock, allocate_lock, start_new_thread
from contextlib import suppress

from ..core.model import FrameworkReading
from .locks import replace_if_lost
from .mailbox import FRAMEWORKS_SUFFIX, UNFINISHED_SUFFIX, check_size, name_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

# Rare, because their allocators keep the peaks.
_SECONDS = 1.0
_TORCH_BACKENDS = ("cuda", "xpu")  # AMD's is called cuda, too
_JAX_BACKENDS = "jax._src.xla_bridge"
_TENSORFLOW_CONTEXT = "tensorflow.python.eager.context"


def is_worth_watching(modules: Mapping[str, Any]) -> bool:
    """Whether a framework is loaded that can use GPUs."""
    version = getattr(modules.get("torch"), "version", None)
    return (
        any(getattr(version, name, None) for name in ("cuda", "hip", "xpu"))
        or bool(_find_jax_clients(modules))
        or _find_tensorflow(modules) is not None
    )


def read_frameworks(modules: Mapping[str, Any]) -> list[FrameworkReading]:
    """The memory of each running framework on each device that it has used."""
    readings: list[FrameworkReading] = []
    for read in _READERS:
        # Half imported, changed in a new version, or shutting down: then it is unknown.
        with suppress(Exception):
            readings.extend(read(modules))
    return readings


def empty_caches(modules: Mapping[str, Any]) -> None:
    """Return what PyTorch keeps for reuse to the driver; other frameworks have no such function."""
    for _, backend in _list_torch(modules):
        with suppress(Exception):
            backend.empty_cache()


def _list_torch(modules: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Its backends that run."""
    for name in _TORCH_BACKENDS:
        backend = getattr(modules.get("torch"), name, None)
        if backend is not None and backend.is_initialized():
            yield name, backend


def _read_torch(modules: Mapping[str, Any]) -> Iterator[FrameworkReading]:
    for name, backend in _list_torch(modules):
        for index in range(backend.device_count()):
            # One call, without the sorting and flattening of the other functions.
            stats = backend.memory_stats_as_nested_dict(index)
            in_use, held = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
            if not held["peak"] and not in_use["peak"]:
                continue  # never used
            yield FrameworkReading(
                framework="PyTorch",
                device=f"{name}:{index}",
                uuid=str(getattr(backend.get_device_properties(index), "uuid", "")),
                in_use_bytes=in_use["current"],
                peak_in_use_bytes=in_use["peak"],
                held_bytes=held["current"],
                peak_held_bytes=held["peak"],
                flushes=stats.get("num_alloc_retries", 0),
                failures=stats.get("num_ooms", 0),
            )


def _read_jax(modules: Mapping[str, Any]) -> Iterator[FrameworkReading]:
    devices = (device for client in _find_jax_clients(modules) for device in client.local_devices())
    for device in devices:
        stats = device.memory_stats()
        if stats:  # None for CPUs
            yield FrameworkReading(
                framework="JAX",
                device=str(device),
                uuid="",
                in_use_bytes=stats["bytes_in_use"],
                peak_in_use_bytes=stats["peak_bytes_in_use"],
                held_bytes=stats.get("pool_bytes"),
                peak_held_bytes=stats.get("peak_pool_bytes"),
            )


def _find_jax_clients(modules: Mapping[str, Any]) -> list[Any]:
    """Existing clients only: asking JAX for its devices would create them, and take 75 % of a GPU."""
    return list(getattr(modules.get(_JAX_BACKENDS), "_backends", {}).values())


def _read_tensorflow(modules: Mapping[str, Any]) -> Iterator[FrameworkReading]:
    context = _find_tensorflow(modules)
    for index, _ in enumerate([] if context is None else context.list_logical_devices("GPU")):
        stats = context.get_memory_info(f"GPU:{index}")
        yield FrameworkReading("TensorFlow", f"GPU:{index}", "", stats["current"], stats["peak"])


def _find_tensorflow(modules: Mapping[str, Any]) -> Any:
    context = getattr(modules.get(_TENSORFLOW_CONTEXT), "_context", None)
    return context if getattr(context, "_initialized", False) else None


_READERS: tuple[Callable[[Mapping[str, Any]], Iterator[FrameworkReading]], ...] = (
    _read_torch,
    _read_jax,
    _read_tensorflow,
)


class FrameworkWatch:
    """Writes the frameworks' memory to the mailbox, once a second and at the end."""

    def __init__(self, mailbox: str, *, was_running_before: bool) -> None:
        self._path = name_file(mailbox, FRAMEWORKS_SUFFIX)
        before = read_frameworks(sys.modules) if was_running_before else []
        self._peaks_before = {(one.framework, one.device): one for one in before}
        self._writing = RLock()
        self._is_open = True
        self._waiting = allocate_lock()
        self._waiting.acquire()

    def start(self) -> None:
        """Write repeatedly, in a thread that is not in the program's own list of threads."""
        try:
            start_new_thread(self._run, ())
        except RuntimeError:
            pass  # no more threads allowed: it is written at the end only

    def close(self) -> None:
        """Write one last time."""
        self._write(is_last=True)
        self._is_open = False
        self._waiting.release()

    def _run(self) -> None:
        while self._is_open and not self._waiting.acquire(timeout=_SECONDS):
            self._write(is_last=False)

    def _write(self, *, is_last: bool) -> None:
        with replace_if_lost(self._writing):
            readings = [self._compare(reading) for reading in read_frameworks(sys.modules)]
            if not readings or not self._is_open or sys.is_finalizing():
                return
            import json

            text = json.dumps([time.monotonic_ns(), is_last, readings])
            try:
                check_size(len(text))
                with open(f"{self._path}{UNFINISHED_SUFFIX}", "w", encoding="ascii") as file:
                    file.write(text)
                os.rename(file.name, self._path)
            except OSError:
                self._is_open = False  # the tracker has ended, or the disk is full

    def _compare(self, reading: FrameworkReading) -> FrameworkReading:
        before = self._peaks_before.get((reading.framework, reading.device))
        if before is None:
            return reading
        return reading._replace(
            earlier_peak_in_use_bytes=before.peak_in_use_bytes,
            earlier_peak_held_bytes=before.peak_held_bytes or 0,
        )

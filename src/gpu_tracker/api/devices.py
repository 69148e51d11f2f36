"""The GPUs of this machine as they are now, for scripts: `gpu_tracker.gpus()`."""

from __future__ import annotations

import math
import os
import time
from _thread import allocate_lock

from ..core.errors import TrackerError, UsageError
from ..core.notices import warn_once
from ..core.observation import list_gpus, list_notes
from ..sampler.handle.client import DEFAULT_PATIENCE_SECONDS, ObserverClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.observation import Device, Observation


_LEAST_SECONDS = 0.1
# Whoever asks so often, each time within this time, is likely to ask again.
_FEWEST_IN_A_ROW, _LINGER_SECONDS = 3, 5.0


class _Devices(list["Device"]):
    """A list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        from ..reports.notebook import show_devices

        return show_devices(self)


class _Kept:
    """The process that asks the drivers, kept while somebody asks again and again."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._client: ObserverClient | None = None
        self._asked_seconds = -math.inf
        self._n_in_a_row = 0

    def observe(self, timeout_seconds: float, root_pid: int | None) -> Observation:
        """Whoever asks only once, or from several threads at once, has a process of its own."""
        if not self._lock.acquire(blocking=False):
            return _observe_once(timeout_seconds, root_pid)
        try:
            before, self._asked_seconds = self._asked_seconds, time.monotonic()
            is_soon = self._asked_seconds - before <= _LINGER_SECONDS
            self._n_in_a_row = self._n_in_a_row + 1 if is_soon else 1
            if self._n_in_a_row < _FEWEST_IN_A_ROW:
                self._drop()
                return _observe_once(timeout_seconds, root_pid)
            return self._observe_again(timeout_seconds, root_pid)
        except BaseException:
            self._drop()
            raise
        finally:
            self._lock.release()

    def _observe_again(self, timeout_seconds: float, root_pid: int | None) -> Observation:
        client = self._client
        if client is not None and not client.is_gone:
            client.patience_seconds = timeout_seconds
            try:
                return client.observe(root_pid=root_pid, linger_seconds=_LINGER_SECONDS)
            except TrackerError:
                client.kill()  # it has just ended, or crashed, or somebody has stopped it: that is said if it happens again
        self._drop()
        self._client = ObserverClient(timeout_seconds)
        observation = self._client.observe(root_pid=root_pid, linger_seconds=_LINGER_SECONDS)
        if (
            self._client.is_child
        ):  # nobody would wait for it after its end: we inherit orphans, like process 1
            self._drop()
        return observation

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


_kept = _Kept()


def _forget_after_fork() -> None:
    """Another thread may have held the lock; the other process keeps its client."""
    global _kept
    _kept = _Kept()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def _observe_once(timeout_seconds: float, root_pid: int | None) -> Observation:
    with ObserverClient(timeout_seconds) as client:
        return client.observe(root_pid=root_pid)


def gpus(timeout_seconds: float = DEFAULT_PATIENCE_SECONDS, *, visible: bool = False) -> list[Device]:
    """Every GPU of this machine, of any vendor, as it is now; with `visible`, those that this process may use.

        import gpu_tracker as gput

        for gpu in gput.gpus():
            print(gpu.index, gpu.name, gpu.memory_free_bytes, gpu.utilization_percent)
        free = max(gput.gpus(), key=lambda gpu: gpu.memory_free_bytes or 0)

    No driver is loaded into this process: another one asks it, so a program may fork before and after, and a driver
    that hangs costs `timeout_seconds` and no more. That process is gone when this returns; if it is called again and
    again, it stays until nobody has asked for a few seconds, and a call takes milliseconds.
    Of a device that is split into MIG instances these are listed, each with its `parent`, which has the temperature and the power.
    Which devices may be used is what the environment says (`CUDA_VISIBLE_DEVICES`, a scheduler's variables...).
    The list is empty on a machine without GPUs, or if a driver crashes that process, which is logged; `gpu-tracker
    doctor` shows why one is missing.
    """
    _check_timeout(timeout_seconds)
    try:
        _, devices = observe(timeout_seconds)
    except TrackerError as error:
        warn_once(str(error))
        return _Devices()
    usable = _find_usable(devices)
    return _Devices(_choose_visible(usable) if visible else usable)


def _find_usable(devices: Sequence[Device]) -> list[Device]:
    """Instances instead of the devices that are split into them, which they know."""
    wholes = {device.gpu.uuid: device for device in devices if device.gpu.is_split}
    return [
        device.within(wholes.get(device.gpu.parent_uuid or ""))
        for device in devices
        if not device.gpu.is_split
    ]


def _choose_visible(devices: Sequence[Device]) -> list[Device]:
    from ..sources.gpu.visible import choose_visible

    chosen = choose_visible([device.gpu for device in devices], os.environ)
    return [device for device in devices if device.gpu.uuid in chosen]


def observe(timeout_seconds: float, *, root_pid: int | None = None) -> tuple[Observation, tuple[Device, ...]]:
    """The machine as it is now, and its devices; problems are said once. With a process, the memory of its tree."""
    _check_timeout(timeout_seconds)
    observation = _kept.observe(timeout_seconds, root_pid)
    for text in list_notes(observation):
        warn_once(text)
    return observation, list_gpus(observation)


def _check_timeout(seconds: object) -> None:
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not _LEAST_SECONDS <= seconds < math.inf:  # type: ignore[operator]
        raise UsageError(
            f"gpus({seconds!r}): the argument is how long to wait for a driver, at least {_LEAST_SECONDS} seconds.",
            "It returns every GPU: gpus()[0] is the first.",
        )

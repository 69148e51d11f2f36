"""The GPUs of this machine as they are now, for scripts: `gpu_tracker.gpus()`."""

from __future__ import annotations

import math

from ..core.errors import UsageError
from ..core.notices import warn_once
from ..core.observation import list_gpus, list_notes
from ..sampler.handle.client import DEFAULT_PATIENCE_SECONDS, ObserverClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.observation import Device


_LEAST_SECONDS = 0.1


def gpus(timeout_seconds: float = DEFAULT_PATIENCE_SECONDS) -> list[Device]:
    """Every GPU of this machine, of any vendor, as it is now.

        import gpu_tracker as gput

        for gpu in gput.gpus():
            print(gpu.index, gpu.name, gpu.memory_free_bytes, gpu.utilization_percent)
        free = max(gput.gpus(), key=lambda gpu: gpu.memory_free_bytes or 0)

    No driver is loaded into this process: a short-lived one asks it and is gone when this returns, so a
    program may fork before and after, and a driver that hangs costs `timeout_seconds` and no more.
    The list is empty on a machine without GPUs; `gpu-tracker doctor` shows why one is missing.
    """
    _check_timeout(timeout_seconds)
    with ObserverClient(timeout_seconds) as client:
        observation = client.observe()
    for text in list_notes(observation):
        warn_once(text)
    return list(list_gpus(observation))


def _check_timeout(seconds: object) -> None:
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not _LEAST_SECONDS <= seconds < math.inf:  # type: ignore[operator]
        raise UsageError(
            f"gpus({seconds!r}): the argument is how long to wait for a driver, at least {_LEAST_SECONDS} seconds.",
            "It returns every GPU: gpus()[0] is the first.",
        )

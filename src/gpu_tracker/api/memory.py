"""Memory as it is now, and getting back what nobody needs any more: `memory()`, `reclaim()`."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import contextmanager

from ..analysis.memory import RamMemory, split_gpus
from ..core.model import add_known
from ..core.values import NamedTuple
from ..instrument.frameworks import empty_caches, read_frameworks
from ..instrument.high_water import read_own_memory
from ..instrument.tracebacks import clear_frames, list_last_errors
from ..reports.memory import Memory, Reclaimed, Step
from ..sampler.handle.client import DEFAULT_PATIENCE_SECONDS
from ..sources.allocation import read_allocation
from ..sources.gpu.visible import choose_visible
from .devices import observe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def memory(timeout_seconds: float = DEFAULT_PATIENCE_SECONDS) -> Memory:
    """RAM, and the memory of every GPU that this process may use: tensors, cached, context, other processes, free.

        print(gput.memory())
        gput.memory().gpus[0].free_bytes

    Nothing is imported, no device initialised: a GPU that was not used stays unused. What is not known is None.
    """
    observation, devices = observe(timeout_seconds, root_pid=os.getpid())
    visible = choose_visible([device.gpu for device in devices], os.environ)
    mine = [device for device in devices if device.gpu.uuid in visible]
    allocation, _ = read_allocation(os.getpid(), os.environ)
    return Memory(
        RamMemory(
            process_bytes=_read_ram(),
            tree_bytes=observation.tree_bytes,
            capacity_bytes=allocation.ram_bytes,
            capacity_source=allocation.ram_source,
        ),
        split_gpus(mine, os.getpid(), read_frameworks(sys.modules)),
    )


def reclaim(empty_cache: bool = False) -> Reclaimed:
    """The public one, once this is loaded."""
    with without_collection():
        errors = _list_errors()
        _read_held()  # so that what it loads is in no step
        steps = [
            take_step("frames of the last traceback", lambda: clear_frames(errors)),
            take_step("garbage", gc.collect),
        ]
        if empty_cache:
            steps.append(take_step("cache of the framework", lambda: empty_caches(sys.modules)))
        held = _read_held()
    cached = None if held.gpu_bytes is None else held.gpu_bytes - (held.tensors_bytes or 0)
    return Reclaimed(tuple(steps), cached)


@contextmanager
def without_collection() -> Iterator[None]:
    """Garbage is collected only when that is asked for, so that it is known what it gives back."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Held(NamedTuple):
    """What this process holds at one moment. None is not known."""

    ram_bytes: int | None
    tensors_bytes: int | None
    gpu_bytes: int | None
    """By frameworks, with their caches."""


def _read_held() -> Held:
    readings = read_frameworks(sys.modules)
    return Held(
        _read_ram(),
        add_known(reading.in_use_bytes for reading in readings) if readings else None,
        add_known(reading.held_bytes for reading in readings) if readings else None,
    )


def take_step(name: str, act: Callable[[], int | None]) -> Step:
    """Do something, and see what it gives back."""
    before = _read_held()
    count = act() or 0
    return Step(name, count, *map(_subtract, before, _read_held()))


def _subtract(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else before - after


def _read_ram() -> int | None:
    resident, _ = read_own_memory()
    return None if resident < 0 else resident


def _list_errors() -> list[BaseException]:
    from ..integrations.ipython import list_kept_errors

    return [*list_last_errors(), *list_kept_errors()]

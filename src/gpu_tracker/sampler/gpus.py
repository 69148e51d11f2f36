"""GPUs are read in a thread of their own: a driver that takes its time must not delay anything else."""

from __future__ import annotations

import time
from importlib import import_module

from ..model import Mark
from ..sources import NotAvailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from ..model import Gpu, GpuLook
    from ..sources import GpuSource


def list_gpus() -> tuple[list[Gpu], list[str]]:
    """Every device that can be seen from here, and why others cannot."""
    gpus: list[Gpu] = []
    notes: list[str] = []
    for name in ("nvml",):
        module = import_module(f"..sources.{name}", __package__)
        reason = module.why_absent()
        if reason:
            notes.append(reason)
            continue
        try:
            gpus.extend(module.connect(time.monotonic).gpus)
        except NotAvailableError as error:
            notes.append(str(error))
    return gpus, notes


class GpuWatch:
    """Reads every GPU source there is, and hands over what it has when asked."""

    def __init__(self, start_seconds: float, interval_seconds: float, max_overhead: float) -> None:
        self._start_seconds = start_seconds
        self._interval_seconds = interval_seconds
        self._max_overhead = max_overhead
        # Lists are swapped, not locked: appending and swapping are single steps of the interpreter.
        self._looks: list[GpuLook] = []
        self._marks: list[Mark] = []
        sources: list[ModuleType] = []
        for name in ("nvml",):
            module = import_module(f"..sources.{name}", __package__)
            reason = module.why_absent()
            if reason:
                self._marks.append(Mark(0.0, "note", reason))
            else:
                sources.append(module)
        if sources:
            import threading

            threading.Thread(target=self._watch, args=(sources,), daemon=True).start()

    def take_looks(self) -> list[GpuLook]:
        """The looks since the last call."""
        looks, self._looks = self._looks, []
        return looks

    def take_marks(self) -> list[Mark]:
        """Devices found and things to say since the last call."""
        marks, self._marks = self._marks, []
        return marks

    def _watch(self, modules: list[ModuleType]) -> None:
        sources: list[GpuSource] = []
        for module in modules:
            try:
                source: GpuSource = module.connect(self._now)
            except NotAvailableError as reason:
                self._say(str(reason))
                continue
            sources.append(source)
            at = self._now()
            self._marks.extend(Mark(at, "gpu", gpu=gpu) for gpu in source.gpus)
        while sources:
            spent = time.thread_time()
            for source in sources:
                self._looks.append(source.read(None))
                for note in source.take_notes():
                    self._say(note)
            spent = time.thread_time() - spent
            time.sleep(max(self._interval_seconds, spent / self._max_overhead))

    def _say(self, text: str) -> None:
        self._marks.append(Mark(self._now(), "note", text))

    def _now(self) -> float:
        return time.monotonic() - self._start_seconds

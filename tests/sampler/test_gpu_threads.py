"""The threads that read GPUs."""

from __future__ import annotations

import pytest

from gpu_tracker.core.model import Gpu, GpuReadings
from gpu_tracker.sampler import gpu_threads


class RareSource:
    """Gives a new reading every third time, and has no devices after nine."""

    def __init__(self) -> None:
        self.gpus: tuple[Gpu, ...] = (Gpu(0, "GPU-a", "A", None),)
        self.reasons: dict[tuple[str, str], str] = {}
        self._n_reads = 0

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """The latest reading."""
        at_seconds = 1e9 + self._n_reads // 3
        self._n_reads += 1
        if self._n_reads == 9:
            self.gpus = ()
        return GpuReadings(at_seconds)

    def take_notes(self) -> tuple[str, ...]:
        """Nothing."""
        return ()


def test_a_repeated_reading_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old reading must not be attributed to a region that began since."""
    monkeypatch.setattr(gpu_threads, "connect", lambda _: (RareSource(), "rare", ()))
    watch = gpu_threads.GpuThreads(0.001, 1.0, ("nvidia",), (), {})
    watch._vendor_threads[0]._thread.join()

    assert len(watch.take_readings()) == 3

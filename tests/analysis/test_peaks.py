"""Peaks in words."""

from __future__ import annotations

from gpu_tracker.analysis.peaks import explain_peak
from gpu_tracker.core.model import PeakMoment, PeakProcess

GB = 10**9


def hold(*processes: tuple[str, float], others: int = 0) -> PeakMoment:
    """A peak at 3:12 that these processes held; the first is the tracked one."""
    parts = [PeakProcess(number + 1, name, int(size * GB)) for number, (name, size) in enumerate(processes)]
    size = sum(part.size_bytes for part in parts)
    return PeakMoment("ram", 192.0, size, len(parts) + others, tuple(parts))


def test_processes_of_one_name_are_told_together() -> None:
    """The largest part first, and where it was."""
    moment = hold(("python", 10.9), *[("pt_data_worker", 2.4)] * 8)._replace(
        regions=(("epoch", "eval"), ("io",))
    )

    assert (
        explain_peak(moment, 1)
        == "30.1 GB at 3:12: 8 × pt_data_worker 2.4 GB, main 10.9 GB; in epoch/eval, io"
    )


def test_sizes_that_differ_are_a_range() -> None:
    """A mean would hide the large one."""
    moment = hold(("python", 1), ("worker", 1), ("worker", 4))

    assert explain_peak(moment, 1) == "6 GB at 3:12: 2 × worker 1 GB to 4 GB, main 1 GB"


def test_many_processes_are_counted() -> None:
    """Four groups are shown; a process may have no name."""
    moment = hold(("python", 6), ("a", 5), ("b", 4), ("c", 3), ("d", 2), ("", 1), others=10)

    assert explain_peak(moment, 1) == "21 GB at 3:12: main 6 GB, a 5 GB, b 4 GB, c 3 GB, and 12 more"
    assert explain_peak(hold(("", 1)), 99) == "1 GB at 3:12: ? 1 GB"


def test_a_peak_of_which_nobody_is_known_has_its_time() -> None:
    """As of a device that lists no processes."""
    assert explain_peak(hold()._replace(size_bytes=GB, at_seconds=93784.0), 1) == "1 GB at 26:03:04"

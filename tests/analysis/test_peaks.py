"""Who held the memory at a peak."""

from __future__ import annotations

import pytest

from builders import MB, header
from gpu_tracker.analysis.peaks import describe_peak
from gpu_tracker.core.model import PeakMoment, PeakProcess

MAIN = PeakProcess(100, "python", 10_900 * MB)


def workers(count: int, name: str = "pt_data_worker") -> tuple[PeakProcess, ...]:
    """Processes of one name."""
    return tuple(PeakProcess(200 + number, name, 2400 * MB) for number in range(count))


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (
            PeakMoment("ram", 11_530.0, 30_100 * MB, 9, (MAIN, *workers(7)), (("epoch", "eval"),)),
            "peak 30.1 GB after 3 h 12 min 10 s: 7 × pt_data_worker 2.4 GB each, main 10.9 GB, 1 more; in epoch/eval",
        ),
        (PeakMoment("ram", 2.0, 10_900 * MB, 1, (MAIN,)), "peak 10.9 GB after 2 s: main 10.9 GB"),
        (PeakMoment("ram", 2.0, 5 * MB, 3), "peak 5 MB after 2 s"),
        (
            PeakMoment("ram", 2.0, 5 * MB, 4, tuple(PeakProcess(n, f"p{n}", n * MB) for n in range(1, 5))),
            "peak 5 MB after 2 s: p4 4 MB, p3 3 MB, p2 2 MB, 1 more",
        ),
        (
            PeakMoment("ram", 2.0, 5 * MB, 1, workers(1, "a\nb"), (("a",), ("b",), ("c",))),
            "peak 5 MB after 2 s: a?b 2.4 GB; in a, b and 1 more",
        ),
    ],
)
def test_a_peak_is_explained_in_one_line(moment: PeakMoment, words: str) -> None:
    """Processes of one name together, the tracked one as main."""
    assert describe_peak(moment, header(pid=100)) == words

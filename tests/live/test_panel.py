"""A running job as a line of a log, and as lines below its output."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gpu_tracker.analysis.findings.finding import CERTAIN, SERIOUS, WARNING, Finding
from gpu_tracker.core.text import RED, YELLOW, Span, count_cells
from gpu_tracker.live.glimpse import Glimpse
from gpu_tracker.live.panel import abandon, build_line, build_panel, draw, release, reserve
from live.glimpses import make_gpu, make_interval

BUSY = Glimpse(
    725.0,
    cores=8.0,
    ram_bytes=32 * 2**30,
    intervals=tuple(make_interval(cpu_cores=cores, gpus=(make_gpu(),)) for cores in (2.6, 5.2)),
    region="epoch 3/train",
    metrics="loss 0.41",
)


def read(lines: Sequence[Sequence[Span]]) -> list[str]:
    """Without styles."""
    return ["".join(span.text for span in line) for line in lines]


def test_a_line_for_a_log() -> None:
    """Everything that is known."""
    assert build_line(BUSY) == (
        "gpu-tracker 0:12:05  5.2 of 8 cores  RAM 11.2 of 32 GiB  GPU 0 87 % 18 of 24 GiB  epoch 3/train  loss 0.41"
    )


def test_what_is_not_known_is_left_out() -> None:
    """Of a job that has just begun, of its figures, and of devices."""
    gpus = (make_gpu(utilization_percent=None, memory_bytes=None), make_gpu(1, used_bytes=None))
    unknown = make_interval(cpu_cores=None, ram_bytes=None, gpus=gpus)

    assert build_line(Glimpse(0.0)) == "gpu-tracker 0:00:00"
    assert build_line(Glimpse(1.0, intervals=(unknown,))) == "gpu-tracker 0:00:01  GPU 0 19.3 GB  GPU 1 87 %"


def test_the_panel_has_pictures() -> None:
    """Over time, as high as the most."""
    assert read(build_panel(BUSY, 80, has_unicode=True)) == [
        "── gpu-tracker 0:12:05 ── epoch 3/train ── loss 0.41 " + "─" * 27,
        "5.2 of 8 cores ▅█  RAM 11.2 of 32 GiB ██",
        "GPU 0 87 % 18 of 24 GiB  ",
    ]


def test_the_panel_in_ascii() -> None:
    """For a terminal that has nothing else."""
    head, use = read(build_panel(BUSY._replace(intervals=(make_interval(),)), 60, has_unicode=False))

    assert head == "-- gpu-tracker 0:12:05 -- epoch 3/train -- loss 0.41 " + "-" * 7
    assert use == "5.2 of 8 cores #  RAM 11.2 of 32 GiB #"


@pytest.mark.parametrize("columns", [20, 45, 52, 80, 200])
def test_pictures_have_the_room_that_is_left(columns: int) -> None:
    """Where there is hardly any, there are none."""
    glimpse = BUSY._replace(intervals=(make_interval(),) * 40)
    use = read(build_panel(glimpse, columns, has_unicode=True))[1]

    assert use.startswith("5.2 of 8 cores ")
    assert ("█" in use) == (columns >= 52)
    assert count_cells(use) <= max(columns, 38)


def test_the_panel_before_the_first_sample() -> None:
    """It says what it waits for."""
    assert read(build_panel(Glimpse(0.0), 30, has_unicode=True)) == [
        "── gpu-tracker 0:00:00 ───────",
        "waiting for the first sample",
    ]


@pytest.mark.parametrize(("severity", "style"), [(SERIOUS, RED), (WARNING, YELLOW)])
def test_the_worst_finding_comes_last(severity: str, style: str) -> None:
    """In the colour of its severity."""
    findings = (
        Finding("ram-tight", severity, CERTAIN, "RAM is full."),
        Finding("b", WARNING, CERTAIN, "More."),
    )
    lines = build_panel(BUSY._replace(findings=findings), 80, has_unicode=True)

    assert len(lines) == 4
    assert lines[-1] == (Span(f"{severity}: RAM is full.", style),)


def test_room_is_made_below_the_cursor() -> None:
    """The whole screen first; then room, which is cleared; then only what is above it scrolls."""
    assert reserve(24, 2) == "\x1b7\x1b[r\x1b8\x1bD\x1bD\x1b[2A\x1b7\x1b[0m\x1b[E\x1b[J\x1b[1;22r\x1b8"


def test_a_frame_leaves_the_cursor_where_it_was() -> None:
    """Each line in its row, after it was cleared."""
    assert draw(["a", "b"], 24) == (
        "\x1b[?2026h\x1b7\x1b[0m\x1b[23;1H\x1b[Ka\x1b[24;1H\x1b[Kb\x1b8\x1b[?2026l"
    )


def test_the_screen_is_given_back() -> None:
    """All of it, without our lines."""
    assert abandon() == "\x1b7\x1b[r\x1b8\x1bD\x1b[A\x1b7\x1b[0m\x1b[E\x1b[J\x1b8"
    assert release(24, 2) == "\x1b7\x1b[r\x1b[23;1H\x1b[0m\x1b[J\x1b8"

"""A report on a terminal: one screen, never broken inside a word, readable without colours and without Unicode."""

from __future__ import annotations

import re
from math import nan
from pathlib import Path
from typing import Any

import pytest

from builders import MB, header, recording, render_str, sample, totals
from gpu_tracker.core.model import Allocation, PeakMoment, PeakProcess, Stalls, TreeCounters, add_parts
from gpu_tracker.core.text import count_cells
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import Report, build
from rich import FINDINGS, make_rich, report_rich

GOLDEN = Path(__file__).parent / "golden"
VIEWS: dict[str, tuple[int, dict[str, Any]]] = {
    "60-ascii.txt": (8, {"columns": 60, "has_unicode": False}),
    "80.txt": (2, {"columns": 80}),
    "80-one-gpu.txt": (1, {"columns": 80}),
    "pipe.txt": (0, {}),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_whole_report_looks_like_this(name: str) -> None:
    """To see a change before users do; `GOLDEN` has what was looked at."""
    n_gpus, view = VIEWS[name]

    assert render_str(report_rich(n_gpus), **view) == (GOLDEN / name).read_text("utf-8")


@pytest.mark.parametrize("columns", [60, 80, 132, 200])
@pytest.mark.parametrize("n_gpus", [0, 1, 2, 8, 20])
def test_no_line_is_wider_than_the_terminal(columns: int, n_gpus: int) -> None:
    """Every word is still whole: put together again, the text is that of a pipe."""
    report = report_rich(n_gpus)._replace(regions=(), metrics=())
    lines = render_str(report, columns=columns).splitlines()
    words = " ".join(lines).split()
    whole = render_str(report).split()

    assert max(map(count_cells, lines)) <= columns
    assert [word for word in words if not re.search("[▁-█░]", word)] == [
        word for word in whole if not re.search("[▁-█░]", word)
    ]


def test_colours_add_nothing_that_is_not_said() -> None:
    """Without them, the text is the same."""
    plain, painted = (render_str(report_rich(), columns=80, has_colour=colour) for colour in (False, True))

    assert re.sub("\x1b\\[[0-9]*m", "", painted) == plain
    assert "\x1b[31mserious\x1b[0m: 34 %" in painted
    assert "\x1b[33mwarning\x1b[0m: GPU 1" in painted
    assert painted.startswith("\x1b[1mpython train.py")


def test_a_terminal_without_unicode_gets_ascii() -> None:
    """Names too."""
    text = render_str(report_rich(2, "näme"), columns=80, has_unicode=False)

    assert text.isascii()
    assert "n?metrain.py" in text


def test_a_short_run_has_no_pictures() -> None:
    """Four samples are the fewest that show anything, and a second the shortest time."""
    few = make_rich(samples=make_rich().samples[:3])
    brief = recording(samples=[sample(at / 10) for at in range(1, 10)], totals=totals(at_seconds=0.9))

    for shown in (few, brief):
        assert not re.search("[▁-█]", render_str(build(shown, read_columns(shown))))


def test_a_line_that_is_flat_near_zero_looks_so() -> None:
    """Noise at a thousandth of what there is would fill it otherwise."""
    tiny = recording(
        samples=[sample(float(at), cpu_seconds=add_parts(at * 1e-4, 0.0)) for at in range(1, 11)]
    )
    text = render_str(build(tiny, read_columns(tiny)))

    assert text.count("▁" * 40) == 2


def test_what_is_not_known_is_a_gap() -> None:
    """Not zero."""
    report = report_rich(0)
    assert report.columns is not None
    cores = report.columns.cpu_cores
    hidden = cores.combined[:]
    for index in range(40, 80):
        hidden[index] = nan
    columns = report.columns._replace(cpu_cores=cores._replace(combined=hidden))

    assert " " * 7 in render_str(report._replace(columns=columns)).splitlines()[3].strip()


def with_activity(counters: TreeCounters, stalls: Stalls | None = None) -> str:
    """The text of a run of ten seconds that did that."""
    return render_str(build(recording(totals=totals(counters=counters, stalls=stalls or Stalls()))))


def test_storage_and_waiting_are_shown_if_they_matter() -> None:
    """More than 100 MB, more than a twentieth of the time."""
    much = with_activity(TreeCounters(2 * 10**8, 0, 0, 0, 0.6), Stalls(0.6, 0.6, 0.6, throttled_seconds=0.7))

    assert "I/O    200 MB read from storage, 0 B written" in much
    assert "waits  threads waited 0.6 s for a core, all together" in much
    assert "stopped by its CPU quota for 7 % of the time" in much
    assert "something on the machine waited for a core 6 %, memory 6 %, storage 6 % of the time" in much
    for little in (with_activity(TreeCounters()), with_activity(TreeCounters(99 * MB, 99 * MB, 0, 0, 0.4))):
        assert "I/O" not in little
        assert "wait" not in little


@pytest.mark.parametrize(
    ("expected", "others", "words"),
    [
        (4.0, 20.0, "others used 2 of 4 cores on average"),
        (2.0, 20.0, "the machine has 4 cores; others used 2 of them on average"),
        (2.0, 3.0, "the machine has 4 cores\n"),
        (4.0, 3.0, ""),
    ],
)
def test_others_on_the_machine_are_named(expected: float, others: float, words: str) -> None:
    """From half a core on, and a tenth of the machine."""
    made = recording(
        header=header(
            allocation=Allocation(4, expected, "affinity", 16_000 * MB, 16_000 * MB, "machine"),
            n_expected_cores=expected,
        ),
        totals=totals(system_cpu_seconds=10.0 + others),
    )

    assert words in render_str(build(made))
    assert words or "others" not in render_str(build(made))


def test_a_peak_is_explained_if_that_says_something() -> None:
    """A single process without regions does not."""
    alone = PeakMoment("ram", 1.0, 500 * MB, 1, (PeakProcess(100, "python", 500 * MB),))

    assert "after 1 s" not in render_str(build(recording(peak_moments=(alone,))))
    inside = alone._replace(regions=(("epoch",),))
    assert "peak 500 MB at 1 s: main 500 MB; in epoch" in render_str(build(recording(peak_moments=(inside,))))


def test_many_devices_are_counted() -> None:
    """Sixteen have a line; a device that reports nothing has dashes."""
    assert "and 4 more devices (-f json has all)" in render_str(report_rich(20))
    report = report_rich(3)
    gpus = [gpu._replace(mean_percent=None, mean_watts=None, throttled=()) for gpu in report.summary.gpus]
    gpus[0] = gpus[0]._replace(job_bytes=gpus[0].job_bytes._replace(combined=None), used_bytes=None)
    gpus[1] = gpus[1]._replace(gpu=gpus[1].gpu._replace(memory_bytes=None))
    text = render_str(report._replace(summary=report.summary._replace(gpus=tuple(gpus)), columns=None))

    assert [line.split() for line in text.splitlines() if line.startswith("  GPU ")][:2] == [
        ["GPU", "0", "-", "-", "-"],
        ["GPU", "1", "-", "17.9", "GB", "-"],
    ]


def test_five_findings_are_shown() -> None:
    """The rest is counted."""
    report: Report = report_rich()._replace(findings=FINDINGS * 2)
    text = render_str(report, columns=80)

    assert text.count("[waiting-for-data]") == text.count("[gpu-imbalance]") == 2
    assert "and 1 more" in text

"""Documents as Markdown."""

from __future__ import annotations

from itertools import pairwise
from math import inf, nan

import pytest

from builders import render_str
from gpu_tracker.analysis.compare import compare
from gpu_tracker.analysis.energy import CarbonFactor
from gpu_tracker.analysis.measures import measure
from gpu_tracker.analysis.prices import Machine
from gpu_tracker.analysis.runs import ListedRun, Runs
from gpu_tracker.core.model import MetricRow
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.reports.build import build
from gpu_tracker.reports.choices import NO_CHOICES, Choices
from gpu_tracker.reports.markdown import write_code, write_text
from recorded import join, lost_run, on_gpu, part, rank, run
from rich import FINDINGS, make_rich, report_rich

CHOICES = Choices(factor=CarbonFactor(400.0), machines=(Machine("large", 64, 10**12, 32, 8 * 10**10, 3.5),))


@pytest.mark.parametrize("choices", [NO_CHOICES, CHOICES], ids=["plain", "chosen"])
@pytest.mark.parametrize("n_gpus", [0, 1, 2, 20])
def test_a_report_has_at_most_sixty_lines(n_gpus: int, choices: Choices) -> None:
    """However much there is."""
    made = make_rich(
        n_gpus,
        regions=tuple(part(1, 1.0, path=(f"r{n}",)) for n in range(99)),
        metrics=tuple(MetricRow(1.0, {f"m{n}": 1.0}) for n in range(99)),
        problems=tuple(f"Line {n} is damaged." for n in range(99)),
    )
    report = build(made, read_columns(made), choices)._replace(findings=FINDINGS * 9)
    lines = render_str(report, "markdown").splitlines()

    assert len(lines) <= 60
    assert "| and 93 more regions |  |  |  |  |  |" in lines
    assert "| and 95 more metrics |  |  |  |  |" in lines
    assert "- and 97 more notes" in lines
    assert "- and 22 more findings (`-f json` has all)" in lines


def test_carbon_dioxide_and_the_cheapest_machine_are_rows() -> None:
    """What was asked for is shown, and the rows for which there is no room are counted."""
    made = make_rich(20)
    lines = render_str(build(made, read_columns(made), CHOICES), "markdown").splitlines()

    assert any(line.startswith("| CO2 | ") and "x 400 g/kWh" in line for line in lines)
    assert any(line.startswith("| machine | large at 3.5 an hour") for line in lines)
    assert "| and 20 more rows |  |  |" in lines


def test_devices_that_are_not_shown_are_counted() -> None:
    """In a row of their table."""
    rows = [
        line for line in render_str(report_rich(20), "markdown").splitlines() if line.startswith("| and ")
    ]

    assert rows == ["| and 18 more rows |  |  |"]


@pytest.mark.parametrize(
    "document",
    [
        report_rich(20)._replace(findings=FINDINGS * 9, notes=("A note.",) * 9),
        join(*(rank(host=f"node{n}") for n in range(30))),
        Runs(tuple(ListedRun(f"{n}.jsonl") for n in range(60))),
        compare(
            [
                (name, [measure(run(metrics=tuple(MetricRow(1.0, {f"m{n}": 1.0}) for n in range(60))))])
                for name in "ab"
            ]
        ),
    ],
    ids=lambda document: type(document).__name__,
)
def test_nothing_but_rows_follows_a_row(document: object) -> None:
    """Any other line right below a table would become a part of it."""
    lines = render_str(document, "markdown").splitlines()

    assert any(line.startswith("| and ") for line in lines)
    assert not [
        after
        for line, after in pairwise(lines)
        if line.startswith("|") and after and not after.startswith("|")
    ]


def test_values_that_are_not_finite_are_counted() -> None:
    """They are in no other figure."""
    made = build(run(metrics=tuple(MetricRow(1.0, {"loss": value}) for value in (0.5, nan, inf))))

    assert "| `loss` | 3 (2 not finite) | inf | 0.5 | 0.5 |" in render_str(made, "markdown")


def test_a_terminal_without_unicode_gets_ascii() -> None:
    """Lines over time too."""
    text = render_str(report_rich(2, "näme"), "markdown", has_unicode=False)

    assert text.isascii()
    assert "| `.+=+=" in text


def test_figures_have_their_names() -> None:
    """The same as in JSON, `compare` and limits."""
    lines = render_str(report_rich(), "markdown").splitlines()

    assert lines[0] == "### `python train.py --epochs 11: exit code 0`"
    assert "| `peak_ram` | 30.1 GB |" in lines
    assert "| `gpu_utilization` | 70 % |" in lines
    assert (
        "- **serious** `waiting-for-data` (likely): 34 % of the time went to waiting for the next batch. "
        "Use more workers, or pin\\_memory=True. Evidence: `share=0.34`." in lines
    )
    assert "| outside regions |  | 8 min 00 s | 4 % |  |  |" in lines
    assert any(line.startswith("| RAM | peak 30.1 GB") and "█" in line for line in lines)


def test_time_outside_of_regions_is_left_out_where_it_is_not_known() -> None:
    """Regions of several processes may overlap."""
    text = render_str(build(run(regions=tuple(part(pid, 1.0, path=("fit",)) for pid in (1, 2)))), "markdown")

    assert "| `fit` | 2 |" in text
    assert "outside" not in text


def test_a_report_of_little_is_short() -> None:
    """No empty tables."""
    text = render_str(build(run()), "markdown")

    assert "region" not in text
    assert "Findings" not in text
    assert "note" not in text


def test_changes_are_marked() -> None:
    """Beyond noise in bold; regions only if they changed."""

    def group(seconds: float) -> list[object]:
        return [
            measure(
                run(
                    seconds + n / 100, regions=(part(1, seconds, path=("fit",)), part(1, 1.0, path=("same",)))
                )
            )
            for n in range(5)
        ]

    comparison = compare([("before", group(10.0)), ("after", group(12.0))])  # type: ignore[list-item]
    lines = render_str(comparison, "markdown").splitlines()

    assert lines[0] == "| figure | `before` | `after` |"
    assert "| `time` | 10 s | **12 s (1.20x)** |" in lines
    assert "| `time` of `fit` | 10 s | **12 s (1.20x)** |" in lines
    assert "`same`" not in "".join(lines)
    assert "**bold**: beyond noise" in lines


def test_a_change_of_too_few_runs_is_in_doubt() -> None:
    """As in the text, with what the sign means."""
    comparison = compare([("before", [measure(run(10.0))]), ("after", [measure(run(20.0))])])
    lines = render_str(comparison, "markdown").splitlines()

    assert "| `time` | 10 s | 20 s (2.00x) ? |" in lines
    assert "?: cannot tell, too few runs" in lines


def test_the_next_request_is_a_row() -> None:
    """As code, to be copied."""
    text = render_str(build(run(600.0)), "markdown")

    assert "| next time | `--mem=600M --cpus-per-task=1 --time=00:13:00` (from 1 run, margin 20 %) |" in text
    assert "next time" not in render_str(report_rich()._replace(sizing=None), "markdown")


def test_many_changes_are_counted() -> None:
    """Up to forty rows are shown."""
    made = [
        measure(run(regions=tuple(part(1, seconds, path=(f"r{n}",)) for n in range(60))))
        for seconds in (1.0, 9.0)
    ]
    text = render_str(compare([("a", made[:1]), ("b", made[1:])]), "markdown")

    assert "more figures" in text
    assert len(text.splitlines()) <= 60


def test_a_job_shows_its_balance() -> None:
    """And its hosts."""
    lines = render_str(join(rank(), rank(host="node2", seconds=12.0), on_gpu(3)), "markdown").splitlines()

    assert lines[0] == "### 3 recordings on 2 hosts"
    assert "| per recording | smallest | median | largest | largest is |" in lines
    assert any(line.startswith("| `node2` | 1 |") for line in lines)
    assert render_str(join(rank()), "markdown").startswith("### 1 recording on 1 host")


def test_runs_are_a_table() -> None:
    """Damaged files with the reason; at most fifty."""
    runs = Runs(
        (
            ListedRun(
                "a.jsonl", started_at="2026-01-31T12:00:00.000+00:00", command=("python", "x.py"), exit_code=0
            ),
            ListedRun("b.jsonl", "b.jsonl is empty."),
            *(ListedRun(f"{n}.jsonl") for n in range(50)),
        )
    )
    lines = render_str(runs, "markdown").splitlines()

    assert lines[2].startswith("| `2026-01-31 12:00` | - | exit code 0 |")
    assert "b.jsonl is empty." in lines[3]
    assert lines[-1] == "| and 2 more runs |  |  |  |  |  |  |  |"


@pytest.mark.parametrize(
    ("text", "code"),
    [("a", "`a`"), ("a`b", "`` a`b ``"), ("``", "``` `` ```"), ("a|b", "`a¦b`"), ("", "-"), ("\n", "`?`")],
)
def test_code_is_closed_where_it_ends(text: str, code: str) -> None:
    """Whatever is in it."""
    assert write_code(text) == code


def test_sentences_are_plain() -> None:
    """No link, no mention, no emphasis, no HTML."""
    assert write_text("a_b <i> @x #1 http://y www.z [l](m)") == (
        "a\\_b \\<i\\> \\@x \\#1 http:&#47;/y www&#46;z \\[l\\](m)"
    )


def test_a_peak_that_was_not_measured_all_the_time_is_marked() -> None:
    """Among the figures, too."""
    assert "| `peak_ram` | ≥ 500 MB |" in render_str(build(lost_run()), "markdown")

"""A comparison as text and JSON."""

from __future__ import annotations

import json
from typing import Any

from builders import MB, recording, render_str
from gpu_tracker.analysis.compare import Comparison, compare
from gpu_tracker.analysis.limits import check_limit, parse_limit
from gpu_tracker.analysis.measures import measure
from gpu_tracker.core.model import MetricRow, RecordingData
from recorded import lost_run, part, run


def side_by_side(*groups: list[RecordingData], names: str = "abc") -> Comparison:
    """A comparison of groups called a, b, c."""
    return compare(
        [
            (name, [measure(recording) for recording in group])
            for name, group in zip(names, groups, strict=False)
        ]
    )


def repeats(seconds: float, **fields: Any) -> list[RecordingData]:
    """Four runs that took about so long."""
    return [run(seconds + 0.1 * number, **fields) for number in range(4)]


def test_text_shows_medians_ranges_ratios_and_changes() -> None:
    """In words below the table."""
    text = render_str(side_by_side(repeats(10.0), repeats(12.0, ram=501)))

    assert "10.1 s (10 to 10.3 s)" in text
    assert "12.1 s (12 to 12.3 s)  1.20x *" in text
    assert "mean cores  1 " in text
    assert "500 MB" in text
    assert "b against a, beyond noise (*):\n  time +20 % (10.1 s → 12.1 s, p = 0.029)" in text
    assert "GPU" not in text


def test_text_says_that_nothing_changed() -> None:
    """With the threshold."""
    assert "no change beyond noise (or above 2 %)" in render_str(side_by_side(repeats(10.0), repeats(10.0)))
    assert "b against a: cannot tell, too few runs; no difference above 10 %." in render_str(
        side_by_side([run()], [run()])
    )


def test_one_run_each_is_reported_as_such() -> None:
    """And so are too few runs."""
    alone = render_str(side_by_side([run(10.0)], [run(12.0)]))
    few = render_str(side_by_side([run(10.0), run(10.5)], [run(130.0), run(3700.0)]))

    assert "1.20x ?" in alone
    assert "cannot tell, too few runs, but more than 10 % apart (?):\n  time +20 % (10 s → 12 s)" in alone
    assert "note: One run each: differences may be noise. Use 4 or more runs per group." in alone
    assert "b against a, cannot tell, too few runs, but" in few
    assert "(2 min 10 s to 1 h 01 min 40 s)" in few


def test_regions_and_metrics_are_compared_too() -> None:
    """Those that only one has are named."""
    before = recording(
        regions=(part(1, 4.0, path=("train",)), part(1, 2.0, path=("train", "old"))),
        metrics=(MetricRow(1.0, {"loss": 0.5, "old": 0.0}),),
    )
    after = recording(
        regions=(part(1, 6.0, path=("train",)), part(1, 2.0, path=("new",))),
        metrics=(MetricRow(1.0, {"loss": 0.25, "zero": 1.0}),),
    )
    text = render_str(side_by_side([before], [after]))

    assert "time of train +50 % (4 s → 6 s)" in text
    assert "last loss -50 % (0.5 → 0.25)" in text
    assert "train/old" in text
    assert "absent" in text
    assert "regions only in b: new" in text
    assert "regions not in b: train/old" in text
    assert "metrics only in b: zero" in text


def test_many_regions_are_only_counted() -> None:
    """The longest are shown."""
    many = recording(regions=tuple(part(1, 20.0 - n, path=(f"r{n:02}",)) for n in range(20)))
    slow = recording(regions=tuple(part(1, 40.0 - n, path=(f"r{n:02}",)) for n in range(20)))
    text = render_str(side_by_side([many], [slow], [recording()]))

    assert "and 5 more regions (-f json has all)" in text
    assert "and 25 more (-f json has all)" in text
    assert "\nr14 " in text
    assert "\nr15 " not in text
    assert "r14, and 5 more\n" in text


def test_a_change_from_nothing_has_no_percentage() -> None:
    """Only the values before and after."""
    before, after = (recording(metrics=(MetricRow(1.0, {"errors": value}),)) for value in (0.0, 3.0))

    assert "  last errors (0 → 3)" in render_str(side_by_side([before], [after]))


def test_control_characters_in_names_are_replaced() -> None:
    """In names of groups, regions and metrics."""
    evil = recording(
        regions=(part(1, 1.0, path=("evil\x1b[2J",)),), metrics=(MetricRow(1.0, {"m\x07": 1.0}),)
    )
    groups = [(name, [measure(shown)]) for name, shown in (("x\x1b", evil), ("y\n", recording()))]

    assert not {"\x1b", "\x07"} & set(render_str(compare(groups)))


def test_json_has_every_value() -> None:
    """And the results of limits."""
    comparison = side_by_side([run(10.0), run(11.0)], [run(12.0, ram=600)])
    shown = json.loads(
        render_str(comparison._replace(verdicts=(check_limit(parse_limit("time > 1s"), comparison),)), "json")
    )
    figures = {figure["figure"]: figure for figure in shown["figures"]}

    whole = {
        "failures": [],
        "unreadable": 0,
        "lacking_regions": 0,
        "lacking_metrics": 0,
        "incomplete": [],
        "elsewhere": [],
    }
    assert shown["groups"] == [{"name": "a", "runs": 2, **whole}, {"name": "b", "runs": 1, **whole}]
    assert figures["time"]["groups"][0]["values"] == [10.0, 11.0]
    assert figures["peak_ram"]["groups"][1]["median"] == 600 * MB
    assert figures["peak_ram"]["groups"][1]["verdict"] == "cannot tell"
    assert figures["energy"]["groups"][1]["verdict"] == "not known"
    assert shown["limits"][0]["fired"] == ["FAILED time > 1s: b took 12 s."]


def test_one_group_is_a_summary_of_its_repeats() -> None:
    """Without changes."""
    text = render_str(side_by_side(repeats(10.0)))

    assert "against" not in text
    assert "time        10.1 s (10 to 10.3 s)" in text


def test_sentences_fit_a_terminal() -> None:
    """Those below the table; a file has them as they are."""
    comparison = side_by_side([run(10.0)], [run(20.0)], names=("a" * 30, "b" * 30))  # type: ignore[arg-type]
    below = render_str(comparison, columns=60).partition("\n\n")[2]

    assert max(map(len, below.splitlines())) <= 60
    assert " ".join(below.split()) == " ".join(render_str(comparison).partition("\n\n")[2].split())
    assert max(map(len, render_str(comparison).splitlines())) > 60


def test_a_peak_that_was_not_measured_all_the_time_is_marked() -> None:
    """In the table, in what changed, and in a note."""
    comparison = compare([("a", [measure(run())]), ("b", [measure(lost_run(ram=900))])])
    text, markdown = render_str(comparison), render_str(comparison, "markdown")

    assert "≥ 900 MB  1.80x ?" in text
    assert "peak RAM +80 % (500 MB → ≥ 900 MB)" in text
    assert (
        "note: The peak RAM of b is without up to 7.5 s of the time of a run: it may have been more." in text
    )
    assert "| `peak_ram` | 500 MB | ≥ 900 MB (1.80x) ? |" in markdown

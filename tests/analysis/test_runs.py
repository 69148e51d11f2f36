"""Past runs: listed, filtered, sorted."""

from __future__ import annotations

import pytest

from gpu_tracker.analysis.runs import (
    SORTS,
    ListedRun,
    choose,
    list_run,
    parse_age,
    parse_condition,
    sort_runs,
)
from gpu_tracker.core.moments import parse_moment
from gpu_tracker.reports.report import describe_ending
from recorded import interval, run

LONG_AGO = 1e9
OLD = ListedRun(
    "old",
    started_seconds=100.0,
    command=("python", "Train.py"),
    host="node1",
    ending="exited",
    exit_code=0,
    values={"time": 60.0, "peak_ram": 9e9, "peak_gpu_ram": None, "mean_cores": 2.0},
)
NEW = ListedRun(
    "new",
    started_seconds=200.0,
    command=("make",),
    host="node2",
    ending="killed",
    name="Nightly",
    labels=(("site", "north"),),
    values={"time": 5.0, "peak_ram": 1e9, "peak_gpu_ram": 4e9, "mean_cores": 1.0},
)
DAMAGED = ListedRun("damaged", "It is no recording.", ending="damaged")


def test_a_run_is_listed_with_its_figures() -> None:
    """When, what, how long, how it ended, and what it used."""
    listed = list_run("x.jsonl", run(10.0, 500, 3), LONG_AGO)

    assert (listed.started_seconds, listed.command) == (1769860800.0, ("python", "train.py"))
    assert (listed.ending, listed.exit_code) == ("exited", 3)
    assert (listed.values["time"], listed.values["mean_cores"]) == (10.0, 1.0)
    assert (listed.values["peak_ram"], listed.values["peak_gpu_ram"]) == (500e6, None)


def test_a_run_without_an_end_is_running_while_its_file_grows() -> None:
    """An interval of a long run may last minutes; the last one shows it."""
    cut = run(end=None)
    month = run(30 * 86400.0, end=None, samples=[interval(at, 100) for at in (1.0, 2.5e6, 2.5e6 + 300)])

    assert [list_run("", cut, ago).ending for ago in (1.0, 60.0)] == ["running", "killed"]
    assert [list_run("", month, ago).ending for ago in (500.0, 700.0)] == ["running", "killed"]
    assert list_run("", cut, 1.0).exit_code is None


def test_an_invalid_start_time_is_not_known() -> None:
    """Whatever a header says."""
    for offset in ("+01:00", "+0100"):
        assert parse_moment(f"2026-01-31T12:00:00{offset}") == 1769857200.0
    assert parse_moment("2026-01-31T12:00:00") is None
    assert parse_moment("yesterday") is None


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("command~train", ["old"]),
        ("host~node", ["old", "new"]),
        ("end ~ cut off", ["new"]),
        ("file~e", ["new", "damaged"]),
        ("end~Exit code 0", ["old"]),
        ("end~exited", []),
        ("time>10s", ["old"]),
        ("time>5", ["old"]),
        ("time < 1min", ["new"]),
        ("peak_ram>=9GB", ["old"]),
        ("peak_ram <= 9GB", ["old", "new"]),
        ("peak_ram>2GB", ["old"]),
        ("peak_gpu_ram>1GB", ["new"]),
        ("mean_cores>1.5", ["old"]),
        ("name~night", ["new"]),
        ("label~site=n", ["new"]),
    ],
)
def test_runs_are_filtered(condition: str, names: list[str]) -> None:
    """An unknown number meets no condition; endings are matched as shown."""
    chosen = choose([OLD, NEW, DAMAGED], [parse_condition(condition)], None, describe_ending)

    assert [listed.path for listed in chosen] == names


def test_runs_are_filtered_by_age() -> None:
    """Also together with conditions."""
    assert choose([OLD, NEW, DAMAGED], [], 150.0, describe_ending) == [NEW]
    assert choose([OLD, NEW], [parse_condition("command~train")], 150.0, describe_ending) == []
    assert parse_age("7d") == 7 * 86400


@pytest.mark.parametrize(
    "text",
    [
        "",
        "train",
        "colour~red",
        "command>3",
        "time>8GB",
        "mean_cores>3s",
        "peak_ram>much",
        "peak_ram>5",
        "ram>8GB",
    ],
)
def test_an_invalid_condition_is_refused(text: str) -> None:
    """In a sentence."""
    with pytest.raises(ValueError) as refused:
        parse_condition(text)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("text", ["7", "8GB", "-3d", "soon"])
def test_an_age_is_a_duration(text: str) -> None:
    """Nothing else."""
    with pytest.raises(ValueError):
        parse_age(text)


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("when", ["new", "old", "damaged"]),
        ("time", ["old", "new", "damaged"]),
        ("peak_ram", ["old", "new", "damaged"]),
        ("peak_gpu_ram", ["new", "old", "damaged"]),
        ("mean_cores", ["old", "new", "damaged"]),
        ("command", ["new", "old", "damaged"]),
    ],
)
def test_runs_are_sorted_with_unknown_values_last(by: str, names: list[str]) -> None:
    """Newest or largest first."""
    assert by in SORTS
    assert [listed.path for listed in sort_runs([DAMAGED, OLD, NEW], by)] == names

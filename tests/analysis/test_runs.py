"""Past runs: listed, filtered, sorted."""

from __future__ import annotations

import pytest

from gpu_tracker.analysis.runs import (
    SORTS,
    STATES,
    ListedRun,
    choose,
    find_state,
    list_run,
    parse_age,
    parse_condition,
    parse_search,
    sort_runs,
)
from gpu_tracker.core.moments import parse_moment
from gpu_tracker.reports.report import describe_ending
from recorded import lost_run, run

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
    listed = list_run("x.jsonl", run(10.0, 500, 3))

    assert (listed.started_seconds, listed.command) == (1769860800.0, ("python", "train.py"))
    assert (listed.ending, listed.exit_code) == ("exited", 3)
    assert (listed.values["time"], listed.values["mean_cores"]) == (10.0, 1.0)
    assert (listed.values["peak_ram"], listed.values["peak_gpu_ram"]) == (500e6, None)


def test_a_run_without_an_end_goes_on_or_was_cut_off() -> None:
    """Its recording knows which."""
    listed = [list_run("", run(end=None)._replace(is_running=goes_on)) for goes_on in (True, False)]

    assert [(one.ending, one.exit_code) for one in listed] == [("running", None), ("killed", None)]


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
        "peak_ram>>",
        "peak_ram>",
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


def test_commands_are_sorted_as_they_are_shown() -> None:
    """A name stands in the place of its command."""
    runs = [
        NEW._replace(path="c", name="zebra", command=("a",)),
        NEW._replace(path="b", name=None, command=("middle", "x")),
        NEW._replace(path="a", name="ant", command=("z",)),
    ]

    assert [listed.path for listed in sort_runs(runs, "command")] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("search", "names"),
    [
        ("", ["old", "new", "damaged"]),
        ("TRAIN", ["old"]),
        ("node", ["old", "new"]),
        ("north nightly", ["new"]),
        ("node time>30s", ["old"]),
        ("node1 node2", []),
    ],
)
def test_runs_are_searched_for_words_and_filters(search: str, names: list[str]) -> None:
    """A word may be in any text, and all must match."""
    found = choose([OLD, NEW, DAMAGED], parse_search(search), None, describe_ending)
    assert [run.path for run in found] == names


def test_a_wrong_filter_in_a_search_is_refused() -> None:
    """With the same sentence as elsewhere."""
    with pytest.raises(ValueError, match="is not a valid filter"):
        parse_search("train colour~red")


def test_a_run_is_running_or_has_finished_or_failed() -> None:
    """By its exit code, or how it ended."""
    running, failed = OLD._replace(ending="running"), OLD._replace(exit_code=1)
    assert [find_state(run) for run in (running, OLD, failed, NEW)] == [*STATES[1:], "failed"]


def test_a_peak_that_was_not_measured_all_the_time_is_a_lower_bound() -> None:
    """After its sampler was lost."""
    assert list_run("x", lost_run()).at_least == ("cpu_time", "mean_cores", "peak_ram")
    assert list_run("x", run()).at_least == ()

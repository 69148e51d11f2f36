"""The list of runs as a page."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.analysis.runs import ListedRun
from gpu_tracker.live.server.pages import Wish, add_back, parse_wish, show_list, show_sentence, wrap_run
from gpu_tracker.live.server.runs import Listing, make_key
from gpu_tracker.reports.html.page import assemble

FINISHED = ListedRun(
    "a.jsonl", command=("train",), ending="exited", exit_code=0, host="h", started_seconds=2.0
)
FAILED = ListedRun("b.jsonl", command=("test",), ending="exited", exit_code=1, labels=(("seed", "1"),))
RUNNING = ListedRun("c.jsonl", name="long", ending="running", started_seconds=3.0, values={"peak_ram": 9e9})
DAMAGED = ListedRun("d.jsonl", "d.jsonl is damaged.", ending="damaged")
ALL = Listing((FINISHED, FAILED, RUNNING, DAMAGED), 4)


def show(listing: Listing = ALL, **wish: Any) -> str:
    """The body of the page."""
    return show_list(listing, Wish(**wish), "Runs", make_key).body


def list_shown(body: str) -> list[str]:
    """The files of the rows, in their order."""
    return [
        part.partition('"')[0] for part in body.split('data-key="')[1:] if ".jsonl" in part.partition('"')[0]
    ]


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ({}, ["c.jsonl", "a.jsonl", "b.jsonl"]),
        ({"state": "running"}, ["c.jsonl"]),
        ({"state": "finished"}, ["a.jsonl"]),
        ({"state": "failed"}, ["b.jsonl"]),
        ({"search": "T"}, ["c.jsonl", "a.jsonl", "b.jsonl"]),
        ({"search": "seed=1 test"}, ["b.jsonl"]),
        ({"search": "seed=1 train"}, []),
        ({"search": "peak_ram>8GB"}, ["c.jsonl"]),
        ({"sort": "command"}, ["c.jsonl", "b.jsonl", "a.jsonl"]),
    ],
)
def test_runs_can_be_searched_and_sorted(wish: dict[str, Any], expected: list[str]) -> None:
    """By words, filters and how they ended."""
    assert list_shown(show(**wish)) == expected


def test_what_is_shown_is_said() -> None:
    """How many, of how many; what is still to come, and what is left out."""
    assert "<p>3 runs</p>" in show()
    assert "<p>1 of 3 runs</p>" in show(state="failed")
    assert "<p>3 runs, 6 still to be read, only the newest of 20 files</p>" in show(
        ALL._replace(n_unread=6, n_files=20)
    )
    assert "d.jsonl is damaged." in show()
    assert "No runs to show." in show(Listing())
    assert "Cannot read it." in show(Listing(problem="Cannot read it."))
    assert "is not a valid filter" in show(search="a>b")


def test_a_row_has_a_link_and_a_tick() -> None:
    """And how the run ended is to be seen at once."""
    body = show()
    assert '<a href="run?name=a.jsonl">train</a>' in body
    assert '<input type="checkbox" name="name" value="b.jsonl" aria-label="compare test">' in body
    for state in ("running", "failed", "finished"):
        assert f'<td class="{state}">' in body


def test_many_rows_are_bounded() -> None:
    """The rest is counted."""
    many = tuple(FINISHED._replace(path=f"{number}.jsonl") for number in range(700))
    body = show(Listing(many, 700))
    assert (len(list_shown(body)), "and 200 more; search to see them" in body) == (500, True)


def test_a_wish_that_is_not_valid_is_none() -> None:
    """And a very long one is cut."""
    fields: dict[str, Any] = {"search": ["x" * 1000], "state": ["?"], "sort": ["?"]}
    assert parse_wish(fields) == Wish("x" * 500, "all", "when")
    assert parse_wish({"state": ["failed"], "sort": ["time"]}) == Wish("", "failed", "time")


def test_every_page_leads_back() -> None:
    """To the list, by a relative address."""
    page = show_sentence("Not found", "There is <nothing>.")
    assert '<nav><a href="./">All runs</a></nav>' in page.body
    assert "There is &lt;nothing&gt;." in page.body
    assert add_back(assemble(page)).count('<a href="./">') == 2
    assert 'id="live"' in wrap_run(page, "a<b").body
    assert "a&lt;b</nav>" in wrap_run(page, "a<b").body
    assert 'id="live"' not in wrap_run(page, "a", is_live=False).body

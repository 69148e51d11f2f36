"""What an experiment used, and what is left of it."""

from __future__ import annotations

from types import SimpleNamespace

from gpu_tracker.analysis.cells import CellUse
from gpu_tracker.core.model import Survivor
from gpu_tracker.reports.experiment import ExperimentReport
from gpu_tracker.reports.memory import Step

USE = CellUse(0, "a", 2.5, 1.25, 310_000_000, None, 512_000_000, None, None, "stopped")
REPORT = ExperimentReport(
    name="a",
    use=USE,
    deleted=("x", "y"),
    kept=("model",),
    given_back=Step("variables", 2, 300_000_000, None, None),
    survivors=(
        Survivor("y", "Tensor", 40_000_000, "cache['x'][1]"),
        Survivor(None, "Tensor", 4, None),
    ),
    more=3,
)


def test_it_says_what_was_used_deleted_and_not_freed() -> None:
    """In this order, as a block of lines."""
    assert str(REPORT).splitlines() == [
        "experiment a: RAM +310 MB, peak 512 MB; 2.5 s, CPU 1.25 s",
        "  deleted: x, y; kept: model",
        "  given back: RAM 300 MB",
        "  not freed: y (Tensor, 40 MB), held by cache['x'][1]",
        "  not freed: Tensor, 4 B, held by nothing that Python knows of: the graph of another tensor, or C code",
        "  and 3 smaller objects",
    ]


def test_it_says_that_nothing_was_left() -> None:
    """Also if it could not be tracked."""
    clean = REPORT._replace(use=None, deleted=(), kept=(), given_back=None, survivors=(), more=0)

    assert str(clean) == "experiment a: not tracked\n  deleted: nothing"


def test_it_names_what_was_to_be_kept_but_does_not_exist() -> None:
    """A name may be misspelt."""
    assert str(REPORT._replace(missing=("acuracy",))).splitlines()[2] == (
        "  to be kept, but there is no such variable: acuracy"
    )


def test_in_a_function_nothing_is_deleted() -> None:
    """And it says why."""
    assert str(REPORT._replace(deleted=None)).splitlines()[1:] == [
        "  nothing deleted: the variables of a function go when it returns"
    ]


def test_a_notebook_shows_a_list() -> None:
    """Names are inert text."""
    html = REPORT._replace(name="<b>\x1b")._repr_html_()

    assert html.startswith("<p>experiment &lt;b&gt;?: RAM +310 MB")
    assert html.count("<li>") == 5


def test_ipython_shows_the_words_too() -> None:
    """In a terminal, and beside the HTML."""
    texts: list[str] = []
    REPORT._repr_pretty_(SimpleNamespace(text=texts.append), None)

    assert texts == [str(REPORT)]

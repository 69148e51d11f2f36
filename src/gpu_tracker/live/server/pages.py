"""What the server adds to the pages of reports: the list of runs, and the way between them. Pure."""

from __future__ import annotations

from urllib.parse import quote

from ...analysis.runs import SORTS, STATES, choose, find_state, parse_search, sort_runs
from ...core.figures import RUN
from ...core.text import count_of
from ...core.values import NamedTuple
from ...reports.html import fragments
from ...reports.html.drawing import draw_charts
from ...reports.html.page import Page, section
from ...reports.report import describe_ending
from ...reports.runs import HEADING, list_cells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ...analysis.runs import ListedRun
    from .runs import Listing

_MOST_ROWS = 500
_LONGEST_SEARCH = 500
_LABELS = {"when": "newest", "command": "command", **{figure.name: figure.label for figure in RUN}}
_COMMAND = HEADING.index("command")
_BACK = '<a href="./">All runs</a>'
_LIVE = '<p id="live" role="status"></p>'


class Wish(NamedTuple):
    """Which runs somebody wants to see, and in which order."""

    search: str = ""
    state: str = "all"
    sort: str = "when"


def parse_wish(fields: Mapping[str, Sequence[str]]) -> Wish:
    """What is not valid is as if nothing had been said."""
    search, state, sort = (fields.get(name, [""])[0] for name in Wish._fields)
    return Wish(
        search[:_LONGEST_SEARCH],
        state if state in STATES else STATES[0],
        sort if sort in SORTS else "when",
    )


def show_list(listing: Listing, wish: Wish, title: str, make_key: Callable[[str], str]) -> Page:
    """All runs that are wanted, to be opened, or ticked to be compared."""
    problem = listing.problem
    try:
        chosen = choose(_readable(listing), parse_search(wish.search), None, describe_ending)
    except ValueError as error:
        chosen, problem = [], str(error)
    wanted = (run for run in chosen if wish.state in ("all", find_state(run)))
    chosen = sort_runs(wanted, wish.sort)
    damaged = [run.problem for run in listing.runs if run.problem]
    body = (
        f"<header><h1>{fragments.text(title)}</h1><p>{fragments.text(_count(listing, len(chosen)))}</p>{_LIVE}</header><main>"
        f"{_form(wish)}{_say_problem(problem)}{_table(chosen, make_key)}"
        f"{section('Damaged', fragments.notes(damaged))}</main>"
    )
    return plain_page(title, body)


def wrap_run(page: Page, name: str, *, is_live: bool = True) -> Page:
    """The page of a report, with the way back."""
    nav = f"<nav>{_BACK} / {fragments.text(name)}</nav>"
    return page._replace(body=f"{nav}{_LIVE if is_live else ''}{page.body}")


def plain_page(title: str, body: str) -> Page:
    """A page without charts."""
    return Page(title, body, *draw_charts((), 0.0))


def show_sentence(title: str, sentence: str) -> Page:
    """Why there is nothing else to see."""
    words = f"<header><h1>{fragments.text(title)}</h1></header><main><p>{fragments.text(sentence)}</p></main>"
    return plain_page(title, f"<nav>{_BACK}</nav>{words}")


def add_back(html: str) -> str:
    """The way back, in a page that is complete."""
    return html.replace('<div id="page">', f'<div id="page"><nav>{_BACK}</nav>', 1)


def _readable(listing: Listing) -> Iterable[ListedRun]:
    return (run for run in listing.runs if not run.problem)


def _count(listing: Listing, n_chosen: int) -> str:
    n_runs = sum(1 for _ in _readable(listing))
    parts = [
        count_of(n_runs, "run") if n_chosen == n_runs else f"{n_chosen} of {count_of(n_runs, 'run')}",
        f"{listing.n_unread} still to be read" if listing.n_unread else "",
        f"only the newest of {listing.n_files} files"
        if listing.n_files > len(listing.runs) + listing.n_unread
        else "",
    ]
    return ", ".join(filter(None, parts))


def _form(wish: Wish) -> str:
    search = (
        '<label>Search <input type="search" name="search" autocomplete="off" '
        f'placeholder="train peak_ram&gt;8GB label~seed=1" value="{fragments.text(wish.search)}"></label>'
    )
    return (
        f'<form id="search" action="./" method="get" role="search">{search}'
        f"{_select('Show', 'state', dict(zip(STATES, STATES, strict=True)), wish.state)}"
        f"{_select('Sort by', 'sort', _LABELS, wish.sort)}"
        '<noscript><button type="submit">Search</button></noscript></form>'
    )


def _select(label: str, name: str, choices: dict[str, str], chosen: str) -> str:
    options = "".join(
        f'<option value="{value}"{" selected" * (value == chosen)}>{fragments.text(words)}</option>'
        for value, words in choices.items()
    )
    return f'<label>{label} <select name="{name}">{options}</select></label>'


def _say_problem(problem: str) -> str:
    return f'<p class="problem" role="alert">{fragments.text(problem)}</p>' if problem else ""


def _table(runs: Sequence[ListedRun], make_key: Callable[[str], str]) -> str:
    if not runs:
        return '<p class="more">No runs to show.</p>'
    heading = "".join(f'<th scope="col">{label}</th>' for label in ("compare", "run", *(HEADING[:_COMMAND])))
    rows = "".join(_row(run, make_key(run.path)) for run in runs[:_MOST_ROWS])
    rest = len(runs) - _MOST_ROWS
    more = f'<p class="more">and {rest} more; search to see them</p>' if rest > 0 else ""
    return (
        '<form action="compare" method="get"><div class="wide" tabindex="0" role="region" aria-label="table of runs">'
        f'<table class="runs"><thead><tr>{heading}</tr></thead><tbody>{rows}</tbody></table></div>{more}'
        '<p class="actions"><button type="submit">Compare the ticked runs</button></p></form>'
    )


def _row(run: ListedRun, key: str) -> str:
    cells = list_cells(run)
    labels = " · ".join([run.path, run.host, *(f"{name}={value}" for name, value in run.labels)])
    title = fragments.text(cells[_COMMAND])
    figures = "".join(_cell(run, label, cell) for label, cell in zip(HEADING, cells[:_COMMAND], strict=False))
    escaped = fragments.text(key)
    return (
        f'<tr data-key="{escaped}"><td><input type="checkbox" name="name" value="{escaped}" aria-label="compare {title}"></td>'
        f'<th scope="row"><a href="run?name={quote(key)}">{title}</a><small>{fragments.text(labels)}</small></th>{figures}</tr>'
    )


def _cell(run: ListedRun, label: str, cell: str) -> str:
    """On a narrow screen a cell says itself what it is."""
    if label == "end":
        return f'<td class="{find_state(run)}">{fragments.text(cell)}</td>'
    if cell == "-":
        return f'<td class="unknown">{cell}</td>'
    named = "" if label == "when" else f' data-label="{label}"'
    return f"<td{named}>{fragments.text(cell)}</td>"

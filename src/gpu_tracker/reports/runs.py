"""Past runs, one line each. Pure."""

from __future__ import annotations

from ..core.figures import RUN, TIME
from ..core.moments import write_moment
from ..core.text import align, clip, find_excess, join_command, narrow, neutralize, shorten, wrap
from ..core.units import humanize
from .report import describe_ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.runs import ListedRun, Runs
    from ..core.figures import Figure
    from .contract import View

# The widest text from a recording; the narrowest command.
_MOST_CELLS, _FEWEST_CELLS = 48, 12
_BY_NAME = {figure.name: figure for figure in RUN}
_FIGURES = [_BY_NAME[name] for name in ("peak_ram", "peak_gpu_ram", "mean_cores")]
HEADING = ("when", TIME.label, "end", *(figure.label for figure in _FIGURES), "command", "file")
_COMMAND = HEADING.index("command")
_WORDS = frozenset({0, 2, _COMMAND, _COMMAND + 1})
# What a narrow terminal has no room for, the first one first: figures, then time, end and when.
_DISPENSABLE = (5, 4, 3, 1, 2, 0)


def to_text(document: Runs, view: View) -> str:
    """A table, then the files that cannot be read. It fits a narrow terminal."""
    runs = document.runs
    if not runs:
        return "No recordings.\n"
    readable = [run for run in runs if not run.problem]
    lines = _table([HEADING, *map(list_cells, readable)], view.columns) if readable else []
    problems = [f"damaged: {neutralize(run.problem)}" for run in runs if run.problem]
    lines += [line for problem in problems for line in wrap(problem, view.columns, 2)]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Sequence[str]], columns: int | None) -> list[str]:
    """Too wide a table has shorter commands, then fewer columns, then shorter paths."""
    shown = list(range(len(HEADING)))
    lines = _lay_out(rows, shown, columns)
    for leaving in _DISPENSABLE:
        if not find_excess(lines, columns):
            break
        shown.remove(leaving)
        lines = _lay_out(rows, shown, columns)
    return lines


def _lay_out(rows: Sequence[Sequence[str]], shown: Sequence[int], columns: int | None) -> list[str]:
    words = frozenset(at for at, index in enumerate(shown) if index in _WORDS)
    table = [[row[index] for index in shown] for row in rows]
    command, path = len(shown) - 2, len(shown) - 1
    if excess := find_excess(align(table, words), columns):
        table = narrow(table, command, excess, _FEWEST_CELLS, clip)
    if not command and (excess := find_excess(align(table, words), columns)):
        table = narrow(table, path, excess, _FEWEST_CELLS)
    return align(table, words)


def list_cells(run: ListedRun) -> tuple[str, ...]:
    """What is known of a run, under the heading."""
    when = run.started_at
    if run.started_seconds is not None:
        when = write_moment(run.started_seconds, "%Y-%m-%d %H:%M")
    return (
        _clean(when),
        humanize(run.values.get(TIME.name), TIME.unit),
        _clean(describe_ending(run.ending, run.exit_code)),
        *(mark(figure, run.values.get(figure.name), run.estimates, run.at_least) for figure in _FIGURES),
        _clean(run.name or join_command(run.command)) or "-",
        neutralize(run.path),
    )


def mark(
    figure: Figure, value: float | None, estimates: Sequence[str] = (), at_least: Sequence[str] = ()
) -> str:
    """A figure of a whole run, with a sign if it is an estimate or a lower bound."""
    sign = "~ " if figure.name in estimates else "≥ " if figure.name in at_least else ""
    return humanize(value, figure.unit) if value is None else f"{sign}{humanize(value, figure.unit)}"


def _clean(text: str) -> str:
    return shorten(text, _MOST_CELLS)

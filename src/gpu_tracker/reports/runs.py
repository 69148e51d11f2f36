"""Past runs, one line each. Pure."""

from __future__ import annotations

from ..core.figures import RUN, TIME, humanize
from ..core.moments import write_moment
from ..core.text import align, clip, count_cells, neutralize, shorten
from .report import describe_ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.runs import ListedRun, Runs
    from .contract import View

# The widest text from a recording; the narrowest command.
_MOST_CELLS, _FEWEST_CELLS = 48, 12
_BY_NAME = {figure.name: figure for figure in RUN}
_FIGURES = [_BY_NAME[name] for name in ("peak_ram", "peak_gpu_ram", "mean_cores")]
_HEADING = ("when", TIME.label, "end", *(figure.label for figure in _FIGURES), "command", "file")
_COMMAND = _HEADING.index("command")
_WORDS = frozenset({0, 2, _COMMAND, _COMMAND + 1})


def to_text(document: Runs, view: View) -> str:
    """A table, then the files that cannot be read. On a narrow terminal, commands are shortened to fit."""
    runs = document.runs
    if not runs:
        return "No recordings.\n"
    readable = [run for run in runs if not run.problem]
    lines = _table([_HEADING, *map(_cells, readable)], view.columns) if readable else []
    lines += [f"damaged: {neutralize(run.problem)}" for run in runs if run.problem]
    return "\n".join(lines) + "\n"


def _table(rows: list[tuple[str, ...]], columns: int | None) -> list[str]:
    lines = align(rows, _WORDS)
    too_many = 0 if columns is None else max(map(count_cells, lines)) - columns
    if too_many <= 0:
        return lines
    longest = max(count_cells(row[_COMMAND]) for row in rows)
    cells = max(_FEWEST_CELLS, longest - too_many)
    return align(
        [(*row[:_COMMAND], clip(row[_COMMAND], cells), *row[_COMMAND + 1 :]) for row in rows], _WORDS
    )


def _cells(run: ListedRun) -> tuple[str, ...]:
    when = run.started_at
    if run.started_seconds is not None:
        when = write_moment(run.started_seconds, "%Y-%m-%d %H:%M")
    return (
        _clean(when),
        humanize(run.values.get(TIME.name), TIME.unit),
        _clean(describe_ending(run.ending, run.exit_code)),
        *(humanize(run.values.get(figure.name), figure.unit) for figure in _FIGURES),
        _clean(run.name or " ".join(run.command)) or "-",
        neutralize(run.path),
    )


def _clean(text: str) -> str:
    return shorten(text, _MOST_CELLS)

"""Past runs, a line each. Pure."""

from __future__ import annotations

import json

from ..analysis.figures import BYTES, CORES, SECONDS, humanize
from ..core.moments import write_moment
from ..core.text import align, clip, count_cells, neutralize
from .plain import to_plain
from .text import tell_ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.runs import ListedRun

# Of any text that a file brings; of a command where there is no room.
_MOST_CELLS, _FEWEST_CELLS = 48, 12
_HEADING = ("when", "time", "end", "peak RAM", "GPU RAM", "cores", "command", "file")
_WORDS = frozenset({0, 2, 6, 7})
_COMMAND = _HEADING.index("command")


def render_text(runs: Sequence[ListedRun], columns: int | None = None) -> str:
    """A table, and below it the files that cannot be read. On a screen of so many columns, commands make room for the rest."""
    if not runs:
        return "No recordings.\n"
    readable = [run for run in runs if not run.problem]
    lines = _table([_HEADING, *map(_cells, readable)], columns) if readable else []
    lines += [f"damaged: {neutralize(run.problem)}" for run in runs if run.problem]
    return "\n".join(lines) + "\n"


def render_json(runs: Sequence[ListedRun]) -> str:
    """A list of objects, in base units."""
    return json.dumps([to_plain(run) for run in runs], indent=1) + "\n"


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
        when = write_moment(run.started_seconds, "%Y-%m-%d %H:%M:%S")
    return (
        _clean(when),
        humanize(run.seconds, SECONDS),
        _clean(tell_ending(run.ending, run.exit_code)),
        humanize(run.peak_ram_bytes, BYTES),
        humanize(run.peak_gpu_bytes, BYTES),
        humanize(run.mean_cores, CORES),
        _clean(" ".join(run.command)) or "-",
        neutralize(run.path),
    )


def _clean(text: str) -> str:
    return clip(neutralize(text), _MOST_CELLS)

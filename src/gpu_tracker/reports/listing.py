"""Past runs, a line each. Pure."""

from __future__ import annotations

import json

from ..analysis.figures import BYTES, CORES, SECONDS, humanize
from .as_text import tell_ending
from .cells import clip, neutralize
from .columns import align
from .moment import write_moment
from .plain import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.listing import ListedRun

_COMMAND_CELLS = 48
_HEADING = ("when", "time", "end", "peak RAM", "GPU RAM", "cores", "command", "file")
_WORDS = frozenset({0, 2, 6, 7})


def render_text(runs: Sequence[ListedRun]) -> str:
    """A table, and below it the files that cannot be read."""
    if not runs:
        return "No recordings.\n"
    readable = [run for run in runs if not run.problem]
    lines = align([_HEADING, *map(_cells, readable)], _WORDS) if readable else []
    lines += [f"damaged: {neutralize(run.problem)}" for run in runs if run.problem]
    return "\n".join(lines) + "\n"


def render_json(runs: Sequence[ListedRun]) -> str:
    """A list of objects, in base units."""
    return json.dumps([to_plain(run) for run in runs], indent=1) + "\n"


def _cells(run: ListedRun) -> tuple[str, ...]:
    when = run.started_at
    if run.started_seconds is not None:
        when = write_moment(run.started_seconds, "%Y-%m-%d %H:%M:%S")
    return (
        neutralize(when),
        humanize(run.seconds, SECONDS),
        neutralize(tell_ending(run.ending, run.exit_code)),
        humanize(run.peak_ram_bytes, BYTES),
        humanize(run.peak_gpu_bytes, BYTES),
        humanize(run.mean_cores, CORES),
        clip(neutralize(" ".join(run.command)), _COMMAND_CELLS) or "-",
        neutralize(run.path),
    )

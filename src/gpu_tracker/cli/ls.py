"""List past runs: when, how long, how they ended, what they used."""

from __future__ import annotations

import os
import time
from collections import Counter

from ..analysis.runs import SORTS, Runs, choose, parse_age, parse_condition, sort_runs
from ..core.errors import UsageError
from ..live.listing import list_file
from ..recording.find import find_all, find_recordings, name_run
from ..reports.contract import WITH_CHARTS, choose_format, render
from ..reports.report import describe_ending
from .options import Parser, add_job, add_output
from .output import Output
from .track import DEFAULT_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.charts import Chart
    from ..analysis.runs import ListedRun

_EPILOG = """\
Filters: command~TEXT, name~TEXT, label~TEXT, job~TEXT, host~TEXT, end~TEXT, file~TEXT (as shown; case does not matter);
time>10min, cpu_time>1h, mean_cores>2, peak_ram>8GB, peak_gpu_ram<1GB, gpu_utilization<20%, energy>1kWh.
All filters must match. Unreadable files are listed as damaged.
"""


def main(arguments: list[str]) -> int:
    """Only the first and last lines of each recording are read."""
    options = make_parser().parse_args(arguments)
    format_name = choose_format("Runs", options.format, options.output)
    if options.sort not in SORTS:
        raise UsageError(f"Unknown --sort {options.sort!r}.", f"Use one of: {', '.join(SORTS)}.")
    try:
        conditions = [parse_condition(text) for text in options.filter]
        since = None if options.since is None else time.time() - parse_age(options.since)
    except ValueError as error:
        raise UsageError(str(error)) from None
    output = Output(options.output)
    runs = sort_runs(
        choose(_list_runs(options.paths, options.job), conditions, since, describe_ending), options.sort
    )
    charts = _draw(runs) if format_name in WITH_CHARTS else ()
    output.write(render(Runs(tuple(runs), charts), format_name, output.find_view(1)), otherwise=1)
    return 0


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker ls", description=__doc__)
    parser.epilog = _EPILOG
    parser.add_argument(
        "paths", metavar="DIR", nargs="*", help=f"directories, or recordings (default {DEFAULT_DIRECTORY})"
    )
    add_job(parser)
    parser.add_argument(
        "--sort", metavar="BY", default="when", help=f"one of {', '.join(SORTS)} (default when)"
    )
    parser.add_argument(
        "--filter",
        metavar="FILTER",
        action="append",
        default=[],
        help="only matching runs, such as 'command~train'",
    )
    parser.offers["sort"] = tuple(SORTS)
    parser.add_argument("--since", metavar="AGE", help="only runs started within this time: 7d, 12h, 30min")
    add_output(parser, "Runs")
    return parser


def _draw(runs: Sequence[ListedRun]) -> tuple[Chart, ...]:
    """The first of them over time."""
    from ..api.pictures import draw_runs

    shown = [run for run in runs if not run.problem]
    return draw_runs(zip(_name_runs(shown), (run.path for run in shown), strict=True))


def _name_runs(runs: Sequence[ListedRun]) -> list[str]:
    """As their user calls them, else by their files; of runs with one name, by both."""
    names = Counter(run.name for run in runs)
    files = [name_run(run.path) for run in runs]
    return [
        file if not run.name else run.name if names[run.name] == 1 else f"{run.name} ({file})"
        for run, file in zip(runs, files, strict=True)
    ]


def _list_runs(paths: list[str], job: str | None) -> list[ListedRun]:
    if not paths and not os.path.isdir(DEFAULT_DIRECTORY):
        return []
    for path in paths:
        check_path(path)
    places = paths or [DEFAULT_DIRECTORY]
    found = (
        [file for path in places for file in find_recordings(path)] if job is None else find_all(places, job)
    )
    return [list_file(path) for path in dict.fromkeys(found)]


def check_path(path: str) -> None:
    """A path that does not exist is a typing error; a damaged file in a directory is not."""
    try:
        os.lstat(path)
    except OSError as error:
        from glob import glob

        if not glob(path):
            raise UsageError(f"Cannot read {path}: {error.strerror}.") from None

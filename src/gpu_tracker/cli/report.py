"""Print the report of one or more recordings; without a file, of the newest run."""

from __future__ import annotations

import os

from ..api.reporting import read_changes, report_on
from ..core.errors import UsageError
from ..recording.find import find_recordings
from ..recording.reader import load
from ..reports.build import Reports
from ..reports.choices import Choices
from ..reports.contract import choose_format, render
from .options import Parser, add_carbon, add_output, add_prices, add_rules, read_prices, to_factor
from .output import Output, refuse_same
from .track import DEFAULT_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..reports.build import Report


def main(arguments: list[str]) -> int:
    """The result goes to standard output."""
    options = make_parser().parse_args(arguments)
    if len(options.files) == 1 and os.path.isdir(options.files[0]):
        return _list_runs(options.files[0], options.format, options.output)
    paths = options.files or [_find_newest()]
    format_name = choose_format("Report" if len(paths) == 1 else "Reports", options.format, options.output)
    choices = Choices(read_changes(options.rules), to_factor(options), read_prices(options.prices))
    refuse_same(options.output, paths)
    output = Output(options.output)
    output.refuse_binary(format_name, otherwise=1)
    reports = tuple(report_on(load(path), choices) for path in paths)
    document = _ask_scheduler(reports[0]) if len(reports) == 1 else Reports(reports)
    output.write(render(document, format_name, output.find_view(1)), otherwise=1)
    return 0


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker report", description=__doc__)
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help=f"a recording (.jsonl), or a directory for a list of its runs (default: the newest run in {DEFAULT_DIRECTORY})",
    )
    add_prices(parser)
    add_carbon(parser)
    add_output(parser, "Report")
    add_rules(parser)
    return parser


def _ask_scheduler(report: Report) -> Report:
    """With a note on how the job ended, if it did not end by itself."""
    identity = report.header.identity
    if identity.scheduler != "slurm" or identity.job is None or report.exit_code == 0:
        return report
    from ..analysis.job_end import name_state
    from ..core.moments import parse_moment
    from ..sources.slurm import ask_state

    state = ask_state(identity.job, identity.job_name, parse_moment(report.header.started_at))
    if state is None:
        return report
    return report._replace(notes=(f"Slurm job {identity.job}: {name_state(state)}.", *report.notes))


def _find_newest() -> str:
    found = find_recordings(DEFAULT_DIRECTORY) if os.path.isdir(DEFAULT_DIRECTORY) else []
    if not found:
        raise UsageError(
            f"There are no recordings in {DEFAULT_DIRECTORY}.", "Name one: gpu-tracker report FILE."
        )
    return max(found, key=lambda path: (_read_change(path), path))


def _read_change(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0  # removed in between


def _list_runs(directory: str, format_name: str | None, path: str | None) -> int:
    from .ls import main as list_runs
    from .output import say

    options = [*(("-f", format_name) if format_name else ()), *(("-o", path) if path else ())]
    code = list_runs([directory, *options])
    say(f"{directory} is a directory. To see a run: gpu-tracker report FILE.")
    return code

"""Compare runs, or groups of repeated runs, with a baseline."""

from __future__ import annotations

import os

from ..analysis.limits import check_limits
from ..api.comparisons import list_runs, load_groups, name_group, parse_limits
from ..core.errors import TrackerError
from ..reports.contract import WITH_CHARTS, choose_format, render
from .options import Parser, add_limits, add_output
from .output import Output, refuse_same, say, say_gate

_EPILOG = """\
A group is a recording, a directory of recordings (repeats of one run), a quoted pattern, or several of these separated
by commas; NAME= in front names it.
A limit states what must not happen. It is checked against the median of every group except the baseline:
  --fail-if 'peak_gpu_ram > +10%'  --fail-if 'time > 1.2x'  --fail-if 'regions.forward.time > +5%'
  --fail-if 'peak_ram > 8GB'  --fail-if 'metrics.loss > 0.5'
Figures: time, cpu_time, mean_cores, peak_ram, peak_gpu_ram, gpu_utilization, energy; for regions also calls, time_per_call.
With 'time > +5% beyond noise', the change must also be marked with * in the table.
Exit code: 1 if a limit is broken; 2 if something could not be checked (a run that failed, was killed, has no end, or whose exit
code is not known; a figure, region or metric that a run does not have) or the request is invalid; 3 for trouble such as a full disk; else 0.
"""


def main(arguments: list[str]) -> int:
    """The comparison goes to standard output, limits that fail to standard error."""
    options = make_parser().parse_args(arguments)
    format_name = choose_format("Comparison", options.format, options.output)
    limits = parse_limits(options.fail_if, len(options.groups))
    groups = [_parse_group(text) for text in options.groups]
    refuse_same(options.output, [path for _, paths in groups for path in paths])
    output = Output(options.output)
    comparison = load_groups(groups)
    comparison = comparison._replace(files=tuple(list_runs(comparison, groups)))
    if format_name in WITH_CHARTS:
        from ..api.pictures import draw_runs

        comparison = comparison._replace(charts=draw_runs(comparison.files))
    gate = check_limits(
        limits, comparison, allow_failed=options.allow_failed, allow_missing=options.allow_missing
    )
    try:
        text = render(comparison._replace(verdicts=gate.verdicts), format_name, output.find_view(1))
        output.write(text, otherwise=1)
    except TrackerError as error:
        say(str(error))
        return say_gate(gate) or error.exit_code
    return say_gate(gate)


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker compare", description=__doc__)
    parser.epilog = _EPILOG
    parser.add_argument(
        "groups", metavar="[NAME=]GROUP", nargs="+", help="runs to compare; the first is the baseline"
    )
    add_limits(parser, "exit with 1 if this holds for any group (repeatable)")
    parser.add_argument(
        "--allow-failed",
        action="store_true",
        help="check runs that failed, were killed, or have no end or no known exit code like others",
    )
    add_output(parser, "Comparison")
    return parser


def _parse_group(text: str) -> tuple[str, list[str]]:
    """Split `NAME=FILE,FILE`; a file that exists under the whole text is taken as it is."""
    name, sign, rest = text.partition("=")
    if os.path.exists(text) or not sign or os.sep in name:
        name, rest = "", text
    paths = [rest] if os.path.exists(rest) else [path for path in rest.split(",") if path]
    return name or (name_group(paths[0]) if len(paths) == 1 else rest), paths

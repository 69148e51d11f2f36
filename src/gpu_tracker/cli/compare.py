"""Compare runs, or groups of repeated runs, with a baseline."""

from __future__ import annotations

import os

from ..api.comparisons import check_limits, load_groups, parse_limits
from ..recording.find import name_run
from ..reports.contract import choose_format, render
from .options import Parser, add_output
from .output import Output, say

_EPILOG = """\
A group is a recording, a directory of recordings (repeats of one run), a quoted pattern, or several of these separated
by commas; NAME= in front names it:
  gpu-tracker compare before=runs/a1.jsonl,runs/a2.jsonl after=runs/after/
A limit states what must not happen. It is checked against the median of every group except the baseline:
  --fail-if 'peak_gpu_ram > +10%'  --fail-if 'time > 1.2x'  --fail-if 'regions.forward.time > +5%'
  --fail-if 'peak_ram > 8GB'  --fail-if 'metrics.loss > 0.5'
Figures: time, cpu_time, mean_cores, peak_ram, peak_gpu_ram, gpu_utilization, energy; for regions also calls, time_per_call.
Exit code: 1 if a limit is exceeded, 2 for invalid input, else 0. Unmeasured figures never fail a limit; they are reported.
"""


def main(arguments: list[str]) -> int:
    """The comparison goes to standard output, limits that fail to standard error."""
    parser = Parser(prog="gpu-tracker compare", description=__doc__)
    parser.epilog = _EPILOG
    parser.add_argument(
        "groups", metavar="[NAME=]GROUP", nargs="+", help="runs to compare; the first is the baseline"
    )
    parser.add_argument(
        "--fail-if",
        metavar="LIMIT",
        action="append",
        default=[],
        help="exit with 1 if this holds for any group",
    )
    add_output(parser, "Comparison")
    options = parser.parse_args(arguments)
    format_name = choose_format("Comparison", options.format, options.output)
    limits = parse_limits(options.fail_if, len(options.groups))
    output = Output(options.output)
    comparison = load_groups([_parse_group(text) for text in options.groups])
    verdicts = check_limits(limits, comparison)
    output.write(render(comparison._replace(verdicts=tuple(verdicts)), format_name), otherwise=1)
    for verdict in verdicts:
        for sentence in (*verdict.unknown, *verdict.fired):
            say(sentence)
    return 1 if any(verdict.fired for verdict in verdicts) else 0


def _parse_group(text: str) -> tuple[str, list[str]]:
    """Split `NAME=FILE,FILE`; a file that exists under the whole text is taken as it is."""
    name, sign, rest = text.partition("=")
    if os.path.exists(text) or not sign or os.sep in name:
        name, rest = "", text
    paths = [rest] if os.path.exists(rest) else [path for path in rest.split(",") if path]
    return name or (name_run(paths[0]) if len(paths) == 1 else rest), paths

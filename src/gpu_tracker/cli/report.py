"""Print the report of one or more recordings."""

from __future__ import annotations

from ..api.reporting import read_changes, report_on
from ..recording.reader import load
from ..reports.build import Choices, Reports
from ..reports.contract import choose_format, render
from .options import Parser, add_carbon, add_output, add_rules, to_factor
from .output import Output


def main(arguments: list[str]) -> int:
    """The result goes to standard output."""
    parser = Parser(prog="gpu-tracker report", description=__doc__)
    parser.add_argument("files", metavar="FILE", nargs="+", help="a recording (.jsonl)")
    add_carbon(parser)
    add_output(parser, "Reports")
    add_rules(parser)
    options = parser.parse_args(arguments)
    kind = "Report" if len(options.files) == 1 else "Reports"
    format_name = choose_format(kind, options.format, options.output)
    choices = Choices(read_changes(options.rules), to_factor(options))
    output = Output(options.output)
    reports = tuple(report_on(load(path), choices) for path in options.files)
    document = reports[0] if len(reports) == 1 else Reports(reports)
    output.write(render(document, format_name), otherwise=1)
    return 0

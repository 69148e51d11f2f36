"""Print the report of one or more recordings."""

from __future__ import annotations

from ..recording.reader import load
from ..recording.sampled import read_columns
from ..reports.build import Reports, build
from ..reports.contract import choose_format, render
from .options import Parser, add_carbon, add_output, to_factor
from .output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.energy import CarbonFactor
    from ..reports.build import Report


def main(arguments: list[str]) -> int:
    """The result goes to standard output."""
    parser = Parser(prog="gpu-tracker report", description=__doc__)
    parser.add_argument("files", metavar="FILE", nargs="+", help="a recording (.jsonl)")
    add_carbon(parser)
    add_output(parser, "Reports")
    options = parser.parse_args(arguments)
    format_name = choose_format("Reports", options.format, options.output)
    factor = to_factor(options)
    output = Output(options.output)
    reports = tuple(_build(path, factor) for path in options.files)
    document = reports[0] if len(reports) == 1 else Reports(reports)
    output.write(render(document, format_name), otherwise=1)
    return 0


def _build(path: str, factor: CarbonFactor | None) -> Report:
    recording = load(path)
    return build(recording, read_columns(recording), factor)

"""Print the summary of a recording, as it was printed when the job ended."""

from __future__ import annotations

from ..recording.reader import load
from ..reports import FORMATS, render
from ..reports.build import build
from .options import Parser, add_output, check_format
from .output import Output

NAME = "report"


def main(arguments: list[str]) -> int:
    """The result goes to standard output."""
    parser = Parser(prog="gpu-tracker report", description=__doc__)
    parser.add_argument("file", metavar="FILE", help="a recording (.jsonl)")
    add_output(parser, FORMATS)
    options = parser.parse_args(arguments)
    format_name = check_format(options.format, FORMATS)
    output = Output(options.output)
    output.write(render(build(load(options.file)), format_name), otherwise=1)
    return 0

"""Print the summary of recordings, as it was printed when the job ended."""

from __future__ import annotations

from ..recording.reader import load
from ..reports import FORMATS, join, render
from ..reports.build import build
from .options import Parser, add_output, check_format
from .output import Output

NAME = "report"


def main(arguments: list[str]) -> int:
    """The result goes to standard output."""
    parser = Parser(prog="gpu-tracker report", description=__doc__)
    parser.add_argument("files", metavar="FILE", nargs="+", help="a recording (.jsonl)")
    add_output(parser, FORMATS)
    options = parser.parse_args(arguments)
    format_name = check_format(options.format, FORMATS)
    output = Output(options.output)
    texts = [render(build(load(path)), format_name) for path in options.files]
    output.write(join(texts, format_name), otherwise=1)
    return 0

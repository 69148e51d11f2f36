"""Show recordings of several ranks or hosts as one job."""

from __future__ import annotations

from ..analysis.job import combine
from ..core.errors import WRONG_DATA, RecordingError, UsageError
from ..recording.find import find_recordings, name_run
from ..recording.reader import load_whole
from ..reports.contract import WITH_CHARTS, choose_format, render
from .options import Parser, add_carbon, add_output, to_factor
from .output import Output, refuse_same


def main(arguments: list[str]) -> int:
    """The result goes to standard output."""
    parser = Parser(prog="gpu-tracker combine", description=__doc__)
    parser.add_argument("files", metavar="FILE", nargs="+", help="recordings, or directories of them")
    add_carbon(parser)
    add_output(parser, "Combined")
    options = parser.parse_args(arguments)
    format_name = choose_format("Combined", options.format, options.output)
    factor = to_factor(options)
    paths = list(dict.fromkeys(found for path in options.files for found in find_recordings(path)))
    refuse_same(options.output, paths)
    output = Output(options.output)
    if not paths:
        raise UsageError(f"There is no recording in {', '.join(options.files)}.")
    recordings = [(name, load_whole(path)) for name, path in zip(_name_all(paths), paths, strict=True)]
    try:
        combined = combine(recordings, factor)
        if format_name in WITH_CHARTS:
            from ..api.pictures import draw_ranks

            combined = combined._replace(charts=draw_ranks(recordings))
        text = render(combined, format_name, output.find_view(1))
    except WRONG_DATA:
        raise RecordingError("A recording is damaged: it contains invalid numbers.") from None
    output.write(text, otherwise=1)
    return 0


def _name_all(paths: list[str]) -> list[str]:
    """File names, or whole paths where two names are equal."""
    names = [name_run(path) for path in paths]
    return names if len(set(names)) == len(names) else paths

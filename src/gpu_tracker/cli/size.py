"""Say how much memory, how many cores and GPUs, and how much time to ask for the next time."""

from __future__ import annotations

from ..analysis.sizing import advise, find_need
from ..core.errors import WRONG_DATA, RecordingError, UsageError
from ..recording.find import find_recordings
from ..recording.reader import load
from ..recording.sampled import read_columns
from ..reports.contract import choose_format, render
from ..reports.sizing import SizingReport
from ..reports.sizing_lines import FORMS
from .options import Parser, add_output
from .output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.sizing import Need

_EPILOG = """\
Several runs must be of the same job: the largest counts. Memory has a margin of 20 % (15 % from five runs), time one of
30 %. A run that failed or was killed gives lower bounds only.
  gpu-tracker size gpu-tracker-runs/train-*.jsonl --for slurm
"""


def main(arguments: list[str]) -> int:
    """The advice goes to standard output."""
    parser = Parser(prog="gpu-tracker size", description=__doc__)
    parser.epilog = _EPILOG
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", help="recordings of one job, or directories of them"
    )
    parser.add_argument(
        "--for", dest="form", metavar="FORM", help=f"only this form: {', '.join(FORMS)} (default: all)"
    )
    add_output(parser, "SizingReport")
    options = parser.parse_args(arguments)
    format_name = choose_format("SizingReport", options.format, options.output)
    if options.form is not None and options.form not in FORMS:
        raise UsageError(f"Unknown form {options.form!r}.", f"Use one of: {', '.join(FORMS)}.")
    output = Output(options.output)
    paths = list(dict.fromkeys(found for path in options.runs for found in find_recordings(path)))
    if not paths:
        raise UsageError(f"There is no recording in {', '.join(options.runs)}.")
    sizing = advise([_find_need(path) for path in paths])
    forms = tuple(FORMS) if options.form is None else (options.form,)
    output.write(render(SizingReport(sizing, forms), format_name), otherwise=1)
    return 0


def _find_need(path: str) -> Need:
    recording = load(path)
    try:
        return find_need(recording, read_columns(recording))
    except WRONG_DATA:
        raise RecordingError(f"{path} is damaged: it contains invalid numbers.") from None

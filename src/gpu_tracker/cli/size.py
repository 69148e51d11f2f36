"""Say how much memory, how many cores and GPUs, and how much time to ask for the next time."""

from __future__ import annotations

from ..analysis.energy import estimate_carbon, summarize_energy
from ..analysis.prices import COLUMNS, choose_machine, parse_prices
from ..analysis.sizing import advise, find_need
from ..core.errors import WRONG_DATA, RecordingError, UsageError
from ..recording.find import find_recordings
from ..recording.reader import load
from ..recording.sampled import read_columns
from ..reports.contract import choose_format, render
from ..reports.sizing import SizingReport
from ..reports.sizing_lines import FORMS
from .options import Parser, add_carbon, add_output, to_factor
from .output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.prices import Machine

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
    parser.add_argument(
        "--prices",
        metavar="FILE",
        help=f"also name the cheapest machine that fits; a CSV file with the columns {', '.join(COLUMNS)}",
    )
    add_carbon(parser)
    add_output(parser, "SizingReport")
    options = parser.parse_args(arguments)
    format_name = choose_format("SizingReport", options.format, options.output)
    if options.form is not None and options.form not in FORMS:
        raise UsageError(f"Unknown form {options.form!r}.", f"Use one of: {', '.join(FORMS)}.")
    factor, machines = to_factor(options), _read_prices(options.prices)
    output = Output(options.output)
    paths = list(dict.fromkeys(found for path in options.runs for found in find_recordings(path)))
    if not paths:
        raise UsageError(f"There is no recording in {', '.join(options.runs)}.")
    recordings = [load(path) for path in paths]
    try:
        sizing = advise([find_need(recording, read_columns(recording)) for recording in recordings])
        energy = max(map(summarize_energy, recordings), key=lambda one: one.total_joules or 0.0)
    except WRONG_DATA:
        raise RecordingError("A recording is damaged: it contains invalid numbers.") from None
    document = SizingReport(
        sizing,
        tuple(FORMS) if options.form is None else (options.form,),
        choose_machine(machines, sizing) if machines else None,
        energy,
        estimate_carbon(energy.total_joules, factor),
    )
    output.write(render(document, format_name), otherwise=1)
    return 0


def _read_prices(path: str | None) -> tuple[Machine, ...]:
    if path is None:
        return ()
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return parse_prices(file.readlines())
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror}.") from None
    except ValueError as error:
        raise UsageError(f"{path} is not a table of prices: {error}.") from None

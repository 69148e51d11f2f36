"""Say how much memory, how many cores and GPUs, and how much time to ask for the next time."""

from __future__ import annotations

from ..analysis.energy import estimate_carbon, summarize_energy
from ..analysis.job_measures import list_missing
from ..analysis.launches import find_runs
from ..analysis.prices import choose_machine
from ..analysis.ranks import leave_out_inner
from ..analysis.sizing import advise, bound_by_inner, find_need, lack_ranks
from ..core.errors import WRONG_DATA, RecordingError, UsageError
from ..recording.naming import name_command
from ..recording.reader import load_several
from ..recording.sampled import read_columns
from ..reports.contract import choose_format, render
from ..reports.sizing import SizingReport
from ..reports.sizing_lines import FORMS, format_words, is_lower_bound
from .options import (
    Parser,
    add_carbon,
    add_output,
    add_places,
    add_prices,
    find_places,
    read_prices,
    to_factor,
)
from .output import Output, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.sizing import Need
    from ..core.model import RecordingData

_EPILOG = """\
Several runs must be of the same job: the largest counts. Memory has a margin of 20 % (15 % from five runs), time one of
30 %. A run that failed or was killed gives lower bounds only.
"""


def main(arguments: list[str]) -> int:
    """The advice goes to standard output."""
    options = make_parser().parse_args(arguments)
    format_name = choose_format("SizingReport", options.format, options.output)
    if options.form is not None and options.form not in FORMS:
        raise UsageError(f"Unknown form {options.form!r}.", f"Use one of: {', '.join(FORMS)}.")
    factor, machines = to_factor(options), read_prices(options.prices)
    output = Output(options.output)
    paths = find_places(options.runs, options.job)
    loaded, skipped = load_several(paths, options.runs)
    counted = leave_out_inner(loaded)
    runs = find_runs(loaded)
    try:
        sizing = advise(
            [
                _find_need(recording, runs[path], counted.within.get(path))
                for path, recording in counted.recordings
            ]
        )
        energy = max(
            (summarize_energy(recording) for _, recording in counted.recordings),
            key=lambda one: one.total_joules or 0.0,
        )
    except WRONG_DATA:
        raise RecordingError("A recording is damaged: it contains invalid numbers.") from None
    if options.form is not None and not format_words(sizing):  # an empty line must not be pasted
        raise RecordingError(" ".join(("Nothing can be advised.", *sizing.notes)))
    sizing = lack_ranks(sizing, list_missing(loaded))
    sizing = sizing._replace(notes=(*sizing.notes, *skipped, *counted.notes))
    document = SizingReport(
        sizing,
        tuple(FORMS) if options.form is None else (options.form,),
        choose_machine(machines, sizing) if machines else None,
        energy,
        estimate_carbon(energy.total_joules, factor),
    )
    output.write(render(document, format_name, output.find_view(1)), otherwise=1)
    if options.form is not None and format_name == "text" and is_lower_bound(sizing):
        # What is to be pasted has no room for it.
        say(" ".join(("This is the least that is needed.", *sizing.notes)))
    return 0 if format_words(sizing) else RecordingError.exit_code


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker size", description=__doc__)
    parser.epilog = _EPILOG
    add_places(parser, "runs", "recordings of one job, or directories of them")
    parser.add_argument(
        "--for", dest="form", metavar="FORM", help=f"only this form: {', '.join(FORMS)} (default: all)"
    )
    parser.offers["form"] = tuple(FORMS)
    add_prices(parser)
    add_carbon(parser)
    add_output(parser, "SizingReport")
    return parser


def _find_need(
    recording: RecordingData,
    run: tuple[str, ...] | None,
    within: Sequence[tuple[str, RecordingData]] | None,
) -> Need:
    need = find_need(recording, read_columns(recording))
    if within is not None:
        need = bound_by_inner(need, [find_need(inner) for _, inner in within])
    return need._replace(program=name_command(recording.header.command), run=run)

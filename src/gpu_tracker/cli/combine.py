"""Show recordings of several ranks or hosts as one job."""

from __future__ import annotations

import gc
from functools import partial

from ..analysis.job import combine
from ..api.reporting import find_findings, read_changes
from ..core.errors import WRONG_DATA, RecordingError
from ..core.moments import parse_moment
from ..recording.find import name_run
from ..recording.reader import load_several
from ..recording.sampled import read_held
from ..reports.contract import WITH_CHARTS, choose_format, render
from .options import Parser, add_carbon, add_output, add_places, add_rules, find_places, to_factor
from .output import Output, refuse_same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.model import Header


def main(arguments: list[str]) -> int:
    """The result goes to standard output."""
    gc.disable()  # all recordings are kept until the end: looking for garbage takes longer the more there are
    options = make_parser().parse_args(arguments)
    format_name = choose_format("Combined", options.format, options.output)
    factor = to_factor(options)
    judge = partial(find_findings, changes=read_changes(options.rules))
    paths = find_places(options.files, options.job)
    refuse_same(options.output, paths)
    output = Output(options.output)
    loaded, skipped = load_several(paths, options.files)
    names = _name_all([path for path, _ in loaded])
    recordings = [(name, recording) for name, (_, recording) in zip(names, loaded, strict=True)]
    try:
        state = _ask_scheduler([recording.header for _, recording in recordings])
        combined = combine(recordings, partial(read_held, plans={}), factor, skipped, state, judge)
        if format_name in WITH_CHARTS:
            from ..api.pictures import draw_ranks

            counted = {rank.name for rank in combined.ranks}
            combined = combined._replace(charts=draw_ranks([one for one in recordings if one[0] in counted]))
        text = render(combined, format_name, output.find_view(1))
    except WRONG_DATA:
        raise RecordingError("A recording is damaged: it contains invalid numbers.") from None
    output.write(text, otherwise=1)
    return 0


def make_parser() -> Parser:
    """Its options."""
    parser = Parser(prog="gpu-tracker combine", description=__doc__)
    add_places(parser, "files", "recordings, or directories of them")
    add_carbon(parser)
    add_output(parser, "Combined")
    add_rules(parser)
    return parser


def _ask_scheduler(headers: Sequence[Header]) -> str | None:
    """How the job ended, if they are all of one."""
    identities = [header.identity for header in headers]
    jobs = {(identity.scheduler, identity.job, identity.job_name) for identity in identities}
    clusters = {identity.cluster for identity in identities if identity.cluster is not None}
    scheduler, job, name = jobs.pop() if len(jobs) == 1 and len(clusters) <= 1 else (None, None, None)
    if scheduler != "slurm" or job is None:
        return None
    from ..sources.slurm import ask_state

    begins = [began for header in headers if (began := parse_moment(header.started_at)) is not None]
    return ask_state(job, name, min(begins, default=None))


def _name_all(paths: list[str]) -> list[str]:
    """File names, or whole paths where two names are equal."""
    names = [name_run(path) for path in paths]
    return names if len(set(names)) == len(names) else paths

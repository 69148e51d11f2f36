"""`compare()`: recorded runs side by side. Loaded without the tracker, which it does not need."""

from __future__ import annotations

import os

from ..analysis.compare import compare as compare_groups
from ..analysis.copies import leave_out_copies
from ..analysis.job_end import describe_outcome
from ..analysis.job_measures import add_inner, describe_all_missing, doubt_regions, doubt_rest, join_ranks
from ..analysis.launches import find_runs
from ..analysis.limits import check_limits, needs_two_groups, parse_limit
from ..analysis.measures import measure
from ..analysis.ranks import align, describe_inner, find_cut, find_outer, find_outermost, list_within
from ..analysis.united_regions import unite_regions
from ..core.config import check_path
from ..core.errors import WRONG_DATA, KindError, RecordingError, UsageError
from ..recording.find import find_recordings, name_run
from ..recording.glance import glance
from ..recording.naming import name_command
from ..recording.reader import load, refuse_damaged
from ..recording.secrets import mask_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from ..analysis.compare import Comparison
    from ..analysis.limits import Limit
    from ..analysis.measures import RunFigures, SlurmJob
    from ..core.model import RecordingData

    Source: TypeAlias = str | os.PathLike[str]


class ComparisonReport:
    """The comparison of groups of runs: `print` it, take `to_json()`, or `check()` it against limits."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison

    def __str__(self) -> str:
        from ..core.system import prints_any_letter
        from ..reports.contract import View, render

        view = View(has_unicode=prints_any_letter())
        return str(render(self.comparison, "text", view)).rstrip("\n")

    __repr__ = __str__  # an interactive session shows this one

    def _repr_html_(self) -> str:
        """In a notebook: what changed, and all figures side by side."""
        from ..reports.notebook import show_comparison

        return show_comparison(self.comparison)

    def to_json(self) -> dict[str, Any]:
        """Every figure of every group, as a dictionary that JSON can hold."""
        from ..reports.comparison import build_plain

        return build_plain(self.comparison)

    def check(self, *limits: str, allow_failed: bool = False, allow_missing: bool = False) -> list[str]:
        """A sentence for everything that does not pass limits such as `"peak_ram > +10%"`; empty if all is well.

        Runs that did not succeed and figures that a run does not have do not pass, unless that is allowed.
        """
        parsed = parse_limits(limits, len(self.comparison.groups))
        gate = check_limits(parsed, self.comparison, allow_failed=allow_failed, allow_missing=allow_missing)
        return [*gate.broken, *gate.unchecked]


def compare(*groups: Source | Iterable[Source], names: Sequence[str] | None = None) -> ComparisonReport:
    """Compare recorded runs with the first of them.

    Each group is a recording, a list of recordings (repeats of one thing), or a directory of them. A group is called as its run
    is, else after its file, unless there are `names`. Nothing of a recording is ever executed.
    """
    paths = [_list_paths(group) for group in groups]
    if not paths:
        raise UsageError("Nothing to compare.", "Name recordings or directories of recordings.")
    if names is not None and len(names) != len(paths):
        raise UsageError(f"{len(names)} names for {len(paths)} groups.", "Give one name per group.")
    called = names or [name_group(group[0]) if len(group) == 1 else "" for group in paths]
    return ComparisonReport(load_groups(list(zip(called, paths, strict=True))))


def name_group(path: str) -> str:
    """What the user calls the run in a file; else the name of the file or directory."""
    try:
        own = glance(path).header.identity.name if os.path.isfile(path) else None
    except (RecordingError, *WRONG_DATA):
        own = None  # whoever loads it will say so
    return own or name_run(path)


def load_groups(groups: Sequence[tuple[str, Sequence[str]]]) -> Comparison:
    """Read all recordings, one at a time; only their figures are kept."""
    notes: list[str] = []
    measured = [_measure_all(paths, notes) for _, paths in groups]
    states = _ask_slurm([run for runs, _ in measured for run in runs])
    found = [([_judge(run, states) for run in runs], unreadable) for runs, unreadable in measured]
    comparison = compare_groups(list(zip(_tell_apart(groups), (runs for runs, _ in found), strict=True)))
    with_unreadable = (
        group._replace(unreadable=unreadable)
        for group, (_, unreadable) in zip(comparison.groups, found, strict=True)
    )
    return comparison._replace(
        groups=tuple(with_unreadable), notes=(*dict.fromkeys(notes), *comparison.notes)
    )


def list_runs(comparison: Comparison, groups: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, str]]:
    """Every run with its path, named after its group: `before`, `before 2`."""
    named = []
    for group, (_, paths) in zip(comparison.groups, groups, strict=True):
        found = [path for given in paths for path in find_recordings(given)]
        named += [
            (group.name if number == 1 else f"{group.name} {number}", path)
            for number, path in enumerate(dict.fromkeys(found), start=1)
        ]
    return named


def parse_limits(texts: Iterable[str], group_count: int) -> list[Limit]:
    """The limits that the texts mean; without any groups, of a run by itself. One that makes no sense is the user's to mend."""
    limits = []
    for text in texts:
        try:
            limit = parse_limit(text)
        except TypeError:
            raise KindError(f"{text!r} is not a valid limit. Must be text.") from None
        except ValueError as error:
            raise UsageError(mask_text(str(error))) from None
        if needs_two_groups(limit) and group_count < 2:
            hint = "Name a second group." if group_count else "Compare recordings: gpu-tracker compare."
            raise UsageError(f"{text!r} needs something to compare with.", hint)
        limits.append(limit)
    return limits


def _list_paths(group: Source | Iterable[Source]) -> list[str]:
    if isinstance(group, (str, os.PathLike)):
        return [check_path("A group", group)]
    try:
        return [check_path("A recording", path) for path in group]
    except TypeError:
        raise KindError(f"A group of {group!r} is invalid. Must be a path, or several paths.") from None


def _measure_all(paths: Sequence[str], notes: list[str]) -> tuple[list[RunFigures], int]:
    """The figures of all runs, and how many recordings cannot be read: in a directory that is a note, otherwise an error."""
    measured: dict[str, RunFigures] = {}
    recordings: list[tuple[str, RecordingData]] = []
    unreadable = 0
    seen: set[str] = set()
    for given in paths:
        found = find_recordings(given)
        is_named = found == [given]
        for path in found:
            real = os.path.realpath(path)
            if real in seen:
                notes.append(f"Counted once: {path} is in its group more than once.")
                continue
            seen.add(real)
            try:
                recording, measured[path] = _measure(path)
            except RecordingError as error:
                if is_named:
                    raise
                unreadable += 1
                notes.append(f"Skipped: {error}")
                continue
            recordings.append((path, recording))
    if not recordings:
        raise UsageError(f"There is no recording to read in {', '.join(paths) or 'an empty group'}.")
    recordings, copies = leave_out_copies(recordings)
    notes += copies
    parts = align(recordings)
    outer = find_outer(parts)
    jobs = find_runs(recordings)
    cut = find_cut(parts, outer)
    notes += describe_inner(outer, cut)
    united = unite_regions(parts, outer)
    for path, recording in united.recordings.items():
        own = measure(recording)._replace(program=measured[path].program)
        measured[path] = doubt_regions(own, united.doubted.get(path, ()))
    figures = _add_inner(recordings, jobs, outer, measured)
    for path, within in list_within(outer, cut).items():
        figures[path] = doubt_rest(figures[path], [measured[one] for one in within])
    runs: list[RunFigures] = []
    ranks: dict[tuple[str, ...], list[tuple[str, RecordingData]]] = {}
    for path, recording in recordings:
        if (job := jobs[path]) is not None:
            ranks.setdefault(job, []).append((path, recording))
        elif path not in outer:
            runs.append(figures[path])
    counted = ({path: figures[path] for path, _ in some if path not in outer} for some in ranks.values())
    joined = [_join_ranks(some, own) for some, own in zip(ranks.values(), counted, strict=True) if own]
    return [*runs, *joined], unreadable


def _ask_slurm(runs: Iterable[RunFigures]) -> dict[SlurmJob, str | None]:
    """How the jobs ended of which no recording tells, as far as it answers in time."""
    jobs = dict.fromkeys(run.slurm_job for run in runs if run.slurm_job is not None and not run.failure)
    if not jobs:
        return {}
    import time

    from ..sources.slurm import PATIENCE_SECONDS, ask_state

    until = time.monotonic() + PATIENCE_SECONDS
    return {job: ask_state(*job, patience_seconds=until - time.monotonic()) for job in jobs}


def _judge(run: RunFigures, states: Mapping[SlurmJob, str | None]) -> RunFigures:
    """A run with what Slurm says of its end, if nobody else does."""
    if run.failure or run.slurm_job is None:
        return run
    return run._replace(failure=describe_outcome(states[run.slurm_job]))


def _add_inner(
    recordings: Sequence[tuple[str, RecordingData]],
    jobs: Mapping[str, tuple[str, ...] | None],
    outer: Mapping[str, str],
    measured: Mapping[str, RunFigures],
) -> dict[str, RunFigures]:
    """The figures of all runs, each with what those that are part of it tell."""
    inner: dict[str, list[str]] = {}
    for path in outer:
        inner.setdefault(find_outermost(path, outer), []).append(path)
    identities = [(jobs[path], recording.header.identity) for path, recording in recordings]
    added = dict(measured)
    for path, parts in inner.items():
        own = {jobs[part] for part in parts}
        missing = describe_all_missing(one for one in identities if one[0] in own)
        added[path] = add_inner(measured[path], [measured[part] for part in parts], missing)
    return added


def _join_ranks(ranks: Sequence[tuple[str, RecordingData]], counted: Mapping[str, RunFigures]) -> RunFigures:
    """The ranks of one job are one run, not repeats of each other. Only those that are part of no other are counted."""
    from ..analysis.job import combine, count_ranks

    if len(counted) == 1 and not count_ranks([recording.header.identity for _, recording in ranks])[1]:
        return next(iter(counted.values()))
    from functools import partial

    from ..recording.sampled import read_held

    ordered = sorted(ranks, key=lambda one: one[1].header.identity.rank or 0)
    whole = combine(ordered, partial(read_held, plans={}))
    return join_ranks(whole, [counted[path] for path, _ in ordered if path in counted])


def _measure(path: str) -> tuple[RecordingData, RunFigures]:
    recording = load(path)
    try:
        figures = measure(recording)
    except WRONG_DATA:
        raise RecordingError(f"{path} is damaged: it contains invalid numbers.") from None
    refuse_damaged(recording, path)
    return recording, figures._replace(program=name_command(recording.header.command))


def _tell_apart(groups: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """A different name for every group."""
    names: list[str] = []
    for number, (name, _) in enumerate(groups, start=1):
        wanted = name or f"group {number}"
        names.append(wanted if wanted not in names else f"{wanted} ({number})")
    return names

"""Recordings of one and the same run: copies of a file, whole, cut off or edited. Only one of them may count. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from ..core.model import RecordingData

_MOST_NAMED = 5


def leave_out_copies(
    recordings: Sequence[tuple[str, RecordingData]],
) -> tuple[list[tuple[str, RecordingData]], list[str]]:
    """The most complete recording of each run, in their order, and sentences about the others."""
    runs: dict[Hashable, list[tuple[str, RecordingData]]] = {}
    for one in recordings:
        runs.setdefault(_identify(one[1]), []).append(one)
    best = {max(some, key=_rate)[0]: some for some in runs.values()}
    kept = [one for one in recordings if one[0] in best]
    return kept, _describe({copy: name for name, some in best.items() for copy, _ in some if copy != name})


def _identify(recording: RecordingData) -> Hashable:
    """What no two runs have in common. Of a machine that tells no boot, a run is only known by all that was measured."""
    header, identity = recording.header, recording.header.identity
    if identity.boot_id is None:
        return header, recording.totals
    machine = header.host, identity.boot_id, identity.pid_namespace
    return machine, header.pid, header.started_at, identity.job, identity.step, identity.rank


def _rate(one: tuple[str, RecordingData]) -> tuple[bool, float, int]:
    """How complete it is."""
    _, recording = one
    return recording.end is not None, recording.totals.at_seconds, len(recording.samples)


def _describe(copies: Mapping[str, str]) -> list[str]:
    named = [
        f"Counted once: {copy} is of the same run as {name}."
        for copy, name in list(copies.items())[:_MOST_NAMED]
    ]
    more = len(copies) - len(named)
    return [*named, *([f"Counted once: {more} more are of the same runs as others."] if more > 0 else [])]

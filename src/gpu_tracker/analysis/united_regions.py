"""Regions of a process that several trackers have recorded at the same time, as one tracker would have. Pure.

Each call is in the recording of the tracker that was opened last, so they add up; a call that is in two recordings counts once.
"""

from __future__ import annotations

from ..core.values import NamedTuple
from .ranks import find_end, find_outermost, is_of_whole_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from ..core.model import Call, RecordingData, RegionTotals
    from .ranks import Part

    _Path: TypeAlias = tuple[str, ...]

# What two trackers call the same time may differ by this much.
_CLOCK_SECONDS = 5e-3


class United(NamedTuple):
    """The recordings that have others' regions, or whose regions another one has."""

    recordings: Mapping[str, RecordingData]
    doubted: Mapping[str, frozenset[_Path]]
    """Of each: the paths of regions of which some calls may be missing."""


def unite_regions(parts: Sequence[Part], outer: Mapping[str, str]) -> United:
    """Give the regions of trackers in a rank, or of its process, to the recording that includes all of it."""
    by_name = {part.name: part for part in parts}
    within: dict[str, list[Part]] = {}
    for name, head in _find_heads(by_name, outer).items():
        within.setdefault(head, []).append(by_name[name])
    recordings: dict[str, RecordingData] = {}
    doubted: dict[str, frozenset[_Path]] = {}
    for head, inner in within.items():
        if any(part.recording.regions for part in inner):
            recordings[head], doubted[head] = _unite(by_name[head], inner)
            recordings.update((part.name, part.recording._replace(regions=(), calls=())) for part in inner)
    return United(recordings, doubted)


def _find_heads(by_name: Mapping[str, Part], outer: Mapping[str, str]) -> dict[str, str]:
    """Of each recording within another of the same rank or process: that one."""
    # That of all of a job is no tree of processes.
    trees = {
        name: around
        for name, around in outer.items()
        if not is_of_whole_job(by_name[around].recording.header)
    }
    groups: dict[tuple[str, int | None], list[Part]] = {}
    for name in dict.fromkeys((*trees, *trees.values())):
        part = by_name[name]
        groups.setdefault((find_outermost(name, trees), _get_rank(part)), []).append(part)
    return {
        part.name: head.name
        for (_, rank), some in groups.items()
        for part, head in _pair(some, trees, is_rank=rank is not None)
    }


def _get_rank(part: Part) -> int | None:
    return part.recording.header.identity.rank


def _pair(parts: Sequence[Part], outer: Mapping[str, str], *, is_rank: bool) -> Iterator[tuple[Part, Part]]:
    """Each recording that is in another one of these, and the longest of those."""
    longest_first = sorted(parts, key=lambda part: (part.name in outer, part.begin_seconds - find_end(part)))
    crowded = set() if is_rank else _find_crowded(longest_first[1:])
    heads: list[Part] = []
    for part in longest_first:
        around = next((head for head in heads if _is_at_once(part, head)), None)
        if around is not None and part.name in outer and part.name not in crowded:
            yield part, around
        else:
            heads.append(part)


def _find_crowded(parts: Iterable[Part]) -> set[str]:
    """Those of several processes at the same time: workers, each of which is compared with the others."""
    crowded: set[str] = set()
    last: Part | None = None
    for part in sorted(parts, key=lambda part: part.begin_seconds):
        if last is not None and _is_at_once(part, last) and _get_pid(part) != _get_pid(last):
            crowded |= {part.name, last.name}
        if last is None or find_end(part) > find_end(last):
            last = part
    return crowded


def _get_pid(part: Part) -> int:
    return part.recording.header.pid


def _is_at_once(part: Part, other: Part) -> bool:
    return part.begin_seconds < find_end(other) and other.begin_seconds < find_end(part)


def _unite(head: Part, inner: Sequence[Part]) -> tuple[RecordingData, frozenset[_Path]]:
    """A recording with the regions of others on its time axis, and the paths of those that may lack some calls."""
    regions, calls = list(head.recording.regions), list(head.recording.calls)
    doubted: set[_Path] = set()
    for part in inner:
        since = part.begin_seconds - head.begin_seconds
        moved = [_move_call(call, since) for call in part.recording.calls]
        copied = _find_copied(calls, moved, since, since + find_end(part) - part.begin_seconds)
        for region in (_move_region(region, since) for region in part.recording.regions):
            key = region.pid, region.path
            if key not in copied:
                regions.append(region)
                continue
            before = next(one for one in regions if (one.pid, one.path) == key)
            regions[regions.index(before)] = max(before, region, key=lambda one: one.wall_seconds)
            if not copied[key]:
                doubted.add(region.path)
        calls += [call for call in moved if (call.pid, call.path) not in copied]
    return head.recording._replace(regions=tuple(regions), calls=tuple(calls)), frozenset(doubted)


def _find_copied(
    known: Iterable[Call], added: Iterable[Call], begin_seconds: float, end_seconds: float
) -> dict[tuple[int, _Path], bool]:
    """The regions of which calls are in both although the second tracker was there, by process and path; whether one of both has them all."""
    first, second = (_list_starts(calls) for calls in (known, added))
    copied: dict[tuple[int, _Path], bool] = {}
    for key in first.keys() & second.keys():
        while_there = [
            start
            for start in first[key]
            if begin_seconds + 2 * _CLOCK_SECONDS < start < end_seconds - 2 * _CLOCK_SECONDS
        ]
        steps = {round(start / _CLOCK_SECONDS) for start in second[key]}
        common = sum(_is_among(round(start / _CLOCK_SECONDS), steps) for start in while_there)
        if common:
            copied[key] = common == min(len(first[key]), len(second[key]))
    return copied


def _list_starts(calls: Iterable[Call]) -> dict[tuple[int, _Path], list[float]]:
    """When calls began, by process and path."""
    starts: dict[tuple[int, _Path], list[float]] = {}
    for call in calls:
        starts.setdefault((call.pid, call.path), []).append(call.start_seconds)
    return starts


def _is_among(step: int, others: set[int]) -> bool:
    return not others.isdisjoint((step - 1, step, step + 1))


def _move_call(call: Call, seconds: float) -> Call:
    end = None if call.end_seconds is None else call.end_seconds + seconds
    return call._replace(start_seconds=call.start_seconds + seconds, end_seconds=end)


def _move_region(region: RegionTotals, seconds: float) -> RegionTotals:
    moments = {
        name: value + seconds
        for name in ("first_seconds", "last_seconds", "peak_ram_call_seconds", "gpu_bytes_call_seconds")
        if (value := getattr(region, name)) is not None
    }
    return region._replace(**moments)

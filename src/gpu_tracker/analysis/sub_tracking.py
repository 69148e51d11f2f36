"""Code blocks as gpu-tracker 5 analyzes them: from a tracking file and the times at which blocks begin and end. Pure.

Every sample whose time is within a call counts for the block. A recording needs none of this: its regions are measured as they run.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right

from ..core.sub_tracking import BEGIN
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from ..core.sub_tracking import BlockEvent, TrackingTable

    Statistics: TypeAlias = Mapping[str, float | None]
    BySession: TypeAlias = Mapping[str, float | None]
    Calls: TypeAlias = Sequence[tuple[float, float]]

STATISTICS = ("min", "max", "mean", "std")
_TOTAL = "total"


class CodeBlockResults(NamedTuple):
    """One code block over all its calls, in all processes."""

    name: str
    num_timepoints: int
    num_calls: int
    num_non_empty_calls: int
    """Calls in which a sample was taken."""
    compute_time: Statistics
    """Seconds of the calls, and their total."""
    resource_usage: Mapping[str, Statistics]
    """Of the samples within its calls, by column of the tracking file."""


class SubTrackingResults(NamedTuple):
    """All samples, and those of each code block."""

    overall: Mapping[str, Statistics]
    static_data: Mapping[str, float | str | None]
    code_block_results: tuple[CodeBlockResults, ...]
    unpaired: int = 0
    """Rows that begin a call without its end, or end one without its beginning; they are left out."""


class CodeBlockComparison(NamedTuple):
    """One statistic of several results side by side: each by session, the smallest first."""

    statistic: str
    overall_resource_usage: Mapping[str, BySession]
    code_block_resource_usage: Mapping[str, Mapping[str, BySession]]
    code_block_compute_time: Mapping[str, BySession]
    notes: tuple[str, ...] = ()


def analyze(table: TrackingTable, events: Iterable[BlockEvent]) -> SubTrackingResults:
    """What all samples have, and those within each code block."""
    calls, unpaired = pair_calls(events)
    everything = range(len(table.rows))
    blocks = tuple(_summarize_block(name, calls[name], table) for name in sorted(calls))
    return SubTrackingResults(_summarize_rows(table, everything), table.static_data, blocks, unpaired)


def pair_calls(events: Iterable[BlockEvent]) -> tuple[dict[str, list[tuple[float, float]]], int]:
    """The beginning and end of every call, by block, and how many rows have no counterpart.

    In a process, an end belongs to the latest beginning that has none, as in recursion. Of calls that overlap in threads
    the total is the same either way.
    """
    calls: dict[str, list[tuple[float, float]]] = {}
    begun: dict[tuple[int, str], list[float]] = {}
    unpaired = 0
    for pid, name, position, timestamp in sorted(events, key=lambda event: event.timestamp):
        open_calls = begun.setdefault((pid, name), [])
        found = calls.setdefault(name, [])
        if position == BEGIN:
            open_calls.append(timestamp)
        elif open_calls:
            found.append((open_calls.pop(), timestamp))
        else:
            unpaired += 1
    return calls, unpaired + sum(map(len, begun.values()))


def _summarize_block(name: str, calls: Calls, table: TrackingTable) -> CodeBlockResults:
    times = table.timestamps
    spans = [(bisect_left(times, begin), bisect_right(times, end)) for begin, end in calls]
    inside = _join_spans(spans)
    seconds = [end - begin for begin, end in calls]
    return CodeBlockResults(
        name,
        len(inside),
        len(calls),
        sum(first < after for first, after in spans),
        {**summarize(seconds), _TOTAL: math.fsum(seconds)},
        _summarize_rows(table, inside),
    )


def _join_spans(spans: Iterable[tuple[int, int]]) -> list[int]:
    """Each place once, however many calls it is in."""
    places: list[int] = []
    reached = 0
    for first, after in sorted(spans):
        places += range(max(first, reached), after)
        reached = max(reached, after)
    return places


def _summarize_rows(table: TrackingTable, places: Sequence[int]) -> dict[str, Statistics]:
    rows = [table.rows[place] for place in places]
    return {column: summarize(row[index] for row in rows) for index, column in enumerate(table.columns)}


def summarize(values: Iterable[float | None]) -> dict[str, float | None]:
    """Of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    if not known:
        return dict.fromkeys(STATISTICS)
    mean = math.fsum(known) / len(known)
    variance = math.fsum((value - mean) ** 2 for value in known) / len(known)
    return dict(zip(STATISTICS, (min(known), max(known), mean, math.sqrt(variance)), strict=True))


def to_plain(results: SubTrackingResults) -> dict[str, Any]:
    """Under gpu-tracker 5's names."""
    return {
        "overall": {name: dict(statistics) for name, statistics in results.overall.items()},
        "static_data": dict(results.static_data),
        "code_block_results": [
            {
                **block._asdict(),
                "compute_time": dict(block.compute_time),
                "resource_usage": {
                    name: dict(statistics) for name, statistics in block.resource_usage.items()
                },
            }
            for block in results.code_block_results
        ],
    }


def from_plain(content: Any) -> SubTrackingResults:
    """What `to_plain` gave. Raises one of `WRONG_DATA` if it is something else."""
    return SubTrackingResults(
        _to_statistics(content["overall"]),
        dict(content["static_data"]),
        tuple(
            CodeBlockResults(
                str(block["name"]),
                int(block["num_timepoints"]),
                int(block["num_calls"]),
                int(block["num_non_empty_calls"]),
                _to_numbers(block["compute_time"]),
                _to_statistics(block["resource_usage"]),
            )
            for block in content["code_block_results"]
        ),
    )


def _to_statistics(content: Any) -> dict[str, Statistics]:
    return {str(name): _to_numbers(statistics) for name, statistics in content.items()}


def _to_numbers(content: Any) -> dict[str, float | None]:
    return {
        str(name): None if value is None or math.isnan(value) else float(value)
        for name, value in content.items()
    }


def compare(results: Mapping[str, SubTrackingResults], statistic: str) -> CodeBlockComparison:
    """One statistic of every figure, for every session."""
    matched, notes = _match_blocks(results)
    measured = [name for result in results.values() for name in result.overall]
    blocks = [name for found in matched.values() for block in found.values() for name in block.resource_usage]
    return CodeBlockComparison(
        statistic,
        {
            name: _order(
                {session: _find(result.overall, name, statistic) for session, result in results.items()}
            )
            for name in dict.fromkeys(measured)
        },
        {name: _compare_blocks(matched, _read_usage(name, statistic)) for name in dict.fromkeys(blocks)},
        _compare_blocks(matched, lambda block: block.compute_time.get(statistic)),
        notes,
    )


def _read_usage(name: str, statistic: str) -> Callable[[CodeBlockResults], float | None]:
    return lambda block: _find(block.resource_usage, name, statistic)


def _find(usage: Mapping[str, Statistics], name: str, statistic: str) -> float | None:
    return usage.get(name, {}).get(statistic)


def _compare_blocks(
    matched: Mapping[str, Mapping[str, CodeBlockResults]], read: Callable[[CodeBlockResults], float | None]
) -> dict[str, BySession]:
    return {
        label: _order({session: read(block) for session, block in found.items()})
        for label, found in matched.items()
    }


def _order(values: Mapping[str, float | None]) -> BySession:
    """The smallest first, unknown ones last."""
    return dict(sorted(values.items(), key=lambda item: (item[1] is None, item[1] or 0.0)))


def _match_blocks(
    results: Mapping[str, SubTrackingResults],
) -> tuple[dict[str, dict[str, CodeBlockResults]], tuple[str, ...]]:
    """Blocks of the same name; then those named by a line, in the order of their lines, if each session has as many of the file."""
    left = {
        session: {block.name: block for block in result.code_block_results}
        for session, result in results.items()
    }
    common = set.intersection(*map(set, left.values())) if left else set()
    matched = {
        name: {session: blocks.pop(name) for session, blocks in left.items()} for name in sorted(common)
    }
    notes = []
    for file in sorted({_split_line(name)[0] for blocks in left.values() for name in blocks}):
        by_line = {session: _list_lines(blocks, file) for session, blocks in left.items()}
        if file and len({*map(len, by_line.values())}) == 1:
            for names in zip(*by_line.values(), strict=True):
                label = " -> ".join(dict.fromkeys(names))
                matched[label] = {
                    session: left[session].pop(name) for session, name in zip(by_line, names, strict=True)
                }
                notes.append(f"{label}: compared although the lines differ.")
    notes += [
        f"Only in {session}: {', '.join(sorted(blocks))}." for session, blocks in left.items() if blocks
    ]
    return matched, tuple(notes)


def _list_lines(blocks: Iterable[str], file: str) -> list[str]:
    return sorted(
        (name for name in blocks if _split_line(name)[0] == file), key=lambda name: _split_line(name)[1]
    )


def _split_line(name: str) -> tuple[str, int]:
    """The file and the line of a block that is named by them; no file if it has another name."""
    file, _, line = name.rpartition(":")
    return (file, int(line)) if line.isascii() and line.isdecimal() else ("", 0)

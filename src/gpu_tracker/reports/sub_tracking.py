"""Code blocks and their comparison, as tables and as JSON with gpu-tracker 5's names. Pure."""

from __future__ import annotations

import json

from ..analysis.sub_tracking import STATISTICS, to_plain
from ..core.text import align, count_of, neutralize
from ..core.units import NUMBER, SECONDS, humanize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..analysis.sub_tracking import (
        BySession,
        CodeBlockComparison,
        CodeBlockResults,
        Statistics,
        SubTrackingResults,
    )
    from .contract import View


def to_json(results: SubTrackingResults, _view: View | None = None) -> str:
    """Every figure; None is not known."""
    return f"{json.dumps(to_plain(results), indent=1)}\n"


def to_text(results: SubTrackingResults, _view: View | None = None) -> str:
    """All samples, then each code block."""
    lines = [f"{name}: {'-' if value is None else value}" for name, value in results.static_data.items()]
    lines += ["", "all samples", *_tabulate(results.overall)]
    for block in results.code_block_results:
        lines += ["", *_show_block(block)]
    return "".join(f"{neutralize(line).rstrip()}\n" for line in lines)


def _show_block(block: CodeBlockResults) -> Iterator[str]:
    seconds = {name: humanize(value, SECONDS) for name, value in block.compute_time.items()}
    times = ", ".join(f"{name} {text}" for name, text in seconds.items())
    calls = count_of(block.num_calls, "call")
    yield f"{block.name}: {calls}, {block.num_non_empty_calls} of them with samples"
    yield f"  time: {times}"
    yield f"  {count_of(block.num_timepoints, 'sample')}"
    yield from _tabulate(block.resource_usage)


def _tabulate(usage: Mapping[str, Statistics]) -> list[str]:
    rows = [(name, *(_show(statistics.get(one)) for one in STATISTICS)) for name, statistics in usage.items()]
    return [f"  {line}" for line in align([("", *STATISTICS), *rows])]


def _show(value: float | None) -> str:
    return humanize(value, NUMBER)


def compare_to_json(comparison: CodeBlockComparison, _view: View | None = None) -> str:
    """By figure, then by code block, then by session."""
    return f"{json.dumps(compare_to_plain(comparison), indent=1)}\n"


def compare_to_plain(comparison: CodeBlockComparison) -> dict[str, object]:
    """The same as a dictionary."""
    plain = comparison._asdict()
    return {name: value for name, value in plain.items() if name not in ("statistic", "notes")}


def compare_to_text(comparison: CodeBlockComparison, _view: View | None = None) -> str:
    """A line per figure, with all sessions, the smallest first."""
    lines = [f"{comparison.statistic} of all samples"]
    lines += _list_sessions(comparison.overall_resource_usage)
    if comparison.code_block_compute_time:
        lines += ["", f"{comparison.statistic} time of code blocks in seconds"]
        lines += _list_sessions(comparison.code_block_compute_time)
    for name, blocks in comparison.code_block_resource_usage.items():
        lines += ["", f"{comparison.statistic} {name} of code blocks", *_list_sessions(blocks)]
    lines += [f"note: {note}" for note in comparison.notes]
    return "".join(f"{neutralize(line).rstrip()}\n" for line in lines)


def _list_sessions(values: Mapping[str, BySession]) -> list[str]:
    rows = [
        (name, *(f"{session} {_show(value)}" for session, value in sessions.items()))
        for name, sessions in values.items()
    ]
    return [f"  {line}" for line in align(rows)]

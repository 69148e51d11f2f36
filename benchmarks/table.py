"""Rows as a Markdown table and as JSON. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchmarks.rows import Row, spread, verdict

_NOTHING = "-"


def render(rows: list[Row], tools: list[str]) -> str:
    """One line per measure; the verdict is about the first tool."""
    head = ["measure", "goal", *tools, "bare", "verdict"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        figures = [_cell(row, row.values.get(tool, [])) for tool in tools]
        lines.append([_label(row), _goal(row), *figures, _cell(row, row.bare), verdict(row, tools[0])])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def to_json(rows: list[Row], tools: list[str]) -> list[dict[str, Any]]:
    """All values, medians and verdicts."""
    return [
        {
            **asdict(row),
            "medians": {tool: spread(values).median for tool, values in row.values.items()},
            "verdict": verdict(row, tools[0]),
        }
        for row in rows
    ]


def _label(row: Row) -> str:
    return f"{row.measure} ({row.unit})" if row.unit else row.measure


def _goal(row: Row) -> str:
    if row.goal is None:
        return _NOTHING
    low, high = row.goal.low, row.goal.high
    if row.is_count:
        return "always"
    if low is None:
        return f"≤ {high:g}"
    return f"≥ {low:g}" if high is None else f"{low:g} to {high:g}"


def _cell(row: Row, values: list[float]) -> str:
    if not values:
        return _NOTHING
    if row.is_count:
        return f"{sum(values):.0f} of {len(values)}"
    figures, places = spread(values), row.decimals
    text = f"{figures.median:.{places}f}"
    if len(values) == 1:
        return text
    return f"{text} [{figures.low:.{places}f}..{figures.high:.{places}f}]"

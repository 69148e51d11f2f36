"""A comparison as text and JSON. Pure; no figure is computed here."""

from __future__ import annotations

import json

from ..analysis.compare import (
    APPEARED,
    CANNOT_TELL,
    CHANGED,
    GONE,
    NOTABLE,
    NOTABLE_IN_FEW,
    list_changes,
)
from ..core.text import align, neutralize, shorten, wrap_all
from ..core.units import humanize
from .plain import to_plain
from .region_tables import MOST_ROWS, name_region

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..analysis.compare import Change, Comparison, Group, Row, Values
    from .contract import View

_NAME_CELLS = 32
_HANGING = 4
_SIGNS = {CHANGED: " *", CANNOT_TELL: " ?"}


def to_text(comparison: Comparison, view: View) -> str:
    """A table of medians and their ratios to the baseline, then what changed, in words."""
    names = [_shorten(group.name) for group in comparison.groups]
    rows = [["", *names], ["runs", *(str(group.runs) for group in comparison.groups)]]
    regions = _list_regions(comparison)
    shown = set(regions[:MOST_ROWS])
    region: tuple[str, ...] = ()
    for row in comparison.rows:
        path = row.subject.region
        if (path and path not in shown) or _is_silent(row):
            continue
        if path != region and path:
            presence = map(_presence, row.groups, comparison.groups)
            rows.append([name_region(path), *presence])
        region = path
        rows.append([label_row(row), *format_cells(row)])
    lines = align(rows, frozenset(range(len(rows[0]))))
    if len(regions) > MOST_ROWS:
        lines.append(f"and {len(regions) - MOST_ROWS} more regions (-f json has all)")
    if len(comparison.groups) > 1:
        lines += ["", *wrap_all(list_statements(comparison), view.columns, _HANGING)]
    lines += wrap_all((f"note: {neutralize(note)}" for note in comparison.notes), view.columns, _HANGING)
    return "\n".join(lines) + "\n"


def to_json(comparison: Comparison, _view: View | None = None) -> str:
    """Every figure of every group, in base units, with the value of each run."""
    return json.dumps(build_plain(comparison), indent=1) + "\n"


def build_plain(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain data."""
    first, *others = (group.name for group in comparison.groups)
    return {
        "groups": to_plain(comparison.groups),
        "first": first,
        "figures": [_plain_row(row, [first, *others]) for row in comparison.rows],
        "notes": list(comparison.notes),
        "limits": [
            {"limit": verdict.limit.text, "fired": list(verdict.fired), "unknown": list(verdict.unknown)}
            for verdict in comparison.verdicts
        ],
    }


def _plain_row(row: Row, names: Sequence[str]) -> dict[str, Any]:
    subject = row.subject
    return {
        "figure": subject.figure.name if subject.metric is None else subject.metric,
        "kind": "metric" if subject.metric is not None else "region" if subject.region else "overall",
        "region": list(subject.region),
        "unit": subject.figure.unit,
        "groups": [
            {
                "name": name,
                **to_plain(values),
                **(to_plain(change) if change is not None else {}),
            }
            for name, values, change in zip(names, row.groups, (None, *row.changes), strict=True)
        ],
    }


def _list_regions(comparison: Comparison) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(row.subject.region for row in comparison.rows if row.subject.region))


def _is_silent(row: Row) -> bool:
    return all(values.median is None for values in row.groups)


def _presence(values: Values, group: Group) -> str:
    if not values.runs:
        return "absent"
    return "" if values.runs == group.runs else f"in {values.runs} of {group.runs} runs"


def label_row(row: Row) -> str:
    """Which figure it is."""
    if row.subject.metric is not None:
        return f"last {_shorten(row.subject.metric)}"
    return f"  {row.subject.figure.label}" if row.subject.region else row.subject.figure.label


def format_cells(row: Row) -> list[str]:
    """One figure in every group."""
    cells = [_cell(row, row.groups[0], None)]
    cells += [_cell(row, values, change) for values, change in zip(row.groups[1:], row.changes, strict=True)]
    return cells


def _cell(row: Row, values: Values, change: Change | None) -> str:
    text = show_median(values, row.subject.figure.unit)
    text += _format_range(values, row.subject.figure.unit)
    if change is not None:
        text += "" if change.ratio is None else f"  {change.ratio:.2f}x"
        text += _SIGNS.get(change.verdict, "") if change.is_notable else ""
    return text


def show_median(values: Values, unit: str) -> str:
    """With a sign if it is a lower bound."""
    return f"{'≥ ' if values.is_at_least else ''}{humanize(values.median, unit)}"


def _format_range(values: Values, unit: str) -> str:
    """The unit only once; empty if both ends look the same."""
    low, high = humanize(values.low, unit), humanize(values.high, unit)
    if low == high:
        return ""
    number, _, sign = low.partition(" ")
    is_same_unit = sign and " " not in sign and high.endswith(f" {sign}")
    return f" ({number if is_same_unit else low} to {high})"


def list_statements(comparison: Comparison) -> list[str]:
    """What changed, in words."""
    lines: list[str] = []
    first = _shorten(comparison.groups[0].name)
    for position, group in enumerate(comparison.groups[1:], start=1):
        name, found = _shorten(group.name), list_changes(comparison, position)
        few = [row for row in found.get(CANNOT_TELL, ()) if row.changes[position - 1].is_notable]
        headings = {
            "beyond noise (*):": found.get(CHANGED, ()),
            f"cannot tell, too few runs, but more than {100 * NOTABLE_IN_FEW:.0f} % apart (?):": few,
        }
        for heading, rows in headings.items():
            if rows:
                lines += [f"{name} against {first}, {heading}", *_format_changes(rows, position)]
        if not any(headings.values()):
            is_few = CANNOT_TELL in found
            lines.append(f"{name} against {first}: {_describe_no_change(is_few)}")
        lines += _list_presence(f"only in {name}", found.get(APPEARED, ()))
        lines += _list_presence(f"not in {name}", found.get(GONE, ()))
    return lines


def _describe_no_change(is_few: bool) -> str:
    if is_few:
        return f"cannot tell, too few runs; no difference above {100 * NOTABLE_IN_FEW:.0f} %."
    return f"no change beyond noise (or above {100 * NOTABLE:.0f} %)."


def _format_changes(rows: Sequence[Row], position: int) -> list[str]:
    lines = [_format_change(row, position) for row in rows[:MOST_ROWS]]
    left = len(rows) - MOST_ROWS
    return [*lines, *([f"  and {left} more (-f json has all)"] if left > 0 else [])]


def _format_change(row: Row, position: int) -> str:
    change = row.changes[position - 1]
    unit = row.subject.figure.unit
    before, after = (show_median(row.groups[index], unit) for index in (0, position))
    what = f"{row.subject.figure.label} of {name_region(row.subject.region)}"
    if not row.subject.region:
        what = row.subject.figure.label
    if row.subject.metric is not None:
        what = label_row(row)
    percent = "" if change.share is None else f" {100 * change.share:+.0f} %"
    chance = "" if change.chance is None else f", p = {change.chance:.2g}"
    return f"  {what}{percent} ({before} → {after}{chance})"


def _list_presence(where: str, rows: Sequence[Row]) -> list[str]:
    paths = dict.fromkeys(row.subject.region for row in rows if row.subject.region)
    names = dict.fromkeys(row.subject.metric for row in rows if row.subject.metric is not None)
    regions, metrics = list(map(name_region, paths)), list(map(_shorten, names))
    return [
        f"{kind} {where}: {', '.join(_cut(found))}"
        for kind, found in (("regions", regions), ("metrics", metrics))
        if found
    ]


def _cut(names: Sequence[str]) -> list[str]:
    left = len(names) - MOST_ROWS
    return [*names[:MOST_ROWS], *([f"and {left} more"] if left > 0 else [])]


def _shorten(name: str) -> str:
    return shorten(name, _NAME_CELLS)

"""Small pictures made of characters: a bar of a share, a line over time. Pure."""

from __future__ import annotations

from math import isfinite, isnan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LEVELS = {True: "▁▂▃▄▅▆▇█", False: "_.-:=+*#"}
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_NOTHING = " "
_SCALE = 0.25  # the distance between two floats may be larger than any float


def draw_bar(share: float, cells: int, *, has_unicode: bool) -> str:
    """How much of the whole a share from 0 to 1 is."""
    share = min(max(share, 0.0), 1.0)
    if not has_unicode:
        full = round(share * (cells - 2))
        return f"[{'#' * full}{'.' * (cells - 2 - full)}]"
    full, eighths = divmod(round(share * cells * 8), 8)
    begin = "█" * full + _EIGHTHS[eighths]
    return begin + "░" * (cells - len(begin))


def draw_line(values: Iterable[float], most: float, *, has_unicode: bool) -> str:
    """One character per value, from 0 to `most`; a space for what is not known or has no place on an axis."""
    levels = _LEVELS[has_unicode]
    return "".join(levels[_find_level(value, most)] if isfinite(value) else _NOTHING for value in values)


def draw_trend(values: Sequence[float], low: float, high: float, *, has_unicode: bool) -> str:
    """The same from `low`, which is drawn above the ground, to `high`: for numbers that may be of any size."""
    low, high = low * _SCALE, high * _SCALE
    floor = (high - low) / 8
    levels = (value * _SCALE - low + floor for value in values)
    return draw_line(levels, high - low + floor, has_unicode=has_unicode)


def draw_area(values: Iterable[float], most: float, rows: int, *, has_unicode: bool) -> list[str]:
    """A picture of several rows, the highest first; a value above 0 is seen, however small."""
    levels = _LEVELS[has_unicode]
    heights = [_find_height(value, most, rows * 8) for value in values]
    return [
        "".join(_NOTHING if height <= 8 * row else levels[min(height - 8 * row, 8) - 1] for height in heights)
        for row in reversed(range(rows))
    ]


def _find_height(value: float, most: float, highest: int) -> int:
    if isnan(value) or value <= 0 or most <= 0:
        return 0
    return max(round(highest * min(value / most, 1.0)), 1)


def _find_level(value: float, most: float) -> int:
    if most <= 0:
        return 0
    return min(int(8 * min(max(value / most, 0.0), 1.0)), 7)

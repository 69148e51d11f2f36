"""Small pictures made of characters: a bar of a share, a line over time. Pure."""

from __future__ import annotations

from math import isnan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_LEVELS = {True: "▁▂▃▄▅▆▇█", False: "_.-:=+*#"}
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_NOTHING = " "


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
    """One character per value, from 0 to `most`; a space where nothing is known."""
    levels = _LEVELS[has_unicode]
    return "".join(_NOTHING if isnan(value) else levels[_find_level(value, most)] for value in values)


def _find_level(value: float, most: float) -> int:
    if most <= 0:
        return 0
    return min(max(int(8 * value / most), 0), 7)

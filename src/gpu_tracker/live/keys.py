"""Keys of full-screen views: how terminals send them, and how they are listed. Pure."""

from __future__ import annotations

import re

from ..core.text import BOLD, DIM, Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Line = tuple[Span, ...]

UP, DOWN, LEFT, RIGHT = "up", "down", "left", "right"
PAGE_UP, PAGE_DOWN, HOME, END = "page up", "page down", "home", "end"
ESCAPE = "\x1b"
_SEQUENCES = {
    **dict.fromkeys(("[A", "OA"), UP),
    **dict.fromkeys(("[B", "OB"), DOWN),
    **dict.fromkeys(("[D", "OD"), LEFT),
    **dict.fromkeys(("[C", "OC"), RIGHT),
    "[5~": PAGE_UP,
    "[6~": PAGE_DOWN,
    **dict.fromkeys(("[H", "OH", "[1~", "[7~"), HOME),
    **dict.fromkeys(("[F", "OF", "[4~", "[8~"), END),
}
_KEY = re.compile(r"\x1b(\[[0-9;]*[A-Za-z~]|O[A-Za-z])|(.)", re.DOTALL)
_GAP = "  "


def split_keys(text: str) -> list[str]:
    """What was typed, key by key; those with a name by it."""
    return [_SEQUENCES.get(match[1], "") if match[1] else match[2] for match in _KEY.finditer(text)]


def draw_keys(keys: Sequence[tuple[str, str]], columns: int) -> Line:
    """As many keys and their meanings, in few words, as fit in one line; the first ones are the most important."""
    spans: list[Span] = []
    used = 0
    for key, meaning in keys:
        gap = _GAP if spans else ""
        used += len(f"{gap}{key} {meaning}")
        if used > columns:
            break
        spans += [Span(f"{gap}{key}", BOLD), Span(f" {meaning}", DIM)]
    return tuple(spans)


def draw_help(keys: Sequence[tuple[str, str]]) -> list[Line]:
    """All keys and their meanings, one per line."""
    width = max(len(key) for key, _ in keys)
    rows = [(Span(f"  {key.ljust(width)}", BOLD), Span(f"  {meaning}")) for key, meaning in keys]
    return [(), (Span("  Keys", BOLD),), (), *rows, (), (Span("  Any key closes this.", DIM),)]

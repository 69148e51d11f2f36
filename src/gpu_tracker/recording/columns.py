"""Numbers of many lines at once: lines of one shape differ only in their digits, so one of them explains all. Pure."""

from __future__ import annotations

import re

from ..core.errors import WRONG_DATA
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_SIGN_OR_EXPONENT = re.compile(rb"-|\d[eE]")
# What is not a number of JSON, with every other digit as 1; and more digits than any parser reads exactly.
_NOT_JSON = (b",00", b",01", b"\n00", b"\n01", b",.", b".,", b"\n.", b".\n")
_TOO_LONG = b"1" * 16
_ALL_ONES = bytes.maketrans(b"23456789", b"1" * 8)
_ONLY_ONES = bytes.maketrans(b"0.", b"11")
_KEPT = b"0123456789.,\n"
_DROPPED = bytes(letter for letter in range(256) if letter not in _KEPT)
_DIGITS = b"0123456789"
_FIRST_MARK = 10**6


class Layout(NamedTuple):
    """Where the values of a row are in the lines of one shape."""

    n_numbers: int
    places: tuple[int | None, ...]
    """For each column the position of its number; None for a value that is the same in all lines."""
    constants: tuple[Any, ...]


def shape_of(line: bytes) -> bytes:
    """What remains without digits."""
    return line.translate(None, _DIGITS)


def learn(line: bytes, make_row: Callable[[bytes], Sequence[Any]]) -> Layout | None:
    """The layout of a line, found by putting marks in the place of its numbers; None if it cannot be told."""
    n_numbers = 0

    def mark(match: re.Match[bytes]) -> bytes:
        nonlocal n_numbers
        n_numbers += 1
        return b"%d%s" % (_FIRST_MARK + n_numbers - 1, b".5" if b"." in match[0] else b"")

    try:
        row = make_row(_NUMBER.sub(mark, line))
    except WRONG_DATA:
        return None
    has_text = any(isinstance(value, str) and any(map(str.isdigit, value)) for value in row)
    if has_text or _SIGN_OR_EXPONENT.search(line) or reduce([line]).count(b",") + 1 != n_numbers:
        return None
    return Layout(n_numbers, tuple(map(_find_place, row)), tuple(row))


def reduce(lines: list[bytes]) -> bytes:
    """The numbers of lines as CSV."""
    return b"".join(lines).translate(None, _DROPPED)


def is_simple(numbers: bytes) -> bool:
    """Whether all numbers are valid in JSON and read exactly by any parser."""
    ones = b"\n" + numbers.translate(_ALL_ONES)  # searching for bytes is much faster than for a pattern
    return not any(wrong in ones for wrong in _NOT_JSON) and _TOO_LONG not in ones.translate(_ONLY_ONES)


def _find_place(value: Any) -> int | None:
    is_marked = isinstance(value, (int, float)) and value >= _FIRST_MARK
    return int(value) - _FIRST_MARK if is_marked else None

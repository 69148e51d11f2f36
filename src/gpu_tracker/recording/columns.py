"""Numbers of many lines at once: lines of one shape differ only in their digits, so one of them explains all. Pure."""

from __future__ import annotations

import re
from itertools import count

from ..core.errors import WRONG_DATA
from ..core.values import NamedTuple
from .validate import MOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

_TEXTS = re.compile(rb'"[^"]*"')
_TEXT_OR_NUMBER = re.compile(rb'"[^"]*"|\d+(?:\.\d+)?')
_LIKE_A_NUMBER = re.compile(rb"[\d.,-]")
_SIGN_OR_EXPONENT = re.compile(rb"-|\d[eE]")
# More digits than a fast parser reads exactly.
_LONG = b"1" * 16
_ONLY_ONES = bytes.maketrans(b"023456789.\n", b"1" * 10 + b",")
_ONLY_DIGITS = bytes.maketrans(b"023456789", b"1" * 9)
_HUGE = b"1" * len(str(MOST))
_KEPT = b"0123456789.,\n"
_DROPPED = bytes(letter for letter in range(256) if letter not in _KEPT)
_DIGITS = b"0123456789"
_FIRST_MARK = 10**6
_TEXT = -1


class Layout(NamedTuple):
    """Where the values of a row are in the lines of one shape."""

    fields: tuple[bool, ...]
    """For each field of a reduced line whether it holds a number; of a text nothing remains."""
    places: tuple[int | None, ...]
    """For each column the field of its number; None for a value that is the same in all lines."""
    constants: tuple[Any, ...]
    drops_texts: bool = False
    """Whether digits, signs or commas in texts, such as those of a UUID, could be taken for numbers."""


def shape_of(line: bytes) -> bytes:
    """What remains without digits."""
    return line.translate(None, _DIGITS)


def learn(line: bytes, make_row: Callable[[bytes], Sequence[Any]]) -> Layout | None:
    """The layout of a line, found by putting marks in the place of its numbers; None if it cannot be told."""
    marks = count(_FIRST_MARK)
    drops_texts = any(map(_LIKE_A_NUMBER.search, _TEXTS.findall(line)))
    marked = _TEXT_OR_NUMBER.sub(lambda match: _mark(match[0], marks), line)
    try:
        row = make_row(marked)
    except WRONG_DATA:
        return None
    has_text = any(isinstance(value, str) and any(map(str.isdigit, value)) for value in row)
    is_signed = _SIGN_OR_EXPONENT.search(_TEXTS.sub(b"", line))
    if has_text or is_signed or b"\\" in line:  # after which a quotation mark is part of a text
        return None
    fields = reduce([marked], drops_texts=drops_texts).strip().split(b",")
    by_mark = dict(zip(count(_FIRST_MARK), (at for at, number in enumerate(fields) if number), strict=False))
    found = (by_mark[int(value)] if _is_marked(value) else None for value in row)
    return Layout(tuple(map(bool, fields)), tuple(found), tuple(row), drops_texts)


def _mark(found: bytes, marks: Iterator[int]) -> bytes:
    if found.startswith(b'"'):
        return found
    return b"%d%s" % (next(marks), b".5" if b"." in found else b"")


def reduce(lines: list[bytes], *, drops_texts: bool = False) -> bytes:
    """The numbers of lines as CSV."""
    joined = b"".join(lines)
    return (_TEXTS.sub(b"", joined) if drops_texts else joined).translate(None, _DROPPED)


def read_numbers(lines: list[bytes], layout: Layout) -> list[float] | None:
    """All fields of lines of one layout, a text as -1; None if they are not as it says, or not valid."""
    texts = [at for at, has_number in enumerate(layout.fields) if not has_number]
    filled = reduce(lines, drops_texts=layout.drops_texts).replace(b"\n", b",")
    for _ in range(2 if texts else 0):  # every other one at a time
        filled = filled.replace(b",,", b",-1,")
    numbers = _parse(b"[%b]" % filled[:-1])
    if numbers is None:
        return None
    if len(numbers) != len(lines) * len(layout.fields) or not _are_texts(numbers, texts, layout, len(lines)):
        return None
    may_be_large = _HUGE in filled.translate(_ONLY_DIGITS)
    return None if may_be_large and max(numbers) > MOST else numbers


def _parse(array: bytes) -> list[float] | None:
    """The numbers of a JSON array; None if it is not one. Five times as fast as the standard library."""
    from msgspec import DecodeError
    from msgspec.json import decode

    try:
        return decode(array, type=list[float])
    except DecodeError:
        return None


def _are_texts(numbers: list[float], texts: list[int], layout: Layout, n_lines: int) -> bool:
    """Whether there are texts where the layout has them, and nowhere else."""
    if not texts:
        return True
    width = len(layout.fields)
    is_each = all(numbers[at::width].count(_TEXT) == n_lines for at in texts)
    return is_each and numbers.count(_TEXT) == n_lines * len(texts)


def is_short(numbers: bytes) -> bool:
    """Whether no number has more digits than any parser reads exactly."""
    return _LONG not in numbers.translate(_ONLY_ONES)


def _is_marked(value: Any) -> bool:
    return isinstance(value, (int, float)) and value >= _FIRST_MARK

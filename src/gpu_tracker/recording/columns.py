"""Numbers of many lines at once: lines of one shape differ only in their digits, so one of them explains all. Pure."""

from __future__ import annotations

import json
import re
from itertools import count

from ..core.errors import WRONG_DATA
from ..core.values import NamedTuple
from .validate import LARGEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_SIGN_OR_EXPONENT = re.compile(rb"-|\d[eE]")
# What is not a number of JSON, with every other digit as 1 and commas between lines; more digits than a fast parser reads
# exactly; and the same of an integer, which a float cannot hold.
_NOT_JSON = (b",00", b",01", b",.", b".,")
_LONG = b"1" * 16
_TOO_LARGE = b"," + _LONG
_ALL_ONES = bytes.maketrans(b"23456789\n", b"1" * 8 + b",")
_ZEROS_TOO = bytes.maketrans(b"0", b"1")
_ONLY_ONES = bytes.maketrans(b"023456789.\n", b"1" * 10 + b",")
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


def shape_of(line: bytes) -> bytes:
    """What remains without digits."""
    return line.translate(None, _DIGITS)


def learn(line: bytes, make_row: Callable[[bytes], Sequence[Any]]) -> Layout | None:
    """The layout of a line, found by putting marks in the place of its numbers; None if it cannot be told."""
    marks = count(_FIRST_MARK)
    marked = _NUMBER.sub(lambda match: b"%d%s" % (next(marks), b".5" if b"." in match[0] else b""), line)
    try:
        row = make_row(marked)
    except WRONG_DATA:
        return None
    has_text = any(isinstance(value, str) and any(map(str.isdigit, value)) for value in row)
    fields = reduce([marked]).strip().split(b",")
    places = {number: at for at, number in enumerate(fields) if number}
    if has_text or _SIGN_OR_EXPONENT.search(line) or len(places) != next(marks) - _FIRST_MARK:
        return None  # the numbers of a text may have become one
    by_mark = dict(zip(count(_FIRST_MARK), places.values(), strict=False))
    found = (by_mark[int(value)] if _is_marked(value) else None for value in row)
    return Layout(tuple(map(bool, fields)), tuple(found), tuple(row))


def reduce(lines: list[bytes]) -> bytes:
    """The numbers of lines as CSV."""
    return b"".join(lines).translate(None, _DROPPED)


def read_numbers(lines: list[bytes], layout: Layout) -> list[float] | None:
    """All fields of lines of one layout, a text as -1; None if they are not as it says, or not valid."""
    filled = reduce(lines).replace(b"\n", b",")
    for _ in range(2):  # every other one at a time
        filled = filled.replace(b",,", b",-1,")
    try:
        numbers: list[float] = json.loads(b"[%b]" % filled[:-1])
    except ValueError:
        return None
    n_lines, width = len(lines), len(layout.fields)
    texts = [at for at, has_number in enumerate(layout.fields) if not has_number]
    are_texts = all(numbers[at::width].count(_TEXT) == n_lines for at in texts)
    if len(numbers) != n_lines * width or numbers.count(_TEXT) != n_lines * len(texts) or not are_texts:
        return None
    return numbers if max(numbers) <= LARGEST else None


def is_simple(numbers: bytes) -> bool:
    """Whether all numbers are valid in JSON, and none is too large for a float to be exact."""
    ones = b"," + numbers.translate(_ALL_ONES)  # searching for bytes is much faster than for a pattern
    is_exact = is_short(numbers) or _TOO_LARGE not in ones.translate(_ZEROS_TOO)
    return is_exact and not any(wrong in ones for wrong in _NOT_JSON)


def is_short(numbers: bytes) -> bool:
    """Whether no number has more digits than any parser reads exactly."""
    return _LONG not in numbers.translate(_ONLY_ONES)


def _is_marked(value: Any) -> bool:
    return isinstance(value, (int, float)) and value >= _FIRST_MARK

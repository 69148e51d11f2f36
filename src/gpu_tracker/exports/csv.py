"""One table, with names in the first line. Text is always quoted; an unknown value is empty, without quotes.

A spreadsheet would calculate text that looks like a formula: it gets an apostrophe in front, and so does text with one,
so that the first apostrophe is always ours. Control characters, which a terminal would obey, become question marks.
"""

from __future__ import annotations

from unicodedata import normalize

from ..core.text import neutralize
from .frames import to_utf8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..analysis.tables import Table
    from ..reports.build import Report

NAME = "csv"
SUFFIXES = (".csv",)
HOLDS_ALL_TABLES = False
NEEDS_SAMPLES = False
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "'")


def write(path: str, _report: Report, tables: Sequence[Table]) -> None:
    """Row by row."""
    (table,) = tables
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(",".join(_quote(column.name) for column in table.columns) + "\n")
        file.writelines(",".join(map(_write_field, row)) + "\n" for row in table.rows())


def _write_field(value: Any) -> str:
    """Unlike the standard writer, keep empty text distinct from an unknown value."""
    if value is None:
        return ""
    return _quote(_defuse(value)) if isinstance(value, str) else repr(value)


def _defuse(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULAS) or _may_become_formula(text) else text


def _may_become_formula(text: str) -> bool:
    """Some programs drop spaces in front, and take full-width signs for the usual ones."""
    return normalize("NFKC", text.lstrip()[:1]).startswith(_FORMULAS)


def _quote(text: str) -> str:
    return '"' + neutralize(to_utf8(text)).replace('"', '""') + '"'

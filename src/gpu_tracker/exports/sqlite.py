"""A database: each table under its name, and `about` with the header, the summary and the notes as JSON."""

from __future__ import annotations

import sqlite3

from .about import describe, spell_number
from .frames import to_utf8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ..analysis.tables import Table
    from ..reports.build import Report

NAME = "sqlite"
SUFFIXES = (".sqlite", ".sqlite3", ".db")
HOLDS_ALL_TABLES = True
NEEDS_SAMPLES = False


def write(path: str, report: Report, tables: Sequence[Table]) -> None:
    """Row by row. The file is not visible until complete, so it needs no journal."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode=OFF")
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("CREATE TABLE about (name TEXT PRIMARY KEY, json TEXT)")
        connection.executemany("INSERT INTO about VALUES (?, ?)", describe(report).items())
        for table in tables:
            _write_table(connection, table)
        connection.commit()
    except sqlite3.Error as error:
        raise OSError(str(error)) from None
    finally:
        connection.close()


def _write_table(connection: sqlite3.Connection, table: Table) -> None:
    columns = ", ".join(f'"{column.name}" {column.kind.upper()}' for column in table.columns)
    connection.execute(f'CREATE TABLE "{table.name}" ({columns})')
    places = ", ".join("?" * len(table.columns))
    connection.executemany(f'INSERT INTO "{table.name}" VALUES ({places})', _clean(table))  # noqa: S608 - names are ours


def _clean(table: Table) -> Iterator[tuple[Any, ...]]:
    for row in table.rows():
        yield tuple(to_utf8(value) if isinstance(value, str) else spell_number(value) for value in row)

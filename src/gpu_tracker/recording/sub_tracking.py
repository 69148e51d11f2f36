"""Writes and reads the sub-tracking files of gpu-tracker 5 (.csv and .sqlite), and reads tracking files.

A row is appended at once and as a whole, so several processes can write to one file, and a kill loses nothing that was
written. Nothing of a file is ever executed.
"""

from __future__ import annotations

import csv
import io
import math
import os
from contextlib import closing

from ..core.errors import WRONG_DATA, RecordingError
from ..core.sub_tracking import BEGIN, END, BlockEvent, TrackingTable
from ..core.system import posix
from .tracking_file import check_tracking_name, is_database

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

_TIME = "timestamp"
_COLUMNS = BlockEvent._fields
_TYPES = ("INTEGER", "VARCHAR", "INTEGER", "FLOAT")
# A reader that has locked the database must not hold up the job for long.
_LOCK_SECONDS = 0.05
_UNKNOWN = ("", "nan", "None")


def create_block_file(path: str, *, may_replace: bool) -> None:
    """A file without rows. Raises FileExistsError if there is one that may not be replaced, OSError if none can be made."""
    if may_replace and os.path.isfile(path):
        os.unlink(path)
    os.close(posix.open(path, posix.O_CREAT | posix.O_EXCL | posix.O_WRONLY, 0o600))
    begin_block_file(path)


def begin_block_file(path: str, name: str = "") -> None:
    """Name the columns in an empty file; `name` is its final name, if that differs from `path`."""
    if is_database(name or path):
        columns = ", ".join(f"{column} {kind}" for column, kind in zip(_COLUMNS, _TYPES, strict=True))
        _execute(path, f"CREATE TABLE data ({columns})", [()])
    else:
        _append_text(path, [_COLUMNS])


def append_events(path: str, events: Sequence[BlockEvent], name: str = "") -> None:
    """Add rows. Raises OSError if they cannot be written now."""
    if is_database(name or path):
        _execute(path, f"INSERT INTO data VALUES ({', '.join('?' * len(_COLUMNS))})", events)  # noqa: S608 - our own names
    else:
        _append_text(path, events)


def _append_text(path: str, rows: Iterable[Sequence[object]]) -> None:
    """Everything or nothing: a partial write on a full disk is undone."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    content = text.getvalue().encode("utf-8", "backslashreplace")
    fd = posix.open(path, posix.O_WRONLY | posix.O_APPEND)
    try:
        size_bytes = os.fstat(fd).st_size
        try:
            while content:  # the second attempt, if one is needed, says why
                content = content[os.write(fd, content) :]
        except OSError:
            os.ftruncate(fd, size_bytes)
            raise
    finally:
        os.close(fd)


def _execute(path: str, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    import sqlite3

    try:
        with closing(_open_database(path, "rw")) as connection, connection:
            connection.execute("PRAGMA synchronous=OFF")  # a kill loses nothing, a crash of the machine may
            for row in rows:
                connection.execute(statement, row)
    except sqlite3.Error as error:
        raise OSError(str(error)) from None


def _open_database(path: str, mode: str) -> sqlite3.Connection:
    import sqlite3
    from urllib.parse import quote

    return sqlite3.connect(
        f"file:{quote(os.path.abspath(path))}?mode={mode}", timeout=_LOCK_SECONDS, uri=True
    )


def read_events(path: str) -> tuple[BlockEvent, ...]:
    """Every row of a sub-tracking file, in its order."""
    check_tracking_name(path)
    try:
        rows = _read_table(path, "data") if is_database(path) else _read_text(path)
        names = next(rows)
        places = [names.index(column) for column in _COLUMNS]
        return tuple(_to_event([row[place] for place in places]) for row in _drop_torn(rows, names))
    except (*WRONG_DATA, StopIteration):
        raise RecordingError(
            f"{path} is not a sub-tracking file: it needs the columns {', '.join(_COLUMNS)}, with a "
            f"position of {BEGIN} or {END}."
        ) from None


def _to_event(row: Sequence[Any]) -> BlockEvent:
    pid, name, position, timestamp = int(row[0]), str(row[1]), int(row[2]), float(row[3])
    if position not in (BEGIN, END) or not math.isfinite(timestamp):
        raise ValueError(row)
    return BlockEvent(pid, name, position, timestamp)


def read_tracking_table(path: str) -> TrackingTable:
    """A tracking file, of this tool or of gpu-tracker 5."""
    check_tracking_name(path)
    try:
        static, data = _read_tables(path) if is_database(path) else _read_sections(path)
        names, values = next(static), next(static)
        columns = next(data)
        place = columns.index(_TIME)
        rows = sorted(
            (_to_numbers(row, columns) for row in _drop_torn(data, columns)),
            key=lambda row: _need(row[place]),
        )
        return TrackingTable(
            {name: _to_value(value) for name, value in zip(names, values, strict=True)},
            tuple(column for column in columns if column != _TIME),
            tuple((*row[:place], *row[place + 1 :]) for row in rows),
            tuple(_need(row[place]) for row in rows),
        )
    except (*WRONG_DATA, StopIteration):
        raise RecordingError(f"{path} is not a tracking file, or it is damaged.") from None


def _read_tables(path: str) -> tuple[Iterator[list[Any]], Iterator[list[Any]]]:
    return _read_table(path, "static_data"), _read_table(path, "data")


def _read_sections(path: str) -> tuple[Iterator[list[Any]], Iterator[list[Any]]]:
    """CSV: names and values of what does not change, then names and rows of the samples."""
    rows = _read_text(path)
    return iter([next(rows), next(rows)]), rows


def _drop_torn(rows: Iterable[list[Any]], columns: Sequence[str]) -> list[list[Any]]:
    """Without empty lines, and without a last row of which a kill has left only the beginning."""
    kept = [row for row in rows if row]
    return kept[:-1] if kept and len(kept[-1]) < len(columns) else kept


def _read_text(path: str) -> Iterator[list[Any]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            content = file.read()
    except OSError as error:
        raise RecordingError(f"Cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise RecordingError(f"{path} is not a text file.") from None
    try:
        return iter([*csv.reader(io.StringIO(content), strict=True)])
    except csv.Error as error:
        raise RecordingError(f"{path} is damaged: {error}.") from None


def _read_table(path: str, table: str) -> Iterator[list[Any]]:
    import sqlite3

    try:
        with closing(_open_database(path, "ro")) as connection:
            cursor = connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - our own names
            return iter([[name for name, *_ in cursor.description], *map(list, cursor.fetchall())])
    except sqlite3.Error as error:
        raise RecordingError(f"Cannot read {path}: {error}.") from None


def _to_numbers(row: Sequence[Any], columns: Sequence[str]) -> list[float | None]:
    return [_to_number(value) for value, _ in zip(row, columns, strict=True)]


def _to_number(value: Any) -> float | None:
    return None if value is None or value in _UNKNOWN or not math.isfinite(float(value)) else float(value)


def _to_value(value: Any) -> float | str | None:
    """Of what does not change: a number where it is one."""
    if value is None or value in _UNKNOWN:
        return None
    for kind in (int, float):
        try:
            number = kind(str(value))
        except ValueError:
            continue
        return number if math.isfinite(number) else None
    return str(value)


def _need(timestamp: float | None) -> float:
    if timestamp is None:
        raise ValueError(_TIME)
    return timestamp

"""Writing a tracking file while the job runs: whole rows as they come, so that a kill costs none that is there.

Its first row tells how many GPUs there are, which the drivers take a moment to say: the first samples are held back.
"""

from __future__ import annotations

import os

from ..errors import UsageError
from .tracking_rows import (
    DATA_COLUMNS,
    STATIC_COLUMNS,
    TrackingUnits,
    make_data_row,
    make_static_row,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..model import Gpu, Header, Sample

_HELD_SECONDS = 2.0
_SQLITE_SUFFIX = ".sqlite"
_SUFFIXES = (".csv", _SQLITE_SUFFIX)
_TYPES = {"integer": "INTEGER", "real": "REAL", "text": "TEXT"}


def check_tracking_path(path: str) -> str:
    """The whole path, if its name tells a format and nothing is there yet."""
    check_tracking_name(path)
    if os.path.lexists(path):
        raise UsageError(f"{path} exists already.", "A tracking file never overwrites another.")
    return os.path.abspath(path)


def check_tracking_name(path: str) -> None:
    """Refuse a name that tells no format."""
    if not path.endswith(_SUFFIXES):
        raise UsageError(f'Invalid file name: "{path}". Valid file extensions are ".csv" and ".sqlite".')


def create_tracking_file(path: str) -> None:
    """An empty file that only its owner may read."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise UsageError(f"Cannot write a tracking file to {path}: {error.strerror}.") from None


class TrackingFile:
    """A file that grows by a row with each sample."""

    def __init__(self, path: str, header: Header, units: TrackingUnits, name: str = "") -> None:
        """`name` is what it will be called, if that is not yet its path."""
        self._sheet = _Database(path) if (name or path).endswith(_SQLITE_SUFFIX) else _Text(path)
        self._header = header
        self._units = units
        self._held: list[Sample] = []
        self._before: Sample | None = None
        self._gpus: tuple[Gpu, ...] | None = None

    def add(self, sample: Sample, gpus: Sequence[Gpu]) -> None:
        """One more row. Raises OSError if it cannot be written."""
        self._held.append(sample)
        if sample.at_seconds >= _HELD_SECONDS:
            self._write(gpus)

    def close(self, gpus: Sequence[Gpu]) -> None:
        """Write what is still held back."""
        try:
            self._write(gpus)
        finally:
            self._sheet.close()

    def _write(self, gpus: Sequence[Gpu]) -> None:
        if self._gpus is None:
            self._gpus = tuple(gpus)
            self._sheet.begin(make_static_row(self._header, self._gpus, self._units))
        while self._held:
            sample = self._held[0]
            self._sheet.add(make_data_row(sample, self._before, self._header, self._gpus, self._units))
            self._before = self._held.pop(0)


class _Text:
    """CSV: names and values of what does not change, then the names and the rows of the samples."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND)

    def begin(self, static: tuple[Any, ...]) -> None:
        names = [",".join(name for name, _ in columns) for columns in (STATIC_COLUMNS, DATA_COLUMNS)]
        os.write(self._fd, f"{names[0]}\n{_join(static)}\n{names[1]}\n".encode())

    def add(self, row: tuple[Any, ...]) -> None:
        os.write(self._fd, f"{_join(row)}\n".encode())

    def close(self) -> None:
        os.close(self._fd)


class _Database:
    """SQLite: the tables `static_data` and `data`."""

    def __init__(self, path: str) -> None:
        import sqlite3

        self._errors = sqlite3.Error
        # Each row is a transaction of its own. A crash of the machine may cost the last ones, a kill none.
        self._connection = sqlite3.connect(path, isolation_level=None)
        try:
            self._execute("PRAGMA synchronous=OFF", ())
        except OSError:
            self.close()
            raise

    def begin(self, static: tuple[Any, ...]) -> None:
        for table, columns in (("static_data", STATIC_COLUMNS), ("data", DATA_COLUMNS)):
            types = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in columns)
            self._execute(f"CREATE TABLE {table} ({types})", ())
        self._insert("static_data", static)

    def add(self, row: tuple[Any, ...]) -> None:
        self._insert("data", row)

    def close(self) -> None:
        self._connection.close()

    def _insert(self, table: str, row: tuple[Any, ...]) -> None:
        self._execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - our own names

    def _execute(self, statement: str, values: tuple[Any, ...]) -> None:
        try:
            self._connection.execute(statement, values)
        except self._errors as error:
            raise OSError(5, str(error)) from None


def _join(row: tuple[Any, ...]) -> str:
    return ",".join("" if value is None else str(value) for value in row)

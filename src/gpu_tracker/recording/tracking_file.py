"""Writing a tracking file while the job runs: whole rows as they come, so that a kill costs none that is there.

Its first row tells how many GPUs there are, which the drivers take a moment to say: the first samples are held back.
So are those that a full disk or somebody who reads the file keeps out of it.
"""

from __future__ import annotations

import errno
import os
import time

from ..core.errors import UsageError
from .tracking_rows import (
    DATA_COLUMNS,
    STATIC_COLUMNS,
    TrackingUnits,
    make_data_rows,
    make_static_row,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.model import Gpu, Header, Sample
    from .tracking_rows import Row

# A driver that has not answered by then may never answer: its columns are empty.
_HELD_SECONDS = 30.0
# Beyond it every other row that waits is left out. More than come in the seconds above at the quickest pace.
_MOST_HELD = 4000
_ROWS_AT_ONCE = 50
_LAST_WAIT_SECONDS = 0.5
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
    """A file that grows by a row with each sample. Rows that cannot be written wait until they can."""

    def __init__(self, path: str, header: Header, units: TrackingUnits, name: str = "") -> None:
        """`name` is what it will be called, if that is not yet its path."""
        self._sheet = _Database(path) if (name or path).endswith(_SQLITE_SUFFIX) else _Text(path)
        self._header = header
        self._units = units
        self._held: list[Sample] = []
        self._before: Sample | None = None
        self._has_begun = False

    def add(self, sample: Sample, gpus: Sequence[Gpu], *, are_all_known: bool = True) -> None:
        """One more row, as soon as all devices are known. Raises OSError if it cannot be written now; it is kept."""
        self._held.append(sample)
        if not are_all_known and sample.at_seconds < _HELD_SECONDS:
            return
        try:
            self._write(gpus, are_all_known)
        except BlockingIOError:
            # Somebody reads: nothing is lost yet, and nothing is worth a word.
            if len(self._held) < _MOST_HELD:
                return
            raise
        finally:
            if len(self._held) >= _MOST_HELD:
                del self._held[::2]

    def close(self, gpus: Sequence[Gpu], *, are_all_known: bool = True) -> None:
        """Write what is still held back. A reader gets a moment to finish; raises OSError if rows are lost."""
        deadline = time.monotonic() + _LAST_WAIT_SECONDS
        try:
            while not self._is_written(gpus, are_all_known, deadline):
                time.sleep(_LAST_WAIT_SECONDS / 20)
        finally:
            self._sheet.close()

    def _is_written(self, gpus: Sequence[Gpu], are_all_known: bool, deadline: float) -> bool:
        try:
            self._write(gpus, are_all_known)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            return False
        return True

    def _write(self, gpus: Sequence[Gpu], are_all_known: bool) -> None:
        known = tuple(gpus) if gpus or are_all_known else None
        while self._held or not self._has_begun:
            samples = self._held[:_ROWS_AT_ONCE]
            static = None if self._has_begun else make_static_row(self._header, known, self._units)
            rows = [*make_data_rows(samples, self._header, known, self._units, self._before)]
            self._sheet.write(static, rows)
            self._has_begun = True
            self._before = samples[-1] if samples else None
            del self._held[: len(samples)]


class _Text:
    """CSV: names and values of what does not change, then the names and the rows of the samples."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND)

    def write(self, static: Row | None, rows: Sequence[Row]) -> None:
        """All of it or nothing: what a full disk tears is taken back."""
        lines = [*map(_join, rows)]
        if static is not None:
            static_names, data_names = (
                ",".join(name for name, _ in columns) for columns in (STATIC_COLUMNS, DATA_COLUMNS)
            )
            lines = [static_names, _join(static), data_names, *lines]
        content = "".join(f"{line}\n" for line in lines).encode()
        size_bytes = os.fstat(self._fd).st_size
        if os.write(self._fd, content) < len(content):
            os.ftruncate(self._fd, size_bytes)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        os.close(self._fd)


class _Database:
    """SQLite: the tables `static_data` and `data`."""

    def __init__(self, path: str) -> None:
        import sqlite3

        self._errors = sqlite3.Error
        # The sampler waits for nobody. A crash of the machine may cost the last rows, a kill none.
        self._connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            self._execute("PRAGMA synchronous=OFF")
        except OSError:
            self.close()
            raise

    def write(self, static: Row | None, rows: Sequence[Row]) -> None:
        """All of it or nothing. Raises BlockingIOError while somebody reads or writes."""
        try:
            self._execute("BEGIN")
            if static is not None:
                for table, columns in (("static_data", STATIC_COLUMNS), ("data", DATA_COLUMNS)):
                    types = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in columns)
                    self._execute(f"CREATE TABLE {table} ({types})")
                self._insert("static_data", static)
            for row in rows:
                self._insert("data", row)
            self._execute("COMMIT")
        except OSError:
            self._connection.rollback()
            raise

    def close(self) -> None:
        self._connection.close()

    def _insert(self, table: str, row: Row) -> None:
        self._execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - our own names

    def _execute(self, statement: str, values: Row = ()) -> None:
        try:
            self._connection.execute(statement, values)
        except self._errors as error:
            number = errno.EAGAIN if "locked" in str(error) else errno.EIO
            raise OSError(number, str(error)) from None


def _join(row: Row) -> str:
    return ",".join("" if value is None else str(value) for value in row)

"""Writes a tracking file while the job runs, in whole rows, so that a kill loses none that were written.

The first row has the number of GPUs, which drivers take a moment to report: the first samples are held back until
then. So are samples that cannot be written because the disk is full or a reader has locked the file.
"""

from __future__ import annotations

import errno
import os
import time

from ..core.errors import UsageError
from ..core.system import posix
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

# A driver that has not answered by then may never answer; its columns are then empty.
_HELD_SECONDS = 30.0
# Beyond this every other waiting row is dropped. It is more than the fastest interval gives in the seconds above.
_MOST_HELD = 4000
_ROWS_AT_ONCE = 50
_LAST_WAIT_SECONDS = 0.5
_SQLITE_SUFFIX = ".sqlite"
_SUFFIXES = (".csv", _SQLITE_SUFFIX)


def check_tracking_path(path: str, *, may_replace: bool = False) -> str:
    """The absolute path, if the format is known and the file does not exist yet or may be replaced."""
    check_tracking_name(path)
    if os.path.lexists(path):
        if not may_replace:
            raise UsageError(f"{path} already exists.", "Set overwrite (--overwrite) to replace it.")
        if not os.path.isfile(path):
            raise UsageError(f"Cannot replace {path}: it is not a regular file.")
        from .find import refuse_recording  # hardly ever

        refuse_recording(path)
    return os.path.abspath(path)


def check_tracking_name(path: str) -> None:
    """Refuse a name without a known suffix."""
    if not path.endswith(_SUFFIXES):
        raise UsageError(f'Invalid file name: "{path}". Valid file extensions are ".csv" and ".sqlite".')


def is_database(path: str) -> bool:
    """Whether a file of that name is SQLite; else it is CSV."""
    return path.endswith(_SQLITE_SUFFIX)


def create_tracking_file(path: str) -> None:
    """Create an empty file that only its owner may read."""
    try:
        os.close(posix.open(path, posix.O_CREAT | posix.O_EXCL | posix.O_WRONLY, 0o600))
    except OSError as error:
        raise UsageError(f"Cannot write a tracking file to {path}: {error.strerror}.") from None


def set_aside(path: str) -> str | None:
    """Give the file that is about to be replaced another name beside its own, so that it can come back; None if there is none."""
    aside = f"{path}.{os.urandom(8).hex()}.old"
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"Cannot replace {path}: {error.strerror}.") from None
    return aside


class TrackingFile:
    """One row per sample. Rows that cannot be written now are kept for later."""

    def __init__(self, path: str, header: Header, units: TrackingUnits, name: str = "") -> None:
        """`name` is its final name, if that differs from `path`."""
        self._sheet = _Database(path) if is_database(name or path) else _Text(path)
        self._header = header
        self._units = units
        self._held: list[Sample] = []
        self._before: Sample | None = None
        self._has_begun = False

    def add(self, sample: Sample, gpus: Sequence[Gpu], *, are_all_known: bool = True) -> None:
        """Add a row, written as soon as all devices are known. Raises OSError if it cannot be written now; it is kept."""
        self._held.append(sample)
        if not are_all_known and sample.at_seconds < _HELD_SECONDS:
            return
        try:
            self._write(gpus, are_all_known)
        except BlockingIOError:
            # The file is locked by a reader: nothing is lost yet.
            if len(self._held) < _MOST_HELD:
                return
            raise
        finally:
            if len(self._held) >= _MOST_HELD:
                del self._held[::2]

    def close(self, gpus: Sequence[Gpu], *, are_all_known: bool = True) -> None:
        """Write what is still held back, after a short wait for a reader. Raises OSError if rows are lost."""
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
    """CSV: names and values of the static row, then names and rows of the samples."""

    def __init__(self, path: str) -> None:
        self._fd = posix.open(path, posix.O_WRONLY | posix.O_APPEND)

    def write(self, static: Row | None, rows: Sequence[Row]) -> None:
        """Write everything or nothing: a partial write on a full disk is undone."""
        lines = [*map(_join, rows)]
        if static is not None:
            static_names, data_names = (
                ",".join(name for name, _ in columns) for columns in (STATIC_COLUMNS, DATA_COLUMNS)
            )
            lines = [static_names, _join(static), data_names, *lines]
        content = "".join(f"{line}\n" for line in lines).encode()
        size_bytes = os.fstat(self._fd).st_size
        try:
            while content:  # the second attempt, if one is needed, says why
                content = content[os.write(self._fd, content) :]
        except OSError:
            os.ftruncate(self._fd, size_bytes)
            raise

    def close(self) -> None:
        os.close(self._fd)


class _Database:
    """SQLite: the tables `static_data` and `data`."""

    def __init__(self, path: str) -> None:
        import sqlite3

        self._errors = sqlite3.Error
        # The sampler never waits for a lock. A machine crash may lose the last rows, a kill none.
        self._connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            self._execute("PRAGMA synchronous=OFF")
        except OSError:
            self.close()
            raise

    def write(self, static: Row | None, rows: Sequence[Row]) -> None:
        """Write everything or nothing. Raises BlockingIOError while the database is locked."""
        try:
            self._execute("BEGIN")
            if static is not None:
                for table, columns in (("static_data", STATIC_COLUMNS), ("data", DATA_COLUMNS)):
                    types = ", ".join(f"{name} {kind.upper()}" for name, kind in columns)
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

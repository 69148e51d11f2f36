"""The boards of the job's processes: found, read and thrown away."""

from __future__ import annotations

import os

from ..model import FrameworkReading, MetricRow
from ..place import BOARD_SUFFIX, FRAMEWORKS_SUFFIX, METRICS_SUFFIX
from .framework_account import FrameworkNote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..board import BoardReader, Numbers

    Key = tuple[int, tuple[str, ...]]

_MOST_BYTES_AT_ONCE = 4_000_000


class Boards:
    """Every board in the tracker's directory; those of processes that have ended stay readable."""

    def __init__(self, place: str, start_seconds: float) -> None:
        self._place = place
        self._start_seconds = start_seconds
        self._readers: dict[str, BoardReader] = {}
        self._metrics: dict[str, int] = {}
        self._frameworks: dict[str, tuple[int, int] | None] = {}

    def find_new(self) -> bool:
        """Look for boards that were not there before; whether there is any at all."""
        try:
            names = os.listdir(self._place)
        except OSError:
            return bool(self._readers)
        for name in names:
            if name.endswith(METRICS_SUFFIX):
                self._metrics.setdefault(name, 0)
            elif name.endswith(FRAMEWORKS_SUFFIX):
                self._frameworks.setdefault(name, None)
            elif name.endswith(BOARD_SUFFIX) and name not in self._readers:
                from ..board import BoardReader

                try:
                    self._readers[name] = BoardReader(f"{self._place}/{name}")
                except (OSError, ValueError):
                    continue  # it is just being made
        return bool(self._readers)

    def read_active(self) -> dict[Key, int]:
        """The regions that processes are in, by pid and path, and in how many threads."""
        return {
            (reader.pid, reader.find_path(number)): threads
            for reader in self._readers.values()
            for number, threads in reader.read_active().items()
        }

    def read_all(self) -> Iterator[tuple[Key, Numbers]]:
        """What the processes have counted."""
        for reader in self._readers.values():
            for number, numbers in reader.read_all().items():
                yield (reader.pid, reader.find_path(number)), numbers

    def read_marks(self) -> dict[int, int]:
        """The largest high-water marks that processes have kept before they reset them, by pid."""
        marks: dict[int, int] = {}
        for reader in self._readers.values():
            marks[reader.pid] = max(marks.get(reader.pid, 0), reader.read_mark())
        return marks

    def since_start(self, nanoseconds: int) -> float | None:
        """Seconds, of a time on a board."""
        return max(0.0, nanoseconds / 1e9 - self._start_seconds) if nanoseconds else None

    def take_metrics(self) -> list[MetricRow]:
        """The numbers that were logged since the last call."""
        rows: list[MetricRow] = []
        for name, offset in self._metrics.items():
            try:
                fd = os.open(f"{self._place}/{name}", os.O_RDONLY | os.O_NOFOLLOW)
            except OSError:
                continue
            try:
                content = os.pread(fd, _MOST_BYTES_AT_ONCE, offset)
            finally:
                os.close(fd)
            whole = content.rfind(b"\n") + 1
            self._metrics[name] = offset + whole
            rows += self._parse(content[:whole], _pid_in(name))
        return rows

    def take_framework_notes(self) -> list[FrameworkNote]:
        """What processes have said of their frameworks since the last call."""
        notes = []
        for name, seen in self._frameworks.items():
            path = f"{self._place}/{name}"
            try:
                status = os.stat(path)
                version = status.st_ino, status.st_mtime_ns  # every version is a file of its own
                if version == seen:
                    continue
                import json

                with open(path, encoding="ascii") as file:
                    at_ns, is_last, readings = json.load(file)
                at_seconds = self.since_start(at_ns) or 0.0
                known = tuple(FrameworkReading(*reading) for reading in readings)
            except (OSError, ValueError, TypeError):
                continue  # it has gone; or a process of the job itself has spoilt it
            self._frameworks[name] = version
            notes.append(FrameworkNote(at_seconds, _pid_in(name), is_last, known))
        return notes

    def _parse(self, content: bytes, pid: int) -> list[MetricRow]:
        if not content:
            return []
        import json

        try:
            rows = json.loads(b"[" + content[:-1].replace(b"\n", b",") + b"]")
            return [
                MetricRow(self.since_start(at_ns) or 0.0, values, step, pid) for at_ns, step, values in rows
            ]
        except (ValueError, TypeError):
            # Only a process of the job itself can have spoilt it: then line by line.
            lines = content.splitlines(keepends=True)
            return [row for line in lines for row in self._parse(line, pid)] if len(lines) > 1 else []


def _pid_in(name: str) -> int:
    """Files are called after the process that writes them."""
    return int(name.partition("-")[0])

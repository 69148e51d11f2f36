"""Finds, reads and removes the files that processes of the job leave in the mailbox."""

from __future__ import annotations

import os
import time

from ..accounts.frameworks import FrameworkNote
from ..core.model import EXACT, SAMPLED, Call, FrameworkReading, MetricRow, RegionGaps
from ..core.system import posix
from ..instrument.mailbox import (
    FRAMEWORKS_SUFFIX,
    LOST_SUFFIX,
    METRICS_BYTES,
    METRICS_SUFFIX,
    REGIONS_SUFFIX,
    UNFOLLOWED_SUFFIX,
    find_namespace,
    find_writer,
)
from ..recording.secrets import mask_text
from ..sources.processes import exists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..instrument.call_file import CallFileReader
    from ..instrument.shared_file import Numbers, SharedFileReader
    from .open_calls import Clocks

    Key = tuple[int, tuple[str, ...]]

# Of one file: its last row, which is no longer either, was begun before it was full.
_MOST_BYTES_AT_ONCE = 2 * METRICS_BYTES
_ALL_BYTES = 2**62
_MOST_LOST = 1_000_000_000


class MailboxReader:
    """All files in the mailbox; those of ended processes are removed once they are read."""

    def __init__(self, mailbox: str, start_seconds: float) -> None:
        self._mailbox = mailbox
        self._start_seconds = start_seconds
        self._readers: dict[str, SharedFileReader] = {}
        self._call_readers: dict[str, CallFileReader] = {}
        self._calls_of_ended: list[Call] = []
        self._active: dict[Key, tuple[str, int]] = {}
        self._clocks: dict[str, Clocks] = {}
        self._metrics: dict[str, int] = {}
        self._frameworks: dict[str, tuple[int, int] | None] = {}
        self._high_waters_of_ended: dict[int, int] = {}
        self._gaps = RegionGaps()
        self._long_names: set[str] = set()
        self._masked: dict[str, str] = {}
        self._unfollowed: set[tuple[int, int]] = set()
        self._lost_metrics: dict[str, int] = {}
        self._namespace = find_namespace()

    def find_new(self) -> None:
        """Find new files."""
        try:
            names = os.listdir(self._mailbox)
        except OSError:
            return
        self._metrics.update((name, 0) for name in self._list_new_metrics(names))
        for name in names:
            if not _is_ours(name):
                continue
            if name.endswith(UNFOLLOWED_SUFFIX):
                self._unfollowed.add(find_writer(name))
            elif name.endswith(LOST_SUFFIX):
                self._lost_metrics[name] = _read_lost(f"{self._mailbox}/{name}")
            elif name.endswith(FRAMEWORKS_SUFFIX):
                self._frameworks.setdefault(name, None)
            elif name.endswith(REGIONS_SUFFIX) and name not in self._readers:
                from ..instrument.call_file import CallFileReader
                from ..instrument.shared_file import SharedFileReader

                path = f"{self._mailbox}/{name}"
                try:
                    self._readers[name] = SharedFileReader(path)
                except (OSError, ValueError):
                    continue  # still being created
                self._call_readers[name] = CallFileReader(path)

    def _list_new_metrics(self, names: Iterable[str]) -> list[str]:
        """The oldest first: a process fills one file after the other."""
        new = [name for name in names if name.endswith(METRICS_SUFFIX) and name not in self._metrics]
        return sorted(filter(_is_ours, new), key=lambda name: _find_change(f"{self._mailbox}/{name}"))

    def read_active(self) -> dict[Key, int]:
        """Open regions by pid and path, each with its number of open calls."""
        from .open_calls import read_clocks

        active: dict[Key, int] = {}
        self._active = {}
        now_ns = time.monotonic_ns()
        for name, reader in self._readers.items():
            pid, namespace = find_writer(name)
            if namespace == self._namespace:
                clocks = read_clocks(pid, now_ns, reader)
                if clocks is not None:
                    self._clocks[name] = clocks
            for number, calls in reader.read_active().items():
                key = reader.pid, self._find_path(reader, number)
                active[key] = active.get(key, 0) + calls  # names may be equal once they are masked
                self._active[key] = name, number
        return active

    def list_left(self, since_ns: int) -> list[tuple[str, ...]]:
        """The regions of running processes that were left since then."""
        return [
            self._find_path(reader, number)
            for reader in self._readers.values()
            for number in reader.list_left(since_ns)
        ]

    def read_all(self) -> Iterator[tuple[Key, Numbers]]:
        """The counters of all regions of running processes."""
        for name, reader in self._readers.items():
            for number, numbers in self._read_numbers(name, reader):
                yield (reader.pid, self._find_path(reader, number)), numbers

    def read_present(self, since_ns: int, now_ns: int) -> Iterator[tuple[Key, Numbers]]:
        """The counters of the regions of running processes that are open, or were left since then."""
        for reader in self._readers.values():
            for number, numbers in reader.read_all(now_ns, since_ns).items():
                yield (reader.pid, self._find_path(reader, number)), numbers

    def take_ended(self) -> list[tuple[Key, Numbers, int]]:
        """The regions of programs that have ended since the last call, each with its counters and open calls."""
        ended = []
        for name in [name for name, reader in self._readers.items() if self._has_ended(name, reader)]:
            reader = self._readers.pop(name)
            active = reader.read_active()
            for number, numbers in self._read_numbers(name, reader):
                ended.append(((reader.pid, self._find_path(reader, number)), numbers, active.get(number, 0)))
            self._keep_high_water(reader)
            self._gaps = _add_refused(self._gaps, reader)
            self._long_names |= reader.long_names
            calls = self._call_readers.pop(name)
            self._calls_of_ended += [*self._read_calls(reader, calls), *self._read_open(reader, calls)]
            reader.close()
            self._clocks.pop(name, None)
            self._remove(name)
            self._remove(os.path.basename(calls.path))
        return ended

    def _has_ended(self, name: str, reader: SharedFileReader) -> bool:
        """Whether the process has ended, or goes on as another program."""
        if is_over(name, self._namespace):
            return True
        return find_writer(name)[1] == self._namespace and reader.was_replaced()

    def take_calls_of_ended(self) -> list[Call]:
        """The calls of processes that have ended since the last time; open ones are those it was killed in."""
        calls, self._calls_of_ended = self._calls_of_ended, []
        return calls

    def take_calls(self) -> Iterator[Call]:
        """The kept calls of all regions that have new ones since the last time."""
        for name, reader in self._readers.items():
            yield from self._read_calls(reader, self._call_readers[name])

    def read_open(self) -> Iterator[Call]:
        """The open calls of running processes."""
        for name, reader in self._readers.items():
            yield from self._read_open(reader, self._call_readers[name])

    def find_start(self, key: Key) -> float | None:
        """When the newest open call of a region began, of those `read_active` has found."""
        name, number = self._active[key]
        reader = self._call_readers.get(name)
        return None if reader is None else self.since_start(max(reader.read_open(number), default=0))

    def _read_calls(self, reader: SharedFileReader, calls: CallFileReader) -> Iterator[Call]:
        for number, kept in calls.take_changed():
            path = self._find_path(reader, number)
            for call in kept:
                yield Call(
                    path=path,
                    pid=reader.pid,
                    number=call.number,
                    start_seconds=self._seconds(call.start_ns),
                    end_seconds=self._seconds(call.end_ns),
                    thread=call.thread,
                    peak_ram_bytes=call.peak_ram_bytes if call.peak_ram_bytes >= 0 else None,
                    peak_ram_basis=EXACT if call.is_exact else SAMPLED,
                    priority=call.priority,
                )

    def _read_open(self, reader: SharedFileReader, calls: CallFileReader) -> Iterator[Call]:
        now_ns = time.monotonic_ns()
        for number in reader.read_active():
            for start_ns in calls.read_open(number):
                # By another clock than ours it may not have begun yet: all that is known is that it is of this run.
                start_seconds = self._seconds(start_ns) if start_ns <= now_ns else 0.0
                yield Call(self._find_path(reader, number), reader.pid, 0, start_seconds, None)

    def read_gaps(self) -> RegionGaps:
        """What is missing among the regions so far."""
        gaps, names = self._gaps, set(self._long_names)
        for reader in self._readers.values():
            gaps = _add_refused(gaps, reader)
            names |= reader.long_names
        return gaps._replace(
            long_names=len(names),
            unfollowed_processes=len(self._unfollowed),
            lost_metrics=sum(self._lost_metrics.values()),
        )

    def read_high_waters(self) -> dict[int, int]:
        """By pid, the largest high-water marks that processes kept before resetting them."""
        high_waters = dict(self._high_waters_of_ended)
        for reader in self._readers.values():
            high_waters[reader.pid] = max(high_waters.get(reader.pid, 0), reader.read_high_water())
        return high_waters

    def since_start(self, nanoseconds: int) -> float | None:
        """Seconds since the start, of a time in a shared file."""
        return self._seconds(nanoseconds) if nanoseconds else None

    def _seconds(self, nanoseconds: int) -> float:
        """Within the run: the clock of a process in another time namespace is another one."""
        return max(0.0, min(nanoseconds, time.monotonic_ns()) / 1e9 - self._start_seconds)

    def take_metrics(self, about_bytes: int = _ALL_BYTES) -> list[MetricRow]:
        """The metrics logged since the last call, or some of them, one file after the other."""
        rows: list[MetricRow] = []
        for name, offset in list(self._metrics.items()):
            if about_bytes <= 0:
                break
            is_complete = offset >= METRICS_BYTES or is_over(name, self._namespace)
            try:
                fd = posix.open(f"{self._mailbox}/{name}", posix.O_RDONLY | posix.O_NOFOLLOW)
            except OSError:
                continue
            try:
                content = posix.pread(fd, _MOST_BYTES_AT_ONCE, offset)
            finally:
                os.close(fd)
            whole = content.find(b"\n", about_bytes) + 1 or content.rfind(b"\n") + 1
            about_bytes -= whole
            self._metrics[name] = offset + whole
            rows += self._parse(content[:whole], find_writer(name)[0])
            if is_complete and not whole:
                del self._metrics[name]
                self._remove(name)
        return rows

    def take_framework_notes(self) -> list[FrameworkNote]:
        """The framework memory that processes have reported since the last call."""
        notes = []
        for name, seen in list(self._frameworks.items()):
            has_ended = is_over(name, self._namespace)
            path = f"{self._mailbox}/{name}"
            try:
                status = os.stat(path)
                version = status.st_ino, status.st_mtime_ns  # every version is a new file
                if version == seen:
                    if has_ended:
                        del self._frameworks[name]
                        self._remove(name)
                    continue
                import json

                with open(path, encoding="ascii") as file:
                    at_ns, is_last, readings = json.load(file)
                at_seconds = self.since_start(at_ns) or 0.0
                known = tuple(FrameworkReading(*reading) for reading in readings)
            except (OSError, ValueError, TypeError):
                continue  # removed, or damaged by a process of the job
            self._frameworks[name] = version
            notes.append(FrameworkNote(at_seconds, find_writer(name)[0], is_last, known))
        return notes

    def _read_numbers(self, name: str, reader: SharedFileReader) -> Iterable[tuple[int, Numbers]]:
        """The counters of a process, with open calls up to the last reading of it, none longer than the run."""
        from .open_calls import Clocks, read_numbers

        clocks = self._clocks.get(name, Clocks(0, 0, {}))
        run_ns = clocks.at_ns - int(self._start_seconds * 1e9)
        for number, numbers in read_numbers(reader, clocks).items():
            longest_ns = max(0, run_ns * numbers.open_calls)
            is_possible = numbers.open_wall_ns <= longest_ns
            yield number, numbers if is_possible else numbers._replace(open_wall_ns=longest_ns)

    def _find_path(self, reader: SharedFileReader, number: int) -> tuple[str, ...]:
        return tuple(map(self._mask, reader.find_path(number)))

    def _mask_names(self, values: dict[str, float]) -> dict[str, float]:
        return {self._mask(name): value for name, value in values.items()}

    def _mask(self, name: str) -> str:
        """The name of a region or metric, which may quote a command or an address with a secret."""
        masked = self._masked.get(name)
        if masked is None:
            masked = self._masked[name] = mask_text(name)
        return masked

    def _parse(self, content: bytes, pid: int) -> list[MetricRow]:
        if not content:
            return []
        import json

        try:
            rows = json.loads(b"[" + content[:-1].replace(b"\n", b",") + b"]")
            return [
                MetricRow(self.since_start(at_ns) or 0.0, self._mask_names(values), step, pid)
                for at_ns, step, values in rows
            ]
        except (ValueError, TypeError, AttributeError):
            # Damaged by a process of the job: parse line by line.
            lines = content.splitlines(keepends=True)
            return [row for line in lines for row in self._parse(line, pid)] if len(lines) > 1 else []

    def _keep_high_water(self, reader: SharedFileReader) -> None:
        high_water = reader.read_high_water()
        if high_water > 0:
            self._high_waters_of_ended[reader.pid] = max(
                high_water, self._high_waters_of_ended.get(reader.pid, 0)
            )

    def close(self) -> None:
        """Let go of all files; some systems remove none that is open."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def _remove(self, name: str) -> None:
        try:
            os.unlink(f"{self._mailbox}/{name}")
        except OSError:
            pass  # already removed


def _add_refused(gaps: RegionGaps, reader: SharedFileReader) -> RegionGaps:
    refused = reader.read_refused()
    return gaps._replace(
        refused_regions=gaps.refused_regions + refused,
        refusing_processes=gaps.refusing_processes + bool(refused),
    )


def _read_lost(path: str) -> int:
    """How many rows the time of a file stands for; a new one has the present for a moment."""
    try:
        count = int(os.stat(path, follow_symlinks=False).st_mtime)
    except OSError:
        return 1
    return count if 0 < count < _MOST_LOST else 1


def _find_change(path: str) -> int:
    """When a file was changed last; 0 if that is not known."""
    try:
        return os.stat(path, follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def _is_ours(name: str) -> bool:
    try:
        return find_writer(name)[0] > 0
    except ValueError:
        return False


def is_over(name: str, namespace: int) -> bool:
    """Whether the writer of a file has ended; False if its pid is of another namespace."""
    pid, its_namespace = find_writer(name)
    return its_namespace == namespace and not exists(pid)

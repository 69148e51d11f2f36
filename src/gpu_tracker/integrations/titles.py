"""What processes use under each of the names that they give themselves: Ray calls a worker by the task that it runs.

Names are read at every look, so what is used in between belongs to the task that was seen, and a task that ends before the next look
may not be seen at all. A memory peak is exact where the kernel's high-water mark of a process rises while it has one name.
"""

from __future__ import annotations

import os
import time

from ..api.regions import log
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from threading import Event

PREFIX = "ray::"
IDLE = f"{PREFIX}IDLE"
_CPU_SECONDS, _RAM_BYTES = "cpu_seconds", "ram_bytes"
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_MOST_LETTERS = 80
_LOOK_SECONDS, _LOG_SECONDS = 0.1, 1.0
# What looking may cost: a hundredth of a core.
_LOOK_SHARE = 0.01


class Reading(NamedTuple):
    """A process at one moment."""

    start: int
    title: str
    cpu_seconds: float
    rss_bytes: int
    mark_bytes: int


class Use(NamedTuple):
    """All processes under one name: their CPU time together, and the largest peak of one of them."""

    name: str
    cpu_seconds: float
    peak_ram_bytes: int


class Titles:
    """Adds up what the children of a process use, by name."""

    def __init__(self, parent_pid: int, *, proc: str = "/proc") -> None:
        self._parent_pid = parent_pid
        self._proc = proc
        self._readings: dict[int, Reading] = {}
        self._strangers: set[int] = set()
        self._has_looked = False
        self._cpu_seconds: dict[str, float] = {}
        self._peaks: dict[str, int] = {}
        """Since they were last taken."""

    def watch(self, is_over: Event) -> None:
        """Look and log until then, for a thread."""
        seconds, log_at, has_ended = 0.0, 0.0, False
        while not has_ended:
            has_ended = is_over.wait(max(_LOOK_SECONDS, seconds / _LOOK_SHARE))
            began = time.thread_time()
            self.look()
            if has_ended or time.monotonic() > log_at:
                log_at = time.monotonic() + _LOG_SECONDS
                log(**self.take())
            seconds = time.thread_time() - began

    def look(self) -> None:
        """Read all of them once."""
        pids = {int(name) for name in os.listdir(self._proc) if name.isdecimal()}
        self._strangers &= pids
        before, self._readings = self._readings, {}
        for pid in pids - self._strangers:
            try:
                stat = self._read(pid, "stat").rpartition(b")")[2].split()
                if int(stat[1]) != self._parent_pid:
                    self._strangers.add(pid)
                    continue
                self._readings[pid] = reading = self._take(pid, stat)
            except (OSError, ValueError, IndexError):
                continue  # it has just ended
            self._add(before.get(pid), reading)
        self._has_looked = True

    def take(self) -> dict[str, float]:
        """CPU time so far and peaks since the last time, of those that ran since then, as metrics."""
        peaks, self._peaks = self._peaks, {}
        return {
            key: value
            for title, peak in peaks.items()
            for key, value in (
                (f"{title} {_CPU_SECONDS}", self._cpu_seconds[title]),
                (f"{title} {_RAM_BYTES}", float(peak)),
            )
        }

    def _read(self, pid: int, name: str) -> bytes:
        with open(f"{self._proc}/{pid}/{name}", "rb") as file:
            return file.read(4096)

    def _take(self, pid: int, stat: list[bytes]) -> Reading:
        # A process that sets its title fills what is left with zeros.
        title = self._read(pid, "cmdline").partition(b"\0")[0].decode("utf-8", "replace")[:_MOST_LETTERS]
        memory = dict(_list_kib(self._read(pid, "status")))
        ticks = sum(map(int, stat[11:15]))
        return Reading(int(stat[19]), title, ticks / _TICKS, memory.get(b"VmRSS", 0), memory.get(b"VmHWM", 0))

    def _add(self, before: Reading | None, now: Reading) -> None:
        if before is None or before.start != now.start:
            # Older than the first look, or started since the last one, for no task in particular.
            if self._has_looked and now.title.startswith(PREFIX):
                self._count(IDLE, now.cpu_seconds, 0)
            before = now
        peak = now.mark_bytes if now.mark_bytes > before.mark_bytes else now.rss_bytes
        self._count(find_user(before.title, now.title), now.cpu_seconds - before.cpu_seconds, peak)

    def _count(self, title: str, cpu_seconds: float, peak_bytes: int) -> None:
        if title.startswith(PREFIX):
            self._cpu_seconds[title] = self._cpu_seconds.get(title, 0.0) + cpu_seconds
            self._peaks[title] = max(self._peaks.get(title, 0), peak_bytes)


def is_rest(title: str, before: str) -> bool:
    """Whether a process waits for work; one with an actor has the name of that, `Actor` after `Actor.method`."""
    return title == IDLE or before.startswith(f"{title}.")


def find_user(before: str, now: str) -> str:
    """Who has used what a process used between two looks: whoever worked, the latter if both did."""
    return before if before.startswith(PREFIX) and is_rest(now, before) else now


def sum_up(metrics: Iterable[Mapping[str, tuple[float, float]]]) -> tuple[Use, ...]:
    """Of several recordings, each with the last and the largest value of its metrics: the uses by name, most CPU time first."""
    cpu: dict[str, float] = {}
    peaks: dict[str, float] = {}
    for one in metrics:
        for metric, (last, largest) in one.items():
            title, _, figure = metric.rpartition(" ")
            name = title.removeprefix(PREFIX)
            if title.startswith(PREFIX) and figure == _CPU_SECONDS:
                cpu[name] = cpu.get(name, 0.0) + last
            elif title.startswith(PREFIX) and figure == _RAM_BYTES:
                peaks[name] = max(peaks.get(name, 0.0), largest)
    uses = (Use(name, seconds, int(peaks.get(name, 0))) for name, seconds in cpu.items())
    return tuple(sorted(uses, key=lambda use: -use.cpu_seconds))


def _list_kib(status: bytes) -> Iterator[tuple[bytes, int]]:
    for line in status.splitlines():
        name, _, rest = line.partition(b":")
        if rest.endswith(b" kB"):
            yield name, int(rest.split()[0]) * 1024

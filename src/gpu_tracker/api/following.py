"""`follow()`, `Tracker.samples()`, `Tracker(on_sample=..., on_finding=...)`: a run while it is recorded."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from math import inf

from ..analysis.findings.finding import choose_new
from ..core.config import check_path
from ..core.errors import RecordingError, UsageError
from ..core.text import shorten
from ..recording.follow import Follower, News, follow_path
from ..recording.growing import GrowingRecording
from ..reports.build import build
from ..sinks.reader import IntervalReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import NoReturn

    from ..analysis.findings.finding import Finding
    from ..analysis.intervals import Interval
    from ..recording.follow import Source
    from ..reports.build import Report
    from ..reports.choices import Choices

_NOTHING = News()
_SHORTEST_SECONDS = 0.01
_LONGEST_ERROR_CELLS = 200
# How long a program waits for a callback that does not return, when it stops.
_FAREWELL_SECONDS = 1.0


def follow(path: str | os.PathLike[str], *, every: float = 1.0) -> Iterator[News]:
    """What a recording gets while it is written: samples, calls of regions, metrics, events and the end.

    Looks every so many seconds, from any process or machine that sees the file, and gives a `News` each time there is something
    new. Ends with the recording, when its writer is gone, or when the file is deleted. Raises `RecordingError` if there is no such
    recording, or if the file becomes something else; another recording in its place is followed (`News.is_another_file`).
    """
    check_every(every)
    whole_path = os.path.abspath(check_path("A recording", path))
    follower = Follower(follow_path(whole_path))
    while True:
        try:
            news = follower.look()
        except RecordingError:
            if follower.header is not None and not os.path.lexists(whole_path):
                return
            raise
        if news != _NOTHING:
            yield news
        if not follower.has_more:
            if follower.is_over:
                return
            time.sleep(every)


def check_every(seconds: float) -> float:
    """UsageError unless it is a time to wait."""
    try:
        is_valid = _SHORTEST_SECONDS <= seconds < float("inf")
    except TypeError:
        is_valid = False
    if not is_valid:
        raise UsageError(f"every must be a number of seconds from {_SHORTEST_SECONDS}, not {seconds!r}.")
    return seconds


def describe_error(error: BaseException) -> str:
    """Its kind, and what it says, if anything: one line, however long that is."""
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - it is the user's as well
        text = ""
    name = type(error).__name__
    return shorten(f"{name}: {text}" if text else name, _LONGEST_ERROR_CELLS)


def check_callback(option: str, callback: object) -> None:
    """UsageError unless it can be called, or there is none."""
    if callback is not None and not callable(callback):
        raise UsageError(f"{option} must be a function, not {type(callback).__name__}.")


class ReportReader:
    """The report on a run while it is recorded."""

    def __init__(self, source: Source, choices: Choices) -> None:
        self._growing = GrowingRecording(source)
        self._choices = choices

    def look(self) -> Report | None:
        """Of everything so far; None before the first sample."""
        self._growing.look_at_all()
        if self._growing.last_sample is None:
            return None
        return build(self._growing.data, self._growing.columns, self._choices)


def read_intervals(source: Source, every_seconds: float, goes_on: Callable[[], bool]) -> Iterator[Interval]:
    """Every interval of a run, as it is written; the last ones are written when it ends."""
    reader = IntervalReader(source)
    while True:
        is_last = not goes_on()
        yield from _list_lasting(reader.look())
        if not reader.follower.has_more:
            if is_last:
                return
            time.sleep(every_seconds)


def tell_intervals(source: Source, hear: Callable[[Interval], object]) -> Callable[[], None]:
    """What tells somebody about the newest interval, if there is a new one."""
    reader = IntervalReader(source)

    def tell() -> None:
        intervals = _list_lasting(reader.look())
        if intervals:
            hear(intervals[-1])

    return tell


def _list_lasting(intervals: list[Interval]) -> list[Interval]:
    """Those in which there are rates: the first reading is of a moment."""
    return [interval for interval in intervals if interval.end_seconds > interval.start_seconds]


def tell_reports(source: Source, hear: Callable[[Report], object], choices: Choices) -> Callable[[], None]:
    """What tells somebody about everything so far."""
    reader = ReportReader(source, choices)

    def tell() -> None:
        report = reader.look()
        if report is not None:
            hear(report)

    return tell


def tell_findings(source: Source, hear: Callable[[Finding], object], choices: Choices) -> Callable[[], None]:
    """What tells somebody about each rule that finds something bad, once."""
    reader = ReportReader(source, choices)
    told: frozenset[str] = frozenset()
    pid = os.getpid()

    def tell() -> None:
        nonlocal told
        report = reader.look()
        for finding in choose_new(report.findings if report else (), told):
            told |= {finding.rule}
            hear(finding)
            if os.getpid() != pid:
                return  # it has forked, and the rest is for its parent

    return tell


class Monitor:
    """A thread that tells somebody what is new, again and again, until it is closed. It harms nobody if that fails.

    In a child that a callback has forked, this thread is all there is: the child ends when the callback returns there, or by `sys.exit`.
    """

    def __init__(
        self,
        what: str,
        tell: Callable[[], object],
        every_seconds: float,
        warn: Callable[[str], object],
        *,
        most_share: float = inf,
        farewell_seconds: float = _FAREWELL_SECONDS,
    ) -> None:
        self._what = what
        self._tell = tell
        self._every_seconds = every_seconds
        self._most_share = most_share
        """Of the time of a core."""
        self._farewell_seconds = farewell_seconds
        self._warn = warn
        self._pid = os.getpid()
        self._has_ended = threading.Event()
        self._was_closed_inside = False
        self._thread = threading.Thread(target=self._run, name="gpu-tracker-monitor", daemon=True)
        self._thread.start()

    def is_calling(self) -> bool:
        """Whether the code that runs now was called by this."""
        return self._thread is threading.current_thread()

    def close(self) -> bool:
        """Look for the last time, unless that goes on now. A callback that does not return is left alone; whether it did."""
        self._has_ended.set()
        if self.is_calling():
            self._was_closed_inside = True
            return True
        self._thread.join(self._farewell_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        is_last, cost_seconds, last_seconds = False, 0.0, 0.0
        while not is_last:
            is_last = self._has_ended.wait(max(self._every_seconds, cost_seconds / self._most_share))
            begin_seconds = time.thread_time()
            failure = self._try_to_tell()
            if os.getpid() != self._pid:
                return
            if failure:
                self._warn(failure)
            if failure or self._was_closed_inside:
                return
            # One that loads modules costs much only once.
            spent_seconds = time.thread_time() - begin_seconds
            cost_seconds, last_seconds = min(spent_seconds, last_seconds), spent_seconds

    def _try_to_tell(self) -> str:
        """Why this was the last time, if it was."""
        try:
            self._tell()
        except RecordingError as error:
            return f"{error} {self._what} any more."
        except BaseException as error:  # noqa: BLE001 - it is the user's, and in a thread an exit is none
            if isinstance(error, SystemExit) and os.getpid() != self._pid:
                _exit_child(error.code)
            return f"{self._what} any more: it raised {describe_error(error)}."
        return ""


def _exit_child(code: object) -> NoReturn:
    """As `sys.exit` would in a main thread: with a number, or with 1 after a text."""
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # it may be closed, or None
            stream.flush()
    os._exit((code or 0) & 0xFF)

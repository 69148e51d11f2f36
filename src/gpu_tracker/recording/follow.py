"""A recording read while it is written: everything live looks through here.

It looks again and again, and opens the file anew each time: notifications do not reach across machines, and a network file
system shows what others have written to whoever opens it.
"""

from __future__ import annotations

import os
import time
from functools import partial
from operator import sub

from ..core.errors import WRONG_DATA, RecordingError
from ..core.model import Peaks
from ..core.system import posix
from ..core.values import NamedTuple
from .lazy import decode_sample_line, find_moments, gather_samples, parse
from .lines import LONGEST_LINE_BYTES, open_path
from .lock import is_alive, is_held
from .reader import may_be_header, miss_header, read_header
from .schema import (
    decode_calls,
    decode_end,
    decode_event,
    decode_framework,
    decode_gaps,
    decode_metric_totals,
    decode_metrics,
    decode_path,
    decode_peak_moment,
    decode_process,
    decode_region,
)
from .validate import check, check_metric_totals, check_metrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..core.model import (
        Call,
        End,
        Event,
        FrameworkMemory,
        Header,
        MetricRow,
        MetricTotals,
        PeakMoment,
        ProcessTotals,
        RegionGaps,
        RegionTotals,
        Sample,
    )
    from .lazy import SampleLines

_MOST_BYTES_AT_ONCE = 4 * 2**20
_UNNAMED = (0, 0)
# Of fewer nothing is gained by reading samples together.
_FEW_LINES = 100
# The file is there before the sampler that will hold it, which may be slow to start.
_START_SECONDS = 30.0


class News(NamedTuple):
    """What a recording has got since the last look."""

    header: Header | None = None
    samples: tuple[Sample, ...] = ()
    events: tuple[Event, ...] = ()
    regions: tuple[RegionTotals, ...] = ()
    """Anew whenever they have changed, as are processes, frameworks and moments of peaks."""
    calls: tuple[Call, ...] = ()
    """Calls of regions that have ended."""
    open_calls: Mapping[tuple[str, ...], tuple[Call, ...]] = {}
    """Those that are running now, of each region that has changed."""
    metrics: tuple[MetricRow, ...] = ()
    metric_totals: tuple[MetricTotals, ...] = ()
    processes: tuple[ProcessTotals, ...] = ()
    frameworks: tuple[FrameworkMemory, ...] = ()
    peak_moments: tuple[PeakMoment, ...] = ()
    gaps: RegionGaps | None = None
    end: End | None = None
    damaged_lines: int = 0
    is_another_file: bool = False
    """The file was replaced or emptied: what was known before is of another run."""


class Content(NamedTuple):
    """A part of a file, and what is known about the file."""

    file: tuple[int, int]
    """Which one it is: a name may get another."""
    size: int
    modified_at: float
    """Seconds since 1970."""
    content: bytes
    was_held: bool | None = None
    """Whether somebody held its lock before it was read; None if it has none."""


class Source(NamedTuple):
    """Where the bytes come from."""

    name: str
    read: Callable[[int], Content]
    """From an offset on, at most some megabytes."""
    goes_back: bool = False
    """Whether it may be set back, and is shorter then."""


def follow_path(path: str) -> Source:
    """A file that is opened anew at every look, so that a network file system shows what others have written."""
    return Source(path, partial(_read_path, path))


def read_unnamed(kept: int | bytes, offset: int) -> Content:
    """A part of a file without a name: of its descriptor, whose position belongs to its writer and is not moved, or of all it held."""
    if isinstance(kept, int):
        return _read_descriptor(kept, offset)._replace(file=_UNNAMED)
    return Content(_UNNAMED, len(kept), time.time(), kept[offset : offset + _MOST_BYTES_AT_ONCE])


def _read_path(path: str, offset: int) -> Content:
    with open_path(path) as file:
        was_held = is_held(file.fileno())
        return _read_descriptor(file.fileno(), offset)._replace(was_held=was_held)


def _read_descriptor(fd: int, offset: int) -> Content:
    status = os.fstat(fd)
    content = posix.pread(fd, _MOST_BYTES_AT_ONCE, offset) if status.st_size > offset else b""
    return Content((status.st_dev, status.st_ino), status.st_size, status.st_mtime, content)


class Follower:
    """Looks at a recording again and again. Each look costs what was written since the last one.

    If it reads together, the news have only the last of very many samples, and `sample_lines` has them all: their columns are
    read much faster than each of them.
    """

    def __init__(self, source: Source, *, reads_together: bool = False) -> None:
        self._source = source
        self._reads_together = reads_together
        self._shapes: dict[bytes, bool] = {}
        self.sample_lines: SampleLines | None = None
        self._forget()
        self._file: tuple[int, int] | None = None

    def _forget(self) -> None:
        self._offset = 0
        self._rest = b""
        self._first_line = b""
        """The header, once that is known."""
        self._is_skipping = False
        self._peaks = Peaks()
        self._interval_seconds = 0.0
        self._last_seconds = 0.0
        self._grown_at = time.monotonic()
        self._was_held: bool | None = None
        self.header: Header | None = None
        self.end: End | None = None
        self.has_more = False
        """Whether the last look has not read everything."""

    @property
    def age_seconds(self) -> float:
        """How long ago the file was last written to."""
        return time.monotonic() - self._grown_at

    @property
    def is_over(self) -> bool:
        """Whether nothing will come any more: it has its end, or its writer is gone."""
        was_held, host = (None, "") if self.header is None else (self._was_held, self.header.host)
        is_written = is_alive(was_held, host, self._interval_seconds, self.age_seconds)
        return self.end is not None or not (is_written or self.has_more)

    def look(self) -> News:
        """What is new. RecordingError if there is no file, or it is none of ours."""
        try:
            found = self._source.read(self._offset)
            is_another = self._file not in (None, found.file) or found.size < self._offset
            if is_another:
                is_same = self._file == found.file
                found = self._source.read(0)
                self._refuse_truncated(found, is_same=is_same)
                self._forget()
        except OSError as error:
            raise RecordingError(f"Cannot read {self._source.name}: {error.strerror or error}.") from None
        if found.content:
            # At the first look it may be of long ago.
            age = 0.0 if self._offset else max(0.0, time.time() - found.modified_at)
            self._grown_at = time.monotonic() - age
        self._file, self._was_held = found.file, found.was_held
        self._offset += len(found.content)
        self.has_more = self._offset < found.size
        news = self._decode(self._split(found.content))
        if self.header is None and not self.has_more:
            self._check_start(found)
        return news._replace(is_another_file=is_another)

    def _refuse_truncated(self, found: Content, *, is_same: bool) -> None:
        """RecordingError if it is the recording that was followed, which has become shorter: another one begins in another way."""
        is_shorter = is_same and not self._source.goes_back
        if is_shorter and self._first_line and found.content.startswith(self._first_line):
            raise RecordingError(f"{self._source.name} was truncated while it was read.")

    def _check_start(self, found: Content) -> None:
        """RecordingError if the file will never get a header."""
        if not may_be_header(self._rest):
            raise RecordingError(f"{self._source.name} is not a gpu-tracker recording.")
        if found.was_held is False and time.time() - found.modified_at > _START_SECONDS:
            raise miss_header(self._source.name, is_empty=not found.size)

    def _split(self, content: bytes) -> list[bytes]:
        """The whole lines; the beginning of the next is kept. One that is too long to be valid is skipped."""
        *lines, self._rest = (self._rest + content).split(b"\n")
        if lines and self._is_skipping:
            self._is_skipping, lines[0] = False, b"?"
        if len(self._rest) > LONGEST_LINE_BYTES or self._is_skipping:
            self._is_skipping, self._rest = True, b""
        return lines

    def _decode(self, lines: list[bytes]) -> News:
        found = _Found()
        self.sample_lines = None
        every = [*filter(None, lines)]  # an empty one closes a line that was torn by a full disk
        n_first = 0
        while self.header is None and n_first < len(every):
            self._first_line = every[n_first]
            self._decode_line(found, every[n_first])
            n_first += 1
        rest = every[n_first:]
        if self._reads_together and len(rest) > _FEW_LINES:
            rest = self._take_together(found, rest)
        for line in rest:
            self._decode_line(found, line)
        return found.tell()

    def _decode_line(self, found: _Found, line: bytes) -> None:
        try:
            kind, data = parse(line + b"\n")
            self._take(found, kind, data)
        except WRONG_DATA:
            if self.header is None and not may_be_header(line):
                raise RecordingError(f"{self._source.name} is not a gpu-tracker recording.") from None
            found.damaged_lines += 1

    def _take_together(self, found: _Found, lines: list[bytes]) -> list[bytes]:
        """Take the samples among lines. The others are left, and what is damaged."""
        samples, rest = gather_samples(self._source.name, lines, self._shapes, self._peaks)
        last = samples.last()
        if last is not None:
            self._note_moments(find_moments(lines))
            self._peaks, self.sample_lines = last.peaks, samples
            found.lists["samples"].append(last)
        return rest

    def _note_moments(self, moments: Sequence[float]) -> None:
        intervals = map(sub, moments, (self._last_seconds, *moments))
        self._interval_seconds = max((self._interval_seconds, *intervals))
        self._last_seconds = moments[-1] if moments else self._last_seconds

    def _take(self, found: _Found, kind: str, data: dict[str, Any]) -> None:
        if self.header is None:
            self.header, _ = read_header(kind, data, self._source.name)
            found.header = self.header
            self._interval_seconds = self.header.sleep_seconds
        elif kind == "sample":
            sample = decode_sample_line(data, self._peaks)
            self._peaks = sample.peaks
            self._note_moments([sample.at_seconds])
            found.lists["samples"].append(sample)
        elif kind == "end":
            if self.end is not None:
                raise ValueError(kind)
            end = decode_end(data)
            check(end)
            self.end = found.end = end
        else:
            found.take(kind, data)


_PLAIN: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "event": ("events", decode_event),
    "region": ("regions", decode_region),
    "process": ("processes", decode_process),
    "framework": ("frameworks", decode_framework),
    "peak": ("peak_moments", decode_peak_moment),
}


class _Found:
    """What a look finds, line by line."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.end: End | None = None
        self.gaps: RegionGaps | None = None
        self.metric_totals: tuple[MetricTotals, ...] = ()
        self.open_calls: dict[tuple[str, ...], tuple[Call, ...]] = {}
        self.damaged_lines = 0
        self.lists: dict[str, list[Any]] = {
            name: [] for name in ("samples", "calls", "metrics", *(name for name, _ in _PLAIN.values()))
        }

    def take(self, kind: str, data: dict[str, Any]) -> None:
        """One line. Raises one of WRONG_DATA if it is damaged."""
        if kind in _PLAIN:
            name, decode = _PLAIN[kind]
            value = decode(data)
            check(value)
            self.lists[name].append(value)
        elif kind == "calls":
            self._take_calls(decode_path(data), decode_calls(data))
        elif kind == "metrics":
            check_metrics(data)
            self.lists["metrics"] += decode_metrics(data)
        elif kind == "metric_totals":
            check_metric_totals(data)
            self.metric_totals = decode_metric_totals(data)
        elif kind == "gaps":
            gaps = decode_gaps(data)
            check(gaps)
            self.gaps = gaps
        else:
            raise ValueError(kind)

    def _take_calls(self, path: tuple[str, ...], calls: list[Call]) -> None:
        for call in calls:
            check(call)
        self.lists["calls"] += [call for call in calls if call.end_seconds is not None]
        self.open_calls[path] = tuple(call for call in calls if call.end_seconds is None)

    def tell(self) -> News:
        """All of it."""
        fields: dict[str, Any] = {name: tuple(values) for name, values in self.lists.items()}
        return News(
            **fields,
            header=self.header,
            open_calls=self.open_calls,
            metric_totals=self.metric_totals,
            gaps=self.gaps,
            end=self.end,
            damaged_lines=self.damaged_lines,
        )

"""Reads a recording, even one that is cut off or damaged.

The file is read once. What a summary needs is decoded then. Samples, of which there may be a million, are only compared
by shape: two lines that differ only in their digits are equally valid.
"""

from __future__ import annotations

import os
import re
from array import array
from functools import partial
from itertools import accumulate, islice

from ..core.errors import WRONG_DATA, RecordingError
from ..core.model import (
    SAMPLER_LOST,
    Event,
    Peaks,
    RecordingData,
    RegionGaps,
    count_unread,
    total_up,
)
from .columns import shape_of
from .contradictions import (
    describe_fewer_calls,
    find_contradictions,
    find_latest_seconds,
    find_region_contradiction,
)
from .damage import Damage
from .lazy import (
    MOST_SHAPES,
    CallLines,
    EveryLine,
    LastLines,
    MetricLines,
    SampleLines,
    decode_events,
    decode_sample_line,
    parse,
)
from .lines import LineBytes, LineFile, open_descriptor, open_path
from .liveness import note_liveness
from .repair import repair_header
from .schema import (
    HEADER_START,
    VERSION,
    decode_end,
    decode_framework,
    decode_gaps,
    decode_metric_totals,
    decode_path,
    decode_peak_moment,
    decode_process,
    decode_region,
)
from .validate import check, check_metric_totals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from typing import Any, TypeVar

    from ..core.model import End, Header, MetricTotals, Sample, Totals

    _Key = TypeVar("_Key")

_END = b'{"end"'
_EVENT = b'{"event":{'
_METRICS = b'{"metrics":'
_CALLS = b'{"calls":'
_REGION = b'{"region":{"pid":'
_REGION_KEY_END = b',"calls":'
_CALLS_OF_REGION = re.compile(rb',"calls":(\d{1,18})')
_READINGS = re.compile(rb'"readings":\s*(\d{1,18})')
_LINES_AT_ONCE = 1000
# Bytes of the lines of each kind that are kept, or read later: several times what the largest runs write.
_ROOM_BYTES = {
    "regions": 16 * 2**20,
    "processes": 16 * 2**20,
    "frameworks": 16 * 2**20,
    "framework readings": 16 * 2**20,
    "peaks": 2**20,
    "calls": 32 * 2**20,
    "events": 128 * 2**20,
}
# Damaged or empty lines, after which a file is not read further: there may be a billion of them.
_MOST_USELESS = 10_000


class Shapes:
    """Lines without their digits that were found to be valid. Many recordings of one job have the same ones."""

    def __init__(self) -> None:
        self.samples: dict[bytes, bool] = {}
        """Whether such a line has peaks."""
        self.regions: set[bytes] = set()


def load(path: str | os.PathLike[str], shapes: Shapes | None = None) -> RecordingData:
    """Read a recording from a file."""
    name = os.fspath(path)
    file = LineFile(name, partial(open_path, name))  # can be pickled
    return note_liveness(read(file, shapes=shapes), name)


def load_whole(path: str, shapes: Shapes | None = None) -> RecordingData:
    """Read a recording without damage, so that an incomplete run is not compared with complete ones."""
    recording = load(path, shapes)
    len(recording.regions), len(recording.calls)  # decoding them may find damage
    refuse_damaged(recording, path)
    return recording


def load_several(
    paths: Iterable[str], named: Container[str]
) -> tuple[list[tuple[str, RecordingData]], tuple[str, ...]]:
    """Whole recordings by their paths, and a sentence about each that is left out, unless the user has named it."""
    loaded, skipped = [], []
    shapes = Shapes()
    for path in paths:
        try:
            loaded.append((path, load_whole(path, shapes)))
        except RecordingError as error:
            if path in named:
                raise
            skipped.append(f"Skipped: {error}")
    if skipped and not loaded:
        raise RecordingError(skipped[0].removeprefix("Skipped: "))
    return loaded, tuple(skipped)


def refuse_damaged(recording: RecordingData, path: str) -> None:
    """RecordingError if damage has been found so far."""
    if len(recording.problems):
        raise RecordingError(f"{path} is damaged: {recording.problems[0]}")


def load_bytes(content: bytes) -> RecordingData:
    """Read a recording that was never in a file of its own."""
    return read(LineBytes("the recording", content))


def load_descriptor(fd: int) -> RecordingData:
    """Read a recording without a name. The descriptor may be closed later, so everything is decoded now."""
    recording = read(LineFile("the recording", lambda: open_descriptor(fd)))
    return recording._replace(
        samples=tuple(recording.samples), metrics=tuple(recording.metrics), calls=tuple(recording.calls)
    )


def read(
    file: LineFile, some: Iterable[tuple[int, bytes]] | None = None, shapes: Shapes | None = None
) -> RecordingData:
    """Read all lines, or some of them. The last one may be torn; any other damaged line is noted."""
    scan = _Scan(file, shapes or Shapes(), is_whole=some is None)
    try:
        for offset, block in file.read_all() if some is None else some:
            scan.take(offset, block)
            if scan.is_hopeless:
                scan.take_last()
                break
    except OSError as error:
        raise RecordingError(f"Cannot read {file.name}: {error.strerror}.") from None
    return scan.finish()


class _Scan:
    """One pass over the lines of a file."""

    def __init__(self, file: LineFile, shapes: Shapes, *, is_whole: bool) -> None:
        self._file = file
        self._is_whole = is_whole
        self._n_lines = 0
        self._damage = Damage()
        self._is_empty = True
        """Whether there was no line, not even a torn one, before the header."""
        self._header: Header | None = None
        self._events: list[Event] = []
        self._waiting: list[tuple[int | None, int, bytes]] = []
        """Events that are not decoded yet: number, offset and line."""
        self._end: End | None = None
        self._end_offset = 0
        self._gaps = RegionGaps()
        self._regions: dict[bytes | tuple[int, tuple[str, ...]], tuple[int, bytes]] = {}
        self._processes: dict[tuple[int, float], tuple[int, bytes]] = {}
        self._frameworks: dict[tuple[int, str, str], tuple[int, bytes]] = {}
        self._framework_offsets = array("q")
        self._peak_moments: dict[str, tuple[int, bytes]] = {}
        self._metric_offsets = array("q")
        self._call_offsets = array("q")
        self._metric_totals: tuple[int, bytes] | None = None
        self._n_useless = 0
        self._room_bytes = dict(_ROOM_BYTES)
        self._sample_offsets = array("q")
        self._grown_offsets = array("q")
        self._shapes = shapes.samples
        self._region_shapes = shapes.regions

    @property
    def is_hopeless(self) -> bool:
        """Whether so many lines were useless that reading on is, too."""
        return self._n_useless >= _MOST_USELESS

    def take(self, offset: int, block: bytes) -> None:
        """Some lines, of which only the last may be torn; the offset is that of the first."""
        *lines, torn = block.split(b"\n")
        shapes = shape_of(block).split(b"\n")
        offsets = list(accumulate(map((1).__add__, map(len, lines)), initial=offset))
        before = self._n_lines
        self._n_lines += len(lines)
        # One after the other: a shape may be learned from the line before.
        are_grown = map(self._shapes.get, shapes)
        for number, (at, line, is_grown) in enumerate(
            zip(offsets, lines, are_grown, strict=False), before + 1
        ):
            if is_grown is not None and self._header is not None:
                self._sample_offsets.append(at)
                if is_grown:
                    self._grown_offsets.append(at)
            elif line.startswith(_EVENT) and self._header is not None:
                self._waiting.append((number if self._is_whole else None, at, line))
            else:
                self._take_other(number if self._is_whole else None, at, line + b"\n")
                if self.is_hopeless:
                    return
        self._take_waiting()
        if torn:
            self._take_other(None, offsets[-1], torn)

    def _take_other(self, number: int | None, offset: int, line: bytes) -> None:
        """Any line but a sample of a known shape."""
        if line.strip():
            self._take_alone(number, offset, line)
        else:
            self._note_useless(offset)

    def _take_waiting(self) -> None:
        """Decode the events that wait together, or one by one if any is damaged: there may be a million."""
        waiting, self._waiting = self._waiting, []
        known = [one for one in waiting if self._has_room("events", len(one[-1]))]
        try:
            self._events += decode_events([line for *_, line in known])
        except WRONG_DATA:
            for number, offset, line in known:
                self._take_alone(number, offset, line + b"\n")

    def _take_alone(self, number: int | None, offset: int, line: bytes) -> None:
        try:
            if self._header is not None and line.startswith(_METRICS) and line.endswith(b"}}\n"):
                self._metric_offsets.append(offset)
            elif self._header is not None and line.startswith(_CALLS) and line.endswith(b"}}\n"):
                if self._has_room("calls", len(line)):
                    self._call_offsets.append(offset)
            elif self._header is not None and line.startswith(_REGION) and line.endswith((b"}}\n", b"}}")):
                self._check_region(line)
                # Process and path come first and are always encoded the same way, so they serve as the key.
                key = line[: line.index(_REGION_KEY_END)]
                self._compare_calls(key, line)
                self._keep("regions", self._regions, key, offset, line)
            else:
                self._decode(offset, line, *parse(line))
        except WRONG_DATA:
            self._is_empty = False
            # A header torn by a full disk is written again as soon as there is space.
            if self._header is None and not may_be_header(line):
                raise RecordingError(f"{self._file.name} is not a gpu-tracker recording.") from None
            if line.endswith(b"\n"):
                self._damage.note(offset, number)
                self._note_useless(offset)

    def _check_region(self, line: bytes) -> None:
        """Raise if it is not JSON: only the last line of a region is decoded, but a damaged one may hide another line."""
        shape = shape_of(line)
        if shape not in self._region_shapes:
            parse(line)
            if len(self._region_shapes) < MOST_SHAPES:
                self._region_shapes.add(shape)

    def _compare_calls(self, key: bytes, line: bytes) -> None:
        """Lines of one region have more and more calls."""
        if key not in self._regions:
            return
        _, before = self._regions[key]
        earlier, later = (_CALLS_OF_REGION.match(one, len(key)) for one in (before, line))
        if earlier and later and int(later[1]) < int(earlier[1]):
            self._damage.say(describe_fewer_calls("/".join(decode_path(parse(line)[1]))))

    def take_last(self) -> None:
        """The end, if the last line of the file is one: how the job ended is known wherever reading stopped."""
        offset, line = self._file.read_last()
        if self._header is not None and line.startswith(_END):
            self._take_alone(None, offset, line)

    def _keep(
        self, what: str, lines: dict[_Key, tuple[int, bytes]], key: _Key, offset: int, line: bytes
    ) -> None:
        """Keep the last line of each key while there is room."""
        before = len(lines[key][1]) if key in lines else 0
        if self._has_room(what, len(line) - before):
            lines[key] = offset, line

    def _has_room(self, what: str, n_bytes: int) -> bool:
        left = self._room_bytes[what] - n_bytes
        if left < 0:
            self._damage.leave_out(what)
            return False
        self._room_bytes[what] = left
        return True

    def _note_useless(self, offset: int) -> None:
        self._n_useless += 1
        if self.is_hopeless:
            self._damage.stop(offset, self._n_useless)

    def _decode(self, offset: int, line: bytes, kind: str, data: dict[str, Any]) -> None:
        if self._header is None:
            self._header, notes = read_header(kind, data, self._file.name)
            self._events.extend(Event(0.0, "note", note) for note in notes)
        elif kind == "sample":
            decode_sample_line(data, Peaks())  # raises if damaged
            self._sample_offsets.append(offset)
            has_peaks = "peaks" in data
            if has_peaks:
                self._grown_offsets.append(offset)
            if line.endswith(b"\n") and len(self._shapes) < MOST_SHAPES:
                self._shapes[shape_of(line[:-1])] = has_peaks
        elif kind == "event":
            self._take_waiting()
            self._events += decode_events([line])
        elif kind == "region":
            self._keep("regions", self._regions, (data["pid"], tuple(data["path"])), offset, line)
        elif kind == "metrics":
            self._metric_offsets.append(offset)
        elif kind == "gaps":
            gaps = decode_gaps(data)
            check(gaps)
            self._gaps = gaps
        elif kind == "calls":
            self._call_offsets.append(offset)
        elif kind == "metric_totals":
            self._metric_totals = offset, line
        elif kind == "process":
            self._keep("processes", self._processes, (data["pid"], data["first_seconds"]), offset, line)
        elif kind == "framework":
            key = data["pid"], data["framework"], data["device"]
            self._keep("frameworks", self._frameworks, key, offset, line)
            if self._has_room("framework readings", len(line)):
                self._framework_offsets.append(offset)
        elif kind == "peak":
            self._keep("peaks", self._peak_moments, data["subject"], offset, line)
        elif kind == "end":
            if self._end is not None:
                raise ValueError(kind)  # there is one end
            end = decode_end(data)
            check(end)
            self._end, self._end_offset = end, offset
        else:
            raise ValueError(kind)

    def finish(self) -> RecordingData:
        """Everything that was found."""
        self._take_waiting()
        if self._header is None:
            raise miss_header(self._file.name, is_empty=self._is_empty, is_written=self._file.is_written())
        samples = SampleLines(self._file, self._sample_offsets, self._grown_offsets, self._damage)
        last = samples.last() if self._sample_offsets else None
        totals = self._find_totals(self._end, last)
        for what in self._list_after_end():
            self._damage.say(f"The recording has {what} after its end.")
        recording = RecordingData(
            header=self._header,
            samples=samples,
            events=tuple(self._events),
            end=self._end,
            totals=totals,
            problems=self._damage,
            regions=LastLines(self._regions, decode_region, self._damage, find_region_contradiction),
            metrics=MetricLines(
                self._file, self._metric_offsets, self._damage, find_latest_seconds(self._end)
            ),
            metric_totals=self._decode_metric_totals(),
            processes=LastLines(self._processes, decode_process, self._damage),
            frameworks=LastLines(self._frameworks, decode_framework, self._damage),
            framework_readings=EveryLine(self._file, self._framework_offsets, decode_framework, self._damage),
            gaps=self._gaps,
            peak_moments=LastLines(self._peak_moments, decode_peak_moment, self._damage),
            calls=CallLines(self._file, self._call_offsets, self._damage),
        )
        for sentence in find_contradictions(recording, last):
            self._damage.say(sentence)
        return recording

    def _decode_metric_totals(self) -> tuple[MetricTotals, ...]:
        """Of the last line; none if it is damaged, so that the points are counted instead."""
        if self._metric_totals is None:
            return ()
        offset, line = self._metric_totals
        try:
            data = parse(line)[1]
            check_metric_totals(data)
            return decode_metric_totals(data)
        except WRONG_DATA:
            self._damage.note(offset)
            return ()

    def _list_after_end(self) -> list[str]:
        """What has lines there, which belong before it: another line of a kind may have been the last, or added to the others."""
        if self._end is None:
            return []
        offsets = {
            "samples": self._sample_offsets[-1:],
            "regions": [offset for offset, _ in self._regions.values()],
            "processes": [offset for offset, _ in self._processes.values()],
            "metrics": self._metric_offsets[-1:],
            "calls": self._call_offsets[-1:],
        }
        return [what for what, some in offsets.items() if max(some, default=0) > self._end_offset]

    def _find_totals(self, end: End | None, last: Sample | None) -> Totals:
        if end is not None and end.reason != SAMPLER_LOST:
            return end.totals
        if end is not None:
            return count_unread(end.totals, end.reason, last.at_seconds if last else 0.0)
        return total_up(last, self._count_readings() if last else 0)

    def _count_readings(self) -> int:
        lines = self._file.read_back(self._sample_offsets)
        readings = 0
        while some := list(islice(lines, _LINES_AT_ONCE)):
            readings += sum(map(int, _READINGS.findall(b"".join(some))))
        return readings


def miss_header(name: str, *, is_empty: bool, is_written: bool = False) -> RecordingError:
    """What to raise about a file that has no header, and will get none any more unless it is being written."""
    if is_written:
        return RecordingError(f"{name} has just begun, and nothing is in it yet.", "Try again in a moment.")
    what = "is empty" if is_empty else "has no complete header"
    return RecordingError(f"{name} {what}: gpu-tracker was killed at the start, or the disk was full.")


def may_be_header(line: bytes) -> bool:
    """Whether it begins as the first line does, however soon it was torn."""
    return HEADER_START.startswith(line[: len(HEADER_START)])


def read_header(kind: str, data: dict[str, Any], name: str) -> tuple[Header, tuple[str, ...]]:
    """The checked header and what was wrong with it; RecordingError if it is of another version."""
    if kind != "header":
        raise ValueError(kind)
    version = data["version"]
    if type(version) is int and version != VERSION:
        raise RecordingError(
            f"{name} is a recording of version {version}; this gpu-tracker reads version {VERSION}.",
            "Update gpu-tracker to read it."
            if version > VERSION
            else "Read it with the gpu-tracker that wrote it: formats before the first release are not kept.",
        )
    return repair_header(data)

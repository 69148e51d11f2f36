"""Parts of a recording that are decoded on access: a summary needs none of them."""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain, compress, islice
from math import inf
from operator import le

from ..core.calls import choose_calls
from ..core.columns import LoggedColumns
from ..core.errors import WRONG_DATA, RecordingError
from ..core.model import MOST_METRICS, Call, Event, MetricRow, Peaks, Sample, total_up
from ..core.values import NamedTuple
from .columns import shape_of
from .damage import Damage
from .lines import LineBytes
from .schema import (
    decode_calls,
    decode_event,
    decode_metric_columns,
    decode_metrics,
    decode_path,
    decode_peaks,
    decode_sample,
    join_metrics,
)
from .validate import check, check_all, check_metrics, check_number, check_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar, overload

    from .lines import LineFile

    _Item = TypeVar("_Item")
    _Row = TypeVar("_Row")


_MOST_CALLS = 1000
_MERGED_LINES = 1000
_LINES_AT_ONCE = 10_000
# So few that the garbage collector is not called for what is made on the way.
_PARSED_TOGETHER = 30
_LONG_LINE_BYTES = 2**15
# A valid file has a few dozen shapes; one with a new shape in every line must not fill the memory.
MOST_SHAPES = 10_000
_SAMPLE = b'{"sample"'
_TIME = re.compile(rb'\{"sample":\{"at":(\d+(?:\.\d+)?)')
_FIRST_TEXT = re.compile(rb'\["([^"\\]*)",')


def parse(line: bytes) -> tuple[str, dict[str, Any]]:
    """The kind of a line, and its data."""
    text = line.decode()
    try:
        found, end = _scan(text, 0)
    except StopIteration:
        end = 0
    if text[end:] != "\n":  # white space around the value, or damage
        found = _decoder.decode(text)
    ((kind, data),) = found.items()
    # Looking for names that are there twice takes long: it is done only if there are more colons than names.
    if line.startswith(_SINGULAR) or line.count(b":") != _count_names(data):
        _strict_decoder.decode(text)
    return kind, data


def _count_names(data: dict[str, Any]) -> int:
    """Those of a line, as far as lines are known to have any."""
    return 1 + len(data) + sum(len(data[name]) for name in _NESTED if name in data)


def decode_line(line: bytes, decode: Callable[[dict[str, Any]], _Item]) -> _Item:
    """The checked value of a line."""
    value = decode(parse(line)[1])
    check(value)
    return value


def decode_undamaged(
    lines: Iterable[tuple[int, bytes]], decode: Callable[[dict[str, Any]], _Item], damage: Damage
) -> Iterator[_Item]:
    """The values of lines with their offsets; damaged ones are noted."""
    for offset, line in lines:
        try:
            item = decode_line(line, decode)
        except WRONG_DATA:
            damage.note(offset)
        else:
            yield item


def decode_events(lines: Sequence[bytes]) -> list[Event]:
    """The checked events of lines."""
    starts = range(0, len(lines), _PARSED_TOGETHER)
    found = chain.from_iterable(_parse_together(lines[start : start + _PARSED_TOGETHER]) for start in starts)
    events = [decode_event(data) for ((_, data),) in found]
    check_all(events)
    return events


def _parse_together(lines: Sequence[bytes]) -> Iterator[Iterable[tuple[str, Any]]]:
    """The kind and data of each line."""
    found = _decoder.decode(f"[[{b'],['.join(lines).decode()}]]")
    if len(found) != len(lines):
        raise ValueError(len(found))
    return (line.items() for (line,) in found)


def decode_sample_line(data: dict[str, Any], peaks_before: Peaks) -> Sample:
    """A checked sample. The peaks before it have been checked already."""
    sample = decode_sample(data, peaks_before)
    check(sample, len(sample) if "peaks" in data else len(sample) - 1)
    for spread in sample.ram_bytes:
        check_order(spread)
    return sample


def _refuse(word: str) -> float:
    raise ValueError(word)


def _take_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no name hides another."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(pairs)
    return found


_NESTED = ("gpu", "peaks", "values")
# Lines of which a file has one.
_SINGULAR = b'{"header"', b'{"end"'
_decoder = json.JSONDecoder(parse_constant=_refuse)
_strict_decoder = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_take_once)
_scan: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once  # type: ignore[attr-defined]


class _Lines(Sequence["_Item"]):
    """Items that are decoded on access."""

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> _Item: ...
        @overload
        def __getitem__(self, index: slice) -> tuple[_Item, ...]: ...

    def __getitem__(self, index: int | slice) -> _Item | tuple[_Item, ...]:
        return tuple(self)[index] if isinstance(index, slice) else self._pick(index)

    if TYPE_CHECKING:

        def _pick(self, index: int) -> _Item: ...


class Block(NamedTuple):
    """Some lines of samples."""

    peaks: Peaks
    """They name the devices in the order of these lines."""
    offsets: Sequence[int]
    lines: list[bytes]
    groups: dict[bytes, Sequence[int]]
    """The positions of the lines of each shape."""


class SampleLines(_Lines[Sample]):
    """The samples in order. Iterating is cheap; access by index merges the peaks of all earlier samples."""

    def __init__(
        self,
        file: LineFile,
        offsets: array[int],
        grown: array[int],
        damage: Damage,
        before: Peaks = Peaks(),  # noqa: B008
    ) -> None:
        self._file = file
        self._offsets = offsets
        self._grown = grown
        """Offsets of the lines with new peaks."""
        self._damage = damage
        self._before = before
        """The peaks before the first of these lines."""

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Sample]:
        peaks = self._before
        for offset, line in zip(self._offsets, self._file.read_back(self._offsets), strict=True):
            try:
                sample = decode_sample_line(parse(line)[1], peaks)
            except WRONG_DATA:
                self._damage.note(offset)
            else:
                peaks = sample.peaks
                yield sample

    def read_grown_ram(self) -> Iterator[tuple[float, int]]:
        """When there were new peaks, and the job's RAM at its peak until then."""
        peak = 0
        for offset, line in zip(self._grown, self._file.read_back(self._grown), strict=True):
            try:
                data = parse(line)[1]
                at, ram = data["at"], data["peaks"].get("ram")
                most = peak if ram is None else ram[-1][0]
                check_number(at)
                check_number(most)
            except WRONG_DATA:
                self._damage.note(offset)
            else:
                peak = most
                yield at, peak

    def read_arrays(
        self, pandas: Any, kinds: Sequence[str], make_row: Callable[[Sample], Sequence[Any]]
    ) -> list[Any]:
        """What `make_row` gives, one array per column, without making each sample."""
        from .arrays import read_arrays

        return read_arrays(self, pandas, kinds, make_row)

    def read_blocks(self, n_lines: int) -> Iterator[Block]:
        """All lines, some at a time."""
        peaks = self._before
        for offsets, lines in self._read_some(n_lines):
            groups = group(lines)
            # Where devices are found their order may change.
            new = filter(_has_new_gpus, groups)
            first = 0
            for index in sorted(chain.from_iterable(groups[shape] for shape in new)):
                found = _find_devices(lines[index], peaks)
                if found is not None:
                    if index > first:
                        some = lines[first:index]
                        yield Block(peaks, offsets[first:index], some, group(some))
                    peaks, first = found, index
            rest = lines[first:]
            yield Block(peaks, offsets[first:], rest, group(rest) if first else groups)

    def _read_some(self, n_lines: int) -> Iterator[tuple[Sequence[int], list[bytes]]]:
        """That many lines at a time, with their offsets; more are read at once."""
        step = max(1, _LINES_AT_ONCE // n_lines) * n_lines
        for start in range(0, len(self._offsets), step):
            offsets = self._offsets[start : start + step]
            lines = self._file.read_together(offsets)
            for first in range(0, len(lines), n_lines):
                yield offsets[first : first + n_lines], lines[first : first + n_lines]

    def read_rows(
        self,
        offsets: Sequence[int],
        lines: list[bytes],
        peaks: Peaks,
        make_row: Callable[[Sample], _Row],
    ) -> tuple[dict[int, _Row], Peaks]:
        """The rows of undamaged lines by their position, and the peaks after them."""
        rows = {}
        for index, (offset, line) in enumerate(zip(offsets, lines, strict=True)):
            try:
                sample = decode_sample_line(parse(line)[1], peaks)
            except WRONG_DATA:
                self._damage.note(offset)
            else:
                peaks, rows[index] = sample.peaks, make_row(sample)
        return rows, peaks

    def _pick(self, index: int) -> Sample:
        offset = self._offsets[index]
        before = self._grown[: bisect_left(self._grown, offset)]
        (line,) = self._file.read_back([offset])
        try:
            return decode_sample_line(parse(line)[1], self._merge_peaks(before))
        except WRONG_DATA:
            raise RecordingError(f"The line at byte {offset} of {self._file.name} is damaged.") from None

    def last(self) -> Sample | None:
        """The last undamaged one, whose counters may be totals."""
        peaks = self._merge_peaks(self._grown)
        for offset in reversed(self._offsets):
            (line,) = self._file.read_back([offset])
            try:
                sample = decode_sample_line(parse(line)[1], peaks)
                check(total_up(sample, 0))
            except WRONG_DATA:
                self._damage.note(offset)
            else:
                return sample
        return None

    def _put_in_order(self, offsets: Sequence[int]) -> Sequence[int]:
        """By the times of the lines: in a recording from anywhere an early one may come late, with peaks that have grown since."""
        times = [_find_time(line) for line in self._file.read_back(offsets)]
        if all(map(le, times, islice(times, 1, None))):
            return offsets
        return [offsets[at] for at in sorted(range(len(times)), key=times.__getitem__)]

    def _merge_peaks(self, offsets: Sequence[int]) -> Peaks:
        """The peaks after the lines at these offsets."""
        known: dict[str, Any] = {}
        lines = self._file.read_back(self._put_in_order(offsets))
        while some := list(islice(lines, _MERGED_LINES)):
            # Lines of one shape have the same fields, so the last of them counts, unless it is damaged.
            last = {shape_of(line): at for at, line in enumerate(some)}
            grown = [_decode_grown(some[at]) for at in sorted(last.values())]
            for fields in grown if None not in grown else map(_decode_grown, some):
                known.update(fields or {})  # damage is noted when the samples are iterated
        return decode_peaks(known, self._before)


def gather_samples(
    name: str, lines: Iterable[bytes], shapes: dict[bytes, bool], before: Peaks
) -> tuple[SampleLines, list[bytes]]:
    """The samples among lines of a file, and all other lines; those of damaged samples are among these.

    `shapes` are those of valid samples, with whether there are peaks; new ones are learned.
    """
    every = list(lines)
    kept, rest = [], []
    offsets, grown = array("q"), array("q")
    at = 0
    for line, shape in zip(every, shape_of(b"\n".join(every)).split(b"\n"), strict=True):
        is_grown = shapes.get(shape)
        if is_grown is None:
            is_grown = _learn_shape(line, shape, shapes)
        if is_grown is None:
            rest.append(line)
            continue
        kept.append(line + b"\n")
        offsets.append(at)
        if is_grown:
            grown.append(at)
        at += len(line) + 1
    return SampleLines(LineBytes(name, b"".join(kept)), offsets, grown, Damage(), before), rest


def _learn_shape(line: bytes, shape: bytes, shapes: dict[bytes, bool]) -> bool | None:
    """Whether a sample has peaks; None if it is none, or damaged."""
    if not line.startswith(_SAMPLE):
        return None
    try:
        data = parse(line + b"\n")[1]
        decode_sample_line(data, Peaks())
    except WRONG_DATA:
        return None
    is_grown = "peaks" in data
    if len(shapes) < MOST_SHAPES:
        shapes[shape] = is_grown
    return is_grown


def find_moments(lines: Iterable[bytes]) -> list[float]:
    """When the samples among lines ended."""
    return [float(found[1]) for found in map(_TIME.match, lines) if found]


def _find_time(line: bytes) -> float:
    found = _TIME.match(line)
    return float(found[1]) if found else -inf


def _decode_grown(line: bytes) -> dict[str, Any] | None:
    """The checked fields of the peaks in a line; None if they are damaged."""
    try:
        grown: dict[str, Any] = parse(line)[1]["peaks"]
        check(decode_peaks(grown, Peaks()))
    except WRONG_DATA:
        return None
    return grown


def _find_devices(line: bytes, known: Peaks) -> Peaks | None:
    """The peaks in a line with other devices than were known."""
    if _list_devices(line) == [gpu.uuid.encode() for gpu in known.gpus]:
        return None
    try:
        peaks = decode_sample_line(parse(line)[1], known).peaks
    except WRONG_DATA:  # noted when the line is read
        return None
    return None if [gpu.uuid for gpu in peaks.gpus] == [gpu.uuid for gpu in known.gpus] else peaks


def _list_devices(line: bytes) -> list[bytes]:
    """The UUIDs of the devices in the peaks of a line, without decoding it."""
    start = line.find(b'"gpus":', line.find(b'"peaks":'))
    stop = line.find(b']],"', start)
    return _FIRST_TEXT.findall(line, start, stop if stop >= 0 else len(line))


def is_sound(line: bytes, peaks: Peaks) -> bool:
    """Whether a sample is undamaged. One that is not has another shape than others, unless only its numbers cannot be."""
    try:
        decode_sample_line(parse(line)[1], peaks)
    except WRONG_DATA:
        return False
    return True


def decode_row(line: bytes, peaks: Peaks, make_row: Callable[[Sample], _Row]) -> _Row:
    """What `make_row` gives for the sample of a line, whose numbers may be made up."""
    return make_row(decode_sample(parse(line)[1], peaks))


def group(lines: list[bytes]) -> dict[bytes, Sequence[int]]:
    """The positions of the lines of each shape."""
    shapes = shape_of(b"".join(lines)).split(b"\n")[: len(lines)]
    shapes += [b""] * (len(lines) - len(shapes))  # of a file that was cut
    if len(set(shapes)) == 1:
        return {shapes[0]: range(len(lines))}
    groups: dict[bytes, list[int]] = {shape: [] for shape in dict.fromkeys(shapes)}
    usual = shapes[len(shapes) // 2]
    groups[usual] = list(compress(range(len(lines)), map(usual.__eq__, shapes)))
    for index in compress(range(len(lines)), map(usual.__ne__, shapes)):
        groups[shapes[index]].append(index)
    return {**groups}


def _has_new_gpus(shape: bytes) -> bool:
    at = shape.find(b'"peaks":')
    return at >= 0 and shape.find(b'"gpus":', at) >= 0


class MetricLines(_Lines[MetricRow]):
    """What the job logged, many rows per line."""

    def __init__(
        self, file: LineFile, offsets: array[int], damage: Damage, latest_seconds: float = inf
    ) -> None:
        self._file = file
        self._offsets = offsets
        self._damage = damage
        self._latest_seconds = latest_seconds
        """Later than that nothing was logged."""
        self._ends: list[int] | None = None
        """Number of rows up to the end of each line."""
        self._names: set[str] = set()
        self._columns: LoggedColumns | None = None

    def __len__(self) -> int:
        ends = self._count()
        return ends[-1] if ends else 0

    def __iter__(self) -> Iterator[MetricRow]:
        for rows in self._decode(self._offsets):
            yield from rows

    def read_columns(self) -> LoggedColumns:
        """All of them, without making the rows."""
        if self._columns is None:
            self._columns = self._join_columns()
        return self._columns

    def _join_columns(self) -> LoggedColumns:
        metrics: dict[str, tuple[array[float], array[float]]] = {}
        last: list[float] = []
        for data in self._read_together():
            last = [max([*data["at"], *last])] if data["at"] else last
            for name, moments, values in decode_metric_columns(data):
                columns = metrics.setdefault(name, (array("d"), array("d")))
                columns[0].extend(moments)
                columns[1].extend(values)
        return LoggedColumns(metrics, last[0] if last else None)

    def _read_together(self) -> Iterator[dict[str, Any]]:
        """The checked data of some lines at a time; of one at a time where one is damaged."""
        for some in self._read_some():
            try:
                yield from self._check([line for _, line in some])
            except WRONG_DATA:
                for offset, line in some:
                    try:
                        yield from self._check([line])
                    except WRONG_DATA:
                        self._damage.note(offset)

    def _read_some(self) -> Iterator[list[tuple[int, bytes]]]:
        some: list[tuple[int, bytes]] = []
        for offset, line in zip(self._offsets, self._file.read_back(self._offsets), strict=True):
            some.append((offset, line))
            if len(some) == _PARSED_TOGETHER or len(line) > _LONG_LINE_BYTES:
                yield some
                some = []
        if some:
            yield some

    def _check(self, lines: Sequence[bytes]) -> list[dict[str, Any]]:
        """The points of all lines, unless one is damaged: those with the same names together."""
        joined = join_metrics(parse(line)[1] for line in lines)
        for data in joined:
            check_metrics(data, self._latest_seconds)
        for data in joined:
            if not self._names.issuperset(data["values"]):
                self._learn_names(data["values"])
        return joined

    def _pick(self, index: int) -> MetricRow:
        ends = self._count()
        position = range(len(self))[index]
        line = bisect_right(ends, position)
        (rows,) = self._decode(self._offsets[line : line + 1])
        return rows[position - ends[line]]

    def _count(self) -> list[int]:
        if self._ends is None:
            self._ends = list(accumulate(map(len, self._decode(self._offsets))))
        return self._ends

    def _decode(self, offsets: array[int]) -> Iterator[list[MetricRow]]:
        """The rows of each line; none for a damaged line."""
        for offset, line in zip(offsets, self._file.read_back(offsets), strict=True):
            try:
                (data,) = self._check([line])
                rows = decode_metrics(data)
            except WRONG_DATA:
                self._damage.note(offset)
                rows = []
            yield rows

    def _learn_names(self, columns: dict[str, Any]) -> None:
        """Take new names while there are few; the columns of others are removed."""
        for name in [name for name in columns if name not in self._names]:
            if len(self._names) < MOST_METRICS:
                self._names.add(name)
            else:
                del columns[name]
                self._damage.say(f"Only the first {MOST_METRICS} metrics of the recording were read.")


class _WholeLines(_Lines["_Item"]):
    """Items that are all decoded on first access."""

    _items: tuple[_Item, ...] | None = None

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[_Item]:
        return iter(self._all())

    def _pick(self, index: int) -> _Item:
        return self._all()[index]

    def _all(self) -> tuple[_Item, ...]:
        if self._items is None:
            self._items = tuple(self._decode_all())
        return self._items

    if TYPE_CHECKING:

        def _decode_all(self) -> Iterable[_Item]: ...


class LastLines(_WholeLines["_Item"]):
    """Items whose last line counts."""

    def __init__(
        self,
        lines: dict[Any, tuple[int, bytes]],
        decode: Callable[[dict[str, Any]], _Item],
        damage: Damage,
        find_contradiction: Callable[[_Item], str | None] | None = None,
    ) -> None:
        self._lines = lines
        self._decode = decode
        self._damage = damage
        self._find_contradiction = find_contradiction

    def _decode_all(self) -> Iterator[_Item]:
        for item in decode_undamaged(self._lines.values(), self._decode, self._damage):
            contradiction = self._find_contradiction and self._find_contradiction(item)
            if contradiction:
                self._damage.say(contradiction)
            yield item


class EveryLine(_WholeLines["_Item"]):
    """Items of which each line is one."""

    def __init__(
        self,
        file: LineFile,
        offsets: array[int],
        decode: Callable[[dict[str, Any]], _Item],
        damage: Damage,
    ) -> None:
        self._file = file
        self._offsets = offsets
        self._decode = decode
        self._damage = damage

    def _decode_all(self) -> Iterator[_Item]:
        lines = zip(self._offsets, self._file.read_back(self._offsets), strict=True)
        return decode_undamaged(lines, self._decode, self._damage)


class CallLines(_WholeLines[Call]):
    """The calls of each region that are kept of those in all lines, by their start; then the open ones."""

    def __init__(self, file: LineFile, offsets: array[int], damage: Damage) -> None:
        self._file = file
        self._offsets = offsets
        self._damage = damage

    def _decode_all(self) -> list[Call]:
        ended: dict[tuple[str, ...], list[Call]] = {}
        unended: dict[tuple[str, ...], list[Call]] = {}
        for offset, line in zip(self._offsets, self._file.read_back(self._offsets), strict=True):
            try:
                data = parse(line)[1]
                path, calls = decode_path(data), decode_calls(data)
                for call in calls:
                    check(call)
            except WRONG_DATA:
                self._damage.note(offset)
                continue
            known = ended.setdefault(path, [])
            known += [call for call in calls if call.end_seconds is not None]
            unended[path] = [call for call in calls if call.end_seconds is None]
            if len(known) > _MOST_CALLS:  # of all processes and times
                ended[path] = choose_calls(known)
        return [call for path, calls in ended.items() for call in (*choose_calls(calls), *unended[path])]

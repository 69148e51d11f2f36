"""Parts of a recording that are decoded on access: a summary needs none of them."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial
from io import BytesIO
from itertools import accumulate, islice

from ..core.calls import choose_calls
from ..core.errors import WRONG_DATA, RecordingError
from ..core.model import Call, Event, MetricRow, Peaks, Sample
from .columns import is_short, is_simple, learn, reduce, shape_of
from .schema import decode_calls, decode_event, decode_metrics, decode_path, decode_peaks, decode_sample
from .validate import check, check_all, check_metrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar, overload

    from .columns import Layout
    from .damage import Damage
    from .lines import LineFile

    _Item = TypeVar("_Item")
    _Row = TypeVar("_Row")


_MOST_CALLS = 1000
# A run has a few dozen; what is put into a name by mistake must not fill the memory.
_MOST_METRICS = 10_000
_BLOCK_LINES = 50_000
_MERGED_LINES = 1000


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
    return kind, data


def decode_line(line: bytes, decode: Callable[[dict[str, Any]], _Item]) -> _Item:
    """The checked value of a line."""
    value = decode(parse(line)[1])
    check(value)
    return value


def decode_events(lines: Iterable[bytes]) -> list[Event]:
    """The checked events of lines."""
    events = [decode_event(data) for _, data in map(parse, lines)]
    check_all(events)
    return events


def decode_sample_line(data: dict[str, Any], peaks_before: Peaks) -> Sample:
    """A checked sample. The peaks before it have been checked already."""
    sample = decode_sample(data, peaks_before)
    check(sample, len(sample) if "peaks" in data else len(sample) - 1)
    return sample


def _refuse(word: str) -> float:
    raise ValueError(word)


_decoder = json.JSONDecoder(parse_constant=_refuse)
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


class SampleLines(_Lines[Sample]):
    """The samples in order. Iterating is cheap; access by index merges the peaks of all earlier samples."""

    def __init__(self, file: LineFile, offsets: array[int], grown: array[int], damage: Damage) -> None:
        self._file = file
        self._offsets = offsets
        self._grown = grown
        """Offsets of the lines with new peaks."""
        self._damage = damage

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Sample]:
        peaks = Peaks()
        for offset, line in zip(self._offsets, self._file.read_back(self._offsets), strict=True):
            try:
                sample = decode_sample_line(parse(line)[1], peaks)
            except WRONG_DATA:
                self._damage.note(offset)
            else:
                peaks = sample.peaks
                yield sample

    def read_frames(self, pandas: Any, make_row: Callable[[Sample], Sequence[Any]]) -> Iterator[Any]:
        """What `make_row` gives, as frames of many samples in order, without making each sample."""
        peaks = Peaks()
        layouts: dict[tuple[tuple[str, ...], bytes], Layout | None] = {}
        for start in range(0, len(self._offsets), _BLOCK_LINES):
            offsets = self._offsets[start : start + _BLOCK_LINES]
            lines = self._file.read_together(offsets)
            groups = group(lines)
            # Where devices are found their order changes: those few are read one by one.
            if any(map(_has_new_gpus, groups)):
                rows, peaks = self.read_rows(offsets, lines, peaks, make_row)
                yield pandas.DataFrame(list(rows.values()))
                continue
            decode = partial(decode_row, peaks=peaks, make_row=make_row)
            uuids = tuple(gpu.uuid for gpu in peaks.gpus)
            frames = []
            for shape, indices in groups.items():
                some = lines if len(indices) == len(lines) else [lines[index] for index in indices]
                if (uuids, shape) not in layouts:
                    layouts[uuids, shape] = learn(some[0], decode)
                frame = _read_group(pandas, some, layouts[uuids, shape])
                if frame is None:
                    where = [offsets[index] for index in indices]
                    rows, _ = self.read_rows(where, some, peaks, make_row)
                    frames.append(pandas.DataFrame(list(rows.values()), index=[indices[at] for at in rows]))
                else:
                    frames.append(frame if some is lines else frame.set_axis(indices))
            yield pandas.concat(frames).sort_index() if len(frames) > 1 else frames[0]

    def read_blocks(self, n_lines: int) -> Iterator[tuple[Peaks, Sequence[int], list[bytes]]]:
        """All lines with their offsets, some at a time, and peaks that name their devices in order."""
        peaks = Peaks()
        for start in range(0, len(self._offsets), n_lines):
            offsets = self._offsets[start : start + n_lines]
            lines = self._file.read_together(offsets)
            first = 0
            for index, line in enumerate(lines):
                found = _find_devices(line, peaks)
                if found is not None:
                    if index > first:
                        yield peaks, offsets[first:index], lines[first:index]
                    peaks, first = found, index
            yield peaks, offsets[first:], lines[first:]

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
        """The last undamaged one."""
        peaks = self._merge_peaks(self._grown)
        for offset in reversed(self._offsets):
            (line,) = self._file.read_back([offset])
            try:
                return decode_sample_line(parse(line)[1], peaks)
            except WRONG_DATA:
                self._damage.note(offset)
        return None

    def _merge_peaks(self, offsets: Sequence[int]) -> Peaks:
        """The peaks after the lines at these offsets."""
        known: dict[str, Any] = {}
        lines = self._file.read_back(offsets)
        while some := list(islice(lines, _MERGED_LINES)):
            # Lines of one shape have the same fields, so the last of them counts, unless it is damaged.
            last = {shape_of(line): at for at, line in enumerate(some)}
            grown = [_decode_grown(some[at]) for at in sorted(last.values())]
            for fields in grown if None not in grown else map(_decode_grown, some):
                known.update(fields or {})  # damage is noted when the samples are iterated
        return decode_peaks(known, Peaks())


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
    if not _has_new_gpus(line):
        return None
    try:
        peaks = decode_sample_line(parse(line)[1], known).peaks
    except WRONG_DATA:  # noted when the line is read
        return None
    return None if [gpu.uuid for gpu in peaks.gpus] == [gpu.uuid for gpu in known.gpus] else peaks


def decode_row(line: bytes, peaks: Peaks, make_row: Callable[[Sample], _Row]) -> _Row:
    """What `make_row` gives for the checked sample of a line."""
    return make_row(decode_sample_line(parse(line)[1], peaks))


def group(lines: list[bytes]) -> dict[bytes, Sequence[int]]:
    """The positions of the lines of each shape."""
    shapes = shape_of(b"".join(lines)).split(b"\n")[: len(lines)]
    shapes += [b""] * (len(lines) - len(shapes))  # of a file that was cut
    if len(set(shapes)) == 1:
        return {shapes[0]: range(len(lines))}
    groups: dict[bytes, list[int]] = {}
    for index, shape in enumerate(shapes):
        groups.setdefault(shape, []).append(index)
    return {**groups}


def _has_new_gpus(shape: bytes) -> bool:
    at = shape.find(b'"peaks":')
    return at >= 0 and shape.find(b'"gpus":', at) >= 0


def _read_exactly(pandas: Any) -> dict[str, str]:
    """The option that older versions need to read many digits exactly; newer ones warn of it."""
    major, minor = map(int, pandas.__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if (major, minor) < (3, 1) else {}


def _read_group(pandas: Any, lines: list[bytes], layout: Layout | None) -> Any:
    """A frame of lines of one layout; None if they must be read one by one."""
    if layout is None:
        return None
    numbers = reduce(lines)
    if not is_simple(numbers):
        return None
    read = pandas.read_csv(
        BytesIO(numbers),
        header=None,
        dtype="float64",
        skip_blank_lines=False,
        **({} if is_short(numbers) else _read_exactly(pandas)),
    )
    if read.shape != (len(lines), len(layout.fields)) or list(read.count()) != [
        has_number * len(lines) for has_number in layout.fields
    ]:
        return None
    columns = zip(layout.places, layout.constants, strict=True)
    return pandas.DataFrame(
        {at: constant if place is None else read[place] for at, (place, constant) in enumerate(columns)},
        index=read.index,
    )


class MetricLines(_Lines[MetricRow]):
    """What the job logged, many rows per line."""

    def __init__(self, file: LineFile, offsets: array[int], damage: Damage) -> None:
        self._file = file
        self._offsets = offsets
        self._damage = damage
        self._ends: list[int] | None = None
        """Number of rows up to the end of each line."""
        self._names: set[str] = set()

    def __len__(self) -> int:
        ends = self._count()
        return ends[-1] if ends else 0

    def __iter__(self) -> Iterator[MetricRow]:
        for rows in self._decode(self._offsets):
            yield from rows

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
                data = parse(line)[1]
                check_metrics(data)
                if not self._names.issuperset(data["values"]):
                    self._learn_names(data["values"])
                rows = decode_metrics(data)
            except WRONG_DATA:
                self._damage.note(offset)
                rows = []
            yield rows

    def _learn_names(self, columns: dict[str, Any]) -> None:
        """Take new names while there are few; the columns of others are removed."""
        for name in [name for name in columns if name not in self._names]:
            if len(self._names) < _MOST_METRICS:
                self._names.add(name)
            else:
                del columns[name]
                self._damage.say(f"Only the first {_MOST_METRICS} metrics of the recording were read.")


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
    ) -> None:
        self._lines = lines
        self._decode = decode
        self._damage = damage

    def _decode_all(self) -> Iterator[_Item]:
        for offset, line in self._lines.values():
            try:
                item = decode_line(line, self._decode)
            except WRONG_DATA:
                self._damage.note(offset)
            else:
                yield item


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

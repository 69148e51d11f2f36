"""Which figures of a sample are columns, and what they mean: counters become rates, gaps stay unknown. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import accumulate, chain, compress
from math import inf, isnan, nan
from operator import add, itemgetter, lt, sub, truediv

from ..core.columns import Extremes, GpuColumns, HeldColumns, RamColumns, SampleColumns, StallColumns
from ..core.figures import DEVICE, MOST_BYTES
from ..core.model import GpuSample, Parts, Spread, Traffic
from ..core.values import NamedTuple
from .validate import MEAN_ROUNDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ..core.columns import Column
    from ..core.model import Sample

# A sampler that was stopped for longer has left a gap of which its next reading says nothing.
_GAP_SECONDS = 2.0
_GPU_GAUGES = GpuSample._fields[1:]
# The byte of a number in a column with its sign: the highest bit.
_SIGN_BYTE = array("d", [-0.0]).tobytes().index(0x80)
_DEVICE_BOUNDS = {figure.name: (figure.least, figure.most) for figure in DEVICE}
_COUNTERS = ("read_bytes", "written_bytes", "waiting_seconds")
# Counters that are read once a second stand still in between.
_COUNTER_SECONDS = 1.5
_LOW, _HIGH = "low", "high"
# What is needed to tell what a job held: those figures, and what shows that a sample cannot be.
HELD = frozenset(
    (
        "at",
        "machine_ram",
        *(f"{part}_ram_{name}" for part in Parts._fields for name in Spread._fields),
        *_DEVICE_BOUNDS,
        *_GPU_GAUGES,
    )
)
# What charts show besides the job's RAM, which has its extremes in every sample.
_DRAWN_GAUGES = ("used_bytes", "job_bytes", "utilization_percent", "power_watts", "sm_percent")


class Key(NamedTuple):
    """What a column holds."""

    figure: str
    uuid: str = ""
    reason: str = ""
    """Why clocks were throttled."""
    extreme: str = ""
    """Which one of the samples that became one interval; of them together if empty."""


class Faults(NamedTuple):
    """Samples that were out of order, and that were left out because they cannot be."""

    disordered: int = 0
    impossible: int = 0


NO_FAULTS = Faults()


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


_get_last = itemgetter(-1)
# How several values of a figure become one; of the others, which are counters, the last one counts.
_MERGED: dict[str, Callable[[Sequence[float]], float]] = {
    "readings": sum,
    **dict.fromkeys(("late", "threads", "processes", "used_bytes", "job_bytes"), max),
    **dict.fromkeys(_GPU_GAUGES[2:], _mean),
    **{f"{part}_ram_low": min for part in Parts._fields},
    **{f"{part}_ram_mean": _mean for part in Parts._fields},
    **{f"{part}_ram_high": max for part in Parts._fields},
}


def list_figures(sample: Sample) -> dict[Key, float | None]:
    """The figures of a sample as they are written in its line."""
    figures: dict[Key, float | None] = {
        Key("at"): sample.at_seconds,
        Key("readings"): sample.readings,
        Key("late"): sample.late_seconds,
        Key("main_cpu"): sample.cpu_seconds.main,
        Key("descendants_cpu"): sample.cpu_seconds.descendants,
        Key("machine_cpu"): sample.system_cpu_seconds,
        Key("machine_ram"): sample.system_ram_bytes,
        Key("threads"): sample.threads,
        Key("processes"): sample.processes,
    }
    figures |= {Key(name): getattr(sample.counters, name) for name in _COUNTERS}
    figures |= {
        Key(f"stalled_{name}"): getattr(sample.stalls, f"{name}_seconds") for name in StallColumns._fields
    }
    for part, spread in zip(Parts._fields, sample.ram_bytes, strict=True):
        figures |= {Key(f"{part}_ram_{name}"): value for name, value in spread._asdict().items()}
    for gpu in sample.gpus:
        figures |= {Key(name, gpu.uuid): value for name, value in zip(_GPU_GAUGES, gpu[1:], strict=True)}
    for counters in sample.gpu_counters:
        figures[Key("counted", counters.uuid)] = counters.utilization_seconds
        figures |= {
            Key("limited", counters.uuid, reason): value for reason, value in counters.limited_seconds
        }
        figures |= {
            Key(name, counters.uuid): value
            for name, value in zip(Traffic._fields, counters.traffic, strict=False)
        }
    return figures


def transpose(rows: Iterable[Mapping[Key, float | None]]) -> dict[Key, Column]:
    """Rows as columns."""
    every = list(rows)
    keys = dict.fromkeys(chain.from_iterable(every))
    return {key: array("d", (known(row.get(key)) for row in every)) for key in keys}


def merge(
    columns: Mapping[Key, Sequence[float]], n_rows: int, before: Mapping[Key, Sequence[float]] | None = None
) -> dict[Key, Column]:
    """That many rows as one interval, with the extremes of what is drawn; `before` are the rows before these.

    All rows count alike: so many are single readings.
    """
    if n_rows == 1:
        return {key: array("d", column) for key, column in columns.items()}
    merged = {
        key: _combine(_MERGED.get(key.figure, _get_last), column, n_rows) for key, column in columns.items()
    }
    drawn = {key: column for key, column in columns.items() if key.figure in _DRAWN_GAUGES}
    for key, column in chain(drawn.items(), _find_drawn_rates(columns, before or {})):
        merged[key._replace(extreme=_LOW)] = _combine(min, column, n_rows)
        merged[key._replace(extreme=_HIGH)] = _combine(max, column, n_rows)
    return merged


def _find_drawn_rates(
    columns: Mapping[Key, Sequence[float]], before: Mapping[Key, Sequence[float]]
) -> Iterator[tuple[Key, Column]]:
    """The rates of single samples that charts show."""
    earlier = before.get(Key("at"), ())
    first = max(0, bisect_left(earlier, earlier[-1] - _COUNTER_SECONDS) - 1) if earlier else 0
    n_before = len(earlier) - first

    n_rows = len(columns.get(Key("at"), ()))

    def take(name: str) -> list[float]:
        tail = before.get(Key(name), ())[first:] or [nan] * n_before
        return [*tail, *(columns.get(Key(name)) or [nan] * n_rows)]

    at = take("at")
    start = [0.0, *at][: len(at)]
    at_start = nan if n_before else 0.0
    rates = {
        "cpu_cores": _find_rates(list(map(add, take("main_cpu"), take("descendants_cpu"))), start, at),
        "machine_cores": _find_rates(take("machine_cpu"), start, at),
    }
    for name in ("read_bytes", "written_bytes"):
        if not all(map(isnan, columns.get(Key(name), ()))):
            rates[f"{name}_per_second"] = _find_slow_rates(take(name), start, at, at_start)
    return ((Key(name), column[n_before:]) for name, column in rates.items())


def _combine(combine: Callable[[Sequence[float]], float], column: Sequence[float], n_rows: int) -> Column:
    if all(map(isnan, column)):
        return array("d", [nan]) * -(-len(column) // n_rows)
    if combine is _get_last:
        last = array("d", column[n_rows - 1 :: n_rows])
        if len(column) % n_rows:
            last.append(column[-1])
        if not isnan(sum(last)):
            return last
    groups = [column[first : first + n_rows] for first in range(0, len(column), n_rows)]
    if not isnan(sum(column)):
        return array("d", map(combine, groups))
    every = ([value for value in values if not isnan(value)] for values in groups)
    return array("d", (combine(values) if values else nan for values in every))


def known(value: float | None) -> float:
    """The value in a column."""
    return nan if value is None else value


def explain(written: Mapping[Key, Column], faults: Faults = NO_FAULTS) -> SampleColumns:
    """The columns of a recording, given the figures of its samples, and what was wrong with those before several became one."""
    possible, n_impossible = drop_impossible(written)
    columns, n_disordered = _sort_by_time(
        {key: column if isinstance(column, array) else array("d", column) for key, column in possible.items()}
    )
    at = columns.get(Key("at"), array("d"))
    start = array("d", [0.0, *at])[: len(at)]
    used = [columns.get(Key(f"{part}_cpu"), at) for part in ("main", "descendants", "machine")]
    main, descendants, machine = (_find_rates(counter, start, at) for counter in used)
    return SampleColumns(
        start_seconds=start,
        read_since_seconds=_find_known(start, at, columns.get(Key("late"), at)),
        end_seconds=at,
        cpu_cores=Parts(main, descendants, _find_rates(array("d", map(add, *used[:2])), start, at)),
        machine_cores=machine,
        ram_bytes=Parts(*(_ram_of(columns, part) for part in Parts._fields)),
        machine_ram_bytes=columns.get(Key("machine_ram"), at),
        threads=columns.get(Key("threads"), at),
        processes=columns.get(Key("processes"), at),
        gpus={uuid: _gpu_of(columns, uuid) for uuid in dict.fromkeys(key.uuid for key in columns) if uuid},
        read_bytes_per_second=_find_slow_rates(columns.get(Key("read_bytes")), start, at, 0.0),
        written_bytes_per_second=_find_slow_rates(columns.get(Key("written_bytes")), start, at, 0.0),
        waiting_threads=_find_slow_rates(columns.get(Key("waiting_seconds")), start, at, 0.0),
        stalled=StallColumns(
            *(
                # The machine's own counters, which count from when they are first read.
                _find_slow_rates(columns.get(Key(f"stalled_{name}")), start, at, nan)
                for name in StallColumns._fields
            )
        ),
        extremes={
            (key.figure, key.uuid): Extremes(column, columns[key._replace(extreme=_HIGH)])
            for key, column in columns.items()
            if key.extreme == _LOW
        },
        disordered_samples=max(n_disordered, faults.disordered),
        impossible_samples=n_impossible + faults.impossible,
    )


def explain_held(written: Mapping[Key, Column], grown: Iterable[tuple[float, int]]) -> HeldColumns:
    """What a job held, given the figures of its samples, and when which peak was known."""
    possible, _ = drop_impossible(written)
    columns, _ = _sort_by_time(
        {key: column if isinstance(column, array) else array("d", column) for key, column in possible.items()}
    )
    at = columns.get(Key("at"), array("d"))
    unknown = array("d", [nan]) * len(at)
    uuids = dict.fromkeys(key.uuid for key in columns if key.uuid)
    return HeldColumns(
        start_seconds=array("d", [0.0, *at])[: len(at)],
        end_seconds=at,
        ram_bytes=columns.get(Key("combined_ram_high"), array("d")),
        gpus={uuid: columns.get(Key("job_bytes", uuid), unknown) for uuid in uuids},
        grown=tuple(grown),
    )


def drop_impossible(
    columns: Mapping[Key, Sequence[float]], *, may_have_signs: bool = True
) -> tuple[Mapping[Key, Sequence[float]], int]:
    """A recording from anywhere may have any numbers: samples with one that cannot be are left out and counted."""
    wrong = {
        row
        for key, column in columns.items()
        for row in _find_impossible(key, column, may_have_signs=may_have_signs)
    }
    for part in Parts._fields:
        wrong.update(
            _find_disordered(*(columns.get(Key(f"{part}_ram_{name}"), ()) for name in Spread._fields))
        )
    if not wrong:
        return columns, 0
    is_possible = [row not in wrong for row in range(len(columns[Key("at")]))]
    return {key: array("d", compress(column, is_possible)) for key, column in columns.items()}, len(wrong)


def _find_impossible(key: Key, column: Sequence[float], *, may_have_signs: bool) -> Iterable[int]:
    """The rows; almost always none."""
    least, most = _find_bounds(key)
    is_low = most == inf or max(column, default=0.0) <= most  # false if the first value is nan
    if is_low and not (may_have_signs and _has_sign(column)):
        return ()
    return [row for row, value in enumerate(column) if value < least or value > most]


def _find_disordered(low: Sequence[float], mean: Sequence[float], high: Sequence[float]) -> Iterable[int]:
    """The rows whose mean is not between the extremes, but for rounding; almost always none."""
    if not any(map(lt, mean, low)) and not any(map(lt, high, mean)):
        return ()
    rows = enumerate(zip(low, mean, high, strict=False))
    slack = 1 + MEAN_ROUNDING
    return [row for row, (least, usual, most) in rows if usual * slack < least or most * slack < usual]


def _has_sign(column: Sequence[float]) -> bool:
    numbers = column if isinstance(column, array) else array("d", column)
    return not numbers.tobytes()[_SIGN_BYTE::8].isascii()  # much faster than comparing every value


def count_disordered(at: Sequence[float], latest: float = -inf) -> int:
    """How many samples came after a later one."""
    return sum(map(lt, at, accumulate(at, max, initial=latest)))


def _find_bounds(key: Key) -> tuple[float, float]:
    if key.uuid and key.figure in _DEVICE_BOUNDS:
        return _DEVICE_BOUNDS[key.figure]
    return 0.0, MOST_BYTES if "_ram" in key.figure else inf


def _sort_by_time(columns: Mapping[Key, Column]) -> tuple[Mapping[Key, Column], int]:
    """A recording from anywhere may have samples in any order: how many came after a later one."""
    at = columns.get(Key("at"), array("d"))
    n_disordered = count_disordered(at)
    if not n_disordered:
        return columns, 0
    order = sorted(range(len(at)), key=at.__getitem__)
    ordered = {key: array("d", map(column.__getitem__, order)) for key, column in columns.items()}
    return ordered, n_disordered


def _find_rates(counter: Sequence[float], start: Sequence[float], end: Sequence[float]) -> Column:
    """Growth per second; nan where a counter was corrected downwards or no time has passed.

    What has grown in no time, as before the first sample, counts in the next interval.
    """
    growth, seconds = _find_growth(counter), list(map(sub, end, start))
    if min(seconds, default=0.0) > 0:
        return array("d", map(truediv, growth, seconds))
    rates, carried = array("d"), 0.0
    for grown, first, last in zip(growth, start, end, strict=True):
        if last > first:
            rates.append((carried + grown) / (last - first))
            carried = 0.0
        else:
            rates.append(nan)
            carried += 0.0 if isnan(grown) else grown
    return rates


def _find_slow_rates(
    counter: Sequence[float] | None, start: Sequence[float], end: Sequence[float], before: float
) -> Column:
    """Growth per second of a counter that is read once a second, however short the intervals are.

    Growth is of the time since the counter was read before: at most of the last second or so, else of its interval.
    `before` is what it was when the first interval began, if that is known: it may be read for the first time much later.
    """
    if counter is None or all(map(isnan, counter)):
        return array("d", [nan]) * len(end)
    rates, first = array("d"), 0
    n_unread = list(map(isnan, counter)).index(False)
    for row, value in enumerate(counter):
        rates.append(nan if isnan(value) or isnan(before) else 0.0)
        if row == n_unread or (row > n_unread and value != before):
            while end[row] - start[first] > _COUNTER_SECONDS and n_unread < row and first < row:
                first += 1
            seconds = end[row] - start[first]
            if value >= before and seconds > 0:
                for earlier in range(first, row + 1):
                    is_instant = end[earlier] == start[earlier]
                    rates[earlier] = nan if is_instant else (value - before) / seconds
            before, first = value, row + 1
    return rates


def _find_growth(counter: Sequence[float]) -> Sequence[float]:
    """How much a counter has grown since its last known value; at the start it was 0."""
    growth = list(map(sub, counter, chain((0.0,), counter)))
    if not isnan(sum(growth)) and min(growth, default=0.0) >= 0:
        return growth
    growth, before = [], 0.0
    for value in counter:
        growth.append(value - before if value >= before else nan)
        before = before if isnan(value) else value
    return growth


def _find_known(start: Column, end: Column, late: Column) -> Column:
    """When readings began to say something: not while the sampler was stopped."""
    rows = zip(start, end, late, strict=True)
    return array("d", (min(first + (by if by > _GAP_SECONDS else 0.0), last) for first, last, by in rows))


def _ram_of(columns: Mapping[Key, Column], part: str) -> RamColumns:
    empty = array("d")
    return RamColumns(*(columns.get(Key(f"{part}_ram_{name}"), empty) for name in ("low", "mean", "high")))


def _gpu_of(columns: Mapping[Key, Column], uuid: str) -> GpuColumns:
    unknown = array("d", [nan]) * len(columns[Key("at")])
    counted = columns.get(Key("counted", uuid), unknown)
    reasons = dict.fromkeys(key.reason for key in columns if key.uuid == uuid and key.reason)
    throttled = {
        reason: array("d", _find_growth(_fill(columns[Key("limited", uuid, reason)], counted)))
        for reason in reasons
    }
    gauges = {name: columns.get(Key(name, uuid), unknown) for name in _GPU_GAUGES}
    at = columns[Key("at")]
    start = array("d", [0.0, *at])[: len(at)]
    traffic = {
        f"{name}_per_second": _find_slow_rates(columns.get(Key(name, uuid)), start, at, 0.0)
        for name in Traffic._fields
    }
    return GpuColumns(**gauges, **traffic, throttled_seconds=throttled)


def _fill(limited: Column, counted: Column) -> Sequence[float]:
    """A reason that has not been seen yet is not written: 0 where the device was read."""
    return [
        0.0 if isnan(seconds) and not isnan(known) else seconds
        for seconds, known in zip(limited, counted, strict=True)
    ]

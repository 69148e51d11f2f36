"""Which figures of a sample are columns, and what they mean: counters become rates, gaps stay unknown. Pure."""

from __future__ import annotations

from array import array
from itertools import chain
from math import isnan, nan
from operator import le

from ..core.columns import GpuColumns, RamColumns, SampleColumns, StallColumns
from ..core.model import GpuSample, Parts
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.columns import Column
    from ..core.model import Sample

# A sampler that was stopped for longer has left a gap of which its next reading says nothing.
_GAP_SECONDS = 2.0
_GPU_GAUGES = GpuSample._fields[1:]
_COUNTERS = ("read_bytes", "written_bytes", "waiting_seconds")
# Counters that are read once a second stand still in between.
_COUNTER_SECONDS = 1.5


class Key(NamedTuple):
    """What a column holds."""

    figure: str
    uuid: str = ""
    reason: str = ""
    """Why clocks were throttled."""


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
    return figures


def transpose(rows: Iterable[Mapping[Key, float | None]]) -> dict[Key, Column]:
    """Rows as columns."""
    every = list(rows)
    keys = dict.fromkeys(chain.from_iterable(every))
    return {key: array("d", (known(row.get(key)) for row in every)) for key in keys}


def known(value: float | None) -> float:
    """The value in a column."""
    return nan if value is None else value


def explain(written: Mapping[Key, Column]) -> SampleColumns:
    """The columns of a recording, given the figures of its samples."""
    columns = _sort_by_time(written)
    at = columns.get(Key("at"), array("d"))
    start = array("d", [min([0.0, *at[:1]]), *at])[: len(at)]
    main, descendants, machine = (
        _find_rates(columns.get(Key(f"{part}_cpu"), at), start, at)
        for part in ("main", "descendants", "machine")
    )
    return SampleColumns(
        start_seconds=start,
        read_since_seconds=_find_known(start, at, columns.get(Key("late"), at)),
        end_seconds=at,
        cpu_cores=Parts(main, descendants, array("d", map(sum, zip(main, descendants, strict=True)))),
        machine_cores=machine,
        ram_bytes=Parts(*(_ram_of(columns, part) for part in Parts._fields)),
        machine_ram_bytes=columns.get(Key("machine_ram"), at),
        threads=columns.get(Key("threads"), at),
        processes=columns.get(Key("processes"), at),
        gpus={uuid: _gpu_of(columns, uuid) for uuid in dict.fromkeys(key.uuid for key in columns) if uuid},
        read_bytes_per_second=_find_slow_rates(columns, "read_bytes", start, at),
        written_bytes_per_second=_find_slow_rates(columns, "written_bytes", start, at),
        waiting_threads=_find_slow_rates(columns, "waiting_seconds", start, at),
        stalled=StallColumns(
            *(_find_slow_rates(columns, f"stalled_{name}", start, at) for name in StallColumns._fields)
        ),
    )


def _sort_by_time(columns: Mapping[Key, Column]) -> Mapping[Key, Column]:
    """A recording from anywhere may have samples in any order."""
    at = columns.get(Key("at"), array("d"))
    if all(map(le, at, at[1:])):
        return columns
    order = sorted(range(len(at)), key=at.__getitem__)
    return {key: array("d", map(column.__getitem__, order)) for key, column in columns.items()}


def _find_rates(counter: Column, start: Column, end: Column) -> Column:
    """Growth per second; nan where a counter was corrected downwards or no time has passed."""
    intervals = zip(_find_growth(counter), start, end, strict=True)
    return array("d", (grown / (last - first) if last > first else nan for grown, first, last in intervals))


def _find_slow_rates(columns: Mapping[Key, Column], name: str, start: Column, end: Column) -> Column:
    """Growth per second of a counter that is read once a second, however short the intervals are.

    Growth is of the time since the counter was read before: at most of the last second or so, else of its interval.
    """
    counter = columns.get(Key(name))
    if counter is None or all(map(isnan, counter)):
        return array("d", [nan]) * len(end)
    rates, before, first = array("d"), nan, 0
    for row, value in enumerate(counter):
        rates.append(nan if isnan(value) or isnan(before) else 0.0)
        if value != before:
            while end[row] - start[first] > _COUNTER_SECONDS and first < row:
                first += 1
            seconds = end[row] - start[first]
            if value > before and seconds > 0:
                for earlier in range(first, row + 1):
                    rates[earlier] = (value - before) / seconds
            before, first = value, row + 1
    return rates


def _find_growth(counter: Iterable[float]) -> Column:
    """How much a counter has grown since its last known value; at the start it was 0."""
    growth, before = array("d"), 0.0
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
        reason: _find_growth(_fill(columns[Key("limited", uuid, reason)], counted)) for reason in reasons
    }
    gauges = {name: columns.get(Key(name, uuid), unknown) for name in _GPU_GAUGES}
    return GpuColumns(**gauges, throttled_seconds=throttled)


def _fill(limited: Column, counted: Column) -> Iterable[float]:
    """A reason that has not been seen yet is not written: 0 where the device was read."""
    return (
        0.0 if isnan(seconds) and not isnan(known) else seconds
        for seconds, known in zip(limited, counted, strict=True)
    )

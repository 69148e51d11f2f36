"""The lines of a recording: values ↔ plain JSON data. Only this module knows the format of a line. Pure.

Version 1. A file is a header line, then samples and events as they come, then an end line; each line is an
object with one of the keys below. New optional fields keep VERSION; any other change of a line raises it, and
a reader refuses versions that it does not know.

    {"header": {...}}   once, first
    {"sample": {...}}   one interval; counters since the start; `peaks` holds those that have grown since the
                        previous sample, so that any prefix of the file is a full report
    {"event": {...}}    a device was found, or a note for the user
    {"region": {...}}   all calls so far of one region in one process; the last line for it counts
    {"calls": {...}}    calls of one region in all processes, a column each; the calls of all lines count,
                        but of those not ended only the ones in its last line
    {"gaps": {...}}     what is missing among the regions; the last line counts
    {"metrics": {...}}  numbers that the job logged, a column each
    {"metric_totals": {...}} all numbers logged so far, by name, once not every one is kept; the last line counts
    {"process": {...}}  one process of the job; the last line for it counts
    {"peak": {...}}     who held what when a peak of the job or a device was read; the last line for it counts
    {"framework": {...}} memory of a framework in one process on one device; the last line for it counts
    {"end": {...}}      once, last; a file without it was cut off, by a kill or a full disk
"""

from __future__ import annotations

from itertools import compress, groupby

from ..core.model import (
    Allocation,
    Busiest,
    Call,
    End,
    Event,
    FrameworkMemory,
    Gpu,
    GpuCounters,
    GpuPeaks,
    GpuProcessPeak,
    GpuSample,
    Header,
    Identity,
    MachineEnergy,
    MetricRow,
    MetricTotals,
    Parts,
    PeakMoment,
    PeakProcess,
    Peaks,
    ProcessTotals,
    RamPeak,
    RegionGaps,
    RegionTotals,
    Sample,
    Spread,
    Stalls,
    Totals,
    TreeCounters,
    add_parts,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

VERSION = 1
# Of every recording, even if its first line is torn.
HEADER_START = b'{"header"'

_NOTHING = Spread(0, 0, 0)
_CALL_COLUMNS = Call._fields[1:]
_ALWAYS_COUNTED = GpuCounters._fields.index("activity")
NOT_FINITE = ("nan", "inf", "-inf")


_LATER_GPU_FIELDS = frozenset(
    {"power_limit_watts", "top_sm_clock_mhz", "slowdown_celsius", "shares_memory_with", "instance"}
)
# A line of metrics has few gaps, and is short enough to be read and decoded at once.
_MOST_POINTS = 1000
_MOST_CELLS_PER_NUMBER = 4
_MOST_METRICS_BYTES = 2**20
_CELL_BYTES = 26
_POINT_BYTES = 60
_LETTER_BYTES = 12
_UNRECORDED_GPU_FIELDS = frozenset({"label", "is_split", "old_uuid"})
_LATER_GAPS = frozenset({"refused_metrics"})
_RARE_TOTALS = frozenset({"energy", "unread_seconds"})


def _list_required(kind: type, optional: frozenset[str] = frozenset()) -> frozenset[str]:
    """The fields that every writer writes: without one, its default would be taken for what was measured."""
    plain = {name for name, annotation in kind.__annotations__.items() if annotation in _PLAIN_KINDS}
    return frozenset(plain) - optional


_PLAIN_KINDS = ("int", "float", "str", "bool")
_REQUIRED: dict[type, frozenset[str]] = {
    kind: _list_required(kind, optional)
    for kind, optional in (
        (Gpu, _UNRECORDED_GPU_FIELDS),
        (RegionTotals, frozenset()),
        (RegionGaps, _LATER_GAPS),
        (FrameworkMemory, frozenset()),
        (Totals, _RARE_TOTALS),
    )
}

# ---- Encoding.


def encode_header(header: Header) -> dict[str, Any]:
    """All fields by name; of the identity only those that are set."""
    identity = header.identity
    known = {name: value for name, value in identity._asdict().items() if value not in (None, ())}
    return {
        **header._asdict(),
        "command": list(header.command),
        "allocation": _drop_unknown(header.allocation._asdict()),
        "gpu_uuids": None if header.gpu_uuids is None else list(header.gpu_uuids),
        "identity": {**known, **({"labels": dict(identity.labels)} if identity.labels else {})},
    }


def _drop_unknown(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value is not None}


def encode_sample(sample: Sample, written_peaks: Peaks) -> dict[str, Any]:
    """A short but readable line: there may be tens of thousands."""
    ram = list(sample.ram_bytes)
    if ram[0] == ram[2] and not ram[1].high:  # only the root: once is enough
        del ram[1:]
    main, descendants, _ = sample.cpu_seconds
    line: dict[str, Any] = {
        "at": _short(sample.at_seconds),
        "readings": sample.readings,
        "late": _short(round(sample.late_seconds, 4)),
        "cpu": [_short(main), _short(descendants), _short(sample.system_cpu_seconds)],
        "ram": [_encode_spread(spread) for spread in ram],
        "system_ram": sample.system_ram_bytes,
        "threads": sample.threads,
        "processes": sample.processes,
    }
    if sample.gpus:
        # Without UUIDs: in the order of `peaks.gpus`.
        line["gpus"] = [_encode_gpu_sample(gpu) for gpu in sample.gpus]
        line["gpu_counters"] = [_encode_counters(gpu)[1:] for gpu in sample.gpu_counters]
    for name, counters in (
        ("counters", sample.counters),
        ("stalls", sample.stalls),
        ("energy", sample.energy),
    ):
        if known := _drop_last_unknown(_to_lists(counters)):
            line[name] = known
    peaks = encode_peaks(sample.peaks, written_peaks)
    if peaks:
        line["peaks"] = peaks
    return line


def encode_peaks(peaks: Peaks, known: Peaks) -> dict[str, Any]:
    """The fields that have changed."""
    changed = zip(peaks._fields, peaks, known, strict=True) if peaks != known else ()
    return {name: _to_lists(value) for name, value, before in changed if value != before}


def _to_lists(value: Any) -> Any:
    if isinstance(value, tuple):
        return [item if item is None or type(item) is int else _to_lists(item) for item in value]
    return _short(value) if isinstance(value, float) else value


def encode_event(event: Event) -> dict[str, Any]:
    """Without the fields that do not apply."""
    line: dict[str, Any] = {"at": _short(event.at_seconds), "kind": event.kind}
    if event.text:
        line["text"] = event.text
    if event.gpu is not None:
        # What became known in later versions is left out if it is not known: lines of others stay as they were.
        line["gpu"] = {
            name: value
            for name, value in event.gpu._asdict().items()
            if name not in _UNRECORDED_GPU_FIELDS and (value is not None or name not in _LATER_GPU_FIELDS)
        }
    return line


def encode_known(value: RegionTotals | ProcessTotals | FrameworkMemory | PeakMoment) -> dict[str, Any]:
    """The known fields by name."""
    return _drop_unknown({name: _to_lists(field) for name, field in value._asdict().items()})


def encode_gaps(gaps: RegionGaps) -> dict[str, Any]:
    """Without what became known in later versions, if it is nothing: lines of others stay as they were."""
    return {name: count for name, count in gaps._asdict().items() if count or name not in _LATER_GAPS}


def encode_calls(path: tuple[str, ...], calls: Sequence[Call]) -> dict[str, Any]:
    """Calls of one region, one column per field."""
    columns = {name: [_to_lists(getattr(call, name)) for call in calls] for name in _CALL_COLUMNS}
    return {"path": list(path), **columns}


def split_metrics(rows: Iterable[MetricRow]) -> Iterator[list[MetricRow]]:
    """The points of each line, in order: a column has a gap for each point of its line without that name, so few may lack one."""
    some: list[MetricRow] = []
    names: frozenset[str] = frozenset()
    n_numbers = n_name_bytes = 0
    for row in rows:
        new = row.values.keys() - names
        new_bytes = _LETTER_BYTES * sum(map(len, new))
        n_points, n_cells = len(some) + 1, (len(some) + 1) * (len(names) + len(new))
        n_bytes = _POINT_BYTES * n_points + _CELL_BYTES * n_cells + n_name_bytes + new_bytes
        is_sparse = n_cells > _MOST_CELLS_PER_NUMBER * (n_numbers + len(row.values))
        if some and (n_points > _MOST_POINTS or n_bytes > _MOST_METRICS_BYTES or is_sparse):
            yield some
            some, names, n_numbers, n_name_bytes = [], frozenset(), 0, 0
            new, new_bytes = {*row.values}, _LETTER_BYTES * sum(map(len, row.values))
        some.append(row)
        names |= new
        n_numbers += len(row.values)
        n_name_bytes += new_bytes
    if some:
        yield some


def encode_metrics(rows: Sequence[MetricRow]) -> dict[str, Any]:
    """Points of one line, one column per name: there may be a million."""
    names = sorted({name for row in rows for name in row.values})
    return {
        "at": [_short(row.at_seconds) for row in rows],
        "pid": [row.pid for row in rows],
        "step": [_encode_number(row.step) for row in rows],
        "values": {name: [_encode_number(row.values.get(name)) for row in rows] for name in names},
    }


def encode_metric_totals(known: Iterable[MetricTotals]) -> dict[str, Any]:
    """All metrics so far."""
    return {totals.name: [_encode_number(value) for value in totals[1:]] for totals in known}


def _encode_number(value: float | None) -> float | str | None:
    """Not-finite numbers as text: they matter, and JSON cannot hold them."""
    if value is None or value - value == 0:
        return value
    return repr(value)


def _decode_number(value: float | str) -> float:
    return value if type(value) is float else float(value)


def encode_totals(totals: Totals) -> dict[str, Any]:
    """Everything since the start; energy only where the machine has meters, and time without readings where there was any."""
    energy = _drop_last_unknown(_to_lists(totals.energy))
    line = {
        **totals._asdict(),
        "cpu_seconds": list(totals.cpu_seconds),
        "gpu_counters": list(map(_encode_counters, totals.gpu_counters)),
        "counters": _drop_last_unknown(_to_lists(totals.counters)),
        "stalls": _drop_last_unknown(_to_lists(totals.stalls)),
        "energy": energy,
        "peaks": encode_peaks(totals.peaks, Peaks()),
    }
    return {name: value for name, value in line.items() if value or name not in _RARE_TOTALS}


def encode_end(end: End) -> dict[str, Any]:
    """The closing line."""
    line = {**end._asdict(), "totals": encode_totals(end.totals)}
    if end.gpu_growth_bytes is None:
        del line["gpu_growth_bytes"]
    return line


def _encode_spread(spread: Spread) -> Any:
    return list(spread) if spread.low != spread.high else spread.high


def _encode_gpu_sample(sample: GpuSample) -> list[Any]:
    return _drop_last_unknown(
        [round(value, 2) if isinstance(value, float) else value for value in sample[1:]]
    )


def _encode_counters(counters: GpuCounters) -> list[Any]:
    """Without the last ones that hold nothing, as most do."""
    values: list[Any] = _to_lists(counters)
    while not values[-1] and len(values) > _ALWAYS_COUNTED:
        values.pop()
    return values


def _drop_last_unknown(values: list[Any]) -> list[Any]:
    while values and values[-1] is None:
        values.pop()
    return values


def _short(number: float) -> float:
    """Nine digits: microseconds after a quarter of an hour, hundredths of a second after a month."""
    return float(f"{number:.9g}")


# ---- Decoding. Invalid data raises one of WRONG_DATA; the reader notes the line.


def decode_header(data: dict[str, Any]) -> Header:
    """A header of this version."""
    named, identity = data["gpu_uuids"], data["identity"]
    return Header(
        **{
            **data,
            "command": tuple(str(word) for word in data["command"]),
            "allocation": Allocation(**data["allocation"]),
            "gpu_uuids": None if named is None else tuple(named),
            "identity": Identity(**{**identity, "labels": tuple(identity.get("labels", {}).items())}),
        }
    )


def decode_sample(data: dict[str, Any], peaks_before: Peaks) -> Sample:
    """A sample, given the peaks of the previous one."""
    main, descendants, system = data["cpu"]
    ram = [_decode_spread(spread) for spread in data["ram"]]
    if len(ram) == 1:
        ram = [ram[0], ram[0] if ram[0].high is None else _NOTHING, ram[0]]
    peaks = decode_peaks(data["peaks"], peaks_before) if "peaks" in data else peaks_before
    uuids = [gpu.uuid for gpu in peaks.gpus]
    counters = zip(uuids, data.get("gpu_counters", ()), strict=False)
    return Sample(
        at_seconds=data["at"],
        readings=data["readings"],
        late_seconds=data["late"],
        cpu_seconds=add_parts(main, descendants),
        system_cpu_seconds=system,
        ram_bytes=Parts(*ram),
        system_ram_bytes=data["system_ram"],
        threads=data["threads"],
        processes=data["processes"],
        gpus=tuple(
            GpuSample(uuid, *values) for uuid, values in zip(uuids, data.get("gpus", ()), strict=False)
        ),
        gpu_counters=_decode_counters([uuid, *values] for uuid, values in counters),
        peaks=peaks,
        counters=TreeCounters(*data.get("counters", ())),
        stalls=Stalls(*data.get("stalls", ())),
        energy=MachineEnergy(*data.get("energy", ())),
    )


def decode_peaks(data: dict[str, Any], before: Peaks) -> Peaks:
    """The previous peaks, with those that have grown since."""
    return before._replace(
        **{name: _PEAKS[name](value) if name in _PEAKS else value for name, value in data.items()}
    )


def _decode_gpu_peaks(data: Any) -> GpuPeaks:
    peaks = GpuPeaks(*data)
    return peaks._replace(job_bytes=Parts(*peaks.job_bytes))


# Decoders of the peaks that are not plain numbers.
_PEAKS: dict[str, Callable[[Any], Any]] = {
    "ram": lambda data: Parts(*(RamPeak(*peak) for peak in data)),
    "threads": lambda data: Parts(*data),
    "busiest": lambda data: Parts(*(Busiest(*stretch) for stretch in data)),
    "system_busiest": lambda data: Busiest(*data),
    "gpu_bytes": lambda data: Parts(*data),
    "gpus": lambda data: tuple(map(_decode_gpu_peaks, data)),
    "gpu_processes": lambda data: tuple(GpuProcessPeak(*peak) for peak in data),
}


def decode_event(data: dict[str, Any]) -> Event:
    """An event."""
    gpu = data.get("gpu")
    device = None if gpu is None else Gpu(**_require(Gpu, gpu))
    return Event._make((data["at"], data["kind"], data.get("text", ""), device))


def decode_region(data: dict[str, Any]) -> RegionTotals:
    """A region."""
    return RegionTotals(**{**_require(RegionTotals, data), "path": decode_path(data)})


def decode_gaps(data: dict[str, Any]) -> RegionGaps:
    """What is missing among the regions."""
    return RegionGaps(**_require(RegionGaps, data))


def decode_path(data: dict[str, Any]) -> tuple[str, ...]:
    """An empty path would mean the whole run, so it is refused."""
    path = tuple(_check_list(data["path"]))
    if not path or {*map(type, path)} != {str}:
        raise ValueError(path)
    return path


def decode_calls(data: dict[str, Any]) -> list[Call]:
    """The calls of one line."""
    path = decode_path(data)
    return [Call(path, *row) for row in zip(*(data[name] for name in _CALL_COLUMNS), strict=True)]


def decode_metrics(data: dict[str, Any]) -> list[MetricRow]:
    """The points of one line."""
    columns = data["values"].items()
    return [
        MetricRow(
            at,
            {name: _decode_number(column[index]) for name, column in columns if column[index] is not None},
            None if step is None else _decode_number(step),
            pid,
        )
        for index, (at, pid, step) in enumerate(zip(data["at"], data["pid"], data["step"], strict=True))
    ]


def join_metrics(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The points of lines with the same names, one after the other, as those of one."""
    return [_join(some) for _, some in groupby(lines, key=lambda data: data["values"].keys())]


def _join(lines: Iterable[dict[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {"at": [], "pid": [], "step": [], "values": {}}
    columns: dict[str, list[Any]] = joined["values"]
    for data in lines:
        n_rows = len(data["at"])
        if not n_rows == len(data["pid"]) == len(data["step"]):
            raise ValueError(n_rows)
        for name in ("at", "pid", "step"):
            joined[name] += data[name]
        for name, column in data["values"].items():
            if len(column) < n_rows:
                raise IndexError(name)
            columns.setdefault(name, []).extend(column[:n_rows])
    return joined


def decode_metric_columns(data: dict[str, Any]) -> Iterator[tuple[str, Iterable[float], Iterable[float]]]:
    """The moments and values of each metric of one line, in the order in which they first came."""
    for name, column in sorted(data["values"].items(), key=lambda pair: _find_first(pair[1])):
        moments, values = data["at"], column
        if None in column:
            moments = compress(moments, (value is not None for value in column))
            values = [value for value in column if value is not None]
        if values:
            yield name, moments, map(_decode_number, values) if str in set(map(type, values)) else values


def _find_first(column: Sequence[Any]) -> int:
    return next((index for index, value in enumerate(column) if value is not None), len(column))


def decode_metric_totals(data: dict[str, Any]) -> tuple[MetricTotals, ...]:
    """All metrics so far."""
    return tuple(
        MetricTotals(
            name,
            logged,
            not_finite,
            _decode_number(total),
            None if low is None else _decode_number(low),
            None if high is None else _decode_number(high),
            _decode_number(last),
            last_seconds,
        )
        for name, (logged, not_finite, total, low, high, last, last_seconds) in data.items()
    )


def decode_process(data: dict[str, Any]) -> ProcessTotals:
    """A process."""
    return ProcessTotals(**data)


def decode_peak_moment(data: dict[str, Any]) -> PeakMoment:
    """Who held what at a peak."""
    processes = tuple(PeakProcess(*process) for process in data["processes"])
    return PeakMoment(**{**data, "processes": processes, "regions": tuple(map(tuple, data["regions"]))})


def decode_framework(data: dict[str, Any]) -> FrameworkMemory:
    """Memory of a framework."""
    return FrameworkMemory(**_require(FrameworkMemory, data))


def decode_totals(data: dict[str, Any]) -> Totals:
    """Everything since the start."""
    return Totals(
        **{
            **_require(Totals, data),
            "cpu_seconds": Parts(*data["cpu_seconds"]),
            "gpu_counters": _decode_counters(data["gpu_counters"]),
            "counters": TreeCounters(*data.get("counters", ())),
            "stalls": Stalls(*data.get("stalls", ())),
            "energy": MachineEnergy(*data.get("energy", ())),
            "peaks": decode_peaks(data["peaks"], Peaks()),
        }
    )


def decode_end(data: dict[str, Any]) -> End:
    """The closing line."""
    return End(**{**data, "totals": decode_totals(data["totals"])})


def _require(kind: type, data: dict[str, Any]) -> dict[str, Any]:
    """The same data, which has all that every writer writes."""
    if not data.keys() >= _REQUIRED[kind]:
        raise KeyError(kind)
    return data


def _decode_spread(data: Any) -> Spread:
    """One number, or three of which none is unknown."""
    if not isinstance(data, list):
        return Spread(data, data, data)
    if None in data:
        raise ValueError(data)
    return Spread(*data)


def _decode_counters(data: Any) -> tuple[GpuCounters, ...]:
    return tuple(_decode_counters_of(GpuCounters(*_check_list(gpu))) for gpu in data)


def _check_list(data: Any) -> list[Any]:
    """A text would be taken for a list of letters."""
    if not isinstance(data, list):
        raise TypeError("not a list")
    return data


def _decode_counters_of(gpu: GpuCounters) -> GpuCounters:
    return gpu._replace(
        limited_seconds=tuple((reason, seconds) for reason, seconds in gpu.limited_seconds),
        activity=tuple((integral, seconds) for integral, seconds in gpu.activity),
        traffic=tuple(gpu.traffic),
    )

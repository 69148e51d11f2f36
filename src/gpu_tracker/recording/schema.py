"""The lines of a recording: values ↔ plain JSON data. The one place that knows how a line looks.

Version 1. A file is a header line, then samples and marks as they come, then an end line; each line is an
object with one of the keys below. Whoever changes a line raises VERSION and teaches `decode_line` the old one.

    {"header": {...}}   once, first
    {"sample": {...}}   one window; counters since the start; `peaks` holds those that have grown since the
                        sample before, so that any prefix of the file is a full report
    {"mark": {...}}     a device was found, or a note for the user
    {"region": {...}}   all calls so far of one region in one process; the last line for it counts
    {"metrics": {...}}  numbers that the job logged, a column each
    {"process": {...}}  one process of the job; the last line for it counts
    {"framework": {...}} what a framework in one process holds on one device; the last line for it counts
    {"end": {...}}      once, last; a file without it was cut off by a kill Pure.
"""

from __future__ import annotations

from ..core.model import (
    Allocation,
    Busiest,
    End,
    FrameworkMemory,
    Gpu,
    GpuCounters,
    GpuPeaks,
    GpuProcessPeak,
    GpuSample,
    Header,
    Mark,
    MetricRow,
    MetricTotals,
    Peaks,
    ProcessTotals,
    RamPeak,
    Recording,
    RegionTotals,
    Sample,
    Spread,
    Totals,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

VERSION = 1

_RAM_PEAKS = ("main_ram", "descendants_ram", "combined_ram")
NO_NUMBERS = ("nan", "inf", "-inf")
_LISTS = {"gpus": GpuPeaks, "gpu_processes": GpuProcessPeak}
_BUSIEST = ("main_busiest", "descendants_busiest", "combined_busiest", "system_busiest")


# ---- Encoding.


def encode_header(header: Header) -> dict[str, Any]:
    """All fields by name."""
    return {
        **header._asdict(),
        "command": list(header.command),
        "allocation": header.allocation._asdict(),
        "gpu_uuids": None if header.gpu_uuids is None else list(header.gpu_uuids),
    }


def encode_sample(sample: Sample, written_peaks: Peaks) -> dict[str, Any]:
    """A line as short as it can be while still readable: there may be tens of thousands."""
    ram = [sample.main_ram_bytes, sample.descendants_ram_bytes, sample.combined_ram_bytes]
    if ram[0] == ram[2] and not ram[1].high:  # nobody but the root: once is enough
        del ram[1:]
    line: dict[str, Any] = {
        "at": _short(sample.at_seconds),
        "looks": sample.looks,
        "late": _short(round(sample.late_seconds, 4)),
        "cpu": [
            _short(sample.main_cpu_seconds),
            _short(sample.descendants_cpu_seconds),
            _short(sample.system_cpu_seconds),
        ],
        "ram": [_encode_spread(spread) for spread in ram],
        "system_ram": sample.system_ram_bytes,
        "threads": sample.threads,
        "processes": sample.processes,
    }
    if sample.gpus:
        # Without their names: they come in the order of `peaks.gpus`.
        line["gpus"] = [_encode_gpu_sample(gpu) for gpu in sample.gpus]
        line["gpu_counters"] = [values for _, *values in _encode_counters(sample.gpu_counters)]
    peaks = encode_peaks(sample.peaks, written_peaks)
    if peaks:
        line["peaks"] = peaks
    return line


def encode_peaks(peaks: Peaks, known: Peaks) -> dict[str, Any]:
    """The fields that differ from those known."""
    changed: dict[str, Any] = {}
    for name, value in peaks._asdict().items():
        if value == getattr(known, name):
            continue
        if name in _LISTS:
            changed[name] = [list(item) for item in value]
        elif name in _BUSIEST:
            changed[name] = [_short(value.cpu_seconds), _short(value.wall_seconds)]
        elif isinstance(value, tuple):
            changed[name] = list(value)
        else:
            changed[name] = value
    return changed


def encode_mark(mark: Mark) -> dict[str, Any]:
    """What happened, without the fields that do not apply."""
    line: dict[str, Any] = {"at": _short(mark.at_seconds), "kind": mark.kind}
    if mark.text:
        line["text"] = mark.text
    if mark.gpu is not None:
        line["gpu"] = mark.gpu._asdict()
    return line


def encode_region(region: RegionTotals) -> dict[str, Any]:
    """What is known of it."""
    return {
        name: list(value) if name == "path" else _short(value) if isinstance(value, float) else value
        for name, value in region._asdict().items()
        if value is not None
    }


def encode_metrics(rows: Sequence[MetricRow]) -> dict[str, Any]:
    """Many points in one line, a column per name: a million of them must fit."""
    names = sorted({name for row in rows for name in row.values})
    return {
        "at": [_short(row.at_seconds) for row in rows],
        "pid": [row.pid for row in rows],
        "step": [_encode_number(row.step) for row in rows],
        "values": {name: [_encode_number(row.values.get(name)) for row in rows] for name in names},
    }


def _encode_number(value: float | None) -> float | str | None:
    """A loss that has become nan is news, and JSON has no word for it."""
    if value is None or value - value == 0:
        return value
    return repr(value)


def _decode_number(value: float | str) -> float:
    return value if type(value) is float else float(value)


def encode_metric_totals(totals: MetricTotals) -> dict[str, Any]:
    """All fields by name."""
    return {
        name: _encode_number(value) if name == "last" else value for name, value in totals._asdict().items()
    }


def encode_process(process: ProcessTotals) -> dict[str, Any]:
    """All fields by name."""
    return {
        name: _short(value) if isinstance(value, float) else value
        for name, value in process._asdict().items()
    }


def encode_framework(memory: FrameworkMemory) -> dict[str, Any]:
    """What is known of it."""
    return {
        name: _short(value) if isinstance(value, float) else value
        for name, value in memory._asdict().items()
        if value is not None
    }


def encode_totals(totals: Totals) -> dict[str, Any]:
    """Everything since the start."""
    return {
        **totals._asdict(),
        "gpu_counters": _encode_counters(totals.gpu_counters),
        "peaks": encode_peaks(totals.peaks, Peaks()),
    }


def encode_end(end: End) -> dict[str, Any]:
    """The closing line."""
    return {**end._asdict(), "totals": encode_totals(end.totals)}


def _encode_spread(spread: Spread) -> Any:
    return list(spread) if spread.low != spread.high else spread.high


def _encode_gpu_sample(sample: GpuSample) -> list[Any]:
    """What is not known at the end need not be said."""
    values = [round(value, 2) if isinstance(value, float) else value for value in sample[1:]]
    while values and values[-1] is None:
        values.pop()
    return values


def _encode_counters(counters: tuple[GpuCounters, ...]) -> list[list[Any]]:
    return [
        [
            *(_short(value) if isinstance(value, float) else value for value in gpu[:-1]),
            [[reason, _short(seconds)] for reason, seconds in gpu.limited_seconds],
        ]
        for gpu in counters
    ]


def _short(number: float) -> float:
    """Nine digits: a microsecond in a quarter of an hour, a hundredth of a second in a month."""
    return float(f"{number:.9g}")


# ---- Decoding. Wrong data raises KeyError, TypeError, ValueError or IndexError; the reader says where.


def decode_header(data: dict[str, Any]) -> Header:
    """A header of this version."""
    named = data["gpu_uuids"]
    return Header(
        **{
            **data,
            "command": tuple(str(word) for word in data["command"]),
            "allocation": Allocation(**data["allocation"]),
            "gpu_uuids": None if named is None else tuple(named),
        }
    )


def decode_sample(data: dict[str, Any], peaks_before: Peaks) -> Sample:
    """A sample, given the peaks of the sample before it."""
    main_cpu, descendants_cpu, system_cpu = data["cpu"]
    ram = [_decode_spread(spread) for spread in data["ram"]]
    if len(ram) == 1:
        ram = [ram[0], Spread(0, 0, 0), ram[0]]
    main, descendants, combined = ram
    peaks = decode_peaks(data["peaks"], peaks_before) if "peaks" in data else peaks_before
    uuids = [gpu.uuid for gpu in peaks.gpus]
    return Sample(
        data["at"],
        data["looks"],
        data["late"],
        main_cpu,
        descendants_cpu,
        system_cpu,
        main,
        descendants,
        combined,
        data["system_ram"],
        data["threads"],
        data["processes"],
        tuple(GpuSample(uuid, *values) for uuid, values in zip(uuids, data.get("gpus", ()), strict=False)),
        _decode_counters(
            [uuid, *values] for uuid, values in zip(uuids, data.get("gpu_counters", ()), strict=False)
        ),
        peaks,
    )


def decode_peaks(data: dict[str, Any], before: Peaks) -> Peaks:
    """The peaks before, with those that have grown since."""
    changed: dict[str, Any] = {}
    for name, value in data.items():
        if name in _LISTS:
            changed[name] = tuple(_LISTS[name](*item) for item in value)
        elif name in _RAM_PEAKS:
            changed[name] = RamPeak(*value)
        elif name in _BUSIEST:
            changed[name] = Busiest(*value)
        else:
            changed[name] = value
    return before._replace(**changed)


def decode_mark(data: dict[str, Any]) -> Mark:
    """A mark."""
    gpu = data.get("gpu")
    return Mark(data["at"], data["kind"], data.get("text", ""), None if gpu is None else Gpu(**gpu))


def decode_region(data: dict[str, Any]) -> RegionTotals:
    """A region. One without a name would be taken for the whole run."""
    path = tuple(str(name) for name in data["path"])
    if not path:
        raise ValueError(path)
    return RegionTotals(**{**data, "path": path})


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


def decode_metric_totals(data: dict[str, Any]) -> MetricTotals:
    """A metric, added up."""
    return MetricTotals(**{**data, "last": _decode_number(data["last"])})


def decode_process(data: dict[str, Any]) -> ProcessTotals:
    """A process."""
    return ProcessTotals(**data)


def decode_framework(data: dict[str, Any]) -> FrameworkMemory:
    """What a framework holds."""
    return FrameworkMemory(**data)


def decode_totals(data: dict[str, Any]) -> Totals:
    """Everything since the start."""
    return Totals(
        **{
            **data,
            "gpu_counters": _decode_counters(data["gpu_counters"]),
            "peaks": decode_peaks(data["peaks"], Peaks()),
        }
    )


def decode_end(data: dict[str, Any]) -> End:
    """The closing line."""
    return End(**{**data, "totals": decode_totals(data["totals"])})


def _decode_spread(data: Any) -> Spread:
    return Spread(*data) if isinstance(data, list) else Spread(data, data, data)


def _decode_counters(data: Any) -> tuple[GpuCounters, ...]:
    return tuple(
        GpuCounters(*gpu)._replace(limited_seconds=tuple((reason, seconds) for reason, seconds in gpu[-1]))
        for gpu in data
    )


def decode_answer(
    header: dict[str, Any],
    end: dict[str, Any],
    marks: list[dict[str, Any]],
    regions: Sequence[dict[str, Any]] = (),
    frameworks: Sequence[dict[str, Any]] = (),
    metric_totals: Sequence[dict[str, Any]] = (),
) -> Recording:
    """A recording without its samples, as the sampler tells it to whoever asks."""
    decoded = decode_end(end)
    return Recording(
        decode_header(header),
        (),
        tuple(map(decode_mark, marks)),
        decoded,
        decoded.totals,
        regions=tuple(map(decode_region, regions)),
        frameworks=tuple(map(decode_framework, frameworks)),
        metric_totals=tuple(map(decode_metric_totals, metric_totals)),
    )

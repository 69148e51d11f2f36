"""What a run used, of how much, and how sure that is: rows of a label, a text and a small picture. Pure."""

from __future__ import annotations

from math import isnan

from ..analysis.summary import list_counted
from ..core.model import ESTIMATE, SAMPLED, UNKNOWN
from ..core.text import align, count_of, shorten
from ..core.units import format_cores, humanize_bytes, humanize_joules, humanize_limit, humanize_seconds
from ..core.vendors import NO_GPU
from .build import SHORTEST_SECONDS
from .rows import LINE_CELLS, Picture, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..analysis.summary import GpuSummary, Summary
    from .build import Report

    Pictures = Mapping[str, Picture]

# Others on the machine, storage and waiting are worth a line from here on.
_OTHERS_PERCENT, _OTHERS_SHARE = 50.0, 0.1
_STORAGE_BYTES = 100e6
_WAITING_SHARE = 0.05
# Of more devices each has one line.
_MOST_IN_DETAIL = 1
_MOST_DEVICES = 16
# Fewer samples show nothing over time, and a line that stays below this share of the capacity is flat.
_FEWEST_SAMPLES = 4
_SMALLEST_SHARE = 0.02
_NAME_CELLS = 32


def list_usage(report: Report, line_cells: int = LINE_CELLS) -> list[Row]:
    """CPU, RAM, devices, and what the job waited for."""
    pictures = _draw_pictures(report, line_cells)
    return [
        *_list_cpu(report.summary, pictures),
        *_list_ram(report, pictures),
        *(_list_gpus(report, pictures) if report.summary.gpus else [Row("GPU", _explain_no_gpu(report))]),
        *_list_activity(report.summary),
    ]


def _draw_pictures(report: Report, cells: int) -> Pictures:
    """By the name of the chart and of its line."""
    is_short = report.summary.seconds < SHORTEST_SECONDS
    if report.columns is None or is_short or len(report.columns.end_seconds) < _FEWEST_SAMPLES:
        return {}
    from .charts import list_charts

    charts = list_charts(report, cells, ("cpu", "ram"))
    # In a table there is room for half as much.
    is_table = len(list_counted(report.summary)) > _MOST_IN_DETAIL
    charts += list_charts(report, cells // 2 - 2 if is_table else cells, ("gpu_busy", "gpu_ram"))
    pictures = {}
    for chart in charts:
        for line in chart.lines:
            values = line.values.mean if chart.name in ("cpu", "gpu_busy") else line.values.high
            most = max(value for value in values if not isnan(value))
            top = 100.0 if chart.has_strips else max(most, _SMALLEST_SHARE * (chart.capacity or 0.0))
            pictures[f"{chart.name} {line.name}"] = Picture(None, tuple(values), top)
    return pictures


def _with_share(pictures: Pictures, name: str, part: float | None, whole: float | None) -> Picture | None:
    picture = pictures.get(name)
    if picture is None or part is None or not whole:
        return None
    return picture._replace(share=part / whole)


def _list_cpu(summary: Summary, pictures: Pictures) -> list[Row]:
    main, descendants, combined = summary.cpu
    expected = summary.n_expected_cores
    mean = combined.mean_percent
    spent = f"{humanize_seconds(combined.seconds)} of CPU time"
    if mean is None:
        return [Row("CPU", f"{spent}; too short for a rate")]
    share = mean / expected if expected > 0 else 0.0
    in_top = f"; {mean:.0f} % in top" if mean > 100 else ""
    rows = [
        Row(
            "CPU",
            f"{_cores(mean)} of {expected:g} cores on average "
            f"({share:.0f} %{in_top}), peak {_cores(combined.max_percent)}; {spent}",
            _with_share(pictures, "cpu job", mean, 100 * expected),
        )
    ]
    if descendants.seconds > 0 or summary.threads.descendants:
        rows.append(
            Row(
                "",
                f"main {_cores(main.mean_percent)}, descendants {_cores(descendants.mean_percent)} cores; "
                f"up to {summary.processes} processes, {summary.threads.combined} threads",
            )
        )
    machine = _describe_machine(summary, mean)
    return [*rows, Row("", machine)] if machine else rows


def _describe_machine(summary: Summary, job_percent: float) -> str:
    """How many cores it has, where that is not what the job may use, and what others took of them."""
    is_all = summary.n_expected_cores == summary.n_cores
    parts = [] if is_all else [f"the machine has {summary.n_cores} cores"]
    others = (summary.system_cpu.mean_percent or 0.0) - job_percent
    if others >= max(_OTHERS_PERCENT, _OTHERS_SHARE * 100 * summary.n_cores):
        cores = f"{summary.n_cores} cores" if is_all else "them"
        parts.append(f"others used {_cores(others)} of {cores} on average")
    return "; ".join(parts)


def _list_ram(report: Report, pictures: Pictures) -> list[Row]:
    summary = report.summary
    main, descendants, combined = summary.ram
    if combined.basis == UNKNOWN:
        return [Row("RAM", "not measured: the job ended before the first sample")]
    peak = humanize_bytes(combined.total_bytes)
    picture = _with_share(pictures, "ram job", combined.total_bytes, summary.ram_capacity_bytes)
    rows = [Row("RAM", f"peak {peak} of {_ram_capacity(summary)}, {combined.basis}", picture)]
    if combined.basis == ESTIMATE:
        ceiling = _size(summary.ram_ceiling_bytes)
        rows.append(Row("", f"shared memory could not be read in time; upper bound {ceiling}"))
    explained = _explain_peak(report, "ram")
    if descendants.total_bytes and not explained:
        rows.append(
            Row(
                "",
                f"main {humanize_bytes(main.total_bytes)}, descendants {humanize_bytes(descendants.total_bytes)} "
                "(peaks at different times; they need not add up)",
            )
        )
    if summary.machine_ram_bytes != summary.ram_capacity_bytes:
        machine, used = summary.machine_ram_bytes, summary.machine_ram_used_bytes
        rows.append(Row("", f"the machine has {humanize_bytes(machine)}, peak use {humanize_bytes(used)}"))
    return [*rows, *explained]


def _explain_peak(report: Report, subject: str) -> list[Row]:
    """Who held it, if that says more than that the only process did."""
    moments = [moment for moment in report.peaks if moment.subject == subject]
    moments = [moment for moment in moments if moment.n_processes > 1 or moment.regions]
    if not moments:
        return []
    from ..analysis.peaks import explain_peak

    return [Row("", f"peak {explain_peak(moment, report.header.pid)}") for moment in moments]


def _ram_capacity(summary: Summary) -> str:
    capacity = summary.ram_capacity_bytes
    percent = f"{100 * summary.ram.combined.total_bytes / capacity:.0f} %" if capacity else ""
    if summary.ram_source == "machine":
        return f"{humanize_bytes(capacity)} ({percent})" if percent else humanize_bytes(capacity)
    limit = f"{humanize_limit(capacity)} ({summary.ram_source} limit)"
    return f"{limit}, {percent}" if percent else limit


def _explain_no_gpu(report: Report) -> str:
    """Without that note GPUs were not read, or could not be."""
    is_none = NO_GPU in report.notes
    return "none found (`gpu-tracker doctor` shows where it looked)" if is_none else "not measured"


def _list_gpus(report: Report, pictures: Pictures) -> list[Row]:
    summary, shown = report.summary, list_counted(report.summary)
    if len(shown) > _MOST_IN_DETAIL:
        rows = _tabulate_gpus(shown, pictures)
    else:
        rows = [row for gpu in shown for row in _list_gpu(report, gpu, pictures)]
    if len(shown) > 1 and all(gpu.basis not in (ESTIMATE, UNKNOWN) for gpu in shown):
        rows.append(Row("GPUs", f"peak {_size(summary.gpu_bytes.combined)} of GPU RAM, all together"))
    others = [gpu for gpu in summary.gpus if gpu not in shown]
    unknown = [gpu for gpu in others if gpu.may_be_used and gpu.job_bytes.combined is None]
    for gpus, why in (
        ([gpu for gpu in others if gpu not in unknown], "the job did not use them"),
        (unknown, "it is not known whether the job used them"),
    ):
        if gpus:
            ordinals = ", ".join(str(gpu.gpu.ordinal) for gpu in gpus)
            rows.append(Row("", f"not counted, because {why}: GPU {ordinals}"))
    return rows


def _list_gpu(report: Report, gpu: GpuSummary, pictures: Pictures) -> list[Row]:
    line = f"GPU {gpu.gpu.ordinal}"
    held = gpu.used_bytes if gpu.job_bytes.combined is None else gpu.job_bytes.combined
    memory = _with_share(pictures, f"gpu_ram {line}", held, gpu.gpu.memory_bytes)
    busy = _with_share(pictures, f"gpu_busy {line}", gpu.mean_percent, 100)
    notes = "; ".join(filter(None, (_gpu_energy(gpu, report.summary.seconds), _gpu_throttling(gpu))))
    return [
        Row(line, f"{shorten(gpu.gpu.name, _NAME_CELLS)}: {_gpu_memory(gpu)}", memory),
        Row("", _gpu_busy(gpu), busy),
        *([Row("", notes)] if notes else []),
        *_explain_peak(report, gpu.gpu.uuid),
    ]


def _tabulate_gpus(shown: Sequence[GpuSummary], pictures: Pictures) -> list[Row]:
    names = dict.fromkeys(_name_device(gpu) for gpu in shown)
    some = shown[:_MOST_DEVICES]
    befores = align([(_describe_busy(gpu),) for gpu in some], frozenset())
    afters = align([(_describe_held(gpu), _describe_watts(gpu), _describe_throttling(gpu)) for gpu in some])
    return [
        Row("GPUs", f"{len(shown)} × {', '.join(names)}"),
        *(
            Row(f"GPU {gpu.gpu.ordinal}", before, pictures.get(f"gpu_busy GPU {gpu.gpu.ordinal}"), after)
            for gpu, before, after in zip(some, befores, afters, strict=True)
        ),
        *_count_rest(len(shown) - _MOST_DEVICES),
    ]


def _count_rest(count: int) -> list[Row]:
    return [Row("", f"and {count_of(count, 'more device')} (-f json has all)")] if count > 0 else []


def _name_device(gpu: GpuSummary) -> str:
    size = gpu.gpu.memory_bytes
    name = shorten(gpu.gpu.name, _NAME_CELLS)
    return name if size is None else f"{name} ({humanize_bytes(size)})"


def _describe_busy(gpu: GpuSummary) -> str:
    if gpu.mean_percent is None:
        return "-"
    about = "~ " if gpu.utilization_basis == ESTIMATE else ""
    return f"{about}{gpu.mean_percent:.0f} % busy"


def _describe_held(gpu: GpuSummary) -> str:
    if gpu.job_bytes.combined is None:
        return "-" if gpu.used_bytes is None else f"{humanize_bytes(gpu.used_bytes)} (all processes)"
    return humanize_bytes(gpu.job_bytes.combined) + (" (estimate)" if gpu.basis == ESTIMATE else "")


def _describe_throttling(gpu: GpuSummary) -> str:
    share = max((share for _, share in gpu.throttled), default=0.0)
    return f"throttled {100 * share:.0f} %" if share > 0.01 else ""


def _describe_watts(gpu: GpuSummary) -> str:
    return "-" if gpu.mean_watts is None else f"{gpu.mean_watts:.0f} W"


def _gpu_memory(gpu: GpuSummary) -> str:
    certainty = "" if gpu.basis in (SAMPLED, UNKNOWN) else f" ({gpu.basis})"
    total = "" if gpu.gpu.memory_bytes is None else f", of {humanize_bytes(gpu.gpu.memory_bytes)}"
    return f"job {_size(gpu.job_bytes.combined)}{certainty}, all processes {_size(gpu.used_bytes)}{total}"


def _gpu_busy(gpu: GpuSummary) -> str:
    if gpu.mean_percent is None or gpu.max_percent is None:
        return "utilization not measured"
    remarks = ["estimate"] if gpu.utilization_basis == ESTIMATE else []
    remarks += [] if gpu.job_mean_percent is None else [f"job {gpu.job_mean_percent:.0f} %"]
    remark = f" ({', '.join(remarks)})" if remarks else ""
    return f"{gpu.mean_percent:.0f} % busy on average{remark}, peak {gpu.max_percent:.0f} %"


def _gpu_energy(gpu: GpuSummary, seconds: float) -> str:
    if gpu.energy_joules is None or gpu.mean_watts is None:
        return "" if gpu.max_watts is None else f"peak {gpu.max_watts:.0f} W (whole device)"
    late = seconds - gpu.energy_seconds
    since = f" (without {humanize_seconds(late)} of the time)" if late > 0.01 * seconds + 0.05 else ""
    return f"{humanize_joules(gpu.energy_joules)}{since}, mean {gpu.mean_watts:.0f} W (whole device)"


def _gpu_throttling(gpu: GpuSummary) -> str:
    shares = [
        f"{reason} for {100 * share:.0f} % of the time" for reason, share in gpu.throttled if share > 0.01
    ]
    return f"throttled by {', '.join(shares)}" if shares else ""


def _size(count: int | None) -> str:
    return "not measured" if count is None else humanize_bytes(count)


def _cores(percent: float | None) -> str:
    return "-" if percent is None else format_cores(percent)


def _list_activity(summary: Summary) -> list[Row]:
    """Only what may have held the job up."""
    counters, stalls, seconds = summary.counters, summary.stalls, summary.seconds
    rows = []
    moved = (counters.read_bytes or 0, counters.written_bytes or 0)
    if max(moved) > _STORAGE_BYTES:
        rows.append(
            Row("I/O", f"{humanize_bytes(moved[0])} read from storage, {humanize_bytes(moved[1])} written")
        )
    waits = []
    if (counters.waiting_seconds or 0.0) > _WAITING_SHARE * seconds:
        waits.append(
            f"threads waited {humanize_seconds(counters.waiting_seconds or 0.0)} for a core, all together"
        )
    if (stalls.throttled_seconds or 0.0) > _WAITING_SHARE * seconds:
        waits.append(f"stopped by its CPU quota for {_share(stalls.throttled_seconds, seconds)} of the time")
    pressures = [
        f"{what} {_share(waited, seconds)}"
        for what, waited in (
            ("a core", stalls.cpu_seconds),
            ("memory", stalls.memory_seconds),
            ("storage", stalls.io_seconds),
        )
        if (waited or 0.0) > _WAITING_SHARE * seconds
    ]
    if pressures:
        waits.append(f"something on the machine waited for {', '.join(pressures)} of the time")
    rows += [Row("" if index else "waits", text) for index, text in enumerate(waits)]
    return rows


def _share(part: float | None, whole: float) -> str:
    return f"{100 * (part or 0.0) / whole:.0f} %"

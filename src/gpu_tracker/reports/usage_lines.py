"""What a run used, of how much, and how sure that is: rows of a label, a text and a small picture. Pure."""

from __future__ import annotations

from math import isnan

from ..analysis.summary import (
    doubt_held,
    find_unattributed_seconds,
    find_unmetered_seconds,
    find_unused_seconds,
    find_unutilized_seconds,
    is_ram_least,
    list_counted,
)
from ..core.figures import name_device_figure
from ..core.model import ESTIMATE, EXACT, LINKS, NO_PROCESS, RAM, SAMPLED, UNKNOWN
from ..core.text import align, count_of, shorten
from ..core.units import (
    count_cores,
    format_cores,
    humanize_bytes,
    humanize_joules,
    humanize_limit,
    humanize_percent,
    humanize_seconds,
    humanize_share,
)
from ..core.vendors import NO_GPU
from .build import SHORTEST_SECONDS
from .rows import LINE_CELLS, Picture, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..analysis.summary import GpuSummary, Summary
    from ..core.model import PeakMoment, Traffic
    from .build import Report

    Pictures = Mapping[str, Picture]

# Others on the machine, storage and waiting are worth a line from here on.
_OTHERS_PERCENT, _OTHERS_SHARE = 50.0, 0.1
_STORAGE_BYTES = 100e6
_WAITING_SHARE = 0.05
# Of more devices each has one line.
_MOST_IN_DETAIL = 1
_MOST_DEVICES = 16
_MOST_USES = 4
# Fewer samples show nothing over time, and a line that stays below this share of the capacity is flat.
_FEWEST_SAMPLES = 4
_SMALLEST_SHARE = 0.02
_NAME_CELLS = 32


def list_usage(report: Report, line_cells: int = LINE_CELLS) -> list[Row]:
    """CPU, RAM, devices, and what the job waited for."""
    pictures = _draw_pictures(report, line_cells)
    has_main = report.header.pid != NO_PROCESS
    return [
        *_list_cpu(report.summary, pictures, has_main=has_main),
        *_list_ram(report, pictures),
        *(_list_gpus(report, pictures) if report.summary.gpus else [Row("GPU", _explain_no_gpu(report))]),
        *_list_activity(report.summary),
    ]


def _draw_pictures(report: Report, cells: int) -> Pictures:
    """By the name of the chart and of its line."""
    is_short = report.summary.seconds < SHORTEST_SECONDS
    if report.columns is None or is_short or len(report.columns.end_seconds) < _FEWEST_SAMPLES:
        return {}
    from ..core.units import PERCENT
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
            top = 100.0 if chart.unit == PERCENT else max(most, _SMALLEST_SHARE * (chart.capacity or 0.0))
            pictures[f"{chart.name} {line.name}"] = Picture(None, tuple(values), top)
    return pictures


def _with_share(
    pictures: Pictures, name: str, part: float | None, whole: float | None, peak: float | None
) -> Picture | None:
    """A picture up to the peak: means over its parts may all be lower."""
    picture = pictures.get(name)
    if picture is None or part is None or not whole:
        return None
    return picture._replace(share=part / whole, top=max(picture.top, peak or 0.0))


def _list_cpu(summary: Summary, pictures: Pictures, *, has_main: bool) -> list[Row]:
    main, descendants, combined = summary.cpu
    expected = summary.n_expected_cores
    mean = combined.mean_percent
    if summary.is_unread:
        return [Row("CPU", "-")]
    spent = f"{'at least ' if summary.is_cpu_least else ''}{humanize_seconds(combined.seconds)} of CPU time"
    if mean is None:
        return [Row("CPU", f"{spent}; too short for a rate")]
    share = mean / expected if expected > 0 else 0.0
    in_top = f"; {humanize_percent(mean)} in top" if mean > 100 else ""
    rows = [
        Row(
            "CPU",
            f"{_cores(mean)} of {count_cores(expected)} on average "
            f"({humanize_share(share)}{in_top}), peak {_cores(combined.max_percent)}; {spent}",
            _with_share(pictures, "cpu job", mean, 100 * expected, (combined.max_percent or 0.0) / 100),
        )
    ]
    if descendants.seconds > 0 or summary.threads.descendants:
        parts = f"main {_cores(main.mean_percent)}, descendants {_cores(descendants.mean_percent)} cores"
        words = [*([parts] if has_main else []), *_count_processes(summary)]
        rows += [Row("", "; ".join(words))] if words else []
    machine = _describe_machine(summary, mean)
    return [*rows, Row("", machine)] if machine else rows


def _count_processes(summary: Summary) -> list[str]:
    """Nothing if none was ever read."""
    processes, threads = summary.processes, summary.threads.combined
    if processes is None or threads is None:
        return []
    return [f"up to {count_of(processes, 'process')}, {count_of(threads, 'thread')}"]


def _describe_machine(summary: Summary, job_percent: float) -> str:
    """How many cores it has, where that is not what the job may use, and what others took of them."""
    is_all = summary.n_expected_cores == summary.n_cores
    parts = [] if is_all else [f"the machine has {count_cores(summary.n_cores)}"]
    others = (summary.system_cpu.mean_percent or 0.0) - job_percent
    if others >= max(_OTHERS_PERCENT, _OTHERS_SHARE * 100 * summary.n_cores):
        cores = count_cores(summary.n_cores) if is_all else "them"
        parts.append(f"others used {_cores(others)} of {cores} on average")
    return "; ".join(parts)


def _list_ram(report: Report, pictures: Pictures) -> list[Row]:
    summary = report.summary
    main, descendants, combined = summary.ram
    if combined.basis == UNKNOWN:
        return [Row("RAM", f"not measured: {explain_no_ram(report)}")]
    peak = f"{say_at_least(report)}{humanize_bytes(combined.total_bytes)}"
    held = combined.total_bytes
    picture = _with_share(pictures, "ram job", held, summary.ram_capacity_bytes, held)
    rows = [Row("RAM", f"peak {peak} of {_ram_capacity(summary)}, {combined.basis}", picture)]
    if combined.basis == ESTIMATE:
        ceiling = _size(summary.ram_ceiling_bytes)
        rows.append(Row("", f"shared memory could not be read in time; upper bound {ceiling}"))
    explained = _explain_peak(report, RAM, combined.total_bytes)
    if descendants.total_bytes and not explained and report.header.pid != NO_PROCESS:
        rows.append(
            Row(
                "",
                f"main {_size(None if main.basis == UNKNOWN else main.total_bytes)}, "
                f"descendants {humanize_bytes(descendants.total_bytes)} "
                "(peaks at different times; they need not add up)",
            )
        )
    if summary.machine_ram_bytes != summary.ram_capacity_bytes:
        machine, used = summary.machine_ram_bytes, summary.machine_ram_used_bytes
        rows.append(Row("", f"the machine has {humanize_bytes(machine)}, peak use {humanize_bytes(used)}"))
    return [*rows, *explained]


def say_at_least(report: Report) -> str:
    """A word before the peak of memory if it may have been higher while nothing was measured."""
    return "at least " if is_ram_least(report.summary, report.ending) else ""


def explain_no_ram(report: Report) -> str:
    """Why the job's memory is not known."""
    if report.summary.processes:
        return "its processes held none when they were read"
    is_cut = report.ending in ("killed", "sampler lost", "running")
    return "no sample was recorded" if is_cut else "the job ended before the first sample"


def _explain_peak(report: Report, subject: str, peak_bytes: int | None) -> list[Row]:
    """Who held it, if that says more than that the only process did."""
    moments = [moment for moment in report.peaks if moment.subject == subject]
    moments = [moment for moment in moments if moment.n_processes > 1 or moment.regions]
    if not moments:
        return []
    from ..analysis.peaks import explain_peak

    return [
        Row(
            "",
            f"{_name_peak(moment, peak_bytes)} {explain_peak(moment, report.header.pid)}{_doubt(moment, peak_bytes)}",
        )
        for moment in moments
    ]


def _doubt(moment: PeakMoment, peak_bytes: int | None) -> str:
    from ..analysis.peaks import NEAREST, name_moment

    return "; the true peak came between readings" if name_moment(moment, peak_bytes) == NEAREST else ""


def _name_peak(moment: PeakMoment, peak_bytes: int | None) -> str:
    """The peak of a region is that of one process."""
    from ..analysis.peaks import PEAK, name_moment

    name = name_moment(moment, peak_bytes)
    is_of_several = moment.subject == RAM and moment.n_processes > 1
    return f"{name} of all processes" if name == PEAK and is_of_several else name


def _ram_capacity(summary: Summary) -> str:
    capacity = summary.ram_capacity_bytes
    percent = humanize_percent(100 * summary.ram.combined.total_bytes / capacity) if capacity else ""
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
        rows = _tabulate_gpus(shown, pictures, summary.seconds)
    else:
        rows = [row for gpu in shown for row in _list_gpu(report, gpu, pictures)]
    is_known = all(gpu.basis not in (ESTIMATE, UNKNOWN) for gpu in shown) and not summary.has_unread_gpus
    if len(shown) > 1 and is_known and summary.gpu_bytes.combined is not None:
        remarks = [remark for remark in list_held(shown, summary.seconds) if remark != EXACT]
        peak = _size_with(summary.gpu_bytes.combined, remarks)
        rows.append(Row("GPUs", f"peak {peak} of GPU RAM, all together"))
    rows += _list_uses(summary)
    counted = {gpu.gpu.uuid for gpu in shown}
    others: dict[bool, list[GpuSummary]] = {False: [], True: []}
    for gpu in summary.gpus:
        if gpu.gpu.uuid not in counted:
            others[gpu.may_be_used and gpu.job_bytes.combined is None].append(gpu)
    for is_unknown, why in (
        (False, "the job did not use them"),
        (True, "it is not known whether the job used them"),
    ):
        gpus = others[is_unknown]
        if gpus:
            labels = ", ".join(gpu.gpu.label for gpu in gpus)
            rows.append(Row("", f"not counted, because {why}: GPU {labels}"))
    return rows


def _list_gpu(report: Report, gpu: GpuSummary, pictures: Pictures) -> list[Row]:
    line = f"GPU {gpu.gpu.label}"
    held = gpu.used_bytes if gpu.job_bytes.combined is None else gpu.job_bytes.combined
    memory = _with_share(pictures, f"gpu_ram {line}", held, gpu.gpu.memory_bytes, held)
    busy = _with_share(pictures, f"gpu_busy {line}", gpu.mean_percent, 100, 100)
    notes = "; ".join(filter(None, (_gpu_energy(gpu, report.summary.seconds), _gpu_throttling(gpu))))
    return [
        Row(
            line, f"{shorten(gpu.gpu.name, _NAME_CELLS)}: {_gpu_memory(gpu, report.summary.seconds)}", memory
        ),
        *(
            [
                Row("", _gpu_busy(gpu, report.summary.seconds), busy),
                *_list_activity_of(gpu),
                *_list_traffic(gpu),
            ]
            if report.summary.has_rates
            else []
        ),
        *([Row("", notes)] if notes else []),
        *_explain_peak(report, gpu.gpu.uuid, gpu.job_bytes.combined),
    ]


def _tabulate_gpus(shown: Sequence[GpuSummary], pictures: Pictures, seconds: float) -> list[Row]:
    names = [_name_device(gpu) for gpu in shown]
    kinds = ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))
    some = shown[:_MOST_DEVICES]
    befores = align([(_describe_busy(gpu, seconds),) for gpu in some], frozenset())
    afters = align(
        [(_describe_held(gpu, seconds), _describe_watts(gpu), _describe_throttling(gpu)) for gpu in some]
    )
    return [
        Row("GPUs", kinds),
        *(
            Row(f"GPU {gpu.gpu.label}", before, pictures.get(f"gpu_busy GPU {gpu.gpu.label}"), after)
            for gpu, before, after in zip(some, befores, afters, strict=True)
        ),
        *_count_rest(len(shown) - _MOST_DEVICES),
    ]


def _list_uses(summary: Summary) -> list[Row]:
    """Which processes used the GPUs, if there were several."""
    uses = summary.gpu_uses
    if len(uses) < 2:
        return []
    total = sum(use.gpu_seconds or 0.0 for use in uses) or 1.0
    rows = [
        Row(
            "",
            f"process {use.pid} {shorten(use.name, _NAME_CELLS)}: "
            f"~ {humanize_seconds(use.gpu_seconds or 0.0)} of GPU time ({humanize_percent(100 * (use.gpu_seconds or 0.0) / total)})"
            + ("" if use.gpu_joules is None else f", ~ {humanize_joules(use.gpu_joules)}"),
        )
        for use in uses[:_MOST_USES]
    ]
    rest = len(uses) - _MOST_USES
    return rows if rest <= 0 else [*rows, Row("", f"and {count_of(rest, 'more process')} (-f json has all)")]


def _count_rest(count: int) -> list[Row]:
    return [Row("", f"and {count_of(count, 'more device')} (-f json has all)")] if count > 0 else []


def _name_device(gpu: GpuSummary) -> str:
    size = gpu.gpu.memory_bytes
    name = shorten(gpu.gpu.name, _NAME_CELLS)
    return name if size is None else f"{name} ({humanize_bytes(size)})"


def _describe_busy(gpu: GpuSummary, seconds: float) -> str:
    if gpu.mean_percent is None:
        return "-"
    about = "~ " if gpu.utilization_basis == ESTIMATE else ""
    without = "".join(f", {text}" for text in list_unknown(find_unutilized_seconds(gpu, seconds)))
    active = gpu.activity.sm_percent
    activity = "" if active is None else f", SM {active:.0f} %"
    return f"{about}{humanize_percent(gpu.mean_percent)} busy{without}{activity}"


def _describe_held(gpu: GpuSummary, seconds: float) -> str:
    if gpu.job_bytes.combined is None:
        return "-" if gpu.used_bytes is None else f"{humanize_bytes(gpu.used_bytes)} (all processes)"
    remarks = [remark for remark in list_held([gpu], seconds) if remark != EXACT]
    return _size_with(gpu.job_bytes.combined, remarks)


def _describe_throttling(gpu: GpuSummary) -> str:
    share = max((share for _, share in gpu.throttled), default=0.0)
    return f"throttled {humanize_percent(100 * share)}" if share > 0.01 else ""


def _describe_watts(gpu: GpuSummary) -> str:
    return "-" if gpu.mean_watts is None else f"{gpu.mean_watts:.0f} W"


def _gpu_memory(gpu: GpuSummary, seconds: float) -> str:
    job = _size_with(gpu.job_bytes.combined, list_held([gpu], seconds))
    everybody = _size_with(gpu.used_bytes, list_unknown(find_unused_seconds(gpu, seconds)))
    total = "" if gpu.gpu.memory_bytes is None else f", of {humanize_bytes(gpu.gpu.memory_bytes)}"
    return f"job {job}, all processes {everybody}{total}"


def list_held(gpus: Sequence[GpuSummary], seconds: float) -> list[str]:
    """How the job's peak on these devices together is known, and what it is without."""
    doubt = doubt_held(gpus, seconds)
    bases = [] if doubt.basis in (SAMPLED, UNKNOWN) else [doubt.basis]
    return [*bases, *list_unknown(doubt.unheld_seconds)]


def _size_with(size: int | None, remarks: Sequence[str]) -> str:
    return f"{_size(size)} ({', '.join(remarks)})" if remarks and size is not None else _size(size)


def _gpu_busy(gpu: GpuSummary, seconds: float) -> str:
    if gpu.mean_percent is None or gpu.max_percent is None:
        return "utilization not measured"
    remarks = ["estimate"] if gpu.utilization_basis == ESTIMATE else []
    remarks += list_own_busy(gpu, seconds)
    remarks += list_unknown(find_unutilized_seconds(gpu, seconds))
    remark = f" ({', '.join(remarks)})" if remarks else ""
    mean, most = humanize_percent(gpu.mean_percent), humanize_percent(gpu.max_percent)
    return f"{mean} busy on average{remark}, peak {most}"


def _list_activity_of(gpu: GpuSummary) -> list[Row]:
    """How much of it worked, where that was measured."""
    known = [(name, mean) for name, mean in gpu.activity._asdict().items() if mean is not None]
    means = ", ".join(f"{name_device_figure(name)} {mean:.0f} %" for name, mean in known)
    return [Row("", f"{means} on average")] if known else []


def _list_traffic(gpu: GpuSummary) -> list[Row]:
    """What went through its links, where that was measured."""
    moved = describe_traffic(gpu.traffic)
    return [Row("", f"{moved} (whole device)")] if moved else []


def describe_traffic(traffic: Traffic) -> str:
    """What went through each link, each way, as far as it is known."""
    ways = zip(("received", "sent", "received", "sent"), traffic, strict=True)
    known = [f"{humanize_bytes(size)} {way}" if size is not None else "" for way, size in ways]
    links = [", ".join(filter(None, known[place : place + 2])) for place in (0, 2)]
    return "; ".join(f"{link} {text}" for link, text in zip(LINKS, links, strict=True) if text)


def _gpu_energy(gpu: GpuSummary, seconds: float) -> str:
    if gpu.energy_joules is None or gpu.mean_watts is None:
        return "" if gpu.max_watts is None else f"peak {gpu.max_watts:.0f} W (whole device)"
    without = "".join(f" ({text})" for text in list_unknown(find_unmetered_seconds(gpu, seconds)))
    estimated = " estimated from power" if gpu.energy_basis == ESTIMATE else ""
    return f"{humanize_joules(gpu.energy_joules)}{estimated}{without}, mean {gpu.mean_watts:.0f} W (whole device)"


def list_own_busy(gpu: GpuSummary, seconds: float) -> list[str]:
    """The job's own utilization, and what its mean is without beyond the device's."""
    if gpu.job_mean_percent is None:
        return []
    missing = find_unattributed_seconds(gpu, seconds)
    is_more = missing > find_unutilized_seconds(gpu, seconds)
    without = "".join(f" {text}" for text in list_unknown(missing if is_more else 0.0))
    estimate = ", an estimate" if gpu.job_utilization_basis == ESTIMATE != gpu.utilization_basis else ""
    return [f"job {humanize_percent(gpu.job_mean_percent)}{estimate}{without}"]


def list_unknown(missing_seconds: float) -> list[str]:
    """What a mean, sum or peak is without, if anything."""
    return [f"without {humanize_seconds(missing_seconds)} of the time"] if missing_seconds else []


def _gpu_throttling(gpu: GpuSummary) -> str:
    shares = [
        f"{reason} for {humanize_percent(100 * share)} of the time"
        for reason, share in gpu.throttled
        if share > 0.01
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
    if not summary.has_rates:
        return rows
    # Nobody counted after the sampler was lost.
    least = "at least " if summary.is_partly_unread else ""
    waits = []
    if (counters.waiting_seconds or 0.0) > _WAITING_SHARE * seconds:
        waits.append(
            f"the job's threads waited {least}{humanize_seconds(counters.waiting_seconds or 0.0)} in total for a core"
        )
    if (stalls.throttled_seconds or 0.0) > _WAITING_SHARE * seconds:
        waits.append(
            f"stopped by its CPU quota for {least}{_share(stalls.throttled_seconds, seconds)} of the time"
        )
    pressures = [
        f"{least}{_share(waited, seconds)} of the time for {what}"
        for what, waited in (
            ("a core", stalls.cpu_seconds),
            ("memory", stalls.memory_seconds),
            ("storage", stalls.io_seconds),
        )
        if (waited or 0.0) > _WAITING_SHARE * seconds
    ]
    if pressures:
        waits.append(f"at least one task on this machine waited {', '.join(pressures)}")
    rows += [Row("" if index else "waits", text) for index, text in enumerate(waits)]
    return rows


def _share(part: float | None, whole: float) -> str:
    return humanize_percent(100 * (part or 0.0) / whole)

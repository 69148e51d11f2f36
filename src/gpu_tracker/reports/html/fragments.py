"""Parts of a page as escaped HTML: tiles, findings, tables. Pure; no figure is computed here."""

from __future__ import annotations

from html import escape

from ...analysis.frameworks import PARTS
from ...analysis.summary import (
    doubt_held,
    find_unattributed_seconds,
    find_unmetered_seconds,
    find_unused_seconds,
    find_unutilized_seconds,
    list_counted,
)
from ...core.figures import name_device_figure
from ...core.model import ESTIMATE, EXACT, SAMPLED, UNKNOWN, Activity
from ...core.text import clip, count_of, neutralize
from ...core.units import (
    BYTES,
    COUNT,
    JOULES,
    NUMBER,
    PERCENT,
    SECONDS,
    count_cores,
    format_cores,
    humanize,
    humanize_bytes,
    humanize_cores,
    humanize_joules,
    humanize_limit,
    humanize_seconds,
    humanize_share,
)
from ..energy_lines import name_meter
from ..region_tables import outside_cells, region_cells, show_last
from ..usage_lines import explain_no_ram, list_held, list_own_busy, list_unknown, say_at_least

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...analysis.findings.finding import Finding
    from ...analysis.frameworks import FrameworkSummary
    from ...analysis.regions import Metric, Region
    from ...analysis.summary import GpuSummary, Summary
    from ...core.model import PeakMoment
    from ..build import Report

_MOST_TILES = 4
_MOST_ROWS = 50
_MOST_NOTES = 12
_LONGEST_CELL = 40
_LONGEST_TITLE = 200
_BASIS = {
    "exact": "a counter or high-water mark of the kernel or the driver",
    "sampled": "the largest of the readings; a shorter peak may have been missed",
    "estimate": "derived; a note says how",
    "shared": "part of it may be other code's",
    "unknown": "not measured",
}


def text(value: object) -> str:
    """Anything from a recording, as inert text of one line."""
    return escape(neutralize(str(value)))


def prose(value: str) -> str:
    """A sentence of ours: what it quotes in backticks is set as code."""
    parts = text(value).split("`")
    if len(parts) % 2 == 0:  # one is without its partner
        return text(value)
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))


def shorten_text(value: str) -> str:
    """The beginning of what may be very long, such as a command."""
    return text(clip(value, _LONGEST_TITLE))


def unfold(value: str, what: str) -> str:
    """The whole of it, to be opened; nothing if it was not shortened."""
    if len(value) <= _LONGEST_TITLE:
        return ""
    title = f"The whole {what} ({len(value)} characters)"
    return f'<details class="whole"><summary>{text(title)}</summary><p class="command">{text(value)}</p></details>'


def basis(name: str) -> str:
    """How sure a figure is, explained where the pointer rests."""
    return f'<abbr class="basis" title="{text(_BASIS.get(name, name))}">{text(name)}</abbr>'


# ---- Tiles.


def tile(label: str, value: str, share: float | None, *lines: str) -> str:
    """One answer with its capacity bar; the lines are HTML."""
    bar = "" if share is None else _bar(share)
    rest = "".join(f"<p>{line}</p>" for line in lines if line)
    return f'<section class="tile" aria-label="{text(label)}"><p class="label">{text(label)}</p><p class="value">{text(value)}</p>{bar}{rest}</section>'


def _bar(share: float) -> str:
    level = "full" if share > 0.95 else "high" if share > 0.9 else "fine"
    width = 100 * min(1.0, max(0.0, share))
    return (
        f'<div class="bar {level}" role="img" aria-label="{100 * share:.0f} percent of the capacity">'
        f'<i style="width:{width:.1f}%"></i></div>'
    )


def tiles(report: Report) -> str:
    """Time, CPU, RAM, devices."""
    summary = report.summary
    shown = [gpu for gpu in summary.gpus if gpu.is_expected] or list(summary.gpus)
    gpus = [_gpu_tile(gpu, summary.seconds) for gpu in shown]
    if len(shown) > _MOST_TILES:
        gpus = [_gpus_tile(summary, shown)]
    made = [_time_tile(summary), _cpu_tile(summary), _ram_tile(report), *gpus]
    return f'<div class="tiles">{"".join(made)}</div>'


def _gpus_tile(summary: Summary, gpus: Sequence[GpuSummary]) -> str:
    """Many devices as one; the table has each."""
    size, capacity = summary.gpu_bytes.combined, summary.gpu_capacity_bytes
    busy = [gpu.mean_percent for gpu in gpus if gpu.mean_percent is not None]
    about = " (estimate)" if any(gpu.utilization_basis == ESTIMATE for gpu in gpus) else ""
    ends = dict.fromkeys(f"{end:.0f}" for end in (min(busy), max(busy))) if busy else {}
    between = f"{' to '.join(ends)} % busy{about}" if ends else "utilization not measured"
    return tile(
        f"{len(gpus)} GPUs · {gpus[0].gpu.name}",
        "not measured" if size is None else f"{humanize_bytes(size)} in all",
        size / capacity if size is not None and capacity else None,
        f"peak memory, job {basis(_find_memory_basis(gpus))}{_add_unheld(gpus, summary.seconds)}",
        text(between),
    )


def _find_memory_basis(gpus: Sequence[GpuSummary]) -> str:
    """Of the memory on several devices together."""
    return ESTIMATE if any(gpu.basis == ESTIMATE for gpu in gpus) else SAMPLED


def _add_unheld(gpus: Sequence[GpuSummary], seconds: float) -> str:
    """What the job's peak is without."""
    return "".join(f", {text(words)}" for words in list_unknown(doubt_held(gpus, seconds).unheld_seconds))


def _time_tile(summary: Summary) -> str:
    if summary.is_unread:
        return tile("Time", "not measured", None, "no sample was recorded")
    cpu = f"{text(humanize_seconds(summary.cpu.combined.seconds))} of CPU time {basis(EXACT)}"
    most = f"up to {summary.processes} processes" if (summary.processes or 0) > 1 else ""
    return tile("Time", humanize_seconds(summary.seconds), None, cpu, text(most))


def _cpu_tile(summary: Summary) -> str:
    mean, allowed = summary.cpu.combined.mean_percent, summary.n_expected_cores
    if mean is None or allowed <= 0:
        return tile("CPU", "not measured", None, "too short for a rate")
    cores = f"{format_cores(mean)} of {count_cores(allowed)}"
    share = humanize_share(mean / allowed)
    explained = f"{humanize_share(mean)} in top, which is {share} of what the job may use"
    peak = summary.cpu.combined.max_percent
    busiest = "" if peak is None else f"busiest interval {humanize_cores(peak)}"
    return tile("CPU, mean", cores, mean / 100 / allowed, text(explained), text(busiest))


def _ram_tile(report: Report) -> str:
    summary = report.summary
    peak, capacity = summary.ram.combined, summary.ram_capacity_bytes
    if peak.basis == UNKNOWN:
        return tile("RAM, peak", "not measured", None, text(explain_no_ram(report)))
    is_limit = summary.ram_source != "machine"
    size = humanize_limit(capacity) if is_limit else humanize_bytes(capacity)
    share = peak.total_bytes / capacity if capacity else None
    percent = "" if share is None else f"{100 * share:.0f} % of the {text(summary.ram_source)}'s memory, "
    if is_limit and share is not None:
        percent = f"{100 * share:.0f} % of the {text(summary.ram_source)} limit, "
    return tile(
        "RAM, peak",
        f"{say_at_least(report)}{humanize_bytes(peak.total_bytes)} of {size}",
        share,
        f"{percent}{basis(peak.basis)}",
    )


def _gpu_tile(gpu: GpuSummary, seconds: float) -> str:
    size, capacity = gpu.job_bytes.combined, gpu.gpu.memory_bytes
    whose = "job" if size is not None else "all processes"
    size = gpu.used_bytes if size is None else size
    value = "not measured" if size is None else humanize_bytes(size)
    if size is not None and capacity:
        value += f" of {humanize_bytes(capacity)}"
    share = size / capacity if size is not None and capacity else None
    return tile(
        f"GPU {gpu.gpu.label} · {gpu.gpu.name}",
        value,
        share,
        f"peak memory, {whose} {basis(gpu.basis)}{_add_unheld([gpu], seconds)}",
        text(_describe_busy(gpu, seconds)),
        text(_describe_energy(gpu, seconds)),
    )


def _describe_busy(gpu: GpuSummary, seconds: float) -> str:
    if gpu.mean_percent is None:
        return "utilization not measured"
    remarks = [ESTIMATE] if gpu.utilization_basis == ESTIMATE else []
    remarks += list_own_busy(gpu, seconds)
    remarks += list_unknown(find_unutilized_seconds(gpu, seconds))
    remark = f" ({', '.join(remarks)})" if remarks else ""
    active = gpu.activity.sm_percent
    return f"{gpu.mean_percent:.0f} % busy{remark}" + (
        "" if active is None else f", SM activity {active:.0f} %"
    )


def _describe_energy(gpu: GpuSummary, seconds: float) -> str:
    if gpu.energy_joules is None:
        return ""
    without = "".join(f" ({text})" for text in list_unknown(find_unmetered_seconds(gpu, seconds)))
    watts = "" if gpu.mean_watts is None else f", mean {gpu.mean_watts:.0f} W"
    meter = name_meter([gpu.energy_basis], "by the driver's meter")
    return f"{humanize_joules(gpu.energy_joules)}{without}{watts} {meter}, whole device"


# ---- Findings and peaks.


def findings(found: Sequence[Finding]) -> str:
    """One card each, worst first."""
    return "".join(_finding(finding) for finding in found)


def _finding(finding: Finding) -> str:
    advice = f"<p>{prose(finding.advice)}</p>" if finding.advice else ""
    sure = f"{finding.severity}, {finding.confidence} · {finding.rule}"
    disproof = f" · wrong if: {finding.disproof}" if finding.disproof else ""
    return (
        f'<article class="finding {text(finding.severity)}"><h3>{prose(finding.sentence)}</h3>{advice}'
        f'<p class="sure">{text(sure + disproof)}</p></article>'
    )


def explain_peak(moment: PeakMoment, label: str) -> str:
    """Who held a peak, or what is nearest to it, to be opened."""
    rows = [
        (f"{held.name or 'process'} ({held.pid})", humanize_bytes(held.size_bytes))
        for held in moment.processes
    ]
    rest = moment.n_processes - len(moment.processes)
    if rest > 0:
        rows.append((f"and {count_of(rest, 'smaller one')}", ""))
    where = ", ".join("/".join(path) for path in moment.regions)
    inside = f"<p>In {text(where)}.</p>" if where else ""
    title = (
        f"{label} {humanize_bytes(moment.size_bytes)} at {humanize_seconds(moment.at_seconds)}: who held it"
    )
    return (
        f'<details class="peak" id="peak-{text(moment.subject)}"><summary>{text(title)}</summary>{inside}'
        f"{table(('process', 'held'), rows)}</details>"
    )


# ---- Tables.


def table(heading: Sequence[str], rows: Iterable[Sequence[str]], *, is_html: bool = False) -> str:
    """Words in the first column, figures in the others."""
    head = "".join(_cell('th scope="col"', cell) for cell in heading)
    body = "".join(
        "<tr>"
        + _cell('th scope="row"', row[0], is_html=is_html)
        + "".join(_cell("td", cell, is_html=is_html) for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="table of {text(heading[0])}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(tag: str, cell: str, *, is_html: bool = False) -> str:
    """Of one line, unless it would be too wide for that."""
    long = ' class="long"' if not is_html and len(cell) > _LONGEST_CELL else ""
    return f"<{tag}{long}>{cell if is_html else text(cell)}</{tag[:2]}>"


def table_of_known(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Without the columns in which nothing is known."""
    return table(*keep_known(heading, rows))


def keep_known(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """The heading and the rows without those columns."""
    known = [place for place in range(len(heading)) if any(row[place] != "-" for row in rows)]
    return [heading[place] for place in known], [[row[place] for place in known] for row in rows]


def regions(found: Sequence[Region], seconds: float, outside_seconds: float | None = None) -> str:
    """The longest regions, with their share of the time, then the time outside of all."""
    longest = sorted(found, key=lambda region: (-region.wall_seconds, region.path))
    heading = (
        "region",
        "calls",
        "time",
        "of the run",
        "per call",
        "CPU",
        "peak RAM",
        "GPU RAM",
        "GPU busy",
        "energy",
    )
    rows = [("/".join(region.path), *region_cells(region, seconds)) for region in longest[:_MOST_ROWS]]
    if outside_seconds is not None:
        rows.append(tuple(cell or "-" for cell in outside_cells(outside_seconds, seconds)))
    return table_of_known(heading, rows) + count_rest(len(found) - _MOST_ROWS, "regions")


def metrics(found: Sequence[Metric]) -> str:
    """What the job logged."""
    heading = ("metric", "logged", "last", "smallest", "mean", "largest", "not finite")
    rows = [
        (
            metric.name,
            str(metric.logged),
            show_last(metric),
            *(humanize(value, NUMBER) for value in (metric.minimum, metric.mean, metric.maximum)),
            str(metric.not_finite),
        )
        for metric in found[:_MOST_ROWS]
    ]
    return table(heading, rows) + count_rest(len(found) - _MOST_ROWS, "metrics")


def devices(found: Sequence[GpuSummary], seconds: float) -> str:
    """Every device of the machine."""
    heading = (
        "device",
        "job",
        "all processes",
        "memory",
        "busy",
        "job busy",
        *map(name_device_figure, Activity._fields),
        "power",
        "hottest",
        "throttled",
        "energy",
    )
    rows = [
        (
            f"GPU {gpu.gpu.label} {gpu.gpu.name}{'' if gpu.is_expected else ' (not used by the job)'}",
            ", ".join([humanize(gpu.job_bytes.combined, BYTES), *list_held([gpu], seconds)]),
            _remark(humanize(gpu.used_bytes, BYTES), find_unused_seconds(gpu, seconds)),
            humanize(gpu.gpu.memory_bytes, BYTES),
            _remark(
                humanize(gpu.mean_percent, PERCENT),
                find_unutilized_seconds(gpu, seconds),
                *([ESTIMATE] if gpu.utilization_basis == ESTIMATE else []),
            ),
            _remark(humanize(gpu.job_mean_percent, PERCENT), find_unattributed_seconds(gpu, seconds)),
            *(humanize(mean, PERCENT) for mean in gpu.activity),
            "-" if gpu.mean_watts is None else f"{gpu.mean_watts:.0f} W",
            "-" if gpu.max_celsius is None else f"{gpu.max_celsius:.0f} °C",
            ", ".join(f"{reason} {100 * share:.0f} %" for reason, share in gpu.throttled if share > 0.01)
            or "-",
            _remark(
                humanize(gpu.energy_joules, JOULES),
                find_unmetered_seconds(gpu, seconds),
                *([ESTIMATE] if gpu.energy_basis == ESTIMATE else []),
            ),
        )
        for gpu in found
    ]
    return table_of_known(heading, rows)


def _remark(value: str, missing_seconds: float, *remarks: str) -> str:
    """A mean or sum, and what it is without."""
    return value if value == "-" else ", ".join([value, *remarks, *list_unknown(missing_seconds)])


def frameworks(found: Sequence[FrameworkSummary]) -> str:
    """A stacked bar of GPU memory at the fullest moment of each process."""
    return "".join(_framework(summary) for summary in found[:_MOST_ROWS])


def _framework(summary: FrameworkSummary) -> str:
    memory = summary.memory
    sizes = (
        memory.split_in_use_bytes,
        summary.cached_bytes,
        summary.context_bytes,
        memory.split_others_bytes,
        memory.split_free_bytes,
    )
    known = [(name, size) for name, size in zip(PARTS, sizes, strict=True) if size is not None]
    total = sum(size for _, size in known)
    if not total:
        return ""
    slices = "".join(
        f'<i class="part{number}" style="width:{100 * size / total:.2f}%"></i>'
        for number, (_, size) in enumerate(known)
    )
    legend = ", ".join(f"{name} {humanize_bytes(size)}" for name, size in known)
    where = f"GPU {summary.gpu.label}" if summary.gpu else memory.device
    title = f"{memory.framework}, {where}, process {memory.pid}: GPU memory at its fullest moment"
    return (
        f'<figure class="split"><figcaption>{text(title)}</figcaption>'
        f'<div class="stack" role="img" aria-label="{text(legend)}">{slices}</div><p>{text(legend)}</p></figure>'
    )


def count_rest(count: int, what: str) -> str:
    """How many are not shown."""
    return f'<p class="more">and {count} more {what}; the JSON report has all</p>' if count > 0 else ""


def facts(summary: Summary) -> list[tuple[str, str, str]]:
    """Every figure with how sure it is: name, value, basis."""
    main, descendants, combined = summary.ram
    counters = summary.counters
    rows: list[tuple[str, float | None, str, str]] = [
        *(() if summary.is_unread else _list_times(summary)),
        ("peak RAM, all processes", _known(combined.total_bytes, combined.basis), BYTES, combined.basis),
        ("peak RAM of the main process", _known(main.total_bytes, main.basis), BYTES, main.basis),
        (
            "peak RAM of descendants",
            _known(descendants.total_bytes, descendants.basis),
            BYTES,
            descendants.basis,
        ),
        ("read from storage", counters.read_bytes, BYTES, EXACT),
        ("written to storage", counters.written_bytes, BYTES, EXACT),
        ("page faults that waited for storage", counters.major_faults, COUNT, EXACT),
        ("threads waiting for a core, in all", counters.waiting_seconds, SECONDS, "sampled"),
    ]
    made = [(name, humanize(value, unit), how) for name, value, unit, how in rows if value is not None]
    if summary.gpu_bytes.combined is not None:
        unheld = list_unknown(doubt_held(summary.gpus, summary.seconds).unheld_seconds)
        held = ", ".join([humanize(summary.gpu_bytes.combined, BYTES), *unheld])
        made.append(("GPU memory, all devices", held, _find_memory_basis(summary.gpus)))
    return made + [row for gpu in list_counted(summary)[:_MOST_ROWS] for row in _gpu_facts(gpu, summary)]


def _list_times(summary: Summary) -> list[tuple[str, float | None, str, str]]:
    return [
        ("time", summary.seconds, SECONDS, EXACT),
        ("CPU time of the main process", summary.cpu.main.seconds, SECONDS, EXACT),
        ("CPU time of descendants", summary.cpu.descendants.seconds, SECONDS, EXACT),
    ]


def _gpu_facts(gpu: GpuSummary, summary: Summary) -> list[tuple[str, str, str]]:
    """What a driver reports of a device as a whole."""
    seconds = summary.seconds
    busy = _remark(humanize(gpu.mean_percent, PERCENT), find_unutilized_seconds(gpu, seconds))
    energy = _remark(humanize(gpu.energy_joules, JOULES), find_unmetered_seconds(gpu, seconds))
    name = f"GPU {gpu.gpu.label}"
    rows = [
        (f"{name}: mean utilization", busy, gpu.utilization_basis),
        (f"{name}: energy", energy, gpu.energy_basis),
    ]
    return [row for row in rows if row[1] != "-"]


def _known(size: int, how: str) -> int | None:
    return None if how == UNKNOWN else size


def statements(lines: Sequence[str]) -> str:
    """Sentences, each with the indented ones below it."""
    made = []
    for line in lines[:_MOST_ROWS]:
        tag = "li" if line.startswith(" ") else "p"
        made.append(f"<{tag}>{text(line.strip())}</{tag}>")
    html = "".join(made).replace("</p><li>", "</p><ul><li>").replace("</li><p>", "</li></ul><p>")
    return (html + "</ul>" if html.endswith("</li>") else html) + count_rest(len(lines) - _MOST_ROWS, "lines")


def notes(found: Sequence[str]) -> str:
    """Sentences for the reader."""
    items = "".join(f"<li>{prose(note)}</li>" for note in found[:_MOST_NOTES])
    return f"<ul>{items}</ul>{count_rest(len(found) - _MOST_NOTES, 'notes')}" if found else ""

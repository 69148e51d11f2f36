"""Parts of a page as escaped HTML: tiles, findings, tables. Pure; no figure is computed here."""

from __future__ import annotations

from html import escape

from ...core.figures import BYTES, COUNT, JOULES, NUMBER, PERCENT, SECONDS, humanize
from ...core.model import EXACT, SAMPLED, SHARED, UNKNOWN
from ...core.text import count_of, neutralize
from ...core.units import format_cores, humanize_bytes, humanize_joules, humanize_limit, humanize_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...analysis.findings.finding import Finding
    from ...analysis.frameworks import FrameworkSummary
    from ...analysis.regions import Metric, Region
    from ...analysis.summary import GpuSummary, Summary
    from ...core.model import PeakMoment

_MOST_TILES = 4
_MOST_ROWS = 50
_MOST_NOTES = 12
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


def tiles(summary: Summary) -> str:
    """Time, CPU, RAM, devices."""
    shown = [gpu for gpu in summary.gpus if gpu.is_expected] or list(summary.gpus)
    gpus = list(map(_gpu_tile, shown)) if len(shown) <= _MOST_TILES else [_gpus_tile(summary, shown)]
    made = [_time_tile(summary), _cpu_tile(summary), _ram_tile(summary), *gpus]
    return f'<div class="tiles">{"".join(made)}</div>'


def _gpus_tile(summary: Summary, gpus: Sequence[GpuSummary]) -> str:
    """Many devices as one; the table has each."""
    size, capacity = summary.gpu_bytes.combined, summary.gpu_capacity_bytes
    busy = [gpu.mean_percent for gpu in gpus if gpu.mean_percent is not None]
    between = f"{min(busy):.0f} to {max(busy):.0f} % busy" if busy else "utilization not measured"
    return tile(
        f"{len(gpus)} GPUs · {gpus[0].gpu.name}",
        "not measured" if size is None else f"{humanize_bytes(size)} in all",
        size / capacity if size is not None and capacity else None,
        f"peak memory, job {basis(SAMPLED)}",
        text(between),
    )


def _time_tile(summary: Summary) -> str:
    cpu = f"{text(humanize_seconds(summary.cpu.combined.seconds))} of CPU time {basis(EXACT)}"
    most = f"up to {summary.processes} processes" if summary.processes > 1 else ""
    return tile("Time", humanize_seconds(summary.seconds), None, cpu, text(most))


def _cpu_tile(summary: Summary) -> str:
    mean, allowed = summary.cpu.combined.mean_percent, summary.n_expected_cores
    if mean is None or allowed <= 0:
        return tile("CPU", "not measured", None, "too short for a rate")
    cores = f"{format_cores(mean)} of {allowed:g} cores"
    explained = f"{mean:.0f} % in top, which is {mean / allowed:.0f} % of what the job may use"
    peak = summary.cpu.combined.max_percent
    busiest = "" if peak is None else f"busiest interval {format_cores(peak)} cores"
    return tile("CPU, mean", cores, mean / 100 / allowed, text(explained), text(busiest))


def _ram_tile(summary: Summary) -> str:
    peak, capacity = summary.ram.combined, summary.ram_capacity_bytes
    if peak.basis == UNKNOWN:
        return tile("RAM, peak", "not measured", None, "the job ended before the first sample")
    is_limit = summary.ram_source != "machine"
    size = humanize_limit(capacity) if is_limit else humanize_bytes(capacity)
    share = peak.total_bytes / capacity if capacity else None
    percent = "" if share is None else f"{100 * share:.0f} % of the {text(summary.ram_source)}'s memory, "
    if is_limit and share is not None:
        percent = f"{100 * share:.0f} % of the {text(summary.ram_source)} limit, "
    return tile(
        "RAM, peak", f"{humanize_bytes(peak.total_bytes)} of {size}", share, f"{percent}{basis(peak.basis)}"
    )


def _gpu_tile(gpu: GpuSummary) -> str:
    size, capacity = gpu.job_bytes.combined, gpu.gpu.memory_bytes
    whose = "job" if size is not None else "all processes"
    size = gpu.used_bytes if size is None else size
    value = "not measured" if size is None else humanize_bytes(size)
    if size is not None and capacity:
        value += f" of {humanize_bytes(capacity)}"
    share = size / capacity if size is not None and capacity else None
    return tile(
        f"GPU {gpu.gpu.ordinal} · {gpu.gpu.name}",
        value,
        share,
        f"peak memory, {whose} {basis(gpu.basis)}",
        text(_describe_busy(gpu)),
        text(_describe_energy(gpu)),
    )


def _describe_busy(gpu: GpuSummary) -> str:
    if gpu.mean_percent is None:
        return "utilization not measured"
    job = "" if gpu.job_mean_percent is None else f" (job {gpu.job_mean_percent:.0f} %)"
    return f"{gpu.mean_percent:.0f} % busy{job}"


def _describe_energy(gpu: GpuSummary) -> str:
    if gpu.energy_joules is None:
        return ""
    watts = "" if gpu.mean_watts is None else f", mean {gpu.mean_watts:.0f} W"
    return f"{humanize_joules(gpu.energy_joules)}{watts} by the driver's meter, whole device"


# ---- Findings and peaks.


def findings(found: Sequence[Finding]) -> str:
    """One card each, worst first."""
    return "".join(_finding(finding) for finding in found)


def _finding(finding: Finding) -> str:
    advice = f"<p>{text(finding.advice)}</p>" if finding.advice else ""
    sure = f"{finding.severity}, {finding.confidence} · {finding.rule}"
    disproof = f" · wrong if: {finding.disproof}" if finding.disproof else ""
    return (
        f'<article class="finding {text(finding.severity)}"><h3>{text(finding.sentence)}</h3>{advice}'
        f'<p class="sure">{text(sure + disproof)}</p></article>'
    )


def explain_peak(moment: PeakMoment, label: str) -> str:
    """Who held a peak, to be opened."""
    rows = [
        (f"{held.name or 'process'} ({held.pid})", humanize_bytes(held.size_bytes))
        for held in moment.processes
    ]
    rest = moment.n_processes - len(moment.processes)
    if rest > 0:
        rows.append((f"and {count_of(rest, 'smaller one')}", ""))
    where = ", ".join("/".join(path) for path in moment.regions)
    inside = f"<p>In {text(where)}.</p>" if where else ""
    title = f"{label}: peak {humanize_bytes(moment.size_bytes)} at {humanize_seconds(moment.at_seconds)}: who held it"
    return (
        f'<details class="peak" id="peak-{text(moment.subject)}"><summary>{text(title)}</summary>{inside}'
        f"{table(('process', 'held'), rows)}</details>"
    )


# ---- Tables.


def table(heading: Sequence[str], rows: Iterable[Sequence[str]], *, is_html: bool = False) -> str:
    """Words in the first column, figures in the others."""
    head = "".join(f'<th scope="col">{text(cell)}</th>' for cell in heading)
    body = "".join(
        f'<tr><th scope="row">{_cell(row[0], is_html)}</th>'
        f"{''.join(f'<td>{_cell(cell, is_html)}</td>' for cell in row[1:])}</tr>"
        for row in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="table of {text(heading[0])}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: str, is_html: bool) -> str:
    return cell if is_html else text(cell)


def table_of_known(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Without the columns in which nothing is known."""
    known = [place for place in range(len(heading)) if any(row[place] != "-" for row in rows)]
    return table([heading[place] for place in known], [[row[place] for place in known] for row in rows])


def regions(found: Sequence[Region], seconds: float) -> str:
    """The longest regions, with their share of the time."""
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
    rows = [_region_row(region, seconds) for region in longest[:_MOST_ROWS]]
    return table_of_known(heading, rows) + _count_rest(len(found) - _MOST_ROWS, "regions")


def _region_row(region: Region, seconds: float) -> tuple[str, ...]:
    about = "~ " if region.cpu_basis == SHARED else ""
    bound = "≥ " if region.peak_ram_bytes is not None and region.peak_ram_basis != EXACT else ""
    share = 100 * region.wall_seconds / seconds if seconds > 0 else None
    return (
        "/".join(region.path),
        f"{region.calls}{f' (+{region.open_calls} unfinished)' if region.open_calls else ''}",
        humanize(region.wall_seconds, SECONDS),
        humanize(share, PERCENT),
        humanize(region.mean_seconds, SECONDS),
        f"{about}{humanize(region.cpu_seconds, SECONDS)}",
        f"{bound}{humanize(region.peak_ram_bytes, BYTES)}",
        humanize(region.gpu_bytes, BYTES),
        humanize(region.gpu_percent, PERCENT),
        humanize(region.energy_joules, JOULES),
    )


def metrics(found: Sequence[Metric]) -> str:
    """What the job logged."""
    heading = ("metric", "logged", "last", "smallest", "mean", "largest", "not finite")
    rows = [
        (
            metric.name,
            str(metric.logged),
            *(
                humanize(value, NUMBER)
                for value in (metric.last, metric.minimum, metric.mean, metric.maximum)
            ),
            str(metric.not_finite),
        )
        for metric in found[:_MOST_ROWS]
    ]
    return table(heading, rows) + _count_rest(len(found) - _MOST_ROWS, "metrics")


def devices(found: Sequence[GpuSummary]) -> str:
    """Every device of the machine."""
    heading = (
        "device",
        "job",
        "all processes",
        "memory",
        "busy",
        "job busy",
        "power",
        "hottest",
        "throttled",
        "energy",
    )
    rows = [
        (
            f"GPU {gpu.gpu.ordinal} {gpu.gpu.name}{'' if gpu.is_expected else ' (not used by the job)'}",
            humanize(gpu.job_bytes.combined, BYTES),
            humanize(gpu.used_bytes, BYTES),
            humanize(gpu.gpu.memory_bytes, BYTES),
            humanize(gpu.mean_percent, PERCENT),
            humanize(gpu.job_mean_percent, PERCENT),
            "-" if gpu.mean_watts is None else f"{gpu.mean_watts:.0f} W",
            "-" if gpu.max_celsius is None else f"{gpu.max_celsius:.0f} °C",
            ", ".join(f"{reason} {100 * share:.0f} %" for reason, share in gpu.throttled if share > 0.01)
            or "-",
            humanize(gpu.energy_joules, JOULES),
        )
        for gpu in found
    ]
    return table_of_known(heading, rows)


def frameworks(found: Sequence[FrameworkSummary]) -> str:
    """A stacked bar of GPU memory at the fullest moment of each process."""
    return "".join(_framework(summary) for summary in found[:_MOST_ROWS])


def _framework(summary: FrameworkSummary) -> str:
    memory = summary.memory
    parts = [
        ("tensors", memory.split_in_use_bytes),
        ("cached for reuse", summary.cached_bytes),
        ("context and libraries", summary.context_bytes),
        ("other processes", memory.split_others_bytes),
        ("free", memory.split_free_bytes),
    ]
    known = [(name, size) for name, size in parts if size is not None]
    total = sum(size for _, size in known)
    if not total:
        return ""
    slices = "".join(
        f'<i class="part{number}" style="width:{100 * size / total:.2f}%"></i>'
        for number, (_, size) in enumerate(known)
    )
    legend = ", ".join(f"{name} {humanize_bytes(size)}" for name, size in known)
    where = f"GPU {summary.gpu.ordinal}" if summary.gpu else memory.device
    title = f"{memory.framework}, {where}, process {memory.pid}: GPU memory at its fullest moment"
    return (
        f'<figure class="split"><figcaption>{text(title)}</figcaption>'
        f'<div class="stack" role="img" aria-label="{text(legend)}">{slices}</div><p>{text(legend)}</p></figure>'
    )


def _count_rest(count: int, what: str) -> str:
    return f'<p class="more">and {count} more {what}; the JSON report has all</p>' if count > 0 else ""


def facts(summary: Summary) -> list[tuple[str, str, str]]:
    """Every figure with how sure it is: name, value, basis."""
    main, descendants, combined = summary.ram
    counters = summary.counters
    rows: list[tuple[str, float | None, str, str]] = [
        ("time", summary.seconds, SECONDS, EXACT),
        ("CPU time of the main process", summary.cpu.main.seconds, SECONDS, EXACT),
        ("CPU time of descendants", summary.cpu.descendants.seconds, SECONDS, EXACT),
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
        ("GPU memory, all devices", summary.gpu_bytes.combined, BYTES, "sampled"),
    ]
    return [(name, humanize(value, unit), how) for name, value, unit, how in rows if value is not None]


def _known(size: int, how: str) -> int | None:
    return None if how == UNKNOWN else size


def statements(lines: Sequence[str]) -> str:
    """Sentences, each with the indented ones below it."""
    made = []
    for line in lines[:_MOST_ROWS]:
        tag = "li" if line.startswith(" ") else "p"
        made.append(f"<{tag}>{text(line.strip())}</{tag}>")
    html = "".join(made).replace("</p><li>", "</p><ul><li>").replace("</li><p>", "</li></ul><p>")
    return (html + "</ul>" if html.endswith("</li>") else html) + _count_rest(
        len(lines) - _MOST_ROWS, "lines"
    )


def notes(found: Sequence[str]) -> str:
    """Sentences for the reader."""
    items = "".join(f"<li>{text(note)}</li>" for note in found[:_MOST_NOTES])
    return f"<ul>{items}</ul>{_count_rest(len(found) - _MOST_NOTES, 'notes')}" if found else ""

"""A report for people: what was used, of how much, and how sure that is."""

from __future__ import annotations

from ..core.model import ESTIMATE, SAMPLED, UNKNOWN
from ..core.text import neutralize
from ..core.units import humanize_bytes, humanize_joules, humanize_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.summary import CpuSummary, GpuSummary, Summary
    from ..core.model import RamPeak
    from .build import Report, Reports
    from .contract import View

_ENDINGS = {
    "running": "still running",
    "stopped": "finished",
    "abandoned": "ended without stopping its tracker",
    "killed": "killed",
    "sampler lost": "finished, but its sampler was lost",
}


def to_text(report: Report, _view: View | None = None) -> str:
    """A few aligned lines and the notes, ending with a newline."""
    rows = [
        ("time", humanize_seconds(report.summary.seconds)),
        *_cpu_rows(report.summary),
        *_ram_rows(report.summary),
        *_gpu_rows(report.summary),
    ]
    if report.frameworks:
        from .framework_lines import tell_frameworks

        rows.extend(tell_frameworks(report.frameworks))
    if report.tracker_cpu_seconds is not None and report.tracker_ram_bytes:
        cost = (
            f"{humanize_seconds(report.tracker_cpu_seconds)} of CPU, "
            f"{humanize_bytes(report.tracker_ram_bytes)} (not in the figures above)"
        )
        rows.append(("tracking", cost))
    width = max(len(label) for label, _ in rows)
    lines = [f"{_title(report)}"]
    lines.extend(f"  {label:<{width}}  {text}" for label, text in rows)
    if report.regions or report.metrics:
        from .region_tables import tell_metrics, tell_regions

        lines.extend(f"  {line}" for line in (*tell_regions(report.regions), *tell_metrics(report.metrics)))
    lines.extend(f"  note: {note}" for note in report.notes)
    return "\n".join(lines) + "\n"


def join_texts(reports: Reports, view: View | None = None) -> str:
    """With an empty line between."""
    return "\n".join(to_text(report, view) for report in reports.reports)


def _title(report: Report) -> str:
    command = " ".join(report.header.command) or f"process {report.header.pid}"
    if len(command) > 60:
        command = command[:57] + "..."
    return f"{neutralize(command)}: {tell_ending(report.ending, report.exit_code)}"


def tell_ending(ending: str, code: int | None) -> str:
    """How a job ended, in words."""
    if code is None:
        return _ENDINGS.get(ending, ending)
    lost = ", but its sampler was lost" if ending == "sampler lost" else ""
    return f"exit code {code}{lost}" if code >= 0 else f"killed by signal {-code}{lost}"


def _cpu_rows(summary: Summary) -> list[tuple[str, str]]:
    combined = summary.cpu.combined
    rows = [
        (
            "CPU",
            f"{_cores(combined.mean_percent)} of {_number(summary.n_expected_cores)} cores on average "
            f"({combined.mean_percent:.0f} %), at most {_cores(combined.max_percent)}; "
            f"{humanize_seconds(combined.seconds)} of CPU time",
        )
    ]
    if summary.cpu.descendants.seconds > 0 or summary.threads.descendants:
        rows.append(
            (
                "",
                f"main {_share(summary.cpu.main)}, descendants {_share(summary.cpu.descendants)}; "
                f"{summary.processes} processes, {summary.threads.combined} threads at most",
            )
        )
    if summary.n_expected_cores != summary.n_cores:
        rows.append(("", f"the machine has {summary.n_cores} cores"))
    return rows


def _ram_rows(summary: Summary) -> list[tuple[str, str]]:
    peak = summary.ram.combined
    if peak.basis == UNKNOWN:
        return [("RAM", "not measured: the job was over before it could be looked at")]
    capacity = summary.ram_capacity_bytes
    share = f", {100 * peak.total_bytes / capacity:.0f} % of it" if capacity else ""
    rows = [
        (
            "RAM",
            f"{humanize_bytes(peak.total_bytes)} at most, of {humanize_bytes(capacity)}{share} "
            f"({peak.basis})",
        )
    ]
    if peak.basis == ESTIMATE:
        ceiling = humanize_bytes(summary.ram_ceiling_bytes)
        rows.append(("", f"what is shared could not be read in time; at the very most {ceiling}"))
    if summary.ram.descendants.total_bytes:
        rows.append(
            (
                "",
                f"main {_ram(summary.ram.main)}, descendants {_ram(summary.ram.descendants)}, "
                "each at its own peak",
            )
        )
    if summary.machine_ram_bytes != capacity:
        rows.append(
            (
                "",
                f"the machine has {humanize_bytes(summary.machine_ram_bytes)}, "
                f"{humanize_bytes(summary.machine_ram_used_bytes)} of them in use at most",
            )
        )
    return rows


def _gpu_rows(summary: Summary) -> list[tuple[str, str]]:
    if not summary.gpus:
        return [("GPU", "not measured")]
    rows = []
    told = [gpu for gpu in summary.gpus if gpu.is_expected] or list(summary.gpus)
    for gpu in told:
        rows += [(f"GPU {gpu.gpu.ordinal}", f"{neutralize(gpu.gpu.name)}: {_gpu_memory(gpu)}")]
        rows += [("", _gpu_busy(gpu))]
        rows += [("", text) for text in (_gpu_energy(gpu, summary.seconds), _gpu_limits(gpu)) if text]
    if len(told) > 1 and all(gpu.basis not in (ESTIMATE, UNKNOWN) for gpu in told):
        rows.append(("GPUs", f"{humanize_bytes(summary.gpu_bytes.combined)} of GPU RAM at most, together"))
    if len(told) < len(summary.gpus):
        others = ", ".join(str(gpu.gpu.ordinal) for gpu in summary.gpus if gpu not in told)
        rows.append(("", f"not counted, because the job was not on them: GPU {others}"))
    return rows


def _gpu_memory(gpu: GpuSummary) -> str:
    total = "" if gpu.gpu.memory_bytes is None else f" of {humanize_bytes(gpu.gpu.memory_bytes)}"
    used = "not measured" if gpu.used_bytes is None else humanize_bytes(gpu.used_bytes)
    return f"{_gpu_job(gpu)}{total} by the job, {used} by everybody"


def _gpu_job(gpu: GpuSummary) -> str:
    if gpu.job_bytes.combined is None:
        return "not measured"
    certainty = "" if gpu.basis == SAMPLED else f" ({gpu.basis})"
    return f"{humanize_bytes(gpu.job_bytes.combined)}{certainty}"


def _gpu_energy(gpu: GpuSummary, seconds: float) -> str:
    if gpu.energy_joules is None or gpu.mean_watts is None:
        return "" if gpu.max_watts is None else f"{gpu.max_watts:.0f} W at most"
    late = seconds - gpu.energy_seconds
    since = f" (without the first {humanize_seconds(late)})" if late > 0.01 * seconds + 0.05 else ""
    return f"{humanize_joules(gpu.energy_joules)}{since}, {gpu.mean_watts:.0f} W on average, by everybody"


def _gpu_limits(gpu: GpuSummary) -> str:
    held = [
        f"{reason} for {100 * share:.0f} % of the time" for reason, share in gpu.throttled if share > 0.01
    ]
    return f"clocks held down by {', '.join(held)}" if held else ""


def _gpu_busy(gpu: GpuSummary) -> str:
    if gpu.mean_percent is None or gpu.max_percent is None:
        return "utilization not measured"
    job = "" if gpu.job_mean_percent is None else f" ({gpu.job_mean_percent:.0f} % by the job)"
    return f"{gpu.mean_percent:.0f} % busy on average{job}, {gpu.max_percent:.0f} % at most"


def _cores(percent: float) -> str:
    return _number(round(percent / 100, 1 if percent >= 100 else 2))


def _number(value: float) -> str:
    return f"{value:g}"


def _share(cpu: CpuSummary) -> str:
    return f"{cpu.mean_percent:.0f} %"


def _ram(peak: RamPeak) -> str:
    return humanize_bytes(peak.total_bytes)

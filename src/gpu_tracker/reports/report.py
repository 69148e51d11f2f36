"""A report as text for people: what was used, of how much, and how sure that is."""

from __future__ import annotations

from ..core.model import ESTIMATE, SAMPLED, UNKNOWN
from ..core.text import neutralize
from ..core.units import humanize_bytes, humanize_joules, humanize_limit, humanize_seconds
from ..core.vendors import NO_GPU

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.summary import GpuSummary, Summary
    from .build import Report, Reports
    from .contract import View

_ENDINGS = {
    "running": "still running",
    "stopped": "finished",
    "ended": "ended, exit code not known",
    "interrupted": "interrupted",
    "raised": "ended by an exception",
    "abandoned": "ended without stopping gpu-tracker",
    "killed": "cut off",
    "sampler lost": "finished, but its sampler was lost",
}
_SIGKILL = 9
_MOST_NOTES = 25


def to_text(report: Report, _view: View | None = None) -> str:
    """A few aligned lines and the notes, ending with a newline."""
    rows = [
        ("time", humanize_seconds(report.summary.seconds)),
        *_cpu_rows(report.summary),
        *_ram_rows(report.summary),
        *(_gpu_rows(report.summary) if report.summary.gpus else [("GPU", _explain_no_gpu(report))]),
    ]
    if report.frameworks:
        from .framework_lines import format_frameworks

        rows.extend(format_frameworks(report.frameworks))
    width = max(len(label) for label, _ in rows)
    lines = [f"{label:<{width}}  {text}" for label, text in rows]
    if report.tracker_cpu_seconds is not None and report.tracker_ram_bytes:
        ram = humanize_bytes(report.tracker_ram_bytes)
        lines.append(f"tracker's own cost: {report.tracker_cpu_seconds:.2f} s CPU, {ram} (excluded)")
    if report.regions or report.metrics:
        from .region_tables import format_metrics, format_regions

        lines += [*format_regions(report.regions), *format_metrics(report.metrics)]
    notes = [note for note in report.notes if note != NO_GPU]  # the GPU row says it
    lines += [f"note: {note}" for note in notes[:_MOST_NOTES]]
    if len(notes) > _MOST_NOTES:
        lines.append(f"and {len(notes) - _MOST_NOTES} more notes (the JSON report has all)")
    # Each is one line, whatever the recording contains.
    return "\n  ".join(map(neutralize, [_title(report), *lines])) + "\n"


def join_texts(reports: Reports, view: View | None = None) -> str:
    """Several reports, with an empty line between."""
    return "\n".join(to_text(report, view) for report in reports.reports)


def describe_ending(ending: str, code: int | None) -> str:
    """How a job ended, in a few words."""
    if code is None:
        return _ENDINGS.get(ending, ending)
    lost = ", but its sampler was lost" if ending == "sampler lost" else ""
    return f"exit code {code}{lost}" if code >= 0 else f"killed by {_name_signal(-code)}{lost}"


def _name_signal(number: int) -> str:
    from signal import Signals

    try:
        return f"{Signals(number).name} ({number})"
    except ValueError:
        return f"signal {number}"


def _title(report: Report) -> str:
    command = " ".join(report.header.command) or f"process {report.header.pid}"
    if len(command) > 60:
        command = command[:57] + "..."
    hint = ""
    if report.exit_code == -_SIGKILL:
        hint = "; often out of memory"
    elif report.ending in ("abandoned", "killed"):
        hint = "; figures up to the last sample"
    return f"{command}: {describe_ending(report.ending, report.exit_code)}{hint}"


def _cpu_rows(summary: Summary) -> list[tuple[str, str]]:
    main, descendants, combined = summary.cpu
    expected = summary.n_expected_cores
    mean = combined.mean_percent
    spent = f"{humanize_seconds(combined.seconds)} of CPU time"
    if mean is None:
        return [("CPU", f"{spent}; too short for a rate")]
    share = mean / expected if expected > 0 else 0.0
    in_top = f"; {mean:.0f} % in top" if mean > 100 else ""
    rows = [
        (
            "CPU",
            f"{_cores(mean)} of {expected:g} cores on average "
            f"({share:.0f} %{in_top}), peak {_cores(combined.max_percent)}; {spent}",
        )
    ]
    if descendants.seconds > 0 or summary.threads.descendants:
        rows.append(
            (
                "",
                f"main {_cores(main.mean_percent)}, descendants {_cores(descendants.mean_percent)} cores; "
                f"up to {summary.processes} processes, {summary.threads.combined} threads",
            )
        )
    if expected != summary.n_cores:
        rows.append(("", f"the machine has {summary.n_cores} cores"))
    return rows


def _ram_rows(summary: Summary) -> list[tuple[str, str]]:
    main, descendants, combined = summary.ram
    if combined.basis == UNKNOWN:
        return [("RAM", "not measured: the job ended before the first sample")]
    peak = humanize_bytes(combined.total_bytes)
    rows = [("RAM", f"peak {peak} of {_ram_capacity(summary)}, {combined.basis}")]
    if combined.basis == ESTIMATE:
        ceiling = _size(summary.ram_ceiling_bytes)
        rows.append(("", f"shared memory could not be read in time; upper bound {ceiling}"))
    if descendants.total_bytes:
        rows.append(
            (
                "",
                f"main {humanize_bytes(main.total_bytes)}, descendants {humanize_bytes(descendants.total_bytes)} "
                "(peaks at different times; they need not add up)",
            )
        )
    if summary.machine_ram_bytes != summary.ram_capacity_bytes:
        machine, used = summary.machine_ram_bytes, summary.machine_ram_used_bytes
        rows.append(("", f"the machine has {humanize_bytes(machine)}, peak use {humanize_bytes(used)}"))
    return rows


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


def _gpu_rows(summary: Summary) -> list[tuple[str, str]]:
    rows = []
    shown = [gpu for gpu in summary.gpus if gpu.is_expected] or list(summary.gpus)
    for gpu in shown:
        rows += [(f"GPU {gpu.gpu.ordinal}", f"{gpu.gpu.name}: {_gpu_memory(gpu)}")]
        rows += [("", _gpu_busy(gpu))]
        rows += [("", text) for text in (_gpu_energy(gpu, summary.seconds), _gpu_throttling(gpu)) if text]
    if len(shown) > 1 and all(gpu.basis not in (ESTIMATE, UNKNOWN) for gpu in shown):
        rows.append(("GPUs", f"peak {_size(summary.gpu_bytes.combined)} of GPU RAM, all together"))
    others = [gpu for gpu in summary.gpus if gpu not in shown]
    unused = [gpu for gpu in others if not gpu.may_be_used or gpu.job_bytes.combined is not None]
    unknown = [gpu for gpu in others if gpu not in unused]
    if unused:
        rows.append(("", f"not counted, because the job did not use them: GPU {_ordinals(unused)}"))
    if unknown:
        rows.append(
            ("", f"not counted, because it is not known whether the job used them: GPU {_ordinals(unknown)}")
        )
    return rows


def _ordinals(gpus: Sequence[GpuSummary]) -> str:
    return ", ".join(str(gpu.gpu.ordinal) for gpu in gpus)


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
    return "-" if percent is None else f"{round(percent / 100, 1 if percent >= 100 else 2):g}"

"""Several ranks as one job, as text. Pure."""

from __future__ import annotations

from ..core.figures import BYTES, CORES, JOULES, PERCENT, RUN, SECONDS, humanize
from ..core.model import ESTIMATE
from ..core.text import align, count_of, neutralize, shorten
from .energy_lines import format_carbon
from .report import describe_ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.job import Combined, Host, HostGpu, Rank
    from .contract import View

_MOST_RANKS = 64
_NAME_CELLS = 40


def to_text(combined: Combined, _view: View | None = None) -> str:
    """Totals, hosts with their devices, balance between ranks, the ranks, and the notes."""
    lines = [title_job(combined), *(f"  {line}" for line in align(_total_rows(combined), frozenset({0, 1})))]
    for host in combined.hosts:
        lines += [f"{_clean(host.name)}: {count_of(host.ranks, 'recording')}", *_host_lines(host)]
    lines += ["", *_balance_lines(combined), "", *_rank_lines(combined)]
    lines += [f"note: {neutralize(note)}" for note in combined.notes]
    return "\n".join(lines) + "\n"


def title_job(combined: Combined) -> str:
    """How much it is made of."""
    return f"{count_of(len(combined.ranks), 'recording')} on {count_of(len(combined.hosts), 'host')}"


def _total_rows(combined: Combined) -> list[tuple[str, str]]:
    values = combined.values
    cores = humanize(values["mean_cores"], CORES)
    rows = [
        ("time", f"{humanize(values['time'], SECONDS)}, from the first start to the last end"),
        ("CPU", f"{humanize(values['cpu_time'], SECONDS)} of CPU time, {cores} cores on average"),
    ]
    if len(combined.hosts) > 1:
        rows.append(("RAM", f"upper bound {humanize(combined.ram_at_most_bytes, BYTES)}, all hosts together"))
    if values["peak_gpu_ram"] is not None:
        rows.append(("GPU RAM", f"{humanize(values['peak_gpu_ram'], BYTES)} (sum of the devices' peaks)"))
    if values["energy"] is not None:
        rows.append(
            ("GPU energy", f"{humanize(values['energy'], JOULES)} (by the drivers' meters, whole devices)")
        )
    if combined.machine_joules is not None:
        rows.append(("CPU energy", f"{humanize(combined.machine_joules, JOULES)} (by RAPL, whole machines)"))
    return [*rows, *format_carbon(combined.carbon)]


def _host_lines(host: Host) -> list[str]:
    rows = [
        ("RAM", f"peak {_ram_text(host)}; {humanize(host.system_ram_bytes, BYTES)} in use on the machine")
    ]
    rows += [(f"GPU {gpu.ordinal}", _gpu_text(gpu)) for gpu in host.gpus]
    return [f"  {line}" for line in align(rows, frozenset({0, 1}))]


def describe_host(host: Host) -> tuple[str, str, str]:
    """Its recordings, peak memory and devices, in a few words each."""
    return (
        str(host.ranks),
        _ram_text(host),
        "; ".join(f"GPU {gpu.ordinal} {_gpu_text(gpu)}" for gpu in host.gpus) or "-",
    )


def _ram_text(host: Host) -> str:
    most, least = humanize(host.ram_at_most_bytes, BYTES), humanize(host.ram_at_least_bytes, BYTES)
    return most if most == least else f"between {least} and {most}"


def _gpu_text(gpu: HostGpu) -> str:
    certainty = " (estimate)" if gpu.utilization_basis == ESTIMATE else ""
    return (
        f"{_clean(gpu.name)}: job {humanize(gpu.job_bytes, BYTES)}, all processes {humanize(gpu.used_bytes, BYTES)}, "
        f"{humanize(gpu.mean_percent, PERCENT)} busy{certainty}, {humanize(gpu.energy_joules, JOULES)}"
    )


def _balance_lines(combined: Combined) -> list[str]:
    rows = [("per recording", "smallest", "median", "largest", "largest above mean")]
    for balance in combined.balance:
        unit = balance.figure.unit
        rows.append(
            (
                balance.figure.label,
                humanize(balance.smallest, unit),
                humanize(balance.median, unit),
                humanize(balance.largest, unit),
                humanize(balance.imbalance_percent, PERCENT),
            )
        )
    return align(rows)


def _rank_lines(combined: Combined) -> list[str]:
    known = [figure for figure in RUN if any(rank.values[figure.name] is not None for rank in combined.ranks)]
    rows = [["recording", "host", "start", *(figure.label for figure in known), "end"]]
    for rank in combined.ranks[:_MOST_RANKS]:
        figures = (humanize(rank.values[figure.name], figure.unit) for figure in known)
        rows.append(
            [_clean(rank.name), _clean(rank.host), f"+{rank.begin_seconds:.0f} s", *figures, _ending(rank)]
        )
    left = len(combined.ranks) - _MOST_RANKS
    more = [f"and {left} more (-f json has all)"] if left > 0 else []
    return [*align(rows, frozenset({0, 1, len(rows[0]) - 1})), *more]


def _ending(rank: Rank) -> str:
    return neutralize(describe_ending(rank.ending, rank.exit_code)) + (
        " (part of another)" if rank.part_of else ""
    )


def _clean(text: str) -> str:
    return shorten(text, _NAME_CELLS)

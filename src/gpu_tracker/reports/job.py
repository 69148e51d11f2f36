"""Several ranks as one job, as text. Pure."""

from __future__ import annotations

from ..core.figures import RUN
from ..core.model import ESTIMATE
from ..core.text import align, count_cells, count_of, neutralize, shorten, wrap_all
from ..core.units import BYTES, JOULES, PERCENT, SECONDS, humanize, humanize_cores
from .energy_lines import format_carbon, list_unmetered, name_meter
from .report import describe_ending
from .runs import mark
from .usage_lines import list_unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.job import Balance, Combined, Host, HostGpu, Rank
    from .contract import View

_MOST_RANKS = 64
_NAME_CELLS = 40
_MARGIN = "  "


def to_text(combined: Combined, view: View) -> str:
    """Totals, hosts with their devices, balance between ranks, the ranks, and the notes."""
    lines = [title_job(combined), *_lay_out(_total_rows(combined), view)]
    for host in combined.hosts:
        lines += [
            f"{_clean(host.name)}: {count_of(host.ranks, 'recording')}",
            *_lay_out(_list_of_host(host), view),
        ]
    lines += ["", *_balance_lines(combined), "", *_rank_lines(combined)]
    lines += wrap_all(
        (f"note: {neutralize(note)}" for note in combined.notes), view.columns, 2 * len(_MARGIN)
    )
    return "\n".join(lines) + "\n"


def _lay_out(rows: Sequence[tuple[str, str]], view: View) -> list[str]:
    """Labels in one column, texts in the next, wrapped there."""
    hanging = len(_MARGIN) + max(count_cells(label) for label, _ in rows) + len(_MARGIN)
    lines = align(rows, frozenset({0, 1}), gap=_MARGIN)
    return wrap_all((f"{_MARGIN}{line}" for line in lines), view.columns, hanging)


def title_job(combined: Combined) -> str:
    """How much it is made of."""
    return f"{count_of(len(combined.ranks), 'recording')} on {count_of(len(combined.hosts), 'host')}"


def _total_rows(combined: Combined) -> list[tuple[str, str]]:
    values = combined.values
    cores = "- cores" if values["mean_cores"] is None else humanize_cores(100 * values["mean_cores"])
    rows = [
        ("time", f"{humanize(values['time'], SECONDS)}, from the first start to the last end"),
        ("CPU", f"{humanize(values['cpu_time'], SECONDS)} of CPU time, {cores} on average"),
    ]
    if len(combined.hosts) > 1:
        rows.append(("RAM", f"{_bound_ram(combined)}, all hosts together"))
    if values["peak_gpu_ram"] is not None:
        rows.append(("GPU RAM", _describe_held(combined, "sum of the devices' peaks")))
    if values["energy"] is not None:
        rows.append(("GPU energy", _describe_energy(combined, "by the drivers' meters", ", whole devices")))
    return [*rows, *_list_machine_energy(combined)]


def list_totals(combined: Combined) -> list[tuple[str, str, str]]:
    """What tables have of the whole job: the name of a figure, if it is one, then its label and its value."""
    figures = [
        (figure.name, figure.label, humanize(value, figure.unit))
        for figure in RUN
        if (value := combined.values[figure.name]) is not None
    ]
    described = {"energy": _describe_energy(combined), "peak_gpu_ram": _describe_held(combined)}
    rows = [(name, label, described.get(name, value)) for name, label, value in figures]
    if combined.values["peak_ram"] is None and combined.ram_at_most_bytes is not None:
        rows.append(("", "RAM, upper bound", humanize(combined.ram_at_most_bytes, BYTES)))
    if combined.ram_at_most_bytes is None and combined.ram_at_least_bytes is not None:
        rows.append(("", "RAM", _bound_ram(combined)))
    return [*rows, *(("", *row) for row in _list_machine_energy(combined))]


def _bound_ram(combined: Combined) -> str:
    """Of what was not measured all the time there is no upper bound."""
    least, most = combined.ram_at_least_bytes, combined.ram_at_most_bytes
    if most is None and least is not None:
        return f"at least {humanize(least, BYTES)}"
    return f"upper bound {humanize(most, BYTES)}"


def _describe_energy(combined: Combined, metered: str = "", whose: str = "") -> str:
    """That of the devices, how it is known, and what it is without."""
    gpus = [gpu for host in combined.hosts for gpu in host.gpus if gpu.energy_joules is not None]
    meter = name_meter((gpu.energy_basis for gpu in gpus), metered)
    every = "; ".join([*([meter + whose] if meter else []), *_list_unmetered(combined)])
    return humanize(combined.values["energy"], JOULES) + (f" ({every})" if every else "")


def _describe_held(combined: Combined, *remarks: str) -> str:
    """The job's memory on all devices, how it is known, and what it is without."""
    gpus = [gpu for host in combined.hosts for gpu in host.gpus]
    is_estimate = any(gpu.memory_basis == ESTIMATE for gpu in gpus)
    missing = list_unknown(max((gpu.unheld_seconds for gpu in gpus), default=0.0))
    every = "; ".join([*remarks, *([ESTIMATE] if is_estimate else []), *missing])
    return humanize(combined.values["peak_gpu_ram"], BYTES) + (f" ({every})" if every else "")


def _list_unmetered(combined: Combined) -> list[str]:
    return list_unmetered(
        (f"{_name_host(host, combined)}GPU {gpu.label}", gpu.unmetered_seconds)
        for host in combined.hosts
        for gpu in host.gpus
    )


def _list_unmetered_machines(combined: Combined) -> list[str]:
    return list_unmetered(
        (f"{_name_host(host, combined)}CPU", host.unmetered_seconds) for host in combined.hosts
    )


def _name_host(host: Host, combined: Combined) -> str:
    """Nothing if it is the only one."""
    return "" if len(combined.hosts) == 1 else f"{_clean(host.name)} "


def _list_machine_energy(combined: Combined) -> list[tuple[str, str]]:
    """Of processors, and the carbon dioxide of all energy."""
    rows = []
    if combined.machine_joules is not None:
        remarks = "; ".join(["by RAPL, whole machines", *_list_unmetered_machines(combined)])
        rows.append(("CPU energy", f"{humanize(combined.machine_joules, JOULES)} ({remarks})"))
    unmetered = [*_list_unmetered(combined), *_list_unmetered_machines(combined)]
    return [*rows, *format_carbon(combined.carbon, unmetered)]


def _list_of_host(host: Host) -> list[tuple[str, str]]:
    rows = [
        ("RAM", f"peak {_ram_text(host)}; {humanize(host.system_ram_bytes, BYTES)} in use on the machine")
    ]
    return [*rows, *((f"GPU {gpu.label}", _gpu_text(gpu)) for gpu in host.gpus)]


def describe_host(host: Host) -> tuple[str, str, str]:
    """Its recordings, peak memory and devices, in a few words each."""
    return (
        str(host.ranks),
        _ram_text(host),
        "; ".join(f"GPU {gpu.label} {_gpu_text(gpu)}" for gpu in host.gpus) or "-",
    )


def _ram_text(host: Host) -> str:
    most, least = humanize(host.ram_at_most_bytes, BYTES), humanize(host.ram_at_least_bytes, BYTES)
    if host.ram_at_most_bytes is None and host.ram_at_least_bytes is not None:
        return f"at least {least}"
    return most if most == least else f"between {least} and {most}"


def _gpu_text(gpu: HostGpu) -> str:
    remarks = ["estimate"] if gpu.utilization_basis == ESTIMATE else []
    remarks += list_unknown(gpu.unutilized_seconds)
    certainty = f" ({', '.join(remarks)})" if remarks else ""
    held = [*([ESTIMATE] if gpu.memory_basis == ESTIMATE else []), *list_unknown(gpu.unheld_seconds)]
    job = humanize(gpu.job_bytes, BYTES) + (
        f" ({', '.join(held)})" if held and gpu.job_bytes is not None else ""
    )
    estimated = [ESTIMATE] if gpu.energy_basis == ESTIMATE else []
    energy = ", ".join(
        [humanize(gpu.energy_joules, JOULES), *estimated, *list_unknown(gpu.unmetered_seconds)]
    )
    return (
        f"{_clean(gpu.name)}: job {job}, all processes {humanize(gpu.used_bytes, BYTES)}, "
        f"{humanize(gpu.mean_percent, PERCENT)} busy{certainty}, {energy}"
    )


def _balance_lines(combined: Combined) -> list[str]:
    rows = [
        (
            balance.figure.label,
            *show_balance(balance),
            humanize(balance.imbalance_percent, PERCENT),
        )
        for balance in combined.balance
    ]
    return align([("per recording", "smallest", "median", "largest", "largest above mean"), *rows])


def show_balance(balance: Balance) -> tuple[str, str, str]:
    """The smallest, median and largest, with a sign if they are lower bounds."""
    sign, unit = "≥ " if balance.is_at_least else "", balance.figure.unit
    smallest, middle, largest = (
        f"{sign}{humanize(value, unit)}" for value in (balance.smallest, balance.median, balance.largest)
    )
    return smallest, middle, largest


def _rank_lines(combined: Combined) -> list[str]:
    known = [figure for figure in RUN if any(rank.values[figure.name] is not None for rank in combined.ranks)]
    rows = [["recording", "host", "start", *(figure.label for figure in known), "end"]]
    for rank in combined.ranks[:_MOST_RANKS]:
        figures = (mark(figure, rank.values[figure.name], rank.estimates, rank.at_least) for figure in known)
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

"""Several ranks as one job, as text. Pure."""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest

from ..analysis.job import describe_missing
from ..analysis.ranks import list_worst
from ..core.figures import RUN
from ..core.model import ESTIMATE
from ..core.text import align, count_cells, count_of, neutralize, shorten, wrap_all
from ..core.units import BYTES, JOULES, NUMBER, PERCENT, SECONDS, humanize, humanize_cores
from .energy_lines import format_carbon, list_unmetered, name_meter
from .report import describe_ending
from .runs import mark
from .usage_lines import list_unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.balance import Balance, MetricSpread
    from ..analysis.findings.finding import Finding
    from ..analysis.hosts import Host, HostGpu
    from ..analysis.job import Combined
    from ..analysis.job_findings import JobFinding
    from ..analysis.ranks import Rank
    from .contract import View

_MOST_RANKS = _MOST_HOSTS = 10
_MOST_IN_DETAIL = 4
_MOST_MISSING = 5
_MOST_METRICS = 8
_SCHEDULERS = {"slurm": "Slurm", "pbs": "PBS", "kubernetes": "Kubernetes"}
_NAME_CELLS = 40
SPREAD = ("per run", "smallest", "median", "p95", "largest", "largest is")
METRICS = ("metric", "ranks", "smallest", "median", "largest", "largest is")
BALANCE = ("per recording", "smallest", "median", "largest", "mean ÷ largest", "largest is")
_MARGIN = "  "


def to_text(combined: Combined, view: View) -> str:
    """Totals, hosts with their devices, balance between ranks, the ranks, and the notes."""
    if combined.tasks:
        lines = [title_job(combined), *_lay_out([("end", _count_states(combined))], view)]
        lines += ["", *align([SPREAD, *list_spread(combined)], frozenset({0, len(SPREAD) - 1}))]
        lines += ["", *_task_lines(combined)]
        return "\n".join([*lines, *_note_lines(combined, view)]) + "\n"
    lines = [title_job(combined), *_lay_out(_total_rows(combined), view)]
    if len(combined.hosts) <= _MOST_IN_DETAIL:
        for host in combined.hosts:
            lines += [
                f"{_clean(host.name)}: {count_of(host.ranks, 'recording')}",
                *_lay_out(_list_of_host(host), view),
            ]
    else:
        lines += ["", *_host_lines(combined.hosts)]
    lines += ["", *_balance_lines(combined)]
    if combined.metrics:
        rows = list_metrics(combined.metrics[:_MOST_METRICS])
        lines += ["", *align([METRICS, *rows], frozenset({0, len(METRICS) - 1}))]
        lines += _count_rest(len(combined.metrics) - len(rows))
    lines += ["", *_rank_lines(combined), *_finding_lines(combined.findings, view)]
    return "\n".join([*lines, *_note_lines(combined, view)]) + "\n"


def _note_lines(combined: Combined, view: View) -> list[str]:
    return wrap_all((f"note: {neutralize(note)}" for note in combined.notes), view.columns, 2 * len(_MARGIN))


def _finding_lines(findings: Sequence[JobFinding], view: View) -> list[str]:
    if not findings:
        return []
    from .finding_lines import format_findings

    texts = map(neutralize, format_findings(list_findings(findings)))
    return ["", *wrap_all(texts, view.columns, 2 * len(_MARGIN))]


def list_findings(findings: Sequence[JobFinding]) -> list[Finding]:
    """As those of one run, each as the worst rank has it, with how many have it."""
    return [_name_ranks(one) for one in findings]


def _name_ranks(found: JobFinding) -> Finding:
    if found.judged == 1:
        return found.finding
    others = f"{len(found.ranks)} of {count_of(found.judged, 'rank')} judged"
    ranks = f"{found.rank}; in {others}" if len(found.ranks) > 1 else f"only {found.rank} of {others[5:]}"
    return found.finding._replace(sentence=f"{found.finding.sentence} ({ranks})")


def list_metrics(metrics: Sequence[MetricSpread]) -> list[tuple[str, ...]]:
    """What the ranks logged last, a row per metric."""
    return [
        (
            _clean(one.name),
            str(one.ranks),
            *(humanize(value, NUMBER) for value in (one.smallest, one.median, one.largest)),
            _clean(one.largest_rank) + _name_not_finite(one),
        )
        for one in metrics
    ]


def _name_not_finite(metric: MetricSpread) -> str:
    if not metric.not_finite:
        return ""
    more = f" and {len(metric.not_finite) - 1} more" if len(metric.not_finite) > 1 else ""
    where = f"nan or infinite: {_clean(metric.not_finite[0])}{more}"
    return f"; {where}" if metric.largest_rank else where


def _lay_out(rows: Sequence[tuple[str, str]], view: View) -> list[str]:
    """Labels in one column, texts in the next, wrapped there."""
    hanging = len(_MARGIN) + max(count_cells(label) for label, _ in rows) + len(_MARGIN)
    lines = align(rows, frozenset({0, 1}), gap=_MARGIN)
    return wrap_all((f"{_MARGIN}{line}" for line in lines), view.columns, hanging)


def title_job(combined: Combined) -> str:
    """Which job, and how much it is made of."""
    job = combined.job
    n_hosts = len({rank.host for rank in combined.ranks})
    whole = f"{count_of(len(combined.ranks), 'recording')} on {count_of(n_hosts, 'host')}"
    if combined.tasks:
        whole = f"{count_of(len(combined.tasks), 'run')}, not added up, {whole}"
    if job.ranks is not None:
        n_there = job.ranks - len(job.missing_ranks)
        whole += (
            f", {count_of(job.ranks, 'rank') if not job.missing_ranks else f'{n_there} of {job.ranks} ranks'}"
        )
    for missing in describe_missing(job.missing_ranks):
        whole += f" ({missing})"
    if not job.jobs:
        return whole
    name = f" ({_clean(job.name)})" if job.name else ""
    state = f", {neutralize(job.state)}" if job.state else ""
    scheduler = _SCHEDULERS.get(job.scheduler or "", "")
    if combined.tasks and job.array is not None:
        return f"{scheduler} array {_clean(job.array)}{name}: {whole}"
    return f"{scheduler} job{_name_jobs(job.jobs)}{name}{state}: {whole}".strip()


def _name_jobs(jobs: Sequence[str]) -> str:
    if len(jobs) == 1:
        return f" {_clean(jobs[0])}"
    more = f" and {len(jobs) - _MOST_MISSING} more" if len(jobs) > _MOST_MISSING else ""
    return f"s {', '.join(map(_clean, jobs[:_MOST_MISSING]))}{more}"


def _total_rows(combined: Combined) -> list[tuple[str, str]]:
    values = combined.values
    cores = "- cores" if values["mean_cores"] is None else humanize_cores(100 * values["mean_cores"])
    least = "at least " if "cpu_time" in combined.at_least else ""
    rows = [
        ("time", f"{humanize(values['time'], SECONDS)}, from the first start to the last end"),
        ("CPU", f"{least}{humanize(values['cpu_time'], SECONDS)} of CPU time, {least}{cores} on average"),
    ]
    if len(combined.ranks) > _MOST_RANKS:
        rows.append(("end", _count_endings(combined)))
    if len(combined.hosts) > 1:
        rows.append(("RAM", f"{_bound_ram(combined)}, all hosts together"))
    if values["peak_gpu_ram"] is not None:
        rows.append(("GPU RAM", _describe_held(combined, "sum of the devices' peaks")))
    if values["energy"] is not None:
        rows.append(("GPU energy", _describe_energy(combined, "by the drivers' meters", ", whole devices")))
    return [*rows, *_list_machine_energy(combined)]


def _count_endings(combined: Combined) -> str:
    endings = Counter(_ending(rank) for rank in combined.ranks)
    return ", ".join(f"{count} × {ending}" for ending, count in endings.most_common())


def _count_states(combined: Combined) -> str:
    states = Counter(task.state for task in combined.tasks)
    return ", ".join(f"{count} × {neutralize(state)}" for state, count in states.most_common())


def list_spread(combined: Combined) -> list[tuple[str, ...]]:
    """How much the tasks of an array needed, a row per figure."""
    return [
        (
            one.figure.label,
            *(
                humanize(value, one.figure.unit)
                for value in (one.smallest, one.median, one.high, one.largest)
            ),
            _clean(one.largest_task),
        )
        for one in combined.spread
    ]


def _task_lines(combined: Combined) -> list[str]:
    """All of a few; of many, those that did not end well, then those that took longest."""
    known = [one.figure for one in combined.spread]
    worst = nsmallest(
        _MOST_RANKS,
        combined.tasks,
        key=lambda task: (
            task.exit_code == 0 and not task.has_ended_badly,
            -(task.values["time"] or 0.0),
        ),
    )
    shown = combined.tasks if len(combined.tasks) <= _MOST_RANKS else worst
    heading = ("run", "recordings", *(figure.label for figure in known), "exit code", "end")
    rows = [
        (
            _clean(task.name),
            str(task.ranks),
            *(humanize(task.values[figure.name], figure.unit) for figure in known),
            "not known" if task.exit_code is None else str(task.exit_code),
            neutralize(task.state),
        )
        for task in shown
    ]
    lines = align([heading, *rows], frozenset({0, len(heading) - 1}))
    return [*lines, *_count_rest(len(combined.tasks) - len(shown))]


def list_totals(combined: Combined) -> list[tuple[str, str, str]]:
    """What tables have of the whole job: the name of a figure, if it is one, then its label and its value."""
    figures = [
        (figure.name, figure.label, mark(figure, value, at_least=combined.at_least))
        for figure in RUN
        if (value := combined.values[figure.name]) is not None
    ]
    described = {
        "energy": _describe_energy(combined),
        "peak_gpu_ram": _describe_held(combined),
        "gpu_utilization": _describe_utilization(combined),
    }
    rows = [(name, label, described.get(name, value)) for name, label, value in figures]
    if combined.values["peak_ram"] is None and combined.ram_at_most_bytes is not None:
        rows.append(("", "RAM, upper bound", humanize(combined.ram_at_most_bytes, BYTES)))
    if combined.ram_at_most_bytes is None and combined.ram_at_least_bytes is not None:
        rows.append(("", "RAM", _bound_ram(combined)))
    return [*rows, *(("", *row) for row in _list_machine_energy(combined))]


def _bound_ram(combined: Combined) -> str:
    """Of what was not measured all the time there is no upper bound."""
    least, most = combined.ram_at_least_bytes, combined.ram_at_most_bytes
    if least is not None and (most is None or combined.job.missing_ranks):
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


def _describe_utilization(combined: Combined) -> str:
    """The mean over the devices, and what it is without."""
    gpus = [gpu for host in combined.hosts for gpu in host.gpus if gpu.mean_percent is not None]
    missing = list_unknown(max((gpu.unutilized_seconds for gpu in gpus), default=0.0))
    return humanize(combined.values["gpu_utilization"], PERCENT) + "".join(f" ({text})" for text in missing)


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
    limit = "" if host.limit_bytes is None else f" of {humanize(host.limit_bytes, BYTES)}"
    source = "" if not limit or host.limit_source == "machine" else f" ({_clean(host.limit_source)} limit)"
    in_use = humanize(host.system_ram_bytes, BYTES)
    rows = [("RAM", f"peak {_ram_text(host)}{limit}{source}; {in_use} in use on the machine")]
    return [*rows, *((f"GPU {gpu.label}", _gpu_text(gpu)) for gpu in host.gpus)]


def _host_lines(hosts: Sequence[Host]) -> list[str]:
    """Those with the least room left, a line each."""
    fullest = nsmallest(_MOST_HOSTS, hosts, key=lambda host: -_find_share(host))
    heading = ("host", "recordings", "peak RAM", "of", "", "cores busy", "of", "GPUs")
    rows = [
        (
            _clean(host.name),
            str(host.ranks),
            _ram_text(host),
            humanize(host.limit_bytes, BYTES),
            humanize(100 * _find_share(host), PERCENT),
            _show_cores(host),
            "-" if host.machine_cores is None else str(host.machine_cores),
            ", ".join(f"{_clean(gpu.label)} {_show_busy(gpu)}" for gpu in host.gpus) or "-",
        )
        for host in fullest
    ]
    left = len(hosts) - len(fullest)
    more = [f"and {left} more, less full (-f json has all)"] if left else []
    return [*align([heading, *rows], frozenset({0, len(heading) - 1})), *more]


def _show_cores(host: Host) -> str:
    if host.mean_cores is None:
        return "-"
    sign = "≥ " if host.is_cpu_least else ""
    return sign + humanize_cores(100 * host.mean_cores).partition(" ")[0]


def _show_busy(gpu: HostGpu) -> str:
    """With a sign if it is the mean over a part of the time."""
    return f"{'~ ' if gpu.unutilized_seconds else ''}{humanize(gpu.mean_percent, PERCENT)}"


def _find_share(host: Host) -> float:
    """How much of what it may use was used, at most as far as that is known."""
    most = host.ram_at_most_bytes or host.ram_at_least_bytes
    return (most or 0) / host.limit_bytes if host.limit_bytes else 0.0


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
            name_balance(balance),
            *show_balance(balance),
            humanize(balance.load_balance_percent, PERCENT),
            _clean(balance.largest_rank),
        )
        for balance in combined.balance
    ]
    return align([BALANCE, *rows], frozenset({0, len(BALANCE) - 1}))


def name_balance(balance: Balance) -> str:
    """What is compared: a figure of whole runs, or the time in a region."""
    return f"{balance.figure.label} in {_clean(balance.region)}" if balance.region else balance.figure.label


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
    for rank in list_worst(combined.ranks, _MOST_RANKS):
        figures = (mark(figure, rank.values[figure.name], rank.estimates, rank.at_least) for figure in known)
        rows.append(
            [_clean(rank.name), _clean(rank.host), f"+{rank.begin_seconds:.0f} s", *figures, _ending(rank)]
        )
    return [
        *align(rows, frozenset({0, 1, len(rows[0]) - 1})),
        *_count_rest(len(combined.ranks) - _MOST_RANKS),
    ]


def _count_rest(left: int) -> list[str]:
    return [f"and {left} more (-f json has all)"] if left > 0 else []


def _ending(rank: Rank) -> str:
    return neutralize(describe_ending(rank.ending, rank.exit_code)) + (
        " (part of another)" if rank.part_of else ""
    )


def _clean(text: str) -> str:
    return shorten(text, _NAME_CELLS)

"""What to ask for the next time, in the words of schedulers and of people. Pure."""

from __future__ import annotations

from ..core.text import count_of
from ..core.units import format_size, humanize_bytes, humanize_limit, humanize_seconds
from ..core.vendors import VENDORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..analysis.prices import Choice
    from ..analysis.sizing import Amount, Sizing, Spike

_CENT = 0.01


def format_next_time(
    sizing: Sizing | None, choice: Choice | None = None, ranks: int | None = None
) -> list[str]:
    """One line for a report, and one for the cheapest machine; none if nothing is known."""
    request = "" if sizing is None else format_slurm(sizing)
    if sizing is None or not request:
        return []
    machine = [] if choice is None else [f"machine: {format_choice(choice)}"]
    return [f"{format_lead(sizing, ranks)}: {request} ({format_basis(sizing, ranks)})", *machine]


def format_lead(sizing: Sizing, ranks: int | None = None) -> str:
    """What a run that did not finish used is a lower bound, however it is written; one rank of several is not the job."""
    alone = "" if _is_alone(ranks) else f", this one of {ranks} ranks"
    return f"next time{alone}{', at least' if is_lower_bound(sizing) else ''}"


def is_lower_bound(sizing: Sizing) -> bool:
    """Whether more may be needed of something."""
    is_longer = sizing.time_above_seconds is not None
    return is_longer or any(amount.is_at_least for amount in _list_amounts(sizing))


def format_basis(sizing: Sizing, ranks: int | None = None) -> str:
    """From how many runs, and with which margin; what adds up the ranks."""
    job = "" if _is_alone(ranks) else "; `gpu-tracker size` for the job"
    return f"from {count_of(sizing.runs, 'run')}, margin {sizing.margin_percent:.0f} %{job}"


def _is_alone(ranks: int | None) -> bool:
    return ranks is None or ranks == 1


def format_slurm(sizing: Sizing) -> str:
    """Options of sbatch and srun."""
    ranks = sizing.ranks_per_machine
    return (f"--ntasks-per-node={ranks} " if ranks > 1 else "") + " ".join(
        option + format_amount(amount.advised)
        for option, amount, format_amount in (
            ("--mem=", sizing.memory_bytes, lambda size: format_size(size, "KMGT")),
            ("--cpus-per-task=", sizing.cores, str),
            ("--gpus-per-task=" if ranks > 1 else "--gpus=", _some(sizing.gpus), str),
            ("--time=", sizing.time_seconds, _format_slurm_time),
        )
        if amount is not None
    )


def format_pbs(sizing: Sizing) -> str:
    """Options of qsub."""
    chunks, ranks = ["select=1"], sizing.ranks_per_machine
    if sizing.cores is not None:
        chunks.append(f"ncpus={ranks * sizing.cores.advised}")
    if ranks > 1:
        chunks.append(f"mpiprocs={ranks}")
    if sizing.memory_bytes is not None:
        chunks.append(f"mem={format_size(sizing.memory_bytes.advised, ('kb', 'mb', 'gb', 'tb'))}")
    if (gpus := _some(sizing.gpus)) is not None:
        chunks.append(f"ngpus={ranks * gpus.advised}")
    time = sizing.time_seconds
    return f"-l {':'.join(chunks)}" + (f" -l walltime={_format_clock(time.advised)}" if time else "")


def format_kubernetes(sizing: Sizing) -> str:
    """The resources of a container, in YAML."""
    inner = [f"    {amount}" for amount in _list_resources(sizing)]
    return "\n".join(["resources:", "  requests:", *inner, "  limits:", *inner])


def format_kubernetes_line(sizing: Sizing) -> str:
    """The same in one line."""
    amounts = f"{{{', '.join(_list_resources(sizing))}}}"
    return f"resources: {{requests: {amounts}, limits: {amounts}}}"


def _list_resources(sizing: Sizing) -> list[str]:
    amounts, ranks = [], sizing.ranks_per_machine
    if sizing.cores is not None:
        amounts.append(f'cpu: "{ranks * sizing.cores.advised}"')
    if sizing.memory_bytes is not None:
        amounts.append(f"memory: {format_size(sizing.memory_bytes.advised, ('Ki', 'Mi', 'Gi', 'Ti'))}")
    if (gpus := _some(sizing.gpus)) is not None:
        vendor = VENDORS.get(sizing.gpu_vendor)
        if vendor is not None and vendor.kubernetes:
            amounts.append(f"{vendor.kubernetes}: {ranks * gpus.advised}")
    return amounts


def format_words(sizing: Sizing) -> str:
    """In plain words."""
    ranks = sizing.ranks_per_machine
    of_each = f"for each of {ranks} ranks" if ranks > 1 else ""
    words = [
        f"{'at least ' if amount.is_at_least else ''}{format_amount(amount.advised)} {what}"
        for amount, format_amount, what in (
            (sizing.memory_bytes, humanize_limit, "of memory"),
            (sizing.cores, lambda n: count_of(n, "core"), of_each),
            (sizing.gpus, _count_gpus, of_each),
            (sizing.time_seconds, humanize_seconds, ""),
        )
        if amount is not None
    ]
    more = [_format_more(sizing.time_above_seconds)] if words and sizing.time_above_seconds else []
    return ", ".join(word.strip() for word in [*words, *more])


def _format_more(seconds: float) -> str:
    """How long a run takes that was cut off."""
    return f"more than {humanize_seconds(seconds)}"


def _count_gpus(number: int) -> str:
    return count_of(number, "GPU") if number else "no GPU"


# The name of a form → how it is written.
FORMS: dict[str, Callable[[Sizing], str]] = {
    "slurm": format_slurm,
    "pbs": format_pbs,
    "kubernetes": format_kubernetes,
    "words": format_words,
}


def format_used(sizing: Sizing) -> Iterator[tuple[str, str]]:
    """What the advice is made of: label and text."""
    for label, amount, show in (
        ("memory", sizing.memory_bytes, humanize_bytes),
        ("cores", sizing.cores, lambda cores: f"{cores:.3g}"),
        ("GPUs", sizing.gpus, lambda gpus: f"{gpus:g}"),
        ("GPU memory", sizing.gpu_memory_bytes, humanize_bytes),
        ("time", sizing.time_seconds, humanize_seconds),
    ):
        if amount is not None:
            yield label, _format_use(amount, show, is_single=sizing.runs == 1)
    if sizing.time_above_seconds is not None:
        yield "time", _format_more(sizing.time_above_seconds)


def _format_use(amount: Amount, show: Callable[[float], str], *, is_single: bool) -> str:
    at_least = "at least " if amount.is_at_least else ""
    if is_single:
        return f"{at_least}{show(amount.used)}"
    return f"{at_least}{show(amount.used)} (smallest run {show(amount.least_used)})"


def format_spike(spike: Spike) -> str:
    """What removing it would save, and where it was."""
    where = [f"in {'/'.join(spike.region)}"] if spike.region else []
    where += [f"by {spike.process}"] if spike.process else []
    where += [] if spike.at_seconds is None else [f"at {humanize_seconds(spike.at_seconds)}"]
    place = f" ({', '.join(where)})" if where else ""
    return (
        f"the peak of {humanize_bytes(spike.peak_bytes)} is a short spike{place}; for 95 % of the time "
        f"{humanize_bytes(spike.usual_bytes)} is enough: without it, ask for {humanize_bytes(spike.saved_bytes)} less"
    )


def format_choice(choice: Choice) -> str:
    """The cheapest machine, and what a run costs there."""
    if choice.machine is None:
        lacking = (
            f"not enough {' and '.join(choice.lacking)}"
            if choice.lacking
            else "none has enough of everything"
        )
        return f"none of {choice.machines} in the price table is large enough: {lacking}"
    words = [f"{choice.machine.name} at {choice.machine.price_per_hour:g} an hour"]
    if choice.cost is not None:
        cost = f"{choice.cost:.2f}" if choice.cost >= _CENT else "less than 0.01"
        words.append(f"{cost} for a run that takes as long as here")
    return f"{', '.join(words)} (cheapest of {choice.fitting} that fit, of {choice.machines})"


def _list_amounts(sizing: Sizing) -> list[Amount]:
    amounts = (sizing.memory_bytes, sizing.cores, sizing.gpus, sizing.time_seconds)
    return [amount for amount in amounts if amount is not None]


def _some(gpus: Amount | None) -> Amount | None:
    """A request for no device is left out."""
    return gpus if gpus is not None and gpus.advised else None


def _format_slurm_time(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    return f"{days}-{_format_clock(rest)}" if days else _format_clock(rest)


def _format_clock(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"

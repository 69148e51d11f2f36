"""Why a run died, in three degrees of certainty. Pure."""

from __future__ import annotations

from ...core.model import RAM
from ...core.units import humanize_bytes, humanize_limit, humanize_seconds
from ..endings import (
    OWN_PERCENT,
    SIGKILL,
    SIGTERM,
    SIGXCPU,
    SIGXFSZ,
    TIME_LIMIT_SLACK_SECONDS,
    find_signal,
    is_at_time_limit,
    is_far_below,
    is_gpu_memory_error,
    is_memory_error,
)
from ..peaks import list_holders, list_places, name_moment
from .finding import CERTAIN, LIKELY, POSSIBLE, SERIOUS, WARNING, WHY_IT_DIED
from .rule import OWN, Found, Rule, Threshold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .facts import Facts
    from .rule import Answer, Limits

_NAMES = {SIGKILL: "SIGKILL", SIGTERM: "SIGTERM", SIGXCPU: "SIGXCPU", SIGXFSZ: "SIGXFSZ"}
# Signals that the kernel sends for one reason: what was exceeded, and what to do.
_LIMITS = {
    SIGXCPU: ("CPU time (`ulimit -t`)", "Raise the limit, or compute less in one process."),
    SIGXFSZ: ("the size of a file (`ulimit -f`)", "Raise the limit, or write smaller files."),
}
_LESS_MEMORY = "or use less: fewer workers, smaller batches."


def judge_death(facts: Facts, limits: Limits) -> Answer:
    """What ended the run: what is certain first, then what is likely."""
    if not facts.has_failed and not facts.has_oom:
        return "it ended as it should"
    for explain in (
        _explain_oom,
        _explain_exception,
        _explain_time,
        _explain_limit,
        _explain_memory,
        _explain_address_space,
    ):
        found = explain(facts, limits)
        if found is not None:
            return found
    return _admit(facts)


def _explain_oom(facts: Facts, limits: Limits) -> Found | None:
    if not facts.has_oom:
        return None
    own, limit = facts.summary.ram.combined.total_bytes, facts.oom_limit_bytes or facts.allocation.ram_bytes
    peak = facts.limit_used_bytes if facts.oom_limit_bytes is None else own
    if not facts.is_ram_least and is_far_below(own, limit, limits["own_percent"]):
        return Found(
            f"The kernel killed a process under the memory limit of {humanize_limit(limit)}, which need not be of this job: "
            f"it held {humanize_bytes(own)} itself.",
            WARNING,
            POSSIBLE,
            (("own_bytes", own), ("limit_bytes", limit)),
            advice="Look at what else runs under the same limit.",
        )
    victim = (
        "The kernel killed it" if _was_largest_killed(facts) else "The kernel killed a process of the job"
    )
    return Found(
        f"{victim} for its memory: {humanize_bytes(peak)} of {humanize_limit(limit)}.{_name_holders(facts)}",
        SERIOUS,
        CERTAIN,
        (("peak_bytes", peak), ("limit_bytes", limit)),
        advice=_advise_memory(facts),
    )


def _advise_memory(facts: Facts) -> str:
    """As much as `gpu-tracker size` says."""
    sizing = facts.reported.sizing
    memory = None if sizing is None else sizing.memory_bytes
    amount = "more memory" if memory is None else f"at least {humanize_limit(memory.advised)} of memory"
    return f"Ask for {amount}, {_LESS_MEMORY}"


def _was_largest_killed(facts: Facts) -> bool:
    """Whether the main process got SIGKILL and held the most: the kernel chooses the largest."""
    moment = facts.moments.get(RAM)
    largest = moment.processes[0].pid if moment is not None and moment.processes else facts.header.pid
    return find_signal(facts.exit_code) == SIGKILL and largest == facts.header.pid


def _explain_exception(facts: Facts, limits: Limits) -> Found | None:
    name = facts.exception or ""
    if is_gpu_memory_error(name):
        return Found(
            f"The memory of a GPU ran out ({name}).",
            SERIOUS,
            CERTAIN,
            advice="Use a smaller batch, a smaller model, or gradient accumulation.",
        )
    if not is_memory_error(name):
        return None
    limit = facts.allocation.address_space_bytes
    limited = "" if limit is None else f"; its address space is limited to {humanize_limit(limit)}"
    return Found(
        f"An allocation of memory was refused ({name}){limited}. Peak {_describe_ram(facts)}.{_name_holders(facts)}",
        SERIOUS,
        CERTAIN,
        (("peak_bytes", facts.summary.ram.combined.total_bytes), ("virtual_bytes", facts.virtual_bytes)),
        advice=_advise_allocation(facts, limits),
    )


def _advise_allocation(facts: Facts, limits: Limits) -> str:
    """What was refused is in no peak, so a low one says nothing about the need."""
    if facts.allocation.address_space_bytes:
        return "Allocate less at once, or raise the limit (`ulimit -v`)."
    own, limit = facts.summary.ram.combined.total_bytes, facts.allocation.ram_bytes
    if is_far_below(own, limit, limits["own_percent"]):
        return (
            "How much was asked for is not known here, only that it was more than there was: "
            "look at the error's own text, and allocate less at once."
        )
    return _advise_memory(facts)


def _explain_limit(facts: Facts, _limits: Limits) -> Found | None:
    signal = find_signal(facts.exit_code)
    if signal not in _LIMITS:
        return None
    what, advice = _LIMITS[signal]
    return Found(
        f"The limit of {what} was reached, and the job {_describe_end(facts)}.",
        SERIOUS,
        LIKELY,
        (("signal", signal), ("cpu_seconds", facts.summary.cpu.combined.seconds)),
        advice=advice,
    )


def _explain_time(facts: Facts, limits: Limits) -> Found | None:
    """Slurm sends SIGTERM when the time is up, and SIGKILL half a minute later."""
    ends_at, ended_at = facts.ends_at_seconds, facts.ended_at_seconds
    is_up = is_at_time_limit(facts.allocation, ended_at, facts.summary.seconds, limits["slack_seconds"])
    if find_signal(facts.exit_code) is None or not is_up:
        return None
    granted = facts.allocation.time_limit_seconds
    limit = "" if granted is None else f" of {humanize_seconds(granted)}"
    return Found(
        f"The time limit{limit} was reached, and the job {_describe_end(facts)}.",
        SERIOUS,
        LIKELY,
        (("ended_at_seconds", ended_at or 0.0), ("ends_at_seconds", ends_at or 0.0)),
        advice="Ask for more time, or save the state and continue in another job: how much it needs is not known.",
    )


def _describe_end(facts: Facts) -> str:
    """A program may choose any number, so only the end of the job itself by a signal is sure."""
    code = facts.exit_code or 0
    if code < 0:
        return f"got {_NAMES[find_signal(code) or 0]}"
    return f"ended with exit code {code}: {_doubt(code)}"


def _doubt(code: int) -> str:
    """What a shell's exit code for a signal may mean."""
    name = _NAMES[find_signal(code) or 0]
    return f"either a process it ran was killed by {name}, or the program returned {code}"


def _explain_memory(facts: Facts, limits: Limits) -> Found | None:
    if find_signal(facts.exit_code) != SIGKILL:
        return None
    summary, code = facts.summary, facts.exit_code or 0
    end = "SIGKILL" if code < 0 else f"exit code {code}"
    for used, limit, whose, advice in (
        (facts.limit_used_bytes, summary.ram_capacity_bytes, "its memory", _advise_memory(facts)),
        (
            summary.machine_ram_used_bytes,
            summary.machine_ram_bytes,
            "the machine's memory",
            f"Use a machine with more memory, or with fewer others on it, {_LESS_MEMORY}",
        ),
    ):
        if limit > 0 and 100 * used >= limits["memory_percent"] * limit:
            return Found(
                f"Probably killed for its memory: {end} at {100 * used / limit:.0f} % of {whose} "
                f"({humanize_bytes(used)} of {humanize_limit(limit)}).{_name_holders(facts)}",
                SERIOUS,
                LIKELY,
                (("peak_bytes", used), ("limit_bytes", limit)),
                advice=advice,
            )
    return None


def _explain_address_space(facts: Facts, limits: Limits) -> Found | None:
    limit = facts.allocation.address_space_bytes
    # What was resident was mapped, too, and its peak is the kernel's own.
    most = max(facts.virtual_bytes, facts.summary.ram.main.total_bytes)
    if not limit or not facts.exit_code or 100 * most < limits["address_space_percent"] * limit:
        return None
    return Found(
        f"Probably an allocation was refused: a process had mapped {humanize_bytes(most)} of the "
        f"{humanize_limit(limit)} it may map (`ulimit -v`).",
        SERIOUS,
        LIKELY,
        (("virtual_bytes", most), ("limit_bytes", limit)),
        advice="Raise the limit (`ulimit -v unlimited`), or map less: fewer threads, smaller arrays.",
    )


def _admit(facts: Facts) -> Answer:
    """Nothing shows why, which is worth saying of a signal: many take 137 for a proof."""
    code = facts.exit_code
    if code is None or find_signal(code) is None:
        return "nothing is known that would explain it better than its own output"
    end = (
        f"Killed by {_NAMES[-code]}; who sent it is not known"
        if code < 0
        else f"Exit code {code}: {_doubt(code)}"
    )
    return Found(
        f"{end}. Nothing shows that memory ran out: peak {_describe_ram(facts)}.",
        WARNING,
        POSSIBLE,
        (("exit_code", code), ("peak_bytes", facts.summary.ram.combined.total_bytes)),
        advice="Ask who or what may have ended it: a person, a scheduler, a container's health check, "
        "a limit of CPU time (`ulimit -t`), `dmesg`.",
    )


def _describe_ram(facts: Facts) -> str:
    peak, limit = facts.summary.ram.combined.total_bytes, facts.allocation.ram_bytes
    share = f" ({100 * peak / limit:.0f} %)" if limit > 0 else ""
    least = "at least " if facts.is_ram_least else ""
    return f"{least}{humanize_bytes(peak)} of {humanize_limit(limit)}{share}" if peak else "not measured"


def _name_holders(facts: Facts) -> str:
    moment = facts.moments.get(RAM)
    if moment is None or not moment.processes:
        return ""
    places, peak = list_places(moment), facts.summary.ram.combined.total_bytes
    holders = f"{list_holders(moment, facts.header.pid)}{f'; in {places}' if places else ''}"
    return f" At the {name_moment(moment, peak)}: {holders}."


RULES = (
    Rule(
        "25",
        WHY_IT_DIED,
        "exit code or signal, the kernel's count of processes killed for memory, the exception that ended the block, "
        "peaks against the limits of memory, address space and time",
        (
            Threshold("memory_percent", 95, "Dask ends workers at 95 % of their limit"),
            Threshold("own_percent", OWN_PERCENT, OWN),
            Threshold("address_space_percent", 95, OWN),
            Threshold("slack_seconds", TIME_LIMIT_SLACK_SECONDS, OWN),
        ),
        "the run ended as it should; an exit code that the program chose itself, unless a limit was reached",
        SERIOUS,
        "The kernel killed it for its memory: 16.0 GB of 16 GiB. At the peak: 4 × pt_data_worker 3.1 GB, main 3.6 GB.",
        "Depends on the cause.",
        "the job ends the same way with twice the limit; 137 or 143 alone proves nothing",
        judge_death,
    ),
)

"""Why a run died, in three degrees of certainty. Pure."""

from __future__ import annotations

from ...core.model import RAM
from ...core.units import humanize_bytes, humanize_limit, humanize_seconds
from ..peaks import list_holders, list_places
from .finding import CERTAIN, LIKELY, POSSIBLE, SERIOUS, WARNING
from .rule import OWN, Found, Rule, Threshold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .facts import Facts
    from .rule import Answer, Limits

_SIGKILL, _SIGTERM = 9, 15
_NAMES = {_SIGKILL: "SIGKILL", _SIGTERM: "SIGTERM"}
_MORE_MEMORY = "Ask for more memory (20 % above the peak), or use less: fewer workers, smaller batches."


def judge_death(facts: Facts, limits: Limits) -> Answer:
    """What ended the run: what is certain first, then what is likely."""
    if not facts.has_failed and not facts.has_oom:
        return "it ended as it should"
    for explain in (_explain_oom, _explain_exception, _explain_time, _explain_memory, _explain_address_space):
        found = explain(facts, limits)
        if found is not None:
            return found
    return _admit(facts)


def _explain_oom(facts: Facts, limits: Limits) -> Found | None:
    if not facts.has_oom:
        return None
    peak, limit = facts.limit_used_bytes, facts.allocation.ram_bytes
    own = facts.summary.ram.combined.total_bytes
    if limit > 0 and 100 * own < limits["own_percent"] * limit:
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
        advice=_MORE_MEMORY,
    )


def _was_largest_killed(facts: Facts) -> bool:
    """Whether the main process got SIGKILL and held the most: the kernel chooses the largest."""
    moment = facts.moments.get(RAM)
    largest = moment.processes[0].pid if moment is not None and moment.processes else facts.header.pid
    return _find_signal(facts) == _SIGKILL and largest == facts.header.pid


def _explain_exception(facts: Facts, _limits: Limits) -> Found | None:
    name = facts.exception or ""
    if "OutOfMemory" in name:
        return Found(
            f"The memory of a GPU ran out ({name}).",
            SERIOUS,
            CERTAIN,
            advice="Use a smaller batch, a smaller model, or gradient accumulation.",
        )
    if not name.endswith("MemoryError"):
        return None
    limit = facts.allocation.address_space_bytes
    limited = "" if limit is None else f"; its address space is limited to {humanize_limit(limit)}"
    return Found(
        f"An allocation of memory was refused ({name}){limited}. Peak {_describe_ram(facts)}.{_name_holders(facts)}",
        SERIOUS,
        CERTAIN,
        (("peak_bytes", facts.summary.ram.combined.total_bytes), ("virtual_bytes", facts.virtual_bytes)),
        advice="Allocate less at once, or raise the limit (`ulimit -v`)." if limit else _MORE_MEMORY,
    )


def _explain_time(facts: Facts, limits: Limits) -> Found | None:
    """Slurm sends SIGTERM when the time is up, and SIGKILL half a minute later."""
    ends_at, ended_at = facts.allocation.ends_at_seconds, facts.ended_at_seconds
    signal = _find_signal(facts)
    if signal is None or ends_at is None or ended_at is None or ended_at < ends_at - limits["slack_seconds"]:
        return None
    if ends_at < ended_at - facts.summary.seconds:
        return None  # it was over before the command began, so it is not this job's
    granted = facts.allocation.time_limit_seconds
    limit = "" if granted is None else f" of {humanize_seconds(granted)}"
    return Found(
        f"The time limit{limit} was reached, and the job got {_NAMES[signal]}.",
        SERIOUS,
        LIKELY,
        (("ended_at_seconds", ended_at), ("ends_at_seconds", ends_at)),
        advice="Ask for more time, or save the state and continue in another job.",
    )


def _explain_memory(facts: Facts, limits: Limits) -> Found | None:
    if _find_signal(facts) != _SIGKILL:
        return None
    summary = facts.summary
    for used, limit, whose in (
        (facts.limit_used_bytes, summary.ram_capacity_bytes, "its memory"),
        (summary.machine_ram_used_bytes, summary.machine_ram_bytes, "the machine's memory"),
    ):
        if limit > 0 and 100 * used >= limits["memory_percent"] * limit:
            return Found(
                f"Probably killed for its memory: SIGKILL at {100 * used / limit:.0f} % of {whose} "
                f"({humanize_bytes(used)} of {humanize_limit(limit)}).{_name_holders(facts)}",
                SERIOUS,
                LIKELY,
                (("peak_bytes", used), ("limit_bytes", limit)),
                advice=_MORE_MEMORY,
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
        f"{humanize_limit(limit)} that it may (`ulimit -v`).",
        SERIOUS,
        LIKELY,
        (("virtual_bytes", most), ("limit_bytes", limit)),
        advice="Raise the limit (`ulimit -v unlimited`), or map less: fewer threads, smaller arrays.",
    )


def _admit(facts: Facts) -> Answer:
    """Nothing shows why, which is worth saying of a signal: many take 137 for a proof."""
    code, signal = facts.exit_code, _find_signal(facts)
    if code is None or signal is None:
        return "nothing is known that would explain it better than its own output"
    if code > 0:
        begin = f"It exited with {code}: in a shell, a process was killed by {_NAMES[signal]}, or it chose the number itself."
    else:
        begin = f"Killed by {_NAMES[signal]}; who sent it is not known."
    return Found(
        f"{begin} Nothing shows that memory ran out: peak {_describe_ram(facts)}.",
        WARNING,
        POSSIBLE,
        (("exit_code", code), ("peak_bytes", facts.summary.ram.combined.total_bytes)),
        advice="Ask who or what may have ended it: a person, a scheduler, a container's health check, `dmesg`.",
    )


def _find_signal(facts: Facts) -> int | None:
    """SIGKILL or SIGTERM, if one of them ended the job or, by its exit code, a process of it."""
    code = facts.exit_code or 0
    signal = -code if code < 0 else code - 128
    return signal if signal in _NAMES else None


def _describe_ram(facts: Facts) -> str:
    peak, limit = facts.summary.ram.combined.total_bytes, facts.allocation.ram_bytes
    share = f" ({100 * peak / limit:.0f} %)" if limit > 0 else ""
    return f"{humanize_bytes(peak)} of {humanize_limit(limit)}{share}" if peak else "not measured"


def _name_holders(facts: Facts) -> str:
    moment = facts.moments.get(RAM)
    if moment is None or not moment.processes:
        return ""
    places = list_places(moment)
    return f" At the peak: {list_holders(moment, facts.header.pid)}{f'; in {places}' if places else ''}."


RULES = (
    Rule(
        "25",
        "killed-why",
        "exit code or signal, the kernel's count of processes killed for memory, the exception that ended the block, "
        "peaks against the limits of memory, address space and time",
        (
            Threshold("memory_percent", 95, "Dask ends workers at 95 % of their limit"),
            Threshold("own_percent", 50, OWN),
            Threshold("address_space_percent", 95, OWN),
            Threshold("slack_seconds", 5, OWN),
        ),
        "the run ended as it should; an exit code that the program chose itself, unless a limit was reached",
        SERIOUS,
        "The kernel killed it for its memory: 16.0 GB of 16 GiB. At the peak: 4 × pt_data_worker 3.1 GB, main 3.6 GB.",
        "Depends on the cause.",
        "for a likely cause: the same end with twice the limit; 137 alone proves nothing",
        judge_death,
    ),
)

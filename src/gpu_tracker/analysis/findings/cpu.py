"""Cores: one of many, too many, too many threads, taken by others. Pure."""

from __future__ import annotations

from ...core.units import count_cores, humanize_seconds
from .finding import CERTAIN, LIKELY, NOTE, POSSIBLE, WARNING
from .rule import OWN, Found, Rule, Threshold, say_too_few
from .spans import Spans, find_mean, find_quantile, find_share, join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .facts import Facts
    from .rule import Answer, Limits

_JOBSTATS = "jobstats, Princeton"


# ---- 21. One core.


def judge_one_core(facts: Facts, limits: Limits) -> Answer:
    """A program that keeps one core busy, of several."""
    cores = facts.summary.n_expected_cores
    if cores < 2:
        return "the job may use one core only"
    if too_few := say_too_few(facts.cores.combined, limits):
        return too_few
    if facts.busiest_gpu_percent >= limits["gpu_percent"]:
        return "a GPU is busy, so one core is enough"
    share = _find_one_core(facts, limits)
    if share < limits["time_share"]:
        return None
    waiting, spent = facts.summary.counters.waiting_seconds or 0.0, facts.summary.cpu.combined.seconds
    if waiting >= limits["waiting_share"] * (waiting + spent):
        return "its threads waited for a core, so they would have used more"
    return Found(
        f"One of {cores:g} cores was busy for {100 * share:.0f} % of the time, the others were not.",
        WARNING if _is_granted(facts) else NOTE,
        LIKELY,
        (("share", share), ("cores", cores)),
    )


def _find_one_core(facts: Facts, limits: Limits) -> float:
    """For what share of the time about one core was busy."""
    low, high = limits["low_cores"], limits["high_cores"]
    return find_share(facts.cores.combined, lambda busy: low <= busy <= high)


def _is_granted(facts: Facts) -> bool:
    """Whether somebody else could have had the cores."""
    return facts.allocation.cores_source not in ("machine", "affinity")


# ---- 22. Too many cores.


def judge_oversized(facts: Facts, limits: Limits) -> Answer:
    """Cores that were reserved and never used."""
    summary, cores = facts.summary, facts.allocation.cores
    mean = summary.cpu.combined.mean_percent
    if not _is_granted(facts):
        return "nobody reserved cores for this job"
    if summary.seconds < limits["least_seconds"] or mean is None:
        return f"the run was shorter than {humanize_seconds(limits['least_seconds'])}"
    if facts.has_failed:
        return "a run that failed does not show what is needed"
    if facts.used_gpus:
        return "jobs on GPUs get their cores with them"
    if too_few := say_too_few(facts.cores.combined, limits):
        return too_few
    sizing = facts.reported.sizing
    needed = None if sizing is None else sizing.cores
    percent = mean / cores if cores else 100.0
    if needed is None or percent >= limits["percent"] or needed.advised >= cores:
        return None
    if needed.is_at_least:
        return "how many it needs is not known"
    enough = needed.advised
    flag = f"--cpus-per-task={enough}" if facts.allocation.cores_source == "Slurm" else count_cores(enough)
    return Found(
        f"{mean / 100:.1f} of {cores:g} cores were busy on average ({percent:.0f} %), and for 95 % of the time at most {enough}.",
        NOTE,
        LIKELY,
        (("mean_cores", mean / 100), ("cores", cores), ("enough_cores", enough)),
        advice=f"{flag} would do for a run like this.",
    )


# ---- 23. Too many threads.


def judge_oversubscribed(facts: Facts, limits: Limits) -> Answer:
    """Threads that wait for cores more than they compute."""
    cores = facts.summary.n_expected_cores
    if too_few := say_too_few(facts.threads, limits):
        return too_few
    threads, busy = find_quantile(facts.threads, 0.5), find_mean(facts.cores.combined)
    if (
        cores <= 0
        or threads <= limits["threads_per_core"] * cores
        or 100 * busy < limits["busy_percent"] * cores
    ):
        return None
    if find_others(facts) > limits["others_share"] * facts.allocation.machine_cores:
        return "others use the machine, too"
    waiting, spent = facts.summary.counters.waiting_seconds, facts.summary.cpu.combined.seconds
    if waiting is not None and waiting < limits["waiting_ratio"] * spent:
        return None
    waited = (
        ""
        if waiting is None
        else f" and spent {waiting / (spent or 1):.1f} times as long waiting as computing"
    )
    return Found(
        f"{threads:.0f} threads shared {count_cores(cores)}{waited}.",
        NOTE if waiting is None else WARNING,
        POSSIBLE if waiting is None else LIKELY,
        (("threads", threads), ("cores", cores), ("waiting_seconds", waiting or 0.0)),
        advice=f"Set OMP_NUM_THREADS (and the like) to {max(1, int(cores))}, or divide the cores among the processes.",
    )


# ---- 24. Crowded.


def judge_crowded(facts: Facts, limits: Limits) -> Answer:
    """A machine that others keep busy while the job waits for cores."""
    machine = facts.allocation.machine_cores
    both = join(facts.machine_cores, facts.cores.combined)
    if too_few := say_too_few(both, limits):
        return too_few
    full, most = limits["full_percent"] / 100 * machine, limits["job_percent"] / 100 * facts.allocation.cores
    share = find_share(both, lambda pair: pair[0] >= full and pair[1] < most)
    others = find_others(facts)
    if share < limits["time_share"]:
        return None
    if (facts.header.identity.ranks or 1) > 1:
        return "other ranks of its job may have kept the cores busy"
    waiting, spent = facts.summary.counters.waiting_seconds, facts.summary.cpu.combined.seconds
    if waiting is not None and (
        waiting < limits["waiting_share"] * (waiting + spent)
        or waiting < limits["run_share"] * facts.summary.seconds
    ):
        return "the job hardly waited for a core"
    return Found(
        f"Other programs used {others:.1f} of the {count_cores(machine)}; every core was busy {100 * share:.0f} % of the time.",
        NOTE if waiting is None else WARNING,
        POSSIBLE if waiting is None else LIKELY,
        (("others_cores", others), ("share", share), ("waiting_seconds", waiting or 0.0)),
    )


def find_others(facts: Facts) -> float:
    """How many cores processes outside the job used on average; 0 if that is not known."""
    both = join(facts.machine_cores, facts.cores.combined)
    if not both.values:
        return 0.0
    return find_mean(Spans(both.start, both.end, [max(0.0, busy - own) for busy, own in both.values]))


# ---- 31. More than 100 %.


def judge_percent(facts: Facts, _limits: Limits) -> Answer:
    """What more than 100 % of CPU means."""
    mean, cores = facts.summary.cpu.combined.mean_percent, facts.summary.n_expected_cores
    if mean is None:
        return "the run was too short for a rate"
    if mean <= 100 or cores <= 0:
        return None
    return Found(
        f"{mean:.0f} % of CPU, as top shows it, is {mean / 100:.1f} of the {count_cores(cores)} it may use ({mean / cores:.0f} %).",
        NOTE,
        CERTAIN,
        (("mean_percent", mean), ("cores", cores)),
    )


RULES = (
    Rule(
        "21",
        "one-core",
        "busy cores over time, and how many the job may use",
        (
            Threshold("low_cores", 0.85, _JOBSTATS),
            Threshold("high_cores", 1.01, _JOBSTATS),
            Threshold("time_share", 0.8, OWN),
            Threshold("gpu_percent", 80, OWN),
            Threshold("waiting_share", 0.1, OWN),
        ),
        "one core only; a busy GPU, which needs no more; threads that waited for a core",
        WARNING,
        "One of 16 cores was busy for 97 % of the time, the others were not.",
        "If time matters, use several processes or threads; if not, ask for one core.",
        "the program is meant to run beside others",
        judge_one_core,
        needs_all_time=True,
    ),
    Rule(
        "22",
        "cores-oversized",
        "busy cores over time, and how many a scheduler or container gave",
        (Threshold("percent", 65, _JOBSTATS), Threshold("least_seconds", 300, _JOBSTATS)),
        "cores that nobody reserved; jobs on GPUs; runs that failed, waited for cores or had their work done elsewhere",
        NOTE,
        "4.1 of 16 cores were busy on average (26 %), and for 95 % of the time at most 6.",
        "Ask for fewer cores.",
        "other inputs of the same program use more",
        judge_oversized,
        needs_the_end=True,
        needs_all_time=True,
    ),
    Rule(
        "23",
        "oversubscribed",
        "threads, busy cores, and how long threads waited for a core",
        (
            Threshold("threads_per_core", 4, OWN),
            Threshold("busy_percent", 80, OWN),
            Threshold(
                "waiting_ratio", 1.5, "our experiments: 16 threads on 2 cores waited 1.75 times as long"
            ),
            Threshold("others_share", 0.1, OWN),
        ),
        "a machine that others use, too; unsure where waiting is not measured",
        WARNING,
        "128 threads shared 8 cores and spent 3.1 times as long waiting as computing.",
        "Set OMP_NUM_THREADS to the number of cores.",
        "with fewer threads the job takes as long",
        judge_oversubscribed,
        needs_all_time=True,
    ),
    Rule(
        "24",
        "crowded-machine",
        "busy cores of the machine and of the job, and how long the job waited for a core",
        (
            Threshold("full_percent", 95, OWN),
            Threshold("job_percent", 70, OWN),
            Threshold("time_share", 0.5, OWN),
            Threshold("waiting_share", 0.1, OWN),
            Threshold("run_share", 0.05, OWN),
        ),
        "a job that hardly waited for a core, or that has other ranks, which may be on the same machine",
        WARNING,
        "Other programs used 9.1 of the 16 cores; every core was busy 83 % of the time.",
        "Times of this run cannot be compared with others.",
        "alone on the machine the job takes as long",
        judge_crowded,
        needs_all_time=True,
    ),
    Rule(
        "31",
        "cpu-percent",
        "mean CPU use",
        (),
        "up to 100 %",
        NOTE,
        "642 % of CPU, as top shows it, is 6.4 of the 16 cores it may use (40 %).",
        "top counts each busy core as 100 %.",
        "never: it is how the number is made",
        judge_percent,
    ),
)

"""Time: waiting for data, a slow start, single slow calls, the time limit, and intervals that are too long to tell. Pure."""

from __future__ import annotations

from math import ceil, floor, log10

from ...core.config import SHORTEST_SLEEP_SECONDS
from ...core.loops import DATA_WAIT, STEP
from ...core.model import SAMPLED
from ...core.units import humanize_bytes, humanize_seconds, write_clock
from .finding import CERTAIN, LIKELY, NOTE, POSSIBLE, SERIOUS, WARNING
from .rule import OWN, Found, Rule, Threshold, say_too_few
from .spans import find_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..regions import Region
    from .facts import Facts, GpuFacts
    from .rule import Answer, Limits
    from .spans import Spans

_JOBSTATS = "jobstats, Princeton"
_QUARTER_HOUR = 900
# A loop that takes this share of a run is as good as all of it.
_MOSTLY = 0.8


# ---- 4. Waiting for data.


def judge_data_wait(facts: Facts, limits: Limits) -> Answer:
    """The share of the time that went to waiting for data; a loop that is a small part of the run matters as little."""
    share = facts.data_wait_share
    if share is None:
        return "no region data_wait is marked"
    in_steps, percent = 100 * share, 100 * min(share, facts.data_wait_run_share)
    if percent <= limits["note_percent"]:
        return None
    severity = WARNING if percent > limits["warning_percent"] else NOTE
    cores, mean = facts.summary.n_expected_cores, facts.summary.cpu.combined.mean_percent or 0.0
    is_full = mean >= limits["full_percent"] * cores
    part = f"{percent:.0f} % of the time"
    if percent < _MOSTLY * in_steps:
        part = f"{in_steps:.0f} % of the time in the loop ({percent:.0f} % of the run)"
    return Found(
        f"{part} went to waiting for the next batch.",
        SERIOUS if percent > limits["serious_percent"] else severity,
        LIKELY,
        (("percent", percent), ("percent_in_steps", in_steps), ("mean_cores", mean / 100)),
        advice="All cores are busy, so more workers will not help: precompute, or move work to the GPU."
        if is_full
        else "",
    )


# ---- 26. A slow start.


def judge_slow_start(facts: Facts, limits: Limits) -> Answer:
    """How long it took to the first step, or to the first use of a GPU."""
    starts = [(facts.first_step_seconds, "the first step began")]
    if facts.used_gpus:
        starts.append((_find_first_use(facts.used_gpus), "a GPU was used"))
    known = [(seconds, what) for seconds, what in starts if seconds is not None]
    if not known:
        return "no step is marked, and no GPU was seen at work"
    seconds, what = known[0]
    if seconds <= max(limits["least_seconds"], limits["time_share"] * facts.summary.seconds):
        return None
    return Found(
        f"{humanize_seconds(seconds)} passed before {what}.",
        WARNING if seconds > limits["warning_seconds"] else NOTE,
        LIKELY,
        (("seconds", seconds),),
        0.0,
        seconds,
    )


def _find_first_use(gpus: tuple[GpuFacts, ...]) -> float | None:
    """Until when the job had no memory on any device and did not work there, as far as that is known."""
    firsts = [
        first
        for gpu in gpus
        for spans in (gpu.job_bytes, gpu.busy_ever_percent if gpu.is_busy_own else gpu.job_bytes)
        if (first := _find_last_unused(spans)) is not None
    ]
    return min(firsts, default=None)


def _find_last_unused(spans: Spans[float]) -> float | None:
    """The end of the known time before a figure was first above zero."""
    before = 0.0
    for end, value in zip(spans.end, spans.values, strict=True):
        if value > 0:
            return before
        before = end
    return None


# ---- 27. Outliers.


def judge_outliers(facts: Facts, limits: Limits) -> Answer:
    """A single call that took much longer than the others of its region."""
    often = [region for region in facts.reported.regions if region.calls >= limits["least_calls"]]
    if not often:
        return f"no region was called {limits['least_calls']:g} times"
    found = [answer for region in often if (answer := _judge_outlier(region, facts, limits)) is not None]
    return max(found, key=lambda one: one.evidence[0][1], default=None)


def _judge_outlier(region: Region, facts: Facts, limits: Limits) -> Found | None:
    calls = [
        (call.end_seconds - call.start_seconds, call.start_seconds)
        for call in facts.calls
        if call.path == region.path and call.number > 1 and call.end_seconds is not None
    ]
    mean, deviation = region.mean_seconds, region.std_seconds
    if not calls or mean is None or deviation is None:
        return None
    seconds, start = max(calls)
    is_notable = seconds >= limits["run_share"] * facts.summary.seconds
    if (
        seconds <= mean + limits["deviations"] * deviation
        or seconds < limits["times"] * mean
        or not is_notable
    ):
        return None
    name = "/".join(region.path)
    return Found(
        f"One call of {name} took {humanize_seconds(seconds)} (mean {humanize_seconds(mean)}) at {write_clock(start)}.",
        NOTE,
        LIKELY,
        (("seconds", seconds), ("mean_seconds", mean), ("deviation_seconds", deviation)),
        start,
        start + seconds,
    )


# ---- 28. The time limit.


def judge_time_limit(facts: Facts, limits: Limits) -> Answer:
    """How much of its time the job needed up to the end of this run."""
    limit, ends_at, ended_at = (
        facts.allocation.time_limit_seconds,
        facts.ends_at_seconds,
        facts.ended_at_seconds,
    )
    if not limit or ends_at is None or ended_at is None:
        return "no time limit is known"
    if facts.has_failed:
        return "a run that failed does not show what is needed"
    if facts.summary.seconds < limits["least_seconds"]:
        return f"the run was shorter than {humanize_seconds(limits['least_seconds'])}"
    needed = limit - (ends_at - ended_at)
    percent = 100 * needed / limit
    evidence = (("percent", percent), ("needed_seconds", needed), ("limit_seconds", limit))
    words = f"{humanize_seconds(needed)} of {humanize_seconds(limit)} used ({percent:.0f} %)."
    if percent > limits["tight_percent"]:
        advice = "The next run may be cut off: ask for more time, or save the state."
        return Found(words, WARNING, LIKELY, evidence, advice=advice)
    if percent >= limits["note_percent"]:
        return None
    enough = ceil(1.3 * needed / _QUARTER_HOUR) * _QUARTER_HOUR
    return Found(
        words,
        WARNING if percent <= limits["warning_percent"] else NOTE,
        POSSIBLE,
        (*evidence, ("enough_seconds", enough)),
        advice=f"If nothing follows in this job, --time={enough // 3600}:{enough % 3600 // 60:02d}:00 starts sooner.",
    )


# ---- 32. Too coarse.


def judge_coarse(facts: Facts, limits: Limits) -> Answer:
    """Regions so short that their peaks are hardly seen."""
    interval = facts.interval_seconds
    if interval is None:
        return "there are no samples"
    short = [
        (region.mean_seconds, "/".join(region.path))
        for region in facts.reported.regions
        if region.mean_seconds is not None
        and region.calls >= 2
        and region.peak_ram_basis == SAMPLED
        and region.path[-1] not in (STEP, DATA_WAIT)  # `watch` made them, and they have no exact_peak
        and region.wall_seconds >= limits["run_share"] * facts.summary.seconds
        and region.mean_seconds < limits["intervals"] * interval
    ]
    if not short:
        return None if facts.reported.regions else "no region is marked"
    mean, name = max(short)
    return Found(
        f"A call of {name} takes {humanize_seconds(mean)}, an interval {humanize_seconds(interval)}: "
        "peaks of such calls may be missed.",
        NOTE,
        CERTAIN,
        (("mean_seconds", mean), ("interval_seconds", interval)),
        advice=_advise_sampling(mean / limits["intervals"], facts.header.sleep_seconds),
    )


def _advise_sampling(wanted_seconds: float, sleep_seconds: float) -> str:
    """What shortens the intervals of a run that read so often; nothing does if calls are too short for any sampler."""
    exact = "mark the region with exact_peak=True."
    if wanted_seconds < SHORTEST_SLEEP_SECONDS:
        return f"They are too short to be sampled: {exact}"
    if wanted_seconds < sleep_seconds:
        return f"Sample more often (--st {_round_down(wanted_seconds):g}), or {exact}"
    return f"Keep every reading (--full-resolution), or {exact}"


def _round_down(seconds: float) -> float:
    """To one digit."""
    digit = 10.0 ** floor(log10(seconds))
    return digit * floor(seconds / digit)


# ---- 34. Storage.


def judge_storage(facts: Facts, limits: Limits) -> Answer:
    """A job that does little but wait for storage."""
    if too_few := say_too_few(facts.cores.combined, limits):
        return too_few
    summary = facts.summary
    stalls, counters, seconds = summary.stalls, summary.counters, summary.seconds
    if stalls.io_seconds is None or counters.read_bytes is None or counters.written_bytes is None:
        return "waiting for storage is not measured"
    percent, busy = 100 * stalls.io_seconds / seconds, find_mean(facts.cores.combined)
    able = min(summary.n_expected_cores, max(1, summary.processes or 0))
    if percent < limits["percent"] or 100 * busy >= limits["busy_percent"] * able:
        return None
    if facts.busiest_gpu_percent >= limits["gpu_percent"]:
        return "a GPU is busy all the same"
    if counters.read_bytes + counters.written_bytes < limits["bytes_per_second"] * seconds:
        return "the job itself hardly read or wrote"
    if 100 * (stalls.memory_seconds or 0.0) / seconds >= limits["memory_percent"]:
        return "it waited for memory, too, which thrashing explains"
    all_waited = 100 * (stalls.io_full_seconds or 0.0) / seconds >= limits["percent"]
    return Found(
        f"Something waited for storage for {percent:.0f} % of the time, while {busy:.1f} cores worked; the job read "
        f"{humanize_bytes(counters.read_bytes)} and wrote {humanize_bytes(counters.written_bytes)}.",
        WARNING,
        LIKELY if all_waited else POSSIBLE,
        (
            ("percent", percent),
            ("mean_cores", busy),
            ("read_bytes", counters.read_bytes),
            ("written_bytes", counters.written_bytes),
        ),
    )


RULES = (
    Rule(
        "34",
        "storage-stalls",
        "how long something on the machine waited for storage, busy cores, and what the job read and wrote",
        (
            Threshold("percent", 50, OWN),
            Threshold("busy_percent", 40, OWN),
            Threshold("bytes_per_second", 1e6, OWN),
            Threshold("gpu_percent", 80, OWN),
            Threshold("memory_percent", 20, "as of thrashing"),
        ),
        "a job that hardly reads or writes: others wait then; a busy GPU; memory that is too small (thrashing); "
        "waiting that the kernel does not count",
        WARNING,
        "Something waited for storage for 95 % of the time, while 0.2 cores worked; the job read 60 GB and wrote 0 B.",
        "Read larger pieces in their order, several at a time or ahead of their use; or copy the data to a faster disk first.",
        "with the data in memory, as in a second run, the job takes as long",
        judge_storage,
        needs_all_time=True,
    ),
    Rule(
        "4",
        "waiting-for-data",
        "regions named data_wait and step",
        (
            Threshold("note_percent", 5, "PyTorch Kineto"),
            Threshold("warning_percent", 15, "gpuprof"),
            Threshold("serious_percent", 30, "gpuprof"),
            Threshold("full_percent", 80, "gpuprof"),
        ),
        "nothing marked: cpu-holds-gpu then guesses; a loop that is a small part of the run",
        SERIOUS,
        "34 % of the time went to waiting for the next batch.",
        "Use more workers, pin_memory and persistent_workers, or prepare the data in advance.",
        "with data that is in memory already, steps take as long",
        judge_data_wait,
    ),
    Rule(
        "26",
        "slow-start",
        "the first region named step, or the first use of a GPU",
        (
            Threshold("least_seconds", 60, OWN),
            Threshold("time_share", 0.1, OWN),
            Threshold("warning_seconds", 1200, "SageMaker Debugger"),
        ),
        "no step is marked, and no GPU used",
        WARNING,
        "6 min 10 s passed before a GPU was used.",
        "Prepare data before the job, or cache it.",
        "the preparation is the job",
        judge_slow_start,
    ),
    Rule(
        "27",
        "step-outliers",
        "single calls of regions",
        (
            Threshold("deviations", 3, "SageMaker Debugger"),
            Threshold("times", 5, OWN),
            Threshold("run_share", 0.01, OWN),
            Threshold("least_calls", 30, OWN),
        ),
        "the first call, which compiles and fills caches; outliers that cost less than 1 % of the run",
        NOTE,
        "One call of step took 41 s (mean 0.3 s) at 3:12:05.",
        "Look at what happened then: saving, evaluation, a slow file system.",
        "the region is meant to vary",
        judge_outliers,
    ),
    Rule(
        "28",
        "time-limit",
        "the time limit that the scheduler granted, and when the run ended",
        (
            Threshold("note_percent", 60, _JOBSTATS),
            Threshold("warning_percent", 10, _JOBSTATS),
            Threshold("tight_percent", 90, OWN),
            Threshold("least_seconds", 900, _JOBSTATS),
        ),
        "runs that failed; short runs. A later command of the same job may need the rest",
        WARNING,
        "2 h 03 min 00 s of 24 h 00 min 00 s used (9 %).",
        "Ask for the time that is needed, and a third more.",
        "something follows in the same job",
        judge_time_limit,
        needs_the_end=True,
    ),
    Rule(
        "32",
        "too-coarse",
        "the mean length of calls, and of intervals",
        (Threshold("intervals", 3, OWN), Threshold("run_share", 0.1, OWN)),
        "regions with exact peaks; regions that take little of the time",
        NOTE,
        "A call of epoch takes 0.8 s, an interval 1 s: peaks of such calls may be missed.",
        "Sample more often (--st 0.2), or mark the region with exact_peak=True.",
        "never: it is how the number is made",
        judge_coarse,
    ),
)

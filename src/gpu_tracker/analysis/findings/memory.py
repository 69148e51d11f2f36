"""RAM: tight, too generous, growing, spiking. Pure."""

from __future__ import annotations

from heapq import nsmallest
from math import isnan
from statistics import median

from ...core.calls import MOST_SAMPLED
from ...core.model import RAM
from ...core.units import format_size, humanize_bytes, humanize_limit, humanize_seconds
from ..growth import find_growth
from ..paging import find_fetched_bytes, find_stalled_share, has_lacked_memory
from ..peaks import explain_peak, name_moment
from ..series import bin_column, cut_time, make_bins
from .finding import LIKELY, NOTE, POSSIBLE, SERIOUS, WARNING
from .rule import OWN, Found, Rule, Threshold, say_too_few
from .spans import count_seconds, find_quantile, find_slope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.model import Call, PeakMoment
    from ..growth import Growth
    from ..regions import Region
    from ..series import Binned
    from .facts import Facts
    from .rule import Answer, Limits
    from .spans import Spans

_WINDOWS = 40
_KNOWN_SHARE = 0.9
_LEAST_SAVED_BYTES = 10**9
# What a call leaves behind may differ that much from the mean growth per call.
_KEEPING_TIMES = 2.0


# ---- 16. Tight.


def judge_tight(facts: Facts, limits: Limits) -> Answer:
    """The peak against what the job may use."""
    summary = facts.summary
    peak, capacity = summary.ram.combined.total_bytes, summary.ram_capacity_bytes
    if not peak or capacity <= 0:
        return "RAM was not measured"
    if facts.has_oom:
        return "memory ran out, which killed-why tells"
    percent = 100 * peak / capacity
    if percent <= limits["percent"]:
        return None
    return Found(
        f"RAM peaked at {percent:.0f} % of {humanize_limit(capacity)}{_name_source(facts)}.",
        SERIOUS if percent > limits["serious_percent"] else WARNING,
        LIKELY,
        (("percent", percent), ("peak_bytes", peak)),
    )


def _name_source(facts: Facts) -> str:
    source = facts.summary.ram_source
    return "" if source == "machine" else f" ({source} limit)"


# ---- 17. Too generous.


def judge_oversized(facts: Facts, limits: Limits) -> Answer:
    """Memory that was reserved and never used."""
    summary = facts.summary
    peak, capacity = summary.ram.combined.total_bytes, summary.ram_capacity_bytes
    if summary.seconds < limits["least_seconds"]:
        return f"the run was shorter than {humanize_seconds(limits['least_seconds'])}"
    if facts.has_failed:
        return "a run that failed does not show what is needed"
    if summary.ram_source == "machine" or capacity >= limits["whole_share"] * summary.machine_ram_bytes:
        return "the job has the whole machine"
    if not peak or capacity <= 0:
        return "RAM was not measured"
    sizing = facts.reported.sizing
    percent, memory = 100 * peak / capacity, None if sizing is None else sizing.memory_bytes
    if percent >= limits["percent"] or sizing is None or memory is None:
        return None
    if memory.advised > capacity - _LEAST_SAVED_BYTES:
        return None
    if memory.is_at_least:
        return "how much it needs is not known"
    is_slurm = summary.ram_source == "Slurm"
    enough = f"--mem={format_size(memory.advised, 'KMGT')}" if is_slurm else humanize_limit(memory.advised)
    return Found(
        f"{humanize_bytes(peak)} of {humanize_limit(capacity)} RAM used ({percent:.0f} %).",
        WARNING if percent <= limits["warning_percent"] else NOTE,
        LIKELY,
        (("percent", percent), ("peak_bytes", peak), ("enough_bytes", memory.advised)),
        advice=f"{enough} is enough for a run like this, with a margin of {sizing.margin_percent:.0f} %.",
    )


# ---- 18. Growing.


def judge_growing(facts: Facts, limits: Limits) -> Answer:
    """Repeated calls of a region that need more each time; else the lows of the whole run."""
    repeating = [region for region in facts.reported.regions if region.calls >= limits["least_repeats"]]
    known = [(region, calls) for region in repeating if (calls := _find_calls(facts, region))]
    for region, calls in known:
        growth = _find_growth([call.peak_ram_bytes or 0 for call in calls], limits)
        # What has been loaded by then, and is kept, is no leak.
        has_ended = (calls[-1].end_seconds or 0.0) < (1 - limits["since_share"]) * facts.summary.seconds
        if growth is not None and not has_ended:
            return _report_calls(facts, region, calls, growth)
    if known:
        return None
    return _judge_lows(facts, limits, is_repeating=bool(repeating))


def _find_calls(facts: Facts, region: Region) -> list[Call]:
    """The calls of a region, or a uniform sample of them, in the order of time.

    None unless nearly all are the tracked process's and have a known peak: those known by chance are the highest ones so
    far, which always grow.
    """
    ended = (call for call in facts.calls if call.path == region.path and call.number)
    sample = nsmallest(MOST_SAMPLED, ended, key=lambda call: call.priority)
    # By number, since a process that calls exec counts anew.
    known = {call.number: call for call in sample if call.pid == facts.header.pid and call.peak_ram_bytes}
    is_enough = len(known) >= _KNOWN_SHARE * min(region.calls, MOST_SAMPLED)
    return [known[number] for number in sorted(known)] if is_enough else []


def _report_calls(facts: Facts, region: Region, calls: Sequence[Call], growth: Growth) -> Found:
    """Growth per call, also where a sample of them has gaps."""
    is_sample = len(calls) < region.calls
    first, last = calls[0], calls[-1]
    seconds = (last.start_seconds - first.start_seconds) / (last.number - first.number)
    later = calls[-1 - growth.steps :]
    slope = find_slope([call.peak_ram_bytes or 0 for call in later], [call.number for call in later])
    each = growth._replace(slope_bytes=slope)
    step = f"call of {'/'.join(region.path)}"
    found = _report_growth(
        facts, each, seconds, step, WARNING, LIKELY, of=" sampled calls" if is_sample else ""
    )
    return found._replace(sentence=f"{found.sentence}{_name_keeper(facts.reported.regions, region, slope)}")


def _name_keeper(regions: Sequence[Region], grown: Region, slope_bytes: float) -> str:
    """Which region of a loop left that much behind: in all that follow each other there, peaks rise alike."""
    around = grown.path[:-1]
    near = [region for region in regions if region.path[: len(around)] == around and region.path != around]
    keeping = [
        region
        for region in near
        if 1 / _KEEPING_TIMES
        <= _find_kept_bytes(region) * region.calls / grown.calls / slope_bytes
        <= _KEEPING_TIMES
    ]
    if keeping:
        keeper = max(keeping, key=lambda region: (len(region.path), _find_kept_bytes(region)))
        kept = humanize_bytes(_find_kept_bytes(keeper))
        return f" It stays after {'/'.join(keeper.path)}, whose last call left {kept} more than it found."
    if len(near) > 1:
        return " Which region of this loop keeps it is not known: `gput.experiment` tells."
    return ""


def _find_kept_bytes(region: Region) -> int:
    """What the last call left behind, as far as that is known."""
    if region.entry_ram_bytes is None or region.exit_ram_bytes is None:
        return 0
    return max(0, region.exit_ram_bytes - region.entry_ram_bytes)


def _judge_lows(facts: Facts, limits: Limits, *, is_repeating: bool) -> Answer:
    lows = facts.ram_low_bytes
    if too_few := say_too_few(lows, limits):
        return too_few
    seconds = lows.end[-1] - lows.start[0]
    if seconds < limits["least_seconds"]:
        why = "RAM is not known for most calls of a region" if is_repeating else "no region repeats"
        return f"{why}, and the run was shorter than {humanize_seconds(limits['least_seconds'])}"
    sizes = _keep_known(_bin(lows).low)
    if len(sizes) < limits["least_repeats"]:
        return "RAM is not known for long enough"
    growth, window = _find_growth(sizes, limits), seconds / len(sizes)
    if growth is None:
        return None
    return _report_growth(facts, growth, window, humanize_seconds(window), NOTE, POSSIBLE)


def _find_growth(sizes: Sequence[float], limits: Limits) -> Growth | None:
    return find_growth(sizes, limits["step_percent"], limits["rising_share"], limits["total_percent"])


def _report_growth(
    facts: Facts,
    growth: Growth,
    step_seconds: float,
    step: str,
    severity: str,
    confidence: str,
    *,
    of: str = "",
) -> Found:
    slope, last, rising, steps = growth
    left = (facts.summary.ram_capacity_bytes - last) / slope * step_seconds
    until = f" At this rate the limit is reached in {humanize_seconds(left)}." if left > 0 else ""
    return Found(
        f"RAM grew by {humanize_bytes(slope)} per {step}, in {rising} of {steps}{of}.{until}",
        severity,
        confidence,
        (
            ("bytes_per_step", slope),
            ("step_seconds", step_seconds),
            ("rising_steps", rising),
            ("steps", steps),
        ),
    )


def _bin(spans: Spans[float]) -> Binned:
    """In windows of equal length."""
    edges = cut_time(spans.start[0], spans.end[-1], min(_WINDOWS, len(spans.values)))
    return bin_column(make_bins(edges, spans.start, spans.end), spans.end, spans.values)


def _keep_known(values: Sequence[float]) -> list[float]:
    """Without the windows in which nothing was measured."""
    return [value for value in values if not isnan(value)]


# ---- 19. Workers that grow.


def judge_workers(facts: Facts, limits: Limits) -> Answer:
    """Descendants that grow while the main process does not."""
    main, workers, _ = facts.ram_bytes
    if too_few := say_too_few(workers, limits):
        return too_few
    seconds = workers.end[-1] - workers.start[0]
    if seconds < limits["least_seconds"]:
        return f"the run was shorter than {humanize_seconds(limits['least_seconds'])}"
    if not any(workers.values):
        return "there were no descendants"
    if _count_lasting(facts) == 0:
        return "no descendant lived for most of the run"
    sizes, own = _keep_known(_bin(workers).mean), _keep_known(_bin(main).mean)
    slope = find_slope(sizes) * len(sizes) / seconds * 60
    percent = 100 * slope / (median(sizes) or 1)
    own_growth = 100 * find_slope(own) * len(own) / (own[0] or 1)
    if percent < limits["percent_per_minute"] or own_growth >= limits["main_percent"]:
        return None
    return Found(
        f"Worker processes grew by {humanize_bytes(slope)} a minute ({percent:.1f} %), the main process did not.",
        WARNING,
        POSSIBLE,
        (("bytes_per_minute", slope), ("percent_per_minute", percent)),
    )


def _count_lasting(facts: Facts) -> int:
    """Descendants that lived for most of the run."""
    least = 0.7 * facts.summary.seconds
    return sum(
        process.last_seconds - process.first_seconds >= least
        for process in facts.processes
        if process.pid != facts.header.pid
    )


# ---- 20. A spike.


def judge_spike(facts: Facts, limits: Limits) -> Answer:
    """A peak that was much higher than usual, and short."""
    high = facts.ram_high_bytes
    if too_few := say_too_few(facts.ram_bytes.combined, limits):
        return too_few
    if facts.summary.unread_seconds > limits["time_share"] * facts.summary.seconds:
        return "it may have lasted while nothing was measured"
    peak = facts.summary.ram.combined.total_bytes
    usual = find_quantile(high, 0.95)

    def is_near(size: float) -> bool:
        return size > limits["near_share"] * peak

    seconds, certain = count_seconds(high, is_near), count_seconds(facts.ram_low_bytes, is_near)
    is_short = seconds < limits["time_share"] * count_seconds(high)
    if peak < limits["times"] * usual or peak - usual < limits["least_bytes"] or not is_short:
        return None
    moment = facts.moments.get(RAM)
    if moment is not None and moment.size_bytes < limits["near_share"] * peak:
        moment = None  # a smaller peak: nobody saw the highest
    who = "" if moment is None else f" {_explain_moment(moment, peak, facts.header.pid)}."
    at = None if moment is None else moment.at_seconds
    return Found(
        f"The peak of {humanize_bytes(peak)} {_describe_length(seconds, certain)}; usually it was at most {humanize_bytes(usual)}.{who}",
        NOTE,
        LIKELY,
        (("peak_bytes", peak), ("usual_bytes", usual), ("seconds", seconds)),
        at,
        at,
    )


def _describe_length(seconds: float, certain_seconds: float) -> str:
    """How long a peak was in some intervals, if it filled so many of them."""
    if not seconds:
        return "was shorter than an interval"
    return f"lasted {'' if certain_seconds >= seconds else 'at most '}{humanize_seconds(seconds)}"


def _explain_moment(moment: PeakMoment, peak_bytes: int, main_pid: int) -> str:
    return f"{name_moment(moment, peak_bytes).capitalize()} {explain_peak(moment, main_pid)}"


# ---- 35. Thrashing.


def judge_thrashing(facts: Facts, limits: Limits) -> Answer:
    """Memory that is too small for what the job uses all the time."""
    if too_few := say_too_few(facts.ram_bytes.combined, limits):
        return too_few
    summary = facts.summary
    stalled, faults = summary.stalls.memory_seconds, summary.counters.major_faults
    if stalled is None or faults is None:
        return "waiting for memory is not measured"
    percent, rate = 100 * stalled / summary.seconds, faults / summary.seconds
    if percent < limits["percent"]:
        return _judge_fetching(facts)
    if rate < limits["faults_per_second"]:
        return "the job itself hardly waited for its memory"
    return Found(
        f"Something waited for memory for {percent:.0f} % of the time, and the job had to fetch {rate:,.0f} pages a second "
        "from storage: it had too little memory.",
        SERIOUS if percent >= limits["serious_percent"] else WARNING,
        LIKELY,
        (("percent", percent), ("faults_per_second", rate)),
    )


def _judge_fetching(facts: Facts) -> Found | None:
    """Where storage is fast, little time is counted as waiting for memory."""
    summary = facts.summary
    if not has_lacked_memory(summary):
        return None
    fetched, share = find_fetched_bytes(summary), find_stalled_share(summary)
    return Found(
        f"The job fetched {humanize_bytes(fetched)} from storage page by page under a memory limit of "
        f"{humanize_limit(summary.ram_capacity_bytes)}, and something waited for that for {100 * share:.0f} % of the time.",
        WARNING,
        POSSIBLE,
        (("fetched_bytes", fetched), ("percent", 100 * share)),
    )


RULES = (
    Rule(
        "35",
        "thrashing",
        "how long something on the machine waited for memory, and page faults of the job that waited for storage; or, under a memory "
        "limit that was reached, pages of many times its size, while something waited for storage for a fifth of the time",
        (
            Threshold("percent", 20, OWN),
            Threshold("serious_percent", 60, "systemd-oomd ends what waits for longer"),
            Threshold("faults_per_second", 100, OWN),
        ),
        "a job that hardly had to fetch pages: others wait then; waiting that the kernel does not count",
        SERIOUS,
        "Something waited for memory for 80 % of the time, and the job had to fetch 20,000 pages a second from storage: it had too little memory.",
        "Ask for more memory, or let the job hold less at a time.",
        "with more memory the job takes as long",
        judge_thrashing,
        needs_all_time=True,
    ),
    Rule(
        "16",
        "ram-tight",
        "peak of RAM, and what the job may use",
        (
            Threshold("percent", 90, "jupyter-resource-usage"),
            Threshold("serious_percent", 95, "Dask ends workers at 95 % of their limit"),
        ),
        "the page cache, which does not count; a run whose memory ran out, as killed-why tells",
        SERIOUS,
        "RAM peaked at 93 % of 16 GiB (Slurm limit).",
        "Ask for more memory, or use less: at the limit the kernel kills the job.",
        "the same run with less memory succeeds",
        judge_tight,
    ),
    Rule(
        "17",
        "ram-oversized",
        "peak of RAM, and the limit that a scheduler or container sets",
        (
            Threshold("percent", 70, "jobstats, Princeton"),
            Threshold("warning_percent", 35, "Job Defense Shield"),
            Threshold("least_seconds", 300, "jobstats, Princeton"),
            Threshold("whole_share", 0.9, OWN),
        ),
        "no limit, or that of a whole machine; runs that failed, or of which only the least need is known",
        WARNING,
        "11 GB of 64 GiB RAM used (17 %).",
        "Ask for what `gpu-tracker size` advises.",
        "other inputs of the same program need more",
        judge_oversized,
        needs_the_end=True,
        needs_all_time=True,
    ),
    Rule(
        "18",
        "ram-grows",
        "peak of RAM in each call of a region, else the lows of the whole run",
        (
            Threshold("least_repeats", 8, "our experiments with small training loops"),
            Threshold("step_percent", 0.3, "our experiments with small training loops"),
            Threshold("rising_share", 0.75, "our experiments with small training loops"),
            Threshold("total_percent", 5, "our experiments with small training loops"),
            Threshold("since_share", 0.25, OWN),
            Threshold("least_seconds", 600, OWN),
        ),
        "fewer repeats; the first quarter, which fills caches; growth that ended earlier; without repeats, short runs",
        WARNING,
        "RAM grew by 8.3 MB per call of epoch, in 18 of 18. At this rate the limit is reached in 3 h 02 min 00 s.",
        "Look for what is kept: results in a list, `loss` instead of `loss.item()`, caches without a bound.",
        "a longer run stops growing",
        judge_growing,
        needs_all_time=True,
    ),
    Rule(
        "19",
        "workers-grow",
        "RAM of descendants and of the main process over time",
        (
            Threshold("percent_per_minute", 1, OWN),
            Threshold("least_seconds", 600, OWN),
            Threshold("main_percent", 5, OWN),
        ),
        "workers that are started again and again",
        WARNING,
        "Worker processes grew by 31 MB a minute (1.3 %), the main process did not.",
        "Reference counts copy a shared data set bit by bit: use arrays instead of lists of objects.",
        "with arrays the workers grow as much",
        judge_workers,
        needs_all_time=True,
    ),
    Rule(
        "20",
        "peak-is-a-spike",
        "peak of RAM, and what it was below for 95 % of the time",
        (
            Threshold("times", 1.5, OWN),
            Threshold("time_share", 0.01, OWN),
            Threshold("near_share", 0.8, OWN),
            Threshold("least_bytes", 500e6, OWN),
        ),
        "few intervals; small peaks; runs that were not measured all the time",
        NOTE,
        "The peak of 30.1 GB lasted 2 s; usually it was at most 18 GB. Peak 30.1 GB at 3:12: 8 × pt_data_worker 2.4 GB, main 10.9 GB; in eval.",
        "Without that moment the job would need less: look at what happens then.",
        "the peak lasts longer in other runs",
        judge_spike,
        needs_all_time=True,
    ),
)

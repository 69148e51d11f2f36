"""RAM: tight, too generous, growing, spiking. Pure."""

from __future__ import annotations

from itertools import pairwise
from math import isnan
from statistics import median

from ...core.model import RAM
from ...core.units import humanize_bytes, humanize_limit, humanize_seconds
from ...core.values import NamedTuple
from ..peaks import explain_peak
from ..series import bin_column, cut_time, make_bins
from .finding import LIKELY, NOTE, POSSIBLE, SERIOUS, WARNING
from .rule import OWN, Found, Rule, Threshold, say_too_few
from .spans import count_seconds, find_quantile, find_slope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...core.model import Call
    from ..series import Binned
    from .facts import Facts
    from .rule import Answer, Limits
    from .spans import Spans

_GB = 10**9
_WINDOWS = 40


# ---- 16. Tight.


def judge_tight(facts: Facts, limits: Limits) -> Answer:
    """The peak against what the job may use."""
    summary = facts.summary
    peak, capacity = summary.ram.combined.total_bytes, summary.ram_capacity_bytes
    if not peak or capacity <= 0:
        return "RAM was not measured"
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
    percent, enough = 100 * peak / capacity, round_up(1.2 * peak)
    if percent >= limits["percent"] or enough >= capacity:
        return None
    flag = f"--mem={enough // _GB}G" if summary.ram_source == "Slurm" else humanize_bytes(enough)
    return Found(
        f"{humanize_bytes(peak)} of {humanize_limit(capacity)} RAM used ({percent:.0f} %).",
        WARNING if percent <= limits["warning_percent"] else NOTE,
        LIKELY,
        (("percent", percent), ("peak_bytes", peak), ("enough_bytes", enough)),
        advice=f"{flag} is enough for a run like this: the peak and 20 %.",
    )


def round_up(size_bytes: float) -> int:
    """To a size that people write: whole GB, from 30 GB on fives, from 100 GB on tens, from 1000 GB on hundreds."""
    step = next(
        step for least, step in ((1000, 100), (100, 10), (30, 5), (0, 1)) if size_bytes >= least * _GB
    )
    return -int(-size_bytes // (step * _GB)) * step * _GB


# ---- 18. Growing.


def judge_growing(facts: Facts, limits: Limits) -> Answer:
    """Repeated calls of a region that need more each time; else the lows of the whole run."""
    reason = "no region was called often enough"
    for path, calls in _find_repeats(facts):
        if len(calls) >= limits["least_repeats"]:
            seconds = (calls[-1].start_seconds - calls[0].start_seconds) / (len(calls) - 1)
            found = _judge_steps([call.peak_ram_bytes or 0 for call in calls], limits)
            if found is None:
                reason = ""
                continue
            return _report_growth(facts, found, seconds, f"call of {'/'.join(path)}", WARNING, LIKELY)
    if not reason:
        return None
    return _judge_lows(facts, limits)


def _find_repeats(facts: Facts) -> Iterator[tuple[tuple[str, ...], list[Call]]]:
    """The calls of each outermost region in the tracked process, in the order of time, where none is missing."""
    for region in facts.reported.regions:
        calls = [
            call
            for call in facts.calls
            if call.path == region.path
            and call.pid == facts.header.pid
            and call.number
            and call.peak_ram_bytes
        ]
        if len(calls) == region.calls:
            yield region.path, sorted(calls, key=lambda call: call.start_seconds)


def _judge_lows(facts: Facts, limits: Limits) -> Answer:
    lows = facts.ram_low_bytes
    if too_few := say_too_few(lows, limits):
        return too_few
    seconds = lows.end[-1] - lows.start[0]
    if seconds < limits["least_seconds"]:
        return f"no region repeats, and the run was shorter than {humanize_seconds(limits['least_seconds'])}"
    sizes = _keep_known(_bin(lows).low)
    if len(sizes) < limits["least_repeats"]:
        return "RAM is not known for long enough"
    growth, window = _judge_steps(sizes, limits), seconds / len(sizes)
    if growth is None:
        return None
    return _report_growth(facts, growth, window, humanize_seconds(window), NOTE, POSSIBLE)


class _Growth(NamedTuple):
    """How sizes at equal steps grew."""

    slope_bytes: float
    last_bytes: float
    rising: int
    steps: int


def _judge_steps(every: Sequence[float], limits: Limits) -> _Growth | None:
    """Whether sizes at equal steps keep growing. The first quarter fills caches."""
    sizes = every[len(every) // 4 :]
    steps = list(pairwise(sizes))
    rising = sum(after > before for before, after in steps)
    slope = find_slope(sizes)
    is_growing = (
        100 * slope >= limits["step_percent"] * median(sizes)
        and rising >= limits["rising_share"] * len(steps)
        and 100 * (sizes[-1] - sizes[0]) >= limits["total_percent"] * sizes[0]
    )
    return _Growth(slope, sizes[-1], rising, len(steps)) if is_growing and slope > 0 else None


def _report_growth(
    facts: Facts, growth: _Growth, step_seconds: float, step: str, severity: str, confidence: str
) -> Found:
    slope, last, rising, steps = growth
    left = (facts.summary.ram_capacity_bytes - last) / slope * step_seconds
    until = f" At this rate the limit is reached in {humanize_seconds(left)}." if left > 0 else ""
    return Found(
        f"RAM grew by {humanize_bytes(slope)} per {step}, in {rising} of {steps}.{until}",
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
    high, usual_spans = facts.ram_high_bytes, facts.ram_bytes.combined
    if too_few := say_too_few(usual_spans, limits):
        return too_few
    peak = facts.summary.ram.combined.total_bytes
    usual = find_quantile(usual_spans, 0.95)
    seconds = count_seconds(high, lambda size: size > limits["near_share"] * peak)
    is_short = seconds < limits["time_share"] * count_seconds(high)
    if peak < limits["times"] * usual or peak - usual < limits["least_bytes"] or not is_short:
        return None
    moment = facts.moments.get(RAM)
    if moment is not None and moment.size_bytes < limits["near_share"] * peak:
        moment = None  # a smaller peak: nobody saw the highest
    who = "" if moment is None else f" {explain_peak(moment, facts.header.pid)}."
    at = None if moment is None else moment.at_seconds
    lasted = f"lasted {humanize_seconds(seconds)}" if seconds else "was shorter than an interval"
    return Found(
        f"The peak of {humanize_bytes(peak)} {lasted}; usually it was at most {humanize_bytes(usual)}.{who}",
        NOTE,
        LIKELY,
        (("peak_bytes", peak), ("usual_bytes", usual), ("seconds", seconds)),
        at,
        at,
    )


RULES = (
    Rule(
        "16",
        "ram-tight",
        "peak of RAM, and what the job may use",
        (
            Threshold("percent", 90, "jupyter-resource-usage"),
            Threshold("serious_percent", 95, "Dask ends workers at 95 % of their limit"),
        ),
        "the page cache does not count",
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
        "no limit, or that of a whole machine; runs that failed",
        WARNING,
        "11 GB of 64 GiB RAM used (17 %).",
        "Ask for the peak and 20 %.",
        "other inputs of the same program need more",
        judge_oversized,
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
            Threshold("least_seconds", 600, OWN),
        ),
        "fewer repeats; the first quarter, which fills caches; without repeats, short runs",
        WARNING,
        "RAM grew by 8.3 MB per call of epoch, in 18 of 18. At this rate the limit is reached in 3 h 02 min 00 s.",
        "Look for what is kept: results in a list, `loss` instead of `loss.item()`, caches without a bound.",
        "a longer run stops growing",
        judge_growing,
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
        "few intervals; small peaks",
        NOTE,
        "The peak of 30 GB lasted 2 s; usually it was at most 18 GB. 30.1 GB at 3:12: 8 × pt_data_worker 2.4 GB, main 10.9 GB; in eval.",
        "Without that moment the job would need less: look at what happens then.",
        "the peak lasts longer in other runs",
        judge_spike,
    ),
)

"""What the job logged: losses that are no numbers any more, and silence at the end. Pure."""

from __future__ import annotations

from math import isfinite

from ...core.units import humanize_joules, humanize_seconds, write_clock
from ..logged import collect
from .finding import LIKELY, NOTE, POSSIBLE, SERIOUS, WARNING
from .rule import OWN, Found, Rule, Threshold
from .spans import skip_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...core.model import MetricRow
    from .facts import Facts
    from .rule import Answer, Limits


# ---- 29. Not a number.


def judge_nan(facts: Facts, limits: Limits) -> Answer:
    """A metric that was finite, is not any more, and its part of the run went on. Each process has its own."""
    broken = {metric.name for metric in facts.reported.metrics if metric.not_finite}
    if not facts.reported.metrics:
        return "no metric was logged"
    turns = {name: _find_last_turns(facts.rows, name, facts.summary.seconds) for name in broken}
    # An empty class has no recall: that alone ruins no training.
    is_trained = any(
        _is_loss(metric.name) and metric.last is not None and not turns.get(metric.name)
        for metric in facts.reported.metrics
    )
    found = [
        (row, name, end_seconds - row.at_seconds)
        for name in broken
        for row, end_seconds in turns[name]
        if end_seconds - row.at_seconds > limits["least_seconds"]
    ]
    if not found:
        return "when it was nan is not known" if broken and not facts.rows else None
    row, name, seconds = min(found, key=lambda one: (not _is_loss(one[1]), one[0].at_seconds, one[1]))
    is_harmless = is_trained and not _is_loss(name)
    joules = _count_joules(facts, row.at_seconds, row.at_seconds + seconds)
    since = f"at {write_clock(row.at_seconds)}" if row.step is None else f"at step {row.step:g}"
    energy = f" and {humanize_joules(joules)}" if joules else ""
    return Found(
        f"{name} became {row.values[name]} {since}; {humanize_seconds(seconds)}{energy} followed.",
        NOTE if is_harmless else SERIOUS,
        POSSIBLE if is_harmless else LIKELY,
        (("seconds", seconds), ("joules", joules)),
        row.at_seconds,
        row.at_seconds + seconds,
        advice="The loss stayed finite: look at whether this metric may be nan, as that of an empty class."
        if is_harmless
        else "",
    )


def _is_loss(name: str) -> bool:
    return "loss" in name.lower()


def _find_last_turns(
    rows: Iterable[MetricRow], name: str, end_seconds: float
) -> list[tuple[MetricRow, float]]:
    """Of each process whose metric was finite once, the row after which it never was again, and until when that went on.

    That is to the end of the run, unless a number was logged after its last value: then what it belongs to was over.
    """
    turns: dict[int, MetricRow | None] = {}
    finite: set[int] = set()
    last_seconds: dict[int, float] = {}
    finite_seconds = 0.0
    for row in rows:
        if any(map(isfinite, row.values.values())):
            finite_seconds = max(finite_seconds, row.at_seconds)
        value = row.values.get(name)
        if value is None:
            continue
        last_seconds[row.pid] = row.at_seconds
        if isfinite(value):
            finite.add(row.pid)
            turns[row.pid] = None
        elif turns.get(row.pid) is None:
            turns[row.pid] = row
    return [
        (turn, end_seconds if last_seconds[pid] >= finite_seconds else last_seconds[pid])
        for pid, turn in turns.items()
        if turn is not None and pid in finite
    ]


def _count_joules(facts: Facts, since_seconds: float, until_seconds: float) -> float:
    """What the devices of the job drew between, as far as power is known."""
    later = [skip_until(gpu.power_watts, since_seconds) for gpu in facts.used_gpus]
    return sum(
        watts * max(0.0, min(last, until_seconds) - first)
        for spans in later
        for first, last, watts in zip(spans.start, spans.end, spans.values, strict=True)
    )


# ---- 30. Silence at the end.


def judge_tail(facts: Facts, limits: Limits) -> Answer:
    """Nothing was logged and no region left for a long time at the end."""
    regions = facts.reported.regions
    if any(region.open_calls for region in regions):
        return "a region was still open at the end"
    signs = [region.last_seconds for region in regions if region.last_seconds is not None]
    logged_seconds = collect(facts.rows).last_seconds
    signs += [] if logged_seconds is None else [logged_seconds]
    if not signs:
        return "no region was marked, and no metric logged"
    seconds, whole = facts.summary.seconds - max(signs), facts.summary.seconds
    if seconds <= max(limits["least_seconds"], limits["time_share"] * whole):
        return None
    return Found(
        f"Nothing was logged for the last {humanize_seconds(seconds)}.",
        WARNING,
        POSSIBLE,
        (("seconds", seconds),),
        whole - seconds,
        whole,
    )


RULES = (
    Rule(
        "29",
        "nan-then-burned",
        "metrics that were logged, and the power of the devices",
        (Threshold("least_seconds", 60, OWN),),
        "metrics that were never finite, or are so again at the end; only a note of one that is no loss, if a loss stayed finite",
        SERIOUS,
        "loss became nan at step 812; 3 h 24 min 00 s and 9 kWh followed.",
        "Stop when a loss is not a number: check it every few steps.",
        "the metric may be nan, as of an empty class",
        judge_nan,
    ),
    Rule(
        "30",
        "tail",
        "the last metric, the end of the last region, and the end of the run",
        (Threshold("time_share", 0.1, OWN), Threshold("least_seconds", 300, OWN)),
        "a region that is still open; nothing marked or logged",
        WARNING,
        "Nothing was logged for the last 48 min 00 s.",
        "Look at what the program does at its end, and whether it still needs the resources.",
        "the last part has no regions, but does work",
        judge_tail,
        needs_the_end=True,
    ),
)

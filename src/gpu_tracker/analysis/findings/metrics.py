"""What the job logged: losses that are no numbers any more, and silence at the end. Pure."""

from __future__ import annotations

from math import isfinite

from ...core.units import humanize_joules, humanize_seconds, write_clock
from .finding import LIKELY, POSSIBLE, SERIOUS, WARNING
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
    """A metric that was finite, is not any more, and the run went on."""
    broken = {metric.name for metric in facts.reported.metrics if metric.not_finite and metric.last is None}
    if not facts.reported.metrics:
        return "no metric was logged"
    found = [
        (row, name)
        for name in broken
        if (row := _find_last_turn(facts.rows, name)) is not None
        and facts.summary.seconds - row.at_seconds > limits["least_seconds"]
    ]
    if not found:
        return "when it was nan is not known" if broken and not facts.rows else None
    row, name = min(found, key=lambda pair: (pair[0].at_seconds, pair[1]))
    seconds = facts.summary.seconds - row.at_seconds
    joules = _count_joules(facts, row.at_seconds)
    since = f"at {write_clock(row.at_seconds)}" if row.step is None else f"at step {row.step:g}"
    energy = f" and {humanize_joules(joules)}" if joules else ""
    return Found(
        f"{name} became {row.values[name]} {since}; {humanize_seconds(seconds)}{energy} followed.",
        SERIOUS,
        LIKELY,
        (("seconds", seconds), ("joules", joules)),
        row.at_seconds,
        facts.summary.seconds,
    )


def _find_last_turn(rows: Iterable[MetricRow], name: str) -> MetricRow | None:
    """The row after which the metric was never finite again; None if it never was."""
    turn: MetricRow | None = None
    was_finite = False
    for row in rows:
        value = row.values.get(name)
        if value is None:
            continue
        if isfinite(value):
            was_finite, turn = True, None
        elif turn is None:
            turn = row
    return turn if was_finite else None


def _count_joules(facts: Facts, since_seconds: float) -> float:
    """What the devices of the job drew after that, as far as power is known."""
    later = [skip_until(gpu.power_watts, since_seconds) for gpu in facts.used_gpus]
    return sum(
        watts * (last - first)
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
    signs += [row.at_seconds for row in facts.rows]
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
        "metrics that were never finite, or are so again at the end",
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
    ),
)

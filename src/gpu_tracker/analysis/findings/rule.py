"""What a rule is, and what it may answer. Pure."""

from __future__ import annotations

from ...core.text import count_of
from ...core.units import humanize_seconds
from ...core.values import NamedTuple
from ..summary import UNREAD_SHARE
from .finding import LIKELY, SEVERITIES, WARNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from .facts import Facts, GpuFacts
    from .spans import Spans

    Limits: TypeAlias = Mapping[str, float]
    """The thresholds of a rule by name."""
    Answer: TypeAlias = "Found | str | None"
    """What was found; why it was not judged; or nothing, because all is well."""


class Threshold(NamedTuple):
    """A number that a rule compares with, and that a user may change."""

    name: str
    value: float
    source: str
    """Who chose it."""


class Found(NamedTuple):
    """What a rule has found; the rest of the finding is in its row."""

    sentence: str
    severity: str = WARNING
    confidence: str = LIKELY
    evidence: tuple[tuple[str, float], ...] = ()
    start_seconds: float | None = None
    end_seconds: float | None = None
    advice: str = ""
    """Instead of the rule's own."""


class Rule(NamedTuple):
    """One row of the table."""

    number: str
    name: str
    looks_at: str
    thresholds: tuple[Threshold, ...]
    guard: str
    """When it stays silent."""
    severity: str
    """The worst it gives."""
    sentence: str
    """An example."""
    advice: str
    disproof: str
    """What would show that a finding is wrong."""
    judge: Callable[[Facts, Limits], Answer]
    needs_the_end: bool = False
    """What it says of a part of a run would be wrong: the rest may need more."""
    needs_all_time: bool = False
    """It judges shares of the time, or what is usual: of a run that was not measured all the time, neither is known."""


OWN = "our choice"
# Of every rule. The first readings show how a program starts, not how it runs.
COMMON = (
    Threshold("least_intervals", 30, "SageMaker Debugger waits, too, before it judges"),
    Threshold("start_share", 0.05, OWN),
    Threshold("unread_share", UNREAD_SHARE, OWN),
)


def say_unread(facts: Facts, limits: Limits) -> str:
    """Why too little of the run was measured to judge it, or nothing if it was enough."""
    unread, seconds = facts.summary.unread_seconds, facts.summary.seconds
    if unread <= limits["unread_share"] * seconds:
        return ""
    return (
        f"not enough data: nothing was measured for {humanize_seconds(unread)} of {humanize_seconds(seconds)}"
    )


def say_too_few(spans: Spans[Any], limits: Limits) -> str:
    """Why that is not enough to judge, or nothing if it is."""
    known, least = len(spans.values), limits["least_intervals"]
    if not known:
        return "there are no samples of it"
    return "" if known >= least else f"{count_of(known, 'interval')} after the start; {least:g} are needed"


def say_too_little(gpu: GpuFacts, limits: Limits) -> str:
    """Why the utilization of a device says too little about the run; empty if it says enough."""
    if not gpu.is_known_enough:
        return "its utilization is not known for most of the time"
    return say_too_few(gpu.busy_percent, limits)


def judge_gpus(facts: Facts, judge: Callable[[GpuFacts], Answer]) -> Answer:
    """The worst finding on any device that the job used, or why there is none."""
    if not facts.used_gpus:
        return "the job used no GPU"
    answers = [(gpu, judge(gpu)) for gpu in facts.used_gpus]
    found = [(gpu, answer) for gpu, answer in answers if isinstance(answer, Found)]
    if not found:
        return next((answer for _, answer in answers if isinstance(answer, str)), None)
    found.sort(key=lambda pair: SEVERITIES.index(pair[1].severity))
    worst, others = found[0][1], [gpu.label for gpu, _ in found[1:]]
    if not others:
        return worst
    return worst._replace(sentence=f"{worst.sentence} Also on GPU {', '.join(others)}.")

"""What a rule is, and what it may answer. Pure."""

from __future__ import annotations

from ...core.text import count_of
from ...core.values import NamedTuple
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


OWN = "our choice"
# Of every rule. The first readings show how a program starts, not how it runs.
COMMON = (
    Threshold("least_intervals", 30, "SageMaker Debugger waits, too, before it judges"),
    Threshold("start_share", 0.05, OWN),
)


def say_too_few(spans: Spans[Any], limits: Limits) -> str:
    """Why that is not enough to judge, or nothing if it is."""
    known, least = len(spans.values), limits["least_intervals"]
    if not known:
        return "there are no samples of it"
    return "" if known >= least else f"{count_of(known, 'interval')} after the start; {least:g} are needed"


def judge_gpus(facts: Facts, judge: Callable[[GpuFacts], Answer]) -> Answer:
    """The worst finding on any device that the job used, or why there is none."""
    if not facts.used_gpus:
        return "the job used no GPU"
    answers = [(gpu, judge(gpu)) for gpu in facts.used_gpus]
    found = [(gpu, answer) for gpu, answer in answers if isinstance(answer, Found)]
    if not found:
        return next((answer for _, answer in answers if isinstance(answer, str)), None)
    found.sort(key=lambda pair: SEVERITIES.index(pair[1].severity))
    worst, others = found[0][1], [str(gpu.ordinal) for gpu, _ in found[1:]]
    if not others:
        return worst
    return worst._replace(sentence=f"{worst.sentence} Also on GPU {', '.join(others)}.")

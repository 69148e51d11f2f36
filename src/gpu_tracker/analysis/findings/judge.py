"""Ask rules about a run, and put what they found in order. Pure."""

from __future__ import annotations

from ...core.errors import WRONG_DATA
from ...core.values import NamedTuple
from .finding import CERTAIN, CONFIDENCES, SEVERITIES, WHY_IT_DIED, Finding
from .rule import COMMON, Found, say_unread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .facts import Facts
    from .rule import Answer, Limits, Rule, Threshold


class Changes(NamedTuple):
    """What a user has changed of the rules."""

    thresholds: Mapping[str, Mapping[str, float]] = {}
    """By rule, or `all`, and name."""
    off: frozenset[str] = frozenset()
    """The rules that are switched off."""


class Judgement(NamedTuple):
    """What the rules have to say about one run."""

    findings: tuple[Finding, ...] = ()
    """Worst first, after why it died."""
    unjudged: tuple[tuple[str, str], ...] = ()
    """The rules that could not judge it, and why."""


def judge(facts: Facts, rules: Sequence[Rule], changes: Changes) -> Judgement:
    """Ask them all."""
    findings, unjudged = [], []
    for rule in rules:
        answer = "switched off" if rule.name in changes.off else _ask(rule, facts, changes)
        if isinstance(answer, Found):
            findings.append(_complete(rule, answer))
        elif answer is not None:
            unjudged.append((rule.name, answer))
    return Judgement(tuple(sorted(findings, key=find_place)), tuple(unjudged))


def find_limits(rule: Rule, changes: Changes) -> Limits:
    """The thresholds of a rule, with the common ones."""
    return {
        **_list_limits(COMMON, changes.thresholds.get("all", {})),
        **_list_limits(rule.thresholds, changes.thresholds.get(rule.name, {})),
    }


def find_start_share(changes: Changes) -> float:
    """How much of the run is its start."""
    return _list_limits(COMMON, changes.thresholds.get("all", {}))["start_share"]


def _list_limits(thresholds: Sequence[Threshold], changed: Mapping[str, float]) -> dict[str, float]:
    return {threshold.name: changed.get(threshold.name, threshold.value) for threshold in thresholds}


def _ask(rule: Rule, facts: Facts, changes: Changes) -> Answer:
    limits = find_limits(rule, changes)
    try:
        unread = say_unread(facts, limits) if rule.needs_all_time else ""
        return unread or rule.judge(facts, limits)
    except WRONG_DATA:
        return "the recording has numbers that no run can have"


def _complete(rule: Rule, found: Found) -> Finding:
    return Finding(
        rule=rule.name,
        severity=found.severity,
        confidence=found.confidence,
        sentence=found.sentence,
        advice=found.advice or rule.advice,
        disproof="" if found.confidence == CERTAIN else rule.disproof,
        evidence=found.evidence,
        start_seconds=found.start_seconds,
        end_seconds=found.end_seconds,
    )


def find_place(finding: Finding) -> tuple[bool, int, int]:
    """Where it comes among others: the worst first, after why it died."""
    return (
        finding.rule != WHY_IT_DIED,
        SEVERITIES.index(finding.severity),
        CONFIDENCES.index(finding.confidence),
    )

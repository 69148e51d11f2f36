"""Findings as lines of text: the worst first, and not too many."""

from __future__ import annotations

from ..analysis.findings.finding import CERTAIN, NOTE, SERIOUS, WHY_IT_DIED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.findings.finding import Finding

_MOST_SHOWN = 5


def split_findings(findings: Sequence[Finding]) -> tuple[Sequence[Finding], Sequence[Finding]]:
    """What must be read before any figure: why it died, and what is serious; then the rest."""
    n_first = sum(finding.severity == SERIOUS or finding.rule == WHY_IT_DIED for finding in findings)
    return findings[:n_first], findings[n_first:]


def format_findings(findings: Sequence[Finding]) -> list[str]:
    """One line each: how bad, what, how sure, what to do, and the rule to ask about."""
    lines = list(map(_format, findings[:_MOST_SHOWN]))
    hidden = len(findings) - _MOST_SHOWN
    return [*lines, f"and {hidden} more, in `-f json`"] if hidden > 0 else lines


def _format(finding: Finding) -> str:
    sure = "" if finding.confidence == CERTAIN else f" ({finding.confidence})"
    label = "hint" if finding.severity == NOTE else finding.severity  # notes are about the measurement
    return f"{label}: {finding.sentence}{sure} {finding.advice}".rstrip() + f" [{finding.rule}]"

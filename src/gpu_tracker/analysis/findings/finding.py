"""A sentence about a run, with its evidence and what to do about it. Pure."""

from __future__ import annotations

from ...core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Worst first.
SEVERITIES = SERIOUS, WARNING, NOTE = "serious", "warning", "note"
# Surest first.
CONFIDENCES = CERTAIN, LIKELY, POSSIBLE = "certain", "likely", "possible"
# The rule whose finding comes first, however sure it is.
WHY_IT_DIED = "killed-why"


class Finding(NamedTuple):
    """What one rule has found in one run."""

    rule: str
    """The name of the rule: `gpu-low`."""
    severity: str
    confidence: str
    sentence: str
    """What was found, with its numbers."""
    advice: str = ""
    """What to do about it."""
    disproof: str = ""
    """What would show that it is wrong."""
    evidence: tuple[tuple[str, float], ...] = ()
    """The numbers that the rule looked at, by name, in base units."""
    start_seconds: float | None = None
    """This and the next: when it was so; None for the whole run."""
    end_seconds: float | None = None


def choose_new(findings: Sequence[Finding], told: frozenset[str]) -> tuple[Finding, ...]:
    """Those worth telling somebody who does not look: warnings and worse, each rule once."""
    return tuple(one for one in findings if one.severity != NOTE and one.rule not in told)

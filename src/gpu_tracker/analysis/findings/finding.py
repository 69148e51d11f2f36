"""A sentence about a run, with its evidence and what to do about it. Pure."""

from __future__ import annotations

from ...core.values import NamedTuple

# Worst first.
SEVERITIES = SERIOUS, WARNING, NOTE = "serious", "warning", "note"
# Surest first.
CONFIDENCES = CERTAIN, LIKELY, POSSIBLE = "certain", "likely", "possible"


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

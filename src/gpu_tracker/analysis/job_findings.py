"""What rules found in the ranks of a job, each rule once. Pure."""

from __future__ import annotations

from ..core.values import NamedTuple
from .findings.judge import find_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .findings.finding import Finding


class JobFinding(NamedTuple):
    """What one rule found in some ranks."""

    finding: Finding
    """As the worst of them has it."""
    rank: str
    """The name of that rank."""
    ranks: tuple[str, ...]
    """The names of all of them."""
    judged: int
    """How many ranks were judged."""


def join_findings(judged: Sequence[tuple[str, Sequence[Finding]]]) -> tuple[JobFinding, ...]:
    """Of ranks, by name: the worst first, and of those that are equally bad what most ranks have."""
    found: dict[str, list[tuple[str, Finding]]] = {}
    for rank, findings in judged:
        for finding in findings:
            found.setdefault(finding.rule, []).append((rank, finding))
    joined = [_join(some, len(judged)) for some in found.values()]
    return tuple(sorted(joined, key=lambda one: (find_place(one.finding), -len(one.ranks))))


def _join(found: Sequence[tuple[str, Finding]], judged: int) -> JobFinding:
    rank, worst = min(found, key=lambda one: find_place(one[1]))
    return JobFinding(worst, rank, tuple(dict.fromkeys(name for name, _ in found)), judged)

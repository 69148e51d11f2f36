"""What rules found in the ranks of a job."""

from __future__ import annotations

import pytest

from gpu_tracker.analysis.findings.finding import (
    CERTAIN,
    LIKELY,
    NOTE,
    SERIOUS,
    WARNING,
    WHY_IT_DIED,
    Finding,
)
from gpu_tracker.analysis.job import MOST_JUDGED, combine
from gpu_tracker.analysis.job_findings import join_findings
from gpu_tracker.core.model import RecordingData
from gpu_tracker.recording.sampled import read_held
from recorded import rank


def find(rule: str, severity: str = WARNING, confidence: str = LIKELY, sentence: str = "") -> Finding:
    """What a rule has found in one rank."""
    return Finding(rule, severity, confidence, sentence or f"{rule} is so.")


def test_a_rule_is_there_once_with_all_its_ranks() -> None:
    """In the words about the rank in which it is worst."""
    (joined,) = join_findings(
        [
            ("rank 0", [find("data-wait", sentence="20 % of the time")]),
            ("rank 1", []),
            ("rank 2", [find("data-wait", SERIOUS, sentence="60 % of the time")]),
        ]
    )

    assert joined.finding.sentence == "60 % of the time"
    assert (joined.rank, joined.ranks, joined.judged) == ("rank 2", ("rank 0", "rank 2"), 3)


def test_the_worst_come_first_then_what_most_ranks_have() -> None:
    """After why one of them died."""
    joined = join_findings(
        [
            ("rank 0", [find("one-core"), find("a-hint", NOTE), find("data-wait")]),
            ("rank 1", [find(WHY_IT_DIED, NOTE), find("leak", SERIOUS, CERTAIN), find("data-wait")]),
        ]
    )

    assert [one.finding.rule for one in joined] == [WHY_IT_DIED, "leak", "data-wait", "one-core", "a-hint"]


@pytest.mark.parametrize("n_ranks", [3, MOST_JUDGED, MOST_JUDGED + 30])
def test_of_many_ranks_the_worst_are_judged(n_ranks: int) -> None:
    """The one that failed, and those that took longest: the others' samples are not read for it."""
    asked: list[int] = []

    def judge(recording: RecordingData) -> list[Finding]:
        asked.append(recording.header.pid)
        return [find("data-wait")]

    recordings = [
        (str(pid), rank(pid=pid, seconds=10.0 + pid, exit_code=int(pid == 1)))
        for pid in range(1, n_ranks + 1)
    ]
    (found,) = combine(recordings, read_held, judge=judge).findings

    assert len(asked) == min(n_ranks, MOST_JUDGED)
    assert {1, n_ranks} <= set(asked)
    assert found.judged == len(found.ranks) == len(asked)

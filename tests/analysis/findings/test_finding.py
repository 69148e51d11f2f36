"""Findings as such."""

from __future__ import annotations

from gpu_tracker.analysis.findings.finding import CERTAIN, NOTE, SERIOUS, WARNING, Finding, choose_new


def test_each_bad_finding_is_told_once() -> None:
    """Notes are not."""
    findings = [
        Finding(rule, kind, CERTAIN, "") for rule, kind in (("a", SERIOUS), ("b", WARNING), ("c", NOTE))
    ]

    assert [one.rule for one in choose_new(findings, frozenset())] == ["a", "b"]
    assert [one.rule for one in choose_new(findings, frozenset({"a"}))] == ["b"]

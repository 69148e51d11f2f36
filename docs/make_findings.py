"""Write the rules in findings.md from the code: python docs/make_findings.py [--check].

A test runs it with --check, so the document and the code cannot disagree.
"""

from __future__ import annotations

import sys

from generated import update

from gpu_tracker.analysis.findings.rule import COMMON, Rule, Threshold
from gpu_tracker.analysis.findings.table import RULES


def render() -> str:
    """The rules as Markdown."""
    common = _render_thresholds(COMMON)
    parts = [f"Of all rules (`[all]` in a file): {common}.\n", *map(_render_rule, RULES)]
    return "\n".join(parts)


def _render_rule(rule: Rule) -> str:
    lines = [
        f"### {rule.name}",
        "",
        f"> {rule.sentence} {rule.advice}",
        "",
        f"* at worst: {rule.severity}",
        f"* looks at: {rule.looks_at}",
        f"* thresholds: {_render_thresholds(rule.thresholds) or 'none'}",
        f"* silent for: {rule.guard}",
        f"* wrong if: {rule.disproof}",
    ]
    return "\n".join([*lines, ""])


def _render_thresholds(thresholds: tuple[Threshold, ...]) -> str:
    return ", ".join(f"`{one.name}` = {one.value:.10g} ({one.source})" for one in thresholds)


if __name__ == "__main__":
    sys.exit(update(__file__, "findings.md", render(), sys.argv[1:]))

"""The rules themselves, in words."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..analysis.findings.judge import Changes
    from ..analysis.findings.rule import Rule


def list_rules(rules: Sequence[Rule], changes: Changes) -> str:
    """One line per rule: its name, its worst severity and an example."""
    width = max(len(rule.name) for rule in rules)
    lines = [
        f"{rule.name:<{width}}  {'off' if rule.name in changes.off else rule.severity:<8} {rule.sentence}"
        for rule in rules
    ]
    return "\n".join([*lines, "", "gpu-tracker explain RULE tells more about one of them.", ""])


def explain_rule(rule: Rule, limits: Mapping[str, float], *, is_off: bool) -> str:
    """Everything about one rule."""
    thresholds = [
        f"{threshold.name} = {limits[threshold.name]:.10g} ({threshold.source})"
        for threshold in rule.thresholds
    ]
    rows = [
        ("looks at", [rule.looks_at]),
        ("thresholds", thresholds or ["none"]),
        ("silent for", [rule.guard]),
        ("advice", [rule.advice]),
        ("wrong if", [rule.disproof]),
        ("to change it", ["in a file for --rules or GPU_TRACKER_RULES:", *_write_section(rule, limits)]),
    ]
    state = "switched off" if is_off else f"at worst {rule.severity}"
    lines = [f"{rule.name} ({state}): {rule.sentence}"]
    for label, words in rows:
        lines += [f"  {label:<13} {words[0]}", *(f"{'':<16}{line}" for line in words[1:])]
    return "\n".join([*lines, ""])


def _write_section(rule: Rule, limits: Mapping[str, float]) -> list[str]:
    values = [f"{threshold.name} = {limits[threshold.name]:.10g}" for threshold in rule.thresholds]
    return [f"[{rule.name}]", *values, "off = true"]

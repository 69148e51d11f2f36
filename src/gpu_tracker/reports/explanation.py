"""The rules themselves, in words."""

from __future__ import annotations

from ..core.text import wrap, wrap_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..analysis.findings.judge import Changes
    from ..analysis.findings.rule import Rule

_INDENT = 16
_PLACE = "in a file for --rules or GPU_TRACKER_RULES:"


def list_rules(rules: Sequence[Rule], changes: Changes, columns: int | None = None) -> str:
    """One line per rule: its name, its worst severity and an example."""
    width = max(len(rule.name) for rule in rules)
    starts = [
        f"{rule.name:<{width}}  {'off' if rule.name in changes.off else rule.severity:<8} " for rule in rules
    ]
    sentences = (f"{start}{rule.sentence}" for start, rule in zip(starts, rules, strict=True))
    lines = wrap_all(sentences, columns, len(starts[0]))
    return "\n".join([*lines, "", "gpu-tracker explain RULE tells more about one of them.", ""])


def explain_rule(rule: Rule, limits: Mapping[str, float], *, is_off: bool, columns: int | None = None) -> str:
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
    ]
    values = [f"{threshold.name} = {limits[threshold.name]:.10g}" for threshold in rule.thresholds]
    if values:
        rows.append(("to change it", [_PLACE, f"[{rule.name}]", *values]))
    rows.append(("to silence it", [_PLACE, f"[{rule.name}]", "off = true"]))
    state = "switched off" if is_off else f"at worst {rule.severity}"
    lines = wrap(f"{rule.name} ({state}): {rule.sentence}", columns, _INDENT)
    for label, words in rows:
        texts = [f"  {label:<13} {words[0]}", *(f"{'':<{_INDENT}}{line}" for line in words[1:])]
        lines += wrap_all(texts, columns, _INDENT)
    return "\n".join([*lines, ""])

"""The rules in words."""

from __future__ import annotations

from gpu_tracker.analysis.findings.judge import Changes, find_limits
from gpu_tracker.analysis.findings.table import RULES, find_rule
from gpu_tracker.reports.explanation import explain_rule, list_rules


def test_every_rule_is_listed() -> None:
    """With its severity, or that it is off."""
    lines = list_rules(RULES, Changes(off=frozenset({"tail"}))).splitlines()

    assert len(lines) == len(RULES) + 2
    assert lines[2] == "gpu-low             serious  GPU 0 was busy for 12 % of the time."
    assert next(line for line in lines if line.startswith("tail ")).split()[1] == "off"


def test_one_rule_is_explained() -> None:
    """With the thresholds that count, and what to write to change them."""
    rule = find_rule("gpu-low")
    changes = Changes({"gpu-low": {"serious_percent": 5}})

    text = explain_rule(rule, find_limits(rule, changes), is_off=False)

    assert text.startswith("gpu-low (at worst serious): GPU 0 was busy for 12 % of the time.\n")
    assert "  thresholds    serious_percent = 5 (jobstats, Princeton)\n" in text
    lines = [line.strip() for line in text.splitlines()]
    change, silence = (
        next(at for at, line in enumerate(lines) if line.startswith(f"to {verb} it"))
        for verb in ("change", "silence")
    )
    assert lines[change + 1 : silence] == [
        "[gpu-low]", "serious_percent = 5", "note_percent = 25", "server_percent = 90",
    ]  # fmt: skip
    assert lines[silence + 1 :] == ["[gpu-low]", "off = true"]


def test_a_rule_without_thresholds_is_explained_too() -> None:
    """It can be switched off all the same."""
    rule = find_rule("cpu-percent")

    text = explain_rule(rule, find_limits(rule, Changes()), is_off=True)

    assert text.startswith("cpu-percent (switched off): ")
    assert "  thresholds    none\n" in text


def test_rules_fit_a_terminal() -> None:
    """What is to be pasted stays on lines of its own."""
    listed = list_rules(RULES, Changes(), 80)
    explained = [explain_rule(rule, find_limits(rule, Changes()), is_off=False, columns=80) for rule in RULES]

    assert max(len(line) for text in (listed, *explained) for line in text.splitlines()) <= 80
    assert listed.split() == list_rules(RULES, Changes()).split()
    assert all("\n                off = true\n" in text for text in explained)

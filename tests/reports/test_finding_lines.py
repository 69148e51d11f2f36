"""Findings as text."""

from __future__ import annotations

from builders import render_str
from gpu_tracker.analysis.findings.finding import Finding
from gpu_tracker.reports.finding_lines import format_findings
from made_runs import GB, Device, judge, made_run


def test_a_finding_is_one_line() -> None:
    """How bad, what, how sure, what to do, and the rule to ask about."""
    sure = Finding("gpu-low", "serious", "certain", "It is low.", "Raise it.")
    unsure = Finding("tail", "note", "possible", "It is silent.")

    assert format_findings([sure, unsure]) == [
        "serious: It is low. Raise it. [gpu-low]",
        "hint: It is silent. (possible) [tail]",
    ]


def test_at_most_five_are_shown() -> None:
    """The others are counted."""
    findings = [Finding(f"rule-{number}", "note", "likely", "It is so.") for number in range(7)]

    lines = format_findings(findings)

    assert len(lines) == 6
    assert lines[-1] == "and 2 more, in `-f json`"
    assert len(format_findings(findings[:5])) == 5


def test_the_report_shows_them() -> None:
    """What is serious right below the title, the rest after the figures."""
    text = render_str(judge(made_run(Device(busy=5), ram=63 * GB)))

    assert text.splitlines()[1].startswith("  serious: ")
    assert "  serious: GPU 0 was busy for 5 % of the time. (likely) Look at what it waits for" in text
    assert text.index("serious: GPU 0") < text.index("  time ") < text.index("hint: 1400 %")


def test_why_it_died_comes_before_any_figure() -> None:
    """However unsure that is; other warnings come later."""
    findings = (
        Finding("killed-why", "warning", "possible", "Killed by SIGKILL."),
        Finding("crowded-machine", "warning", "likely", "Others were there."),
    )
    text = render_str(judge(made_run())._replace(findings=findings))

    assert text.index("Killed by SIGKILL") < text.index("  time ") < text.index("Others were there")

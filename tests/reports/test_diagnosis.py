"""The output of doctor."""

from __future__ import annotations

import json

from builders import render_str
from gpu_tracker.analysis.checks import FAILED, FINE, NOTHING, WARNING, Check, Diagnosis

CHECKS = (
    Check("GPUs", "NVIDIA", FINE, "1 device"),
    Check("GPUs", "AMD", NOTHING, "No driver."),
    Check("GPU 0", "power", WARNING, "Careful\x1b[2J."),
)
FAULT = Check("GPU 0", "utilization", FAILED, "Denied.")


def test_checks_are_grouped_and_aligned() -> None:
    """With the verdict at the end, and without control characters."""
    assert render_str(Diagnosis(CHECKS)) == (
        "GPUs\n"
        "  ✓ NVIDIA  1 device\n"
        "  · AMD     No driver.\n"
        "\n"
        "GPU 0\n"
        "  ! power   Careful?[2J.\n"
        "\n"
        "Everything on this machine can be measured except as marked above.\n"
    )
    assert render_str(Diagnosis(CHECKS[:2])).endswith("\nEverything on this machine can be measured.\n")


def test_a_terminal_without_unicode_gets_ascii() -> None:
    """And colours if it has them."""
    text = render_str(Diagnosis((*CHECKS, FAULT)), has_unicode=False, has_colour=True)

    assert text.isascii()
    assert "\x1b[31mx\x1b[0m utilization  Denied." in text
    assert "Something on this machine cannot be measured; see above for what to do." in text


def test_only_a_failure_is_not_fine() -> None:
    """Warnings and absent hardware are."""
    assert Diagnosis(CHECKS).is_fine
    assert not Diagnosis((*CHECKS, FAULT)).is_fine
    assert render_str(Diagnosis(()))


def test_scripts_get_every_check() -> None:
    """And the verdict."""
    shown = json.loads(render_str(Diagnosis((FAULT,)), "json"))

    assert shown["is_fine"] is False
    assert shown["checks"] == [
        {"group": "GPU 0", "what": "utilization", "state": "failed", "text": "Denied."}
    ]


def test_long_answers_fit_a_terminal() -> None:
    """Beside what was checked."""
    check = Check("GPUs", "NVIDIA", NOTHING, "No NVIDIA GPU was measured: there is no driver.")

    assert render_str(Diagnosis((check,)), columns=40).startswith(
        "GPUs\n  · NVIDIA  No NVIDIA GPU was measured:\n            there is no driver.\n"
    )

"""What ranks tell of themselves, and whether their recordings say the same."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

import gpu_tracker as gput


def read_truths(text: str) -> list[dict[str, float]]:
    """What the ranks told of themselves."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def check_against(truths: Sequence[dict[str, float]], recordings: Sequence[gput.Recording]) -> None:
    """Peaks and CPU time of all ranks, in any order."""
    peaks = sorted(one.report.summary.ram.combined.total_bytes for one in recordings)
    cpu = sorted(one.report.summary.cpu.combined.seconds for one in recordings)

    assert peaks == pytest.approx(sorted(truth["ram"] for truth in truths), rel=0.01)
    assert cpu == pytest.approx(sorted(truth["cpu"] for truth in truths), rel=0.01)

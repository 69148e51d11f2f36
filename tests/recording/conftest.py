"""What the tests of recordings have in common."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.recording import lazy
from gpu_tracker.recording.lazy import parse


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines that are decoded one by one."""
    lines: list[bytes] = []

    def note(line: bytes) -> tuple[str, dict[str, Any]]:
        lines.append(line)
        return parse(line)

    monkeypatch.setattr(lazy, "parse", note)
    return lines

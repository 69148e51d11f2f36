"""A report for programs: every figure, in base units, by name."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .build import Report

NAME = "json"


def render(report: Report) -> str:
    """One JSON object, indented by one space, ending with a newline."""
    return json.dumps(_plain(report), indent=1) + "\n"


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(field) for name, field in value._asdict().items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value

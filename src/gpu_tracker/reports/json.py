"""A report for programs: every figure, in base units, by name."""

from __future__ import annotations

import json

from .plain import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .build import Report

NAME = "json"


def render(report: Report) -> str:
    """One JSON object, indented by one space, ending with a newline."""
    return json.dumps(to_plain(report), indent=1) + "\n"


def join(texts: Sequence[str]) -> str:
    """A list of the objects."""
    return f"[{','.join(texts)}]\n"

"""What a file holds besides tables: header, summary and notes, each as JSON. Pure."""

from __future__ import annotations

import json

from ..reports.plain import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..reports.build import Report


def describe(report: Report) -> dict[str, str]:
    """JSON texts by name."""
    facts = {
        "header": report.header,
        "summary": report.summary,
        "ending": report.ending,
        "exit_code": report.exit_code,
        "notes": report.notes,
    }
    return {name: json.dumps(to_plain(value)) for name, value in facts.items()}


def spell_number(value: Any) -> Any:
    """Not-finite numbers as text, which JSON and SQLite cannot hold; anything else as it is."""
    return repr(value) if type(value) is float and value - value != 0 else value

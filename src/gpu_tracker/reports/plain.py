"""Values as plain data, and as JSON for documents that need no format of their own. Pure."""

from __future__ import annotations

import json

from ..analysis.summary import Summary
from ..core.figures import Figure
from ..core.model import UNKNOWN, RamPeak

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .contract import View

_PAIRS = "tuple[tuple[str, "
# They are for charts; `export` has them for programs.
_SAMPLES = (
    "SampleColumns | None",
    "tuple[Logged, ...]",
    "tuple[Call, ...]",
    "tuple[HeldMemory, ...]",
    "tuple[Chart, ...]",
)


def to_plain(value: Any) -> Any:
    """Named values and pairs of names and values become objects, tuples lists, a figure its name, what is unknown null."""
    if isinstance(value, Figure):
        return value.name
    if isinstance(value, RamPeak) and value.basis == UNKNOWN:
        return {**dict.fromkeys(value._fields), "basis": UNKNOWN}
    if hasattr(value, "_asdict"):
        fields = _list_fields(value)
        return _forget_unread(fields) if isinstance(value, Summary) and value.is_unread else fields
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return value


def _list_fields(value: Any) -> dict[str, Any]:
    kinds = type(value).__annotations__
    return {
        name: dict(field) if str(kinds[name]).startswith(_PAIRS) else to_plain(field)
        for name, field in value._asdict().items()
        if str(kinds[name]) not in _SAMPLES
    }


def _forget_unread(summary: dict[str, Any]) -> dict[str, Any]:
    """Without times that were never read."""
    cpu = {part: {**figures, "seconds": None} for part, figures in summary["cpu"].items()}
    system_cpu = {**summary["system_cpu"], "seconds": None}
    return {**summary, "seconds": None, "cpu": cpu, "system_cpu": system_cpu}


def to_json(document: Any, _view: View | None = None) -> str:
    """Every figure, in base units, by name: an object indented by one space."""
    return json.dumps(to_plain(document), indent=1) + "\n"


def items_to_json(document: Any, _view: View | None = None) -> str:
    """A document that holds a list, as that list."""
    return to_json(document[0])

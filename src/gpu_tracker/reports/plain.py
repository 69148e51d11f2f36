"""Values as plain data, and as JSON for documents that need no format of their own. Pure."""

from __future__ import annotations

import json

from ..core.figures import Figure
from ..core.model import UNKNOWN, RamPeak

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .contract import View

_PAIRS = "tuple[tuple[str, "
_SAMPLES = ("SampleColumns | None", "tuple[Call, ...]", "tuple[MetricRow, ...]")


def to_plain(value: Any) -> Any:
    """Named values and pairs of names and values become objects, tuples lists, a figure its name, what is unknown null."""
    if isinstance(value, Figure):
        return value.name
    if isinstance(value, RamPeak) and value.basis == UNKNOWN:
        return {**dict.fromkeys(value._fields), "basis": UNKNOWN}
    if hasattr(value, "_asdict"):
        kinds = type(value).__annotations__
        return {
            name: dict(field) if str(kinds[name]).startswith(_PAIRS) else to_plain(field)
            for name, field in value._asdict().items()
            if str(kinds[name]) not in _SAMPLES
        }
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return value


def to_json(document: Any, _view: View | None = None) -> str:
    """Every figure, in base units, by name: an object indented by one space."""
    return json.dumps(to_plain(document), indent=1) + "\n"


def items_to_json(document: Any, _view: View | None = None) -> str:
    """A document that holds a single list, as that list."""
    (items,) = document
    return to_json(items)

"""Values as plain data that JSON can hold, and every document that needs no other words as JSON. Pure."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .contract import View


def to_plain(value: Any) -> Any:
    """Named values become objects, tuples become lists."""
    if hasattr(value, "_asdict"):
        return {name: to_plain(field) for name, field in value._asdict().items()}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return value


def to_json(document: Any, _view: View | None = None) -> str:
    """Every figure, in base units, by name: an object indented by one space."""
    return json.dumps(to_plain(document), indent=1) + "\n"


def items_to_json(document: Any, _view: View | None = None) -> str:
    """The items of a document that is nothing but a list."""
    (items,) = document
    return to_json(items)

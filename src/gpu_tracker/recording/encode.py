"""JSON text of plain values. Pure.

Importing the standard encoder costs a third of the sampler's start, so it is used only for strings that need
escapes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NUMBERS = (float, int)
_NAMES = {None: "null", True: "true", False: "false"}


def to_json(value: Any) -> str:
    """One line, without spaces. nan and infinity, which JSON cannot hold, are null."""
    if type(value) in _NUMBERS:  # most values of a sample
        return repr(value) if value - value == 0 else _NAMES[None]
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(key)}:{to_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(to_json, value)) + "]"
    return _NAMES[value] if value is None or isinstance(value, bool) else to_json(value.real)


def _quote(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    import json

    return json.dumps(text)

"""Values as plain data that JSON can hold. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def to_plain(value: Any) -> Any:
    """Named values become objects, tuples become lists."""
    if hasattr(value, "_asdict"):
        return {name: to_plain(field) for name, field in value._asdict().items()}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return value

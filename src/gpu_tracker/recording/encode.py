"""JSON text of plain values. Pure.

Importing `json` costs a third of the sampler's start; what it is made of in C does not.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def to_json(value: Any) -> str:
    """One line, without spaces. nan and infinity, which JSON cannot hold, are null."""
    try:
        return _encode(value)
    except ValueError:
        return _encode(_to_finite(value))


def _to_finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _to_finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_finite(item) for item in value]
    return value


def choose_encoder() -> Callable[[Any], str]:
    """That of the interpreter, as `json` makes it; other interpreters than CPython have none of this name."""
    try:
        from _json import encode_basestring_ascii, make_encoder
    except ImportError:
        import json

        return json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
    encode = make_encoder(None, _refuse, encode_basestring_ascii, None, ":", ",", False, False, False)
    return lambda value: "".join(encode(value, 0))


def _refuse(value: object) -> None:
    raise TypeError(f"{type(value).__name__} is no plain value")


_encode = choose_encoder()

"""Whether a value holds what its class says: a recording may come from anybody. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What a counter of the kernel can hold. Anything above would only overflow in somebody's arithmetic.
_LARGEST = 2**63 - 1
_LARGEST_FLOAT = 1.7976931348623157e308
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "bool": (bool,),
    "None": (type(None),),
}
_rules: dict[type, tuple[tuple[type, ...], ...]] = {}


def check(value: Any, n_fields: int | None = None) -> None:
    """Raise ValueError unless each field (or the first few) is of the type its annotation says, and no number is out of this world."""
    rules = _rules.get(type(value)) or _learn(type(value))
    for field, types in zip(value[:n_fields], rules, strict=False):
        if not types:
            _check_part(field)
            continue
        found = type(field)
        if found not in types or (found in _TYPES["float"] and not -_LARGEST <= field <= _LARGEST):
            raise ValueError(field)


def _check_part(part: Any) -> None:
    """Something that is no plain value: a value of ours, or several."""
    if hasattr(part, "_fields"):
        check(part)
    elif isinstance(part, tuple):
        for one in part:
            _check_part(one)
    elif isinstance(part, dict):
        # The job's own numbers may be as large as it likes, or be none any more: a loss that is nan is news.
        if not all(
            type(one) is float or (type(one) is int and abs(one) <= _LARGEST_FLOAT) for one in part.values()
        ):
            raise ValueError(part)
    elif type(part) in _TYPES["float"]:
        if not -_LARGEST <= part <= _LARGEST:
            raise ValueError(part)
    elif part is not None and type(part) is not str:
        raise ValueError(part)


def _learn(kind: type) -> tuple[tuple[type, ...], ...]:
    """The types of each field; none for what is no plain value."""
    rules = []
    for annotation in kind.__annotations__.values():
        words = annotation.split(" | ")
        is_plain = all(word in _TYPES for word in words)
        rules.append(tuple(one for word in words for one in _TYPES[word]) if is_plain else ())
    return _rules.setdefault(kind, tuple(rules))

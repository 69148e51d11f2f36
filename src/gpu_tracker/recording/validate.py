"""Whether a value holds what its class says: a recording may come from anybody. Pure."""

from __future__ import annotations

from .schema import NO_NUMBERS

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


def check_metrics(data: dict[str, Any]) -> None:
    """The same for the columns of a line of metrics, all rows at once: there may be a million."""
    for name, types in (("at", _TYPES["float"]), ("pid", _TYPES["int"])):
        _check_column(data[name], types, _LARGEST)
    for column in (data["step"], *data["values"].values()):
        numbers = [value for value in column if type(value) is not str]
        # The job's own numbers may be as large as it likes, or be none any more: a loss that is nan is news.
        _check_column(numbers, (float, int, type(None)), _LARGEST_FLOAT)
        if len(numbers) < len(column) and not all(
            value in NO_NUMBERS for value in column if type(value) is str
        ):
            raise ValueError(column)


def _check_column(column: list[Any], types: tuple[type, ...], largest: float) -> None:
    found = set(map(type, column))
    if not found.issubset(types):
        raise ValueError(found)
    numbers = [value for value in column if value is not None] if type(None) in found else column
    if numbers and not -largest <= min(numbers) <= max(numbers) <= largest:
        raise ValueError(max(numbers))


def _check_part(part: Any) -> None:
    """Something that is no plain value: a value of ours, or several."""
    if hasattr(part, "_fields"):
        check(part)
    elif type(part) is tuple:
        for one in part:
            if type(one) is tuple and not hasattr(one, "_fields"):
                _check_pair(one)
            elif type(one) is not str:
                _check_part(one)
    elif part is not None:
        raise ValueError(part)


def _check_pair(pair: tuple[Any, ...]) -> None:
    """A name and how much of it."""
    name, amount = pair
    if type(name) is not str or type(amount) not in _TYPES["float"] or not -_LARGEST <= amount <= _LARGEST:
        raise ValueError(pair)


def _learn(kind: type) -> tuple[tuple[type, ...], ...]:
    """The types of each field; none for what is no plain value."""
    rules = []
    for annotation in kind.__annotations__.values():
        words = annotation.split(" | ")
        is_plain = all(word in _TYPES for word in words)
        rules.append(tuple(one for word in words for one in _TYPES[word]) if is_plain else ())
    return _rules.setdefault(kind, tuple(rules))

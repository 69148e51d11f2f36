"""Checks that a value matches its annotations, with numbers that can be: a recording may come from anywhere. Pure."""

from __future__ import annotations

from itertools import chain

from ..core.model import GpuSample, Sample, Spread
from ..core.values import NamedTuple
from .schema import NOT_FINITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    Rule: TypeAlias = "Plain | Callable[[Any], object]"

# The largest kernel counter. Anything above could overflow in later arithmetic.
LARGEST = 2**63 - 1
_LARGEST_FLOAT = 1.7976931348623157e308
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "bool": (bool,),
    "None": (type(None),),
}
_NUMBERS = {float, int}
# No number of a run is larger, in any unit, except what a job has read and written, and what it may map.
MOST = 2**50
_BYTES_BOUNDS = 0, 2**60
# Differences of clocks that are read one after the other: a little less than nothing is nothing.
_DIFFERENCE_BOUNDS = -0.05, MOST
_OWN_BOUNDS = {
    "": (-LARGEST, LARGEST),
    "exit_code": (-(2**32), 2**32),
    "gpu_growth_bytes": (-(2**60), 2**60),
    "squared_seconds": (0, LARGEST),
    "traffic": _BYTES_BOUNDS,
    **dict.fromkeys(("temperature_celsius", "slowdown_celsius"), (-273.15, MOST)),
    **dict.fromkeys(
        ("cpu_seconds", "system_cpu_seconds", "own_cpu_seconds", "own_wall_seconds"), _DIFFERENCE_BOUNDS
    ),
}
MEAN_ROUNDING = 1e-6
# Of samples, which are many, impossible numbers are found in columns.
_CHECKED_IN_COLUMNS = (Sample, Spread, GpuSample)


class Plain(NamedTuple):
    """The types of a plain value and, of a number, the smallest and the largest that can be."""

    types: tuple[type, ...]
    least: float = -LARGEST
    most: float = LARGEST


_ANY_NUMBER = Plain(_TYPES["float"])
_rules: dict[type, tuple[Rule, ...]] = {}


def check(value: Any, n_fields: int | None = None) -> None:
    """Raise ValueError unless all fields (or the first few) match their annotations, with numbers in range."""
    rules = _rules.get(type(value)) or _learn(type(value))
    for field, rule in zip(value[:n_fields], rules, strict=False):
        _check_field(field, rule)


def check_all(values: Sequence[Any]) -> None:
    """The same for all fields of many values of one class, a field at a time: that is faster."""
    if not values:
        return
    kind = type(values[0])
    rules = _rules.get(kind) or _learn(kind)
    for column, rule in zip(zip(*values, strict=True), rules, strict=True):
        if isinstance(rule, Plain):
            _check_column(column, rule)
        else:
            for field in column:
                rule(field)


def check_number(value: Any) -> None:
    """Raise ValueError unless it is a number in range."""
    _check_field(value, _ANY_NUMBER)


def check_order(spread: Spread) -> None:
    """Raise ValueError unless its mean is between its extremes, but for rounding."""
    low, mean, high = spread
    if low is None or mean is None or high is None:
        return
    if mean * (1 + MEAN_ROUNDING) < low or high * (1 + MEAN_ROUNDING) < mean:
        raise ValueError(spread)


def check_metrics(data: dict[str, Any], latest_seconds: float = LARGEST) -> None:
    """Check the columns of a line of metrics, all rows at once: there may be a million."""
    numbers = [*data["at"], *data["pid"], *data["step"], *chain.from_iterable(data["values"].values())]
    kinds, kinds_of_pids = {*map(type, numbers)}, {*map(type, data["pid"])}
    if kinds_of_pids == {int} and kinds <= _NUMBERS and -LARGEST <= min(numbers) <= max(numbers) <= LARGEST:
        if min(data["at"]) < 0 or max(data["at"]) > latest_seconds:
            raise ValueError(data["at"])
        return  # as almost always
    for name, kind in (("at", Plain(_TYPES["float"], 0, latest_seconds)), ("pid", Plain(_TYPES["int"]))):
        _check_column(data[name], kind)
    for column in (data["step"], *data["values"].values()):
        _check_logged(column)


def check_metric_totals(data: dict[str, Any]) -> None:
    """Check the totals of metrics: two counts, sizes that may not exist, the last value and its time."""
    for logged, not_finite, *sizes, last_seconds in data.values():
        _check_column([logged, not_finite], Plain(_TYPES["int"], 0, MOST))
        _check_column([last_seconds], Plain(_TYPES["float"], 0, MOST))
        _check_logged(sizes)
        if sizes[0] is None or sizes[-1] is None:
            raise ValueError(sizes)


def _check_logged(column: list[Any]) -> None:
    numbers = [value for value in column if type(value) is not str]
    # Metrics may be of any size, or nan.
    _check_column(numbers, Plain((float, int, type(None)), -_LARGEST_FLOAT, _LARGEST_FLOAT))
    if len(numbers) < len(column) and not all(value in NOT_FINITE for value in column if type(value) is str):
        raise ValueError(column)


def _check_column(column: Sequence[Any], rule: Plain) -> None:
    found = set(map(type, column))
    if not found.issubset(rule.types):
        raise ValueError(found)
    is_plain = found.issubset(_TYPES["float"])
    numbers = column if is_plain else [value for value in column if type(value) in _TYPES["float"]]
    if numbers and not rule.least <= min(numbers) <= max(numbers) <= rule.most:
        raise ValueError(max(numbers))


def _check_field(field: Any, rule: Rule) -> None:
    if not isinstance(rule, Plain):
        rule(field)
        return
    types, least, most = rule
    found = type(field)
    if found not in types or (found in _NUMBERS and not least <= field <= most):
        raise ValueError(field)


def _check_value(part: Any) -> None:
    """A value class, a tuple of them, or a tuple of strings."""
    if part is None:
        return
    if hasattr(part, "_fields"):
        check(part)
    elif type(part) is tuple:
        for one in part:
            if type(one) is not str:
                _check_value(one)
    else:
        raise ValueError(part)


def _learn(kind: type) -> tuple[Rule, ...]:
    fields = kind.__annotations__.items()
    names = ("" if kind in _CHECKED_IN_COLUMNS else name for name, _ in fields)
    found = (_find_rule(annotation, name) for (_, annotation), name in zip(fields, names, strict=True))
    return _rules.setdefault(kind, tuple(found))


def _find_rule(annotation: str, name: str) -> Rule:
    """What a plain value must be, or a function that checks anything else."""
    words = annotation.split(" | ")
    if all(word in _TYPES for word in words):
        return Plain(tuple(one for word in words for one in _TYPES[word]), *_find_bounds(name))
    if annotation.startswith("Parts["):
        return _repeat(_find_rule(annotation.removeprefix("Parts[").removesuffix("]"), name))
    if annotation == "tuple[int | None, ...]":
        return _repeat(_find_rule("int | None", name))
    if annotation.startswith("tuple[tuple["):
        words = annotation.removeprefix("tuple[tuple[").removesuffix("], ...]").split(", ")
        return _pairs(*(_find_rule(word, name) for word in words))
    return _check_value


def _find_bounds(name: str) -> tuple[float, float]:
    return _OWN_BOUNDS.get(name) or (_BYTES_BOUNDS if name.endswith("_bytes") else (0, MOST))


def _repeat(rule: Rule) -> Rule:
    def check_each(fields: Any) -> None:
        for field in fields:
            _check_field(field, rule)

    return check_each


def _pairs(first: Rule, second: Rule) -> Rule:
    """Any number of pairs."""

    def check_pairs(pairs: Any) -> None:
        if type(pairs) is not tuple or any(type(pair) is not tuple or len(pair) != 2 for pair in pairs):
            raise ValueError(pairs)
        for one, other in pairs:
            _check_field(one, first)
            _check_field(other, second)

    return check_pairs

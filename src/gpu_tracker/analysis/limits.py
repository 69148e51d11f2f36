"""Limits on a comparison: `peak_gpu_ram > +10%`, `time > 1.2x`, `regions.forward.peak_ram > 8GB`. Pure.

A limit states what must *not* be true.
"""

from __future__ import annotations

import math
import re

from ..core.figures import BYTES, JOULES, NUMBER, PERCENT, REGION, RUN, SECONDS, humanize
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.figures import Figure
    from .compare import Comparison, Row, Values

RATIO = "ratio"
_UNITS = {
    "": (NUMBER, 1.0),
    "%": (PERCENT, 1.0),
    "ms": (SECONDS, 1e-3),
    "s": (SECONDS, 1.0),
    "min": (SECONDS, 60.0),
    "h": (SECONDS, 3600.0),
    "d": (SECONDS, 86400.0),
    "B": (BYTES, 1.0),
    "kB": (BYTES, 1e3),
    "MB": (BYTES, 1e6),
    "GB": (BYTES, 1e9),
    "TB": (BYTES, 1e12),
    "KiB": (BYTES, 2.0**10),
    "MiB": (BYTES, 2.0**20),
    "GiB": (BYTES, 2.0**30),
    "TiB": (BYTES, 2.0**40),
    "J": (JOULES, 1.0),
    "kJ": (JOULES, 1e3),
    "Wh": (JOULES, 3.6e3),
    "kWh": (JOULES, 3.6e6),
}
_BY_LOWER = {unit.lower(): meaning for unit, meaning in _UNITS.items()}
_EXPRESSION = re.compile(r"(.*?[^\s<>=])\s*(>=|<=|>|<)\s*([^<>=]+)", re.DOTALL)
_AMOUNT = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)\s*([A-Za-z%]*)")
_EXAMPLE = "Try 'peak_gpu_ram > +10%', 'time > 1.2x' or 'regions.forward.peak_ram > 8GB'."


class Amount(NamedTuple):
    """A number and its unit."""

    value: float
    unit: str


class Limit(NamedTuple):
    """A condition that must not be true."""

    text: str
    figure: str
    region: str
    """A region's name, or its path with slashes; empty for the whole run."""
    metric: str | None
    operator: str
    amount: Amount
    """In the figure's own unit, or a ratio to the baseline."""


class Verdict(NamedTuple):
    """The result of one limit."""

    limit: Limit
    fired: tuple[str, ...]
    """A sentence for every group that fails it."""
    unknown: tuple[str, ...]
    """A sentence for everything that could not be checked."""


def parse_limit(text: str) -> Limit:
    """Parse a limit. ValueError, with one sentence, if it is not valid."""
    match = _EXPRESSION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a valid limit. {_EXAMPLE}")
    subject, operator, written = (part.strip() for part in match.groups())
    region, metric, figure = _parse_subject(subject, text)
    amount = _parse_limit_amount(written, text)
    unit = NUMBER if figure is None else figure.unit
    if amount.unit == NUMBER and unit != BYTES:
        amount = amount._replace(unit=unit)
    if amount.unit == PERCENT and unit != PERCENT:
        raise ValueError(
            f"{written!r} in {text!r} has no sign. Write +{written} for an increase over the baseline."
        )
    if amount.unit not in (RATIO, unit):
        raise ValueError(f"{text!r} is not a valid limit: {subject} is in {unit}, and {written!r} is not.")
    return Limit(text, "" if figure is None else figure.name, region, metric, operator, amount)


def parse_amount(text: str) -> Amount:
    """A number with a unit: `8GB`, `90 s`, `1.5h`, `80%`, `3`. ValueError if it is not valid."""
    match = _AMOUNT.fullmatch(text.strip())
    unit = match and (_UNITS.get(match[3]) or _BY_LOWER.get(match[3].lower()))
    if not match or not unit:
        raise ValueError(f"{text!r} is not a valid size, duration or number (try 8GB, 90s, 80%).")
    value = float(f"{match[1]}{match[2]}") * unit[1]
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is too large.")
    return Amount(value, unit[0])


def check_limit(limit: Limit, comparison: Comparison) -> Verdict:
    """Check a comparison. Unmeasured figures never fail a limit; they are reported.

    ValueError, with one sentence, if no run has such a region or metric: most likely a typo.
    """
    rows = [row for row in comparison.rows if _is_meant(limit, row)]
    if not rows:
        kind, name = ("region", limit.region) if limit.region else ("metric", limit.metric)
        raise ValueError(f"{limit.text!r} cannot be checked: no run has the {kind} {name!r}.")
    # The baseline is not checked, unless it is alone.
    judged = range(1 if len(comparison.groups) > 1 else 0, len(comparison.groups))
    fired, unknown = [], []
    for row in rows:
        for index in judged:
            name, found = comparison.groups[index].name, row.groups[index]
            value = _value_of(limit, row.groups[0], found)
            if found.not_numbers:
                # nan compares with nothing, and is never what was wanted.
                fired.append(f"FAILED {limit.text}: {name} {_describe_broken(row, found)}.")
            elif value is None:
                unknown.append(
                    f"{limit.text!r} was not checked for {name}: {_explain_unknown(limit, row, found)}."
                )
            elif _is_true(value, limit):
                fired.append(f"FAILED {limit.text}: {name} {_describe(limit, row, found, value)}.")
    return Verdict(limit, tuple(fired), tuple(unknown))


def needs_two_groups(limit: Limit) -> bool:
    """Whether it is relative to the baseline."""
    return limit.amount.unit == RATIO


def _parse_subject(subject: str, text: str) -> tuple[str, str | None, Figure | None]:
    if subject.startswith("metrics."):
        return "", subject.removeprefix("metrics."), None
    region = ""
    figures: tuple[Figure, ...] = RUN
    if subject.startswith("regions."):
        # The last dot: a region's name may contain dots.
        region, _, subject = subject.removeprefix("regions.").rpartition(".")
        figures = REGION
        if not region:
            raise ValueError(f"{text!r} does not name a figure of the region. {_EXAMPLE}")
    for figure in figures:
        if figure.name == subject:
            return region, None, figure
    known = ", ".join(figure.name for figure in figures)
    raise ValueError(
        f"Unknown figure {subject!r} in {text!r}. Use {known}, regions.NAME.FIGURE or metrics.NAME."
    )


def _parse_limit_amount(written: str, text: str) -> Amount:
    if written[-1:] in ("x", "X"):
        factor = parse_amount(written[:-1])
        if factor.unit != NUMBER or factor.value < 0:
            raise ValueError(f"{written!r} in {text!r} is not a valid factor. {_EXAMPLE}")
        return Amount(factor.value, RATIO)
    amount = parse_amount(written)
    if written[0] not in "+-":
        return amount
    if amount.unit != PERCENT:
        if amount.unit == NUMBER and written[0] == "-":
            return amount  # a metric may be negative
        raise ValueError(f"{written!r} in {text!r} has a sign. Only percentages can be relative.")
    return Amount(1 + amount.value / 100, RATIO)


def _is_meant(limit: Limit, row: Row) -> bool:
    subject = row.subject
    if limit.metric is not None or subject.metric is not None:
        return limit.metric == subject.metric
    if limit.figure != subject.figure.name or bool(limit.region) != bool(subject.region):
        return False
    return not limit.region or limit.region in ("/".join(subject.region), subject.region[-1])


def _value_of(limit: Limit, first: Values, found: Values) -> float | None:
    """The value to compare with the limit."""
    if limit.amount.unit != RATIO or found.median is None:
        return found.median
    if first.median is None:
        return None
    if first.median == 0:
        return 1.0 if found.median == 0 else math.inf
    # An increase over a negative value is still an increase.
    return 1 + (found.median - first.median) / abs(first.median)


def _is_true(value: float, limit: Limit) -> bool:
    bound = limit.amount.value
    if limit.operator.startswith(">"):
        return value > bound or (limit.operator == ">=" and value == bound)
    return value < bound or (limit.operator == "<=" and value == bound)


def _explain_unknown(limit: Limit, row: Row, found: Values) -> str:
    what = "/".join(row.subject.region) or row.subject.metric
    if limit.amount.unit == RATIO and found.median is not None:
        return "the baseline has no value"
    return "not measured" if found.runs or what is None else f"it has no {what!r}"


def _describe(limit: Limit, row: Row, found: Values, value: float) -> str:
    figure = row.subject.figure
    verb = "used" if figure.unit in (BYTES, JOULES, SECONDS) else "had"
    if figure.name in ("time", "time_per_call"):
        verb = "took"
    if row.subject.metric is not None:
        verb = "ended with"
    where = f" in {'/'.join(row.subject.region)}" if row.subject.region else ""
    change = ""
    if limit.amount.unit == RATIO:
        first = row.groups[0].median or 0.0
        is_multiple = first > 0 and (found.median or 0.0) >= 0
        change = (
            f", {value:.3f} times the baseline"
            if is_multiple
            else f", {100 * (value - 1):+.4g} % against the baseline"
        )
    return f"{verb} {humanize(found.median, figure.unit)}{where}{change}"


def _describe_broken(row: Row, found: Values) -> str:
    return f"ended with {row.subject.metric!r} as nan or inf in {found.not_numbers} of {found.runs} runs"

"""Limits on a comparison: `peak_gpu_ram > +10%`, `time > 1.2x`, `regions.forward.peak_ram > 8GB`. Pure.

A limit states what must *not* be true. `time > +5% beyond noise` is true only if the figure has also changed for certain.
"""

from __future__ import annotations

import math
import re

from ..core.figures import REGION, RUN
from ..core.text import count_of
from ..core.units import BYTES, JOULES, NUMBER, PERCENT, SECONDS, humanize
from ..core.values import NamedTuple
from .compare import CANNOT_TELL, CHANGED, describe_failures, describe_incomplete

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.figures import Figure
    from .compare import Comparison, Group, Row, Values

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
_BEYOND_NOISE = re.compile(r"(.*\S)\s+beyond\s+noise\s*", re.DOTALL)
_MOST_PERCENT = 100.0
# Of these, what is not known differs from run to run.
_BOUNDED_APART = ("gpu_utilization", "peak_gpu_ram")
# Of these the kernel may have kept no account.
_CPU = ("cpu_time", "mean_cores")
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
    is_beyond_noise: bool = False
    """Whether the change must also be more than noise."""


class Verdict(NamedTuple):
    """The result of one limit."""

    limit: Limit
    fired: tuple[str, ...]
    """A sentence for every group that fails it."""
    unknown: tuple[str, ...]
    """A sentence for everything that could not be checked."""
    undecided: tuple[str, ...] = ()
    """Of these, those that were measured, but not well enough: what they may be is on both sides of the limit."""


class Gate(NamedTuple):
    """The results of all limits together."""

    verdicts: tuple[Verdict, ...]
    broken: tuple[str, ...]
    """A sentence for every limit and group that fails it."""
    unchecked: tuple[str, ...]
    """A sentence for everything that could not be checked, and so does not pass."""
    tolerated: tuple[str, ...]
    """A sentence for what could not be checked and may be so."""

    @property
    def exit_code(self) -> int:
        """Whether a limit is broken (1), something could not be checked (2), or all is well (0)."""
        return 1 if self.broken else 2 if self.unchecked else 0


def parse_limit(text: str) -> Limit:
    """Parse a limit. ValueError, with one sentence, if it is not valid."""
    noise = _BEYOND_NOISE.fullmatch(text)
    match = _EXPRESSION.fullmatch((noise[1] if noise else text).strip())
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
    if amount.unit == PERCENT and amount.value > _MOST_PERCENT:
        raise ValueError(f"{text!r} is not a valid limit: {subject} is never more than 100 %.")
    if noise and amount.unit != RATIO:
        raise ValueError(
            f"{text!r} is not a valid limit: only a change can be beyond noise (try +5% or 1.2x)."
        )
    name = "" if figure is None else figure.name
    return Limit(text, name, region, metric, operator, amount, bool(noise))


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


def check_limits(
    limits: Iterable[Limit],
    comparison: Comparison,
    *,
    allow_failed: bool = False,
    allow_missing: bool = False,
) -> Gate:
    """Check all limits. Without any, nothing needs to have succeeded."""
    verdicts = tuple(check_limit(limit, comparison) for limit in limits)
    groups = comparison.groups if verdicts else ()
    lead = "Checked nevertheless" if allow_failed else "Not checked"
    failed = [
        f"{lead}: {describe_failures(group.name, group.failures)}" for group in groups if group.failures
    ]
    unreadable = [
        f"Not checked: {count_of(group.unreadable, 'recording')} of {group.name} cannot be read."
        for group in groups
        if group.unreadable
    ]
    missing = [
        f"Not checked: {describe_incomplete(group.name, group.incomplete)}"
        for group in groups
        if group.incomplete
    ]
    undecided = [sentence for verdict in verdicts for sentence in verdict.undecided]
    missing += [
        sentence for verdict in verdicts for sentence in verdict.unknown if sentence not in verdict.undecided
    ]
    return Gate(
        verdicts,
        tuple(sentence for verdict in verdicts for sentence in verdict.fired),
        (*(() if allow_failed else failed), *unreadable, *(() if allow_missing else missing), *undecided),
        (*(failed if allow_failed else ()), *(missing if allow_missing else ())),
    )


def check_limit(limit: Limit, comparison: Comparison) -> Verdict:
    """Check a comparison. What some runs do not have is reported, and the others are checked."""
    rows = [row for row in comparison.rows if _is_meant(limit, row)]
    if not rows:
        kind, name = ("region", limit.region) if limit.region else ("metric", limit.metric)
        return Verdict(limit, (), (f"Not checked: {limit.text}: no run has the {kind} {name!r}.",))
    # The baseline's amount is not checked, unless it is alone.
    judged = range(1 if len(comparison.groups) > 1 else 0, len(comparison.groups))
    fired: list[str] = []
    missing: list[str] = []
    undecided: list[str] = []
    for row in rows:
        for index, (group, found) in enumerate(zip(comparison.groups, row.groups, strict=True)):
            if found.not_numbers:
                # nan compares with nothing, and is never what was wanted, of the baseline neither.
                fired.append(f"FAILED {limit.text}: {group.name} {_describe_broken(row, found)}.")
            elif index in judged and _is_broken(limit, row, index):
                fired.append(f"FAILED {limit.text}: {group.name} {_describe(limit, row, index)}.")
        for index in judged:
            gaps, doubts = (
                _list_gaps(limit, row, comparison, index),
                _list_doubts(limit, row, comparison, index),
            )
            if (
                not (gaps or doubts)
                and limit.is_beyond_noise
                and row.changes[index - 1].verdict == CANNOT_TELL
            ):
                name = comparison.groups[index].name
                doubts = [f"too few runs of {name} or the baseline to tell a change from noise"]
            missing += [f"Not checked: {limit.text}: {reason}." for reason in gaps]
            undecided += [f"Not checked: {limit.text}: {reason}." for reason in doubts]
    return Verdict(
        limit,
        tuple(fired),
        tuple(dict.fromkeys((*missing, *undecided))),
        tuple(dict.fromkeys(undecided)),
    )


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
    if written[-1:] in ("x", "X") and written[:-1].strip():
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
    return None if first.median is None else _divide(first.median, found.median)


def _divide(before: float, after: float) -> float:
    if before == 0:
        return 1.0 if after == 0 else math.copysign(math.inf, after)
    # An increase over a negative value is still an increase.
    return 1 + (after - before) / abs(before)


def _is_broken(limit: Limit, row: Row, index: int) -> bool:
    value = _value_of(limit, row.groups[0], row.groups[index])
    if value is None or (limit.is_beyond_noise and row.changes[index - 1].verdict != CHANGED):
        return False
    return _is_true(value, limit) and not _is_undecided(limit, row, index)


def _is_undecided(limit: Limit, row: Row, index: int) -> bool:
    """Whether the limit lies between what a figure was at least and what it may have been."""
    bounds = [_find_bounds(row.groups[position]) for position in (0, index)]
    if None in (row.groups[index].median, bounds[1]):
        return False
    first, found = (one or (0.0, 0.0) for one in bounds)
    if limit.amount.unit != RATIO:
        return len({_is_true(bound, limit) for bound in found}) > 1
    is_same_bound = row.subject.metric is None and row.subject.figure.name not in _BOUNDED_APART
    is_unmeasured = any(math.isinf(most) for _, most in (first, found))
    if is_same_bound or is_unmeasured:
        # The same bound of two runs can be compared; what was not measured cannot.
        return is_unmeasured
    return len({_is_true(_divide(before, after), limit) for before in first for after in found}) > 1


def _find_bounds(found: Values) -> tuple[float, float] | None:
    """What a figure was at least, and at most; None if it is not known."""
    if found.median is None:
        return None
    least = found.median if found.floor is None else found.floor
    return least, found.median if found.ceiling is None else found.ceiling


def _is_true(value: float, limit: Limit) -> bool:
    bound = limit.amount.value
    if limit.operator.startswith(">"):
        return value > bound or (limit.operator == ">=" and value == bound)
    return value < bound or (limit.operator == "<=" and value == bound)


def _list_gaps(limit: Limit, row: Row, comparison: Comparison, index: int) -> list[str]:
    """What this group, and the baseline of a relative limit, do not have in every run."""
    gaps = []
    for position in (0, index) if limit.amount.unit == RATIO else (index,):
        group, found = comparison.groups[position], row.groups[position]
        lacking = group.runs - found.runs
        unmeasured = found.runs - len(found.values) - found.not_numbers
        what = "/".join(row.subject.region) or row.subject.metric or row.subject.figure.name
        if lacking:
            gaps.append(f"{lacking} of {group.runs} runs of {group.name} have no {what!r}")
        if unmeasured:
            gaps.append(f"not measured in {unmeasured} of {group.runs} runs of {group.name}")
        gaps += _list_unrecorded(row, group)
    return gaps


def _list_doubts(limit: Limit, row: Row, comparison: Comparison, index: int) -> list[str]:
    """What was measured, but may be on either side of the limit."""
    if not _is_undecided(limit, row, index):
        return []
    return [
        f"{comparison.groups[at].name} {_describe_bounds(row, row.groups[at], comparison.groups[at])}"
        for at in dict.fromkeys((0, index) if limit.amount.unit == RATIO else (index,))
        if len(set(_find_bounds(row.groups[at]) or ())) > 1
    ]


def _list_unrecorded(row: Row, group: Group) -> list[str]:
    """What is recorded of a region or metric may be a part of it."""
    kinds = (
        ("regions", group.lacking_regions if row.subject.region else 0),
        ("metrics", 0 if row.subject.metric is None else group.lacking_metrics),
    )
    return [
        f"some {what} could not be recorded in {count} of {group.runs} runs of {group.name}"
        for what, count in kinds
        if count
    ]


def _describe_bounds(row: Row, found: Values, group: Group) -> str:
    figure = row.subject.figure
    least, most = _find_bounds(found) or (0.0, 0.0)
    if row.subject.metric is not None:
        return f"has ranks that ended with {humanize(least, figure.unit)} to {humanize(most, figure.unit)}"
    unmeasured = "perhaps more" if figure.name in _CPU else "not measured all the time"
    if group.elsewhere:
        unmeasured = "without the work that was done elsewhere"
    more = unmeasured if math.isinf(most) else f"perhaps {humanize(most, figure.unit)}"
    verb = "had" if figure.unit == PERCENT else "used"
    return f"{verb} at least {humanize(least, figure.unit)}, {more}{_advise(row)}"


def _advise(row: Row) -> str:
    """How to learn more the next time, where that is in the user's hands."""
    is_sampled = row.subject.region and row.subject.figure.name == "peak_ram"
    return " (a region with exact_peak=True knows its peak)" if is_sampled else ""


def _describe(limit: Limit, row: Row, index: int) -> str:
    figure, found = row.subject.figure, row.groups[index]
    verb = "used" if figure.unit in (BYTES, JOULES, SECONDS) else "had"
    if figure.name in ("time", "time_per_call"):
        verb = "took"
    if row.subject.metric is not None:
        verb = "ended with"
    where = f" in {'/'.join(row.subject.region)}" if row.subject.region else ""
    change = _describe_ratio(row.groups[0], found) if limit.amount.unit == RATIO else ""
    if limit.is_beyond_noise:
        change += f" (p = {row.changes[index - 1].chance:.2g})"
    return f"{verb} {humanize(found.median, figure.unit)}{where}{change}"


def _describe_ratio(first: Values, found: Values) -> str:
    before, after = first.median or 0.0, found.median or 0.0
    ratio = _divide(before, after)
    if before > 0 and after >= 0:
        return f", {ratio:.3f} times the baseline"
    return f", {100 * (ratio - 1):+.4g} % against the baseline"


def _describe_broken(row: Row, found: Values) -> str:
    return f"ended with {row.subject.metric!r} as nan or inf in {found.not_numbers} of {found.runs} runs"

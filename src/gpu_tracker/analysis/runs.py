"""Past runs as a list to sort and filter. Pure."""

from __future__ import annotations

import math
import operator as operators
import re

from ..core.figures import RUN
from ..core.model import Identity
from ..core.moments import parse_moment
from ..core.text import join_command
from ..core.units import BYTES, NUMBER, SECONDS
from ..core.values import NamedTuple
from .endings import find_ending, has_failed
from .limits import parse_amount
from .measures import list_estimates, list_lower_bounds, overall_values
from .summary import summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ..core.model import RecordingData
    from .charts import Chart

_CONDITION = re.compile(r"([^~<>]*)(~|>=|<=|>|<)(.*)", re.DOTALL)
_COMPARE = {">": operators.gt, ">=": operators.ge, "<": operators.lt, "<=": operators.le}


class ListedRun(NamedTuple):
    """One past run. None is not known."""

    path: str
    problem: str = ""
    """Why the file cannot be read; the other fields are then empty."""
    started_at: str = ""
    started_seconds: float | None = None
    """Since 1970."""
    command: tuple[str, ...] = ()
    host: str = ""
    ending: str = ""
    """As in a report, or damaged."""
    exit_code: int | None = None
    name: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    identity: Identity = Identity()
    """Of which job it is, and which rank."""
    values: Mapping[str, float | None] = {}
    """The figures of a whole run, by name."""
    estimates: tuple[str, ...] = ()
    """Those of them that are estimates."""
    at_least: tuple[str, ...] = ()
    """Those of them that may have been more, because they are without some of the time."""


class Runs(NamedTuple):
    """A list of past runs."""

    runs: tuple[ListedRun, ...]
    charts: tuple[Chart, ...] = ()
    """The runs over time, on one axis; only where they are drawn."""


class Condition(NamedTuple):
    """A filter on runs: `command~train`, `peak_ram>8GB`; without a field, a word that may be in any text."""

    field: str
    operator: str
    text: str
    value: float


# The largest or newest comes first; commands, or the names in their place, are in alphabetical order.
_NUMBERS = {figure.name: figure for figure in RUN}
SORTS = ("when", *_NUMBERS, "command")
STATES = ("all", "running", "finished", "failed")
_TEXTS = ("command", "name", "label", "job", "host", "end", "file")


def list_run(path: str, recording: RecordingData) -> ListedRun:
    """One row."""
    header, end, summary = recording.header, recording.end, summarize(recording)
    return ListedRun(
        path=path,
        started_at=header.started_at,
        started_seconds=parse_moment(header.started_at),
        command=header.command,
        host=header.host,
        ending=find_ending(recording),
        exit_code=end.exit_code if end else None,
        name=header.identity.name,
        labels=header.identity.labels,
        identity=header.identity,
        values=overall_values(summary),
        estimates=list_estimates(summary),
        at_least=list_lower_bounds(summary, find_ending(recording)),
    )


def parse_condition(text: str) -> Condition:
    """Parse a filter. ValueError, with one sentence, if it is not valid."""
    match = _CONDITION.fullmatch(text)
    field, operator, wanted = (part.strip() for part in match.groups()) if match else ("", "", "")
    if operator == "~" and field in _TEXTS:
        return Condition(field, operator, wanted.lower(), 0.0)
    if operator in _COMPARE and field in _NUMBERS:
        try:
            amount = parse_amount(wanted)
        except ValueError as error:
            raise ValueError(f"{text!r} is not a valid filter: {error}") from None
        unit = _NUMBERS[field].unit
        # A plain number is in cores, percent or seconds, but never in single bytes.
        if amount.unit != unit and (amount.unit != NUMBER or unit == BYTES):
            raise ValueError(f"{wanted!r} in {text!r} is not in {unit}.")
        return Condition(field, operator, wanted, amount.value)
    raise ValueError(
        f"{text!r} is not a valid filter. Use FIELD~TEXT with {', '.join(_TEXTS)}, or FIELD>AMOUNT (>=, <, <=) with {', '.join(_NUMBERS)}."
    )


def parse_search(text: str) -> list[Condition]:
    """Words and filters, separated by spaces, all of which must match. ValueError, with one sentence, if one is not valid."""
    return [
        parse_condition(word) if _CONDITION.fullmatch(word) else Condition("", "~", word.lower(), 0.0)
        for word in text.split()
    ]


def parse_age(text: str) -> float:
    """Seconds: `7d`, `12h`, `30min`. ValueError if it is not a duration."""
    try:
        amount = parse_amount(text)
    except ValueError:
        amount = None
    if amount is None or amount.unit != SECONDS or amount.value < 0:
        raise ValueError(f"{text!r} is not a valid duration (try 7d, 12h, 30min).")
    return amount.value


def choose(
    runs: Iterable[ListedRun],
    conditions: Iterable[Condition],
    since: float | None,
    describe_ending: Callable[[str, int | None], str],
) -> list[ListedRun]:
    """Runs that meet all conditions and started since then (seconds since 1970). Endings are matched as described."""
    wanted = tuple(conditions)
    return [
        run
        for run in runs
        if (since is None or (run.started_seconds is not None and run.started_seconds >= since))
        and all(_meets(run, condition, describe_ending) for condition in wanted)
    ]


def find_state(run: ListedRun) -> str:
    """One of STATES but the first."""
    if run.ending == "running":
        return "running"
    return "failed" if has_failed(run.ending, run.exit_code) else "finished"


def sort_runs(runs: Iterable[ListedRun], by: str) -> list[ListedRun]:
    """In that order; unknown values come last."""
    return sorted(runs, key=lambda run: _sort_key(run, by))


def _sort_key(run: ListedRun, by: str) -> tuple[Any, ...]:
    when = -math.inf if run.started_seconds is None else run.started_seconds
    if by == "command":
        shown = run.name or join_command(run.command)
        return (not shown, shown, -when, run.path)
    if by == "when":
        return (-when, run.path)
    value = run.values.get(by)
    return (value is None, -(value or 0.0), -when, run.path)


def _describe_job(identity: Identity) -> str:
    """By whatever a job is known."""
    task = f"{identity.array_job}_{identity.array_task}" if identity.array_task is not None else None
    known = (identity.job, task, identity.job_name, identity.run_id)
    return " ".join(one for one in known if one is not None)


def _meets(run: ListedRun, condition: Condition, describe_ending: Callable[[str, int | None], str]) -> bool:
    if condition.operator == "~":
        labels = " ".join(f"{name}={value}" for name, value in run.labels)
        ending = describe_ending(run.ending, run.exit_code)
        texts = (
            " ".join(run.command),
            run.name or "",
            labels,
            _describe_job(run.identity),
            f"{run.host} {run.identity.node or ''}",
            ending,
            run.path,
        )
        searched = texts[_TEXTS.index(condition.field)] if condition.field else "\n".join(texts)
        return condition.text in searched.lower()
    value = run.values.get(condition.field)
    return value is not None and bool(_COMPARE[condition.operator](value, condition.value))

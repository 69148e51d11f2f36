"""The cheapest machine that fits a request, from a table of prices that the user gives. Pure.

Prices change by the day and by the customer, so none are built in.
"""

from __future__ import annotations

import csv
import math

from ..core.units import BYTES, NUMBER
from ..core.values import NamedTuple
from .limits import parse_amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .sizing import Amount, Sizing

COLUMNS = ("name", "cores", "ram", "gpus", "gpu_ram", "price per hour")
_MAY_BE_EMPTY = ("gpus", "gpu_ram")
_RESOURCES = ("cores", "memory", "GPUs", "GPU memory")
_GIGABYTE = 10**9
_SECONDS_PER_HOUR = 3600


class Machine(NamedTuple):
    """One row of the table."""

    name: str
    cores: float
    ram_bytes: float
    gpus: int
    gpu_ram_bytes: float
    """Of each device."""
    price_per_hour: float


class Choice(NamedTuple):
    """The cheapest machine that fits."""

    machine: Machine | None
    """None if none is large enough."""
    cost: float | None
    """Of a run that takes as long as the longest did here; None if that is not known."""
    fitting: int
    machines: int
    lacking: tuple[str, ...] = ()
    """If none is large enough: what none of them has enough of."""


def parse_prices(lines: Sequence[str]) -> tuple[Machine, ...]:
    """The rows of a CSV file with these columns. ValueError, with one sentence, if it is not valid."""
    rows, wanted = _split(lines), ", ".join(COLUMNS)
    if not rows:
        raise ValueError(f"it is empty; its first line must be: {wanted}")
    names = [name.strip().lower() for name in rows[0][1]]
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise ValueError(f"column {missing[0]!r} is missing; its first line must be: {wanted}")
    if len(rows) == 1:
        raise ValueError("it lists no machine")
    return tuple(_parse_row(number, row, names) for number, row in rows[1:])


def _split(lines: Sequence[str]) -> list[tuple[int, list[str]]]:
    """The rows that are not empty, with their numbers."""
    try:
        return [(number, row) for number, row in enumerate(csv.reader(lines), 1) if any(map(str.strip, row))]
    except csv.Error as error:
        raise ValueError(str(error)) from None


def _parse_row(number: int, row: Sequence[str], names: Sequence[str]) -> Machine:
    if len(row) != len(names):
        raise ValueError(f"line {number} has {len(row)} values instead of {len(names)}")
    cells = dict(zip(names, map(str.strip, row), strict=True))
    try:
        return Machine(
            name=_parse_name(cells),
            cores=_parse_number(cells, "cores"),
            ram_bytes=_parse_size(cells, "ram"),
            gpus=int(_parse_number(cells, "gpus")),
            gpu_ram_bytes=_parse_size(cells, "gpu_ram"),
            price_per_hour=_parse_number(cells, "price per hour"),
        )
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None


def _parse_name(cells: Mapping[str, str]) -> str:
    if not cells["name"]:
        raise ValueError("the machine has no name")
    return cells["name"]


def _parse_cell(cells: Mapping[str, str], column: str, parse: Callable[[str], float], what: str) -> float:
    """Machines without GPUs leave their cells empty; everything else is always stated."""
    text = cells[column]
    if not text and column in _MAY_BE_EMPTY:
        return 0.0
    try:
        value = parse(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"{column} {text!r} is not {what}")
    return value


def _parse_number(cells: Mapping[str, str], column: str) -> float:
    return _parse_cell(cells, column, float, "a number from 0 up")


def _parse_size(cells: Mapping[str, str], column: str) -> float:
    return _parse_cell(cells, column, _to_bytes, "a size (try 64GB)")


def _to_bytes(text: str) -> float:
    """Gigabytes, unless it says otherwise."""
    amount = parse_amount(text)
    if amount.unit not in (BYTES, NUMBER):
        raise ValueError(text)
    return amount.value * (_GIGABYTE if amount.unit == NUMBER else 1)


def choose_machine(machines: Sequence[Machine], sizing: Sizing) -> Choice:
    """The cheapest that has enough of everything that is known; of equally cheap ones the first."""
    fitting = [machine for machine in machines if _fits(machine, sizing)]
    best = min(fitting, key=lambda machine: machine.price_per_hour, default=None)
    time = sizing.time_seconds
    cost = best.price_per_hour * time.used / _SECONDS_PER_HOUR if best and time else None
    return Choice(best, cost, len(fitting), len(machines), () if fitting else _find_lacking(machines, sizing))


def _fits(machine: Machine, sizing: Sizing) -> bool:
    return not _list_lacking(machine, sizing)


def _find_lacking(machines: Sequence[Machine], sizing: Sizing) -> tuple[str, ...]:
    """What none of them has enough of; nothing if no single one has enough of everything."""
    lacking = [_list_lacking(machine, sizing) for machine in machines]
    return tuple(what for what in _RESOURCES if all(what in missing for missing in lacking))


def _list_lacking(machine: Machine, sizing: Sizing) -> list[str]:
    ranks = sizing.ranks_per_machine
    pairs = (
        (machine.cores, ranks * _advised(sizing.cores)),
        (machine.ram_bytes, _advised(sizing.memory_bytes)),
        (machine.gpus, ranks * _advised(sizing.gpus)),
        (machine.gpu_ram_bytes, _advised(sizing.gpu_memory_bytes)),
    )
    return [what for what, (has, needed) in zip(_RESOURCES, pairs, strict=True) if has < needed]


def _advised(amount: Amount | None) -> int:
    return 0 if amount is None else amount.advised

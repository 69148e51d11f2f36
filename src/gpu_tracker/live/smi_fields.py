"""What can be queried of a device, and how it is written: in nvidia-smi's format, for every vendor. Pure."""

from __future__ import annotations

import json

from ..core.errors import UsageError
from ..core.observation import LOST
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    from ..core.observation import Device, DeviceProcess, Observation

    Value: TypeAlias = float | int | str | None

_MIB = 2**20
_NOT_AVAILABLE = "[N/A]"
_GPU_IS_LOST = "[GPU is lost]"


class Row(NamedTuple):
    """One line of output."""

    observation: Observation
    n_gpus: int
    """How many GPUs the machine has."""
    gpu: Device
    process: DeviceProcess | None = None

    @property
    def unknown(self) -> str:
        """What is written for a value that is not known."""
        reasons = (reason for vendor in self.observation.vendors for reason in vendor.reasons)
        is_lost = any(reason.kind == LOST and reason.uuid == self.gpu.gpu.uuid for reason in reasons)
        return _GPU_IS_LOST if is_lost else _NOT_AVAILABLE


class Field(NamedTuple):
    """One field that can be queried."""

    name: str
    help: str
    read: Callable[[Row], Value] | None = None
    """None: the source's details have it under this name."""
    unit: str = ""
    """As in nvidia-smi: MiB, %, W, MHz, or none."""
    aliases: tuple[str, ...] = ()
    never: str = ""
    """Why no device can answer it."""

    def value(self, row: Row) -> Value:
        """In base units."""
        return row.gpu.details.get(self.name) if self.read is None else self.read(row)

    @property
    def heading(self) -> str:
        """The column's heading."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def needs_details(self) -> bool:
        """Whether it needs more than the usual reading."""
        return self.read is None


def find_fields(text: str, known: Sequence[Field]) -> tuple[Field, ...]:
    """The fields of a comma-separated list, in its order."""
    by_name = {name.lower(): field for field in known for name in (field.name, *field.aliases)}
    fields = []
    for name in (word.strip() for word in text.split(",")):
        field = by_name.get(name.lower())
        if field is None:
            raise UsageError(*_explain_unknown(name, list(by_name)))
        fields.append(field)
    return tuple(fields)


def list_fields(known: Iterable[Field]) -> str:
    """All fields with their meanings, one per line."""
    rows = [
        (", ".join((field.name, *field.aliases)), f"{field.help}{field.unit and f' [{field.unit}]'}")
        for field in known
    ]
    width = max(len(names) for names, _ in rows)
    return "".join(f"{names:<{width}}  {meaning}\n" for names, meaning in rows)


def render_heading(fields: Iterable[Field]) -> str:
    """The first line of the table."""
    return ", ".join(field.heading for field in fields)


def render_csv(row: Row, fields: Iterable[Field], *, has_units: bool) -> str:
    """One line in nvidia-smi's format: a comma and a space between cells, no quotes."""
    values = ((field, field.value(row)) for field in fields)
    return ", ".join(
        row.unknown if value is None else _write(field, value, has_units=has_units) for field, value in values
    )


def render_json(row: Row, fields: Iterable[Field]) -> str:
    """One object in base units; null is not known."""
    values = {field.name: field.value(row) for field in fields}
    return json.dumps(values, separators=(",", ":"))


def _write(field: Field, value: float | str, *, has_units: bool) -> str:
    if isinstance(value, str):
        # A comma would start another cell.
        return "".join(letter if letter.isprintable() and letter != "," else "?" for letter in value)
    if field.unit == "MiB":
        number = str(int(value) // _MIB)
    else:
        number = f"{value:.2f}" if field.unit in ("W", "J") else f"{value:.0f}"
    return f"{number} {field.unit}" if has_units and field.unit else number


def _explain_unknown(name: str, known: list[str]) -> tuple[str, str]:
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), known, n=4, cutoff=0.5)
    # `memory` alone is close to no name, but part of many.
    near += [other for other in known if name and name.lower() in other and other not in near][
        : 4 - len(near)
    ]
    hint = f"Did you mean {' or '.join(near)}?" if near else "`--help-fields` lists them."
    return f"Unknown field {name!r}.", hint

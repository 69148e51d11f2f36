"""The fields of nvidia-smi, by its names and in its format, for every vendor. Pure."""

from __future__ import annotations

import json

from ..core.errors import UsageError
from ..core.figures import BYTES, JOULES, MEGAHERTZ, PERCENT, WATTS, find_device_figure
from ..core.moments import write_moment
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    from ..core.observation import Device, DeviceProcess, Observation

    Value: TypeAlias = float | int | str | None

_MIB = 2**20
_NOT_AVAILABLE = "[N/A]"


class Row(NamedTuple):
    """One line of output."""

    observation: Observation
    n_gpus: int
    """How many GPUs the machine has."""
    gpu: Device
    process: DeviceProcess | None = None


class Field(NamedTuple):
    """One field that can be queried."""

    name: str
    help: str
    read: Callable[[Row], Value] | None = None
    """None: the source's details have it under this name."""
    unit: str = ""
    """As in nvidia-smi: MiB, %, W, MHz, or none."""
    aliases: tuple[str, ...] = ()

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


_TIMESTAMP = Field(
    "timestamp",
    "when the row was read",
    lambda row: write_moment(row.observation.epoch_seconds, "%Y/%m/%d %H:%M:%S.%f"),
)
_GPU_NAME = Field("name", "device name", lambda row: row.gpu.gpu.name, aliases=("gpu_name",))
_GPU_UUID = Field("uuid", "device UUID", lambda row: row.gpu.gpu.uuid, aliases=("gpu_uuid",))


def write_bus_id(bus_id: str) -> str:
    """In nvidia-smi's format: `00000000:4F:00.0` for the kernel's `0000:4f:00.0`."""
    domain, colon, rest = bus_id.upper().partition(":")
    return f"{domain.zfill(8)}{colon}{rest}" if colon else bus_id


_GPU_BUS_ID = Field(
    "pci.bus_id",
    "address on the PCI bus",
    lambda row: write_bus_id(row.gpu.gpu.bus_id) or None,
    aliases=("gpu_bus_id",),
)

# Our units → those of nvidia-smi.
_UNITS = {BYTES: "MiB", PERCENT: "%", WATTS: "W", MEGAHERTZ: "MHz", JOULES: "J"}


def _reading(figure_name: str, name: str = "") -> Field:
    """A figure of the usual reading."""
    figure = find_device_figure(figure_name)
    smi_name, *aliases = figure.smi or (name,)
    return Field(
        smi_name,
        figure.meaning,
        lambda row: getattr(row.gpu.reading, figure_name),
        _UNITS.get(figure.unit, ""),
        tuple(aliases),
    )


GPU_FIELDS = (
    _TIMESTAMP,
    Field("index", "index in the vendor's own tool", lambda row: row.gpu.gpu.ordinal),
    Field("count", "number of GPUs", lambda row: row.n_gpus),
    _GPU_NAME,
    _GPU_UUID,
    _GPU_BUS_ID,
    Field("vendor", "nvidia, amd, intel or apple (not in nvidia-smi)", lambda row: row.gpu.gpu.vendor),
    Field("source", "interface that was read (not in nvidia-smi)", lambda row: row.gpu.gpu.source),
    Field("driver_version", "driver version", lambda row: row.gpu.gpu.driver or None),
    Field("memory.total", "memory size", lambda row: row.gpu.gpu.memory_bytes, "MiB"),
    _reading("reserved_bytes"),
    _reading("used_bytes"),
    Field(
        "memory.free", "neither used nor reserved by the driver", lambda row: row.gpu.memory_free_bytes, "MiB"
    ),
    _reading("utilization_percent"),
    _reading("memory_utilization_percent"),
    Field("utilization.encoder", "utilization of the video encoder", unit="%"),
    Field("utilization.decoder", "utilization of the video decoder", unit="%"),
    _reading("temperature_celsius"),
    Field("temperature.memory", "memory temperature, degrees Celsius"),
    _reading("power_watts"),
    Field("power.limit", "power limit set by software", unit="W"),
    Field("enforced.power.limit", "power limit in force", unit="W"),
    Field("power.default_limit", "default power limit", unit="W"),
    Field("power.min_limit", "lowest power limit", unit="W"),
    Field("power.max_limit", "highest power limit", unit="W"),
    _reading("energy_joules", name="energy"),
    Field("pstate", "performance state; P0 is the fastest"),
    Field("fan.speed", "fan speed", unit="%"),
    _reading("sm_clock_mhz"),
    _reading("memory_clock_mhz"),
    Field("clocks.current.graphics", "clock of the graphics units", unit="MHz", aliases=("clocks.gr",)),
    Field("clocks.current.video", "clock of the video units", unit="MHz", aliases=("clocks.video",)),
    Field(
        "clocks.max.graphics", "highest clock of the graphics units", unit="MHz", aliases=("clocks.max.gr",)
    ),
    Field("clocks.max.sm", "highest clock of the compute units", unit="MHz"),
    Field("clocks.max.memory", "highest clock of the memory", unit="MHz", aliases=("clocks.max.mem",)),
    Field(
        "clocks_event_reasons.active",
        "throttling reasons, as a bit mask",
        aliases=("clocks_throttle_reasons.active",),
    ),
    Field(
        "limits",
        "the same in words (not in nvidia-smi)",
        lambda row: None if row.gpu.reading.limits is None else " ".join(row.gpu.reading.limits) or "none",
    ),
    Field("pcie.link.gen.current", "generation of the PCIe link", aliases=("pcie.link.gen.gpucurrent",)),
    Field("pcie.link.gen.max", "highest generation of the PCIe link"),
    Field("pcie.link.width.current", "lanes of the PCIe link"),
    Field("pcie.link.width.max", "highest number of lanes of the PCIe link"),
    Field("persistence_mode", "whether the driver stays loaded without users"),
    Field("compute_mode", "who may use it: Default, Exclusive_Process, Prohibited"),
    Field("mig.mode.current", "whether it is split into instances (MIG)"),
    Field("accounting.mode", "whether the driver records process statistics"),
    Field("ecc.mode.current", "whether ECC is on"),
    Field("ecc.errors.corrected.volatile.total", "corrected errors since the driver was loaded"),
    Field("ecc.errors.uncorrected.volatile.total", "uncorrected errors since the driver was loaded"),
    Field("display_active", "whether a display uses it"),
    Field("display_mode", "whether a display is connected"),
    Field("compute_cap", "CUDA compute capability"),
    Field("serial", "serial number of the board", aliases=("gpu_serial",)),
    Field("vbios_version", "firmware version"),
    Field(
        "processes",
        "number of processes (not in nvidia-smi)",
        lambda row: len(row.gpu.processes) if row.gpu.reading.lists_processes else None,
    ),
)

PROCESS_FIELDS = (
    _TIMESTAMP,
    _GPU_NAME._replace(name="gpu_name", aliases=()),
    _GPU_UUID._replace(name="gpu_uuid", aliases=()),
    _GPU_BUS_ID._replace(name="gpu_bus_id", aliases=()),
    Field("pid", "process ID", lambda row: row.process and row.process.reading.pid),
    Field(
        "process_name",
        "executable",
        lambda row: (row.process and row.process.holder.command and row.process.holder.command[0]) or None,
        aliases=("name",),
    ),
    Field(
        "used_gpu_memory",
        "memory that the driver attributes to it",
        lambda row: row.process and row.process.reading.used_bytes,
        "MiB",
        ("used_memory",),
    ),
    Field(
        "utilization.sm",
        "its share of the compute units (not in nvidia-smi)",
        lambda row: row.process and row.process.reading.utilization_percent,
        "%",
    ),
    Field(
        "user",
        "owner of the process (not in nvidia-smi)",
        lambda row: row.process and row.process.holder.user,
    ),
    Field(
        "command",
        "command line (not in nvidia-smi)",
        lambda row: row.process and row.process.holder.command_line,
    ),
)


def find_fields(text: str, known: Sequence[Field]) -> tuple[Field, ...]:
    """The fields of a comma-separated list, in its order."""
    by_name = {name: field for field in known for name in (field.name, *field.aliases)}
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
    return ", ".join(_write(field, field.value(row), has_units=has_units) for field in fields)


def render_json(row: Row, fields: Iterable[Field]) -> str:
    """One object in base units; null is not known."""
    values = {field.name: field.value(row) for field in fields}
    return json.dumps(values, separators=(",", ":"))


def _write(field: Field, value: Value, *, has_units: bool) -> str:
    if value is None:
        return _NOT_AVAILABLE
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

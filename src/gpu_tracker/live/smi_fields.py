"""nvidia-smi's names for what a GPU can be asked, and its way to write the answers; for every vendor. Pure."""

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
    """What one line is about."""

    observation: Observation
    n_gpus: int
    """How many there are."""
    gpu: Device
    process: DeviceProcess | None = None


class Field(NamedTuple):
    """One thing that can be asked."""

    name: str
    help: str
    read: Callable[[Row], Value] | None = None
    """Without, the source's own details have it under this name."""
    unit: str = ""
    """As nvidia-smi shows it: MiB, %, W, MHz, or none."""
    aliases: tuple[str, ...] = ()

    def value(self, row: Row) -> Value:
        """In base units, as JSON has it."""
        return row.gpu.details.get(self.name) if self.read is None else self.read(row)

    @property
    def heading(self) -> str:
        """The head of a column."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def needs_details(self) -> bool:
        """Whether a device has to be asked for more than is read anyway."""
        return self.read is None


_TIMESTAMP = Field(
    "timestamp",
    "when the row was read",
    lambda row: write_moment(row.observation.epoch_seconds, "%Y/%m/%d %H:%M:%S.%f"),
)
_GPU_NAME = Field("name", "the device's name", lambda row: row.gpu.gpu.name, aliases=("gpu_name",))
_GPU_UUID = Field("uuid", "the device's UUID", lambda row: row.gpu.gpu.uuid, aliases=("gpu_uuid",))


def write_bus_id(bus_id: str) -> str:
    """As nvidia-smi writes it: `00000000:4F:00.0`, where the kernel says `0000:4f:00.0`."""
    domain, colon, rest = bus_id.upper().partition(":")
    return f"{domain.zfill(8)}{colon}{rest}" if colon else bus_id


_GPU_BUS_ID = Field(
    "pci.bus_id",
    "where on the PCI bus",
    lambda row: write_bus_id(row.gpu.gpu.bus_id) or None,
    aliases=("gpu_bus_id",),
)

# How nvidia-smi shows our units.
_UNITS = {BYTES: "MiB", PERCENT: "%", WATTS: "W", MEGAHERTZ: "MHz", JOULES: "J"}


def _reading(figure_name: str, name: str = "") -> Field:
    """A figure that every source reads anyway."""
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
    Field("index", "the number that the vendor's tool gives it", lambda row: row.gpu.gpu.ordinal),
    Field("count", "how many GPUs there are", lambda row: row.n_gpus),
    _GPU_NAME,
    _GPU_UUID,
    _GPU_BUS_ID,
    Field("vendor", "nvidia, amd, intel or apple (not in nvidia-smi)", lambda row: row.gpu.gpu.vendor),
    Field("source", "which interface was read (not in nvidia-smi)", lambda row: row.gpu.gpu.source),
    Field("driver_version", "the driver's version", lambda row: row.gpu.gpu.driver or None),
    Field("memory.total", "memory of the device", lambda row: row.gpu.gpu.memory_bytes, "MiB"),
    _reading("reserved_bytes"),
    _reading("used_bytes"),
    Field("memory.free", "neither used nor kept by the driver", lambda row: row.gpu.memory_free_bytes, "MiB"),
    _reading("utilization_percent"),
    _reading("memory_utilization_percent"),
    Field("utilization.encoder", "how busy the video encoder is", unit="%"),
    Field("utilization.decoder", "how busy the video decoder is", unit="%"),
    _reading("temperature_celsius"),
    Field("temperature.memory", "degrees Celsius of the memory"),
    _reading("power_watts"),
    Field("power.limit", "the limit set by software", unit="W"),
    Field("enforced.power.limit", "the limit that holds", unit="W"),
    Field("power.default_limit", "the limit after a restart", unit="W"),
    Field("power.min_limit", "the lowest limit", unit="W"),
    Field("power.max_limit", "the highest limit", unit="W"),
    _reading("energy_joules", name="energy"),
    Field("pstate", "performance state, P0 the fastest"),
    Field("fan.speed", "share of the fan's full speed", unit="%"),
    _reading("sm_clock_mhz"),
    _reading("memory_clock_mhz"),
    Field(
        "clocks.current.graphics",
        "clock of the graphics units",
        unit="MHz",
        aliases=("clocks.gr",),
    ),
    Field("clocks.current.video", "clock of the video units", unit="MHz", aliases=("clocks.video",)),
    Field(
        "clocks.max.graphics", "highest clock of the graphics units", unit="MHz", aliases=("clocks.max.gr",)
    ),
    Field("clocks.max.sm", "highest clock of the compute units", unit="MHz"),
    Field("clocks.max.memory", "highest clock of the memory", unit="MHz", aliases=("clocks.max.mem",)),
    Field(
        "clocks_event_reasons.active",
        "bits that say what holds the clocks down",
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
    Field("pcie.link.width.max", "most lanes of the PCIe link"),
    Field("persistence_mode", "whether the driver stays loaded without users"),
    Field("compute_mode", "who may use it: Default, Exclusive_Process, Prohibited"),
    Field("mig.mode.current", "whether it is divided into instances"),
    Field("accounting.mode", "whether the driver keeps accounts of processes"),
    Field("ecc.mode.current", "whether errors of the memory are corrected"),
    Field("ecc.errors.corrected.volatile.total", "corrected since the driver was loaded"),
    Field("ecc.errors.uncorrected.volatile.total", "not corrected since the driver was loaded"),
    Field("display_active", "whether a display uses it"),
    Field("display_mode", "whether a display is connected"),
    Field("compute_cap", "CUDA compute capability"),
    Field("serial", "serial number of the board", aliases=("gpu_serial",)),
    Field("vbios_version", "version of its firmware"),
    Field(
        "processes",
        "how many processes are on it (not in nvidia-smi)",
        lambda row: len(row.gpu.processes) if row.gpu.reading.lists_processes else None,
    ),
)

PROCESS_FIELDS = (
    _TIMESTAMP,
    _GPU_NAME._replace(name="gpu_name", aliases=()),
    _GPU_UUID._replace(name="gpu_uuid", aliases=()),
    _GPU_BUS_ID._replace(name="gpu_bus_id", aliases=()),
    Field("pid", "the process", lambda row: row.process and row.process.reading.pid),
    Field(
        "process_name",
        "what it runs",
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
    Field("user", "whose it is (not in nvidia-smi)", lambda row: row.process and row.process.holder.user),
    Field(
        "command",
        "all its arguments (not in nvidia-smi)",
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
    """All fields with their meanings, a line each."""
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
    """One line as nvidia-smi writes it: a comma and a space between cells, no quotes."""
    return ", ".join(_write(field, field.value(row), has_units=has_units) for field in fields)


def render_json(row: Row, fields: Iterable[Field]) -> str:
    """One object: bytes, percent, watts, megahertz, degrees; null for what is not known."""
    values = {field.name: field.value(row) for field in fields}
    return json.dumps(values, separators=(",", ":"))


def _write(field: Field, value: Value, *, has_units: bool) -> str:
    if value is None:
        return _NOT_AVAILABLE
    if isinstance(value, str):
        # A cell must stay one cell.
        return "".join(letter if letter.isprintable() and letter != "," else "?" for letter in value)
    if field.unit == "MiB":
        number = str(int(value) // _MIB)
    else:
        number = f"{value:.2f}" if field.unit in ("W", "J") else f"{value:.0f}"
    return f"{number} {field.unit}" if has_units and field.unit else number


def _explain_unknown(name: str, known: list[str]) -> tuple[str, str]:
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), known, n=4, cutoff=0.5)
    # `memory` alone is like nothing, but says where to look.
    near += [other for other in known if name and name.lower() in other and other not in near][
        : 4 - len(near)
    ]
    hint = f"Did you mean {' or '.join(near)}?" if near else "`--help-fields` lists them."
    return f"Field {name!r} is not known.", hint

"""What nvidia-smi prints, in the words of nine generations of drivers. Pure: text in, values out.

It complains on its standard output, with exit codes that differ from version to version, in the middle of a table
or instead of one. So the text decides: a line is a row of the table that was asked for, or it is prose.
"""

from __future__ import annotations

from ...core.figures import Figure, find_device_figure
from ...core.model import Gpu, GpuProcessReading, GpuReading
from ...core.values import NamedTuple
from .guard import DENIED, LOST, TROUBLE, UNSUPPORTED, Failure
from .nvidia import name_limits, parse_bus_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOURCE = "nvidia_smi"
MIB = 1 << 20  # what nvidia-smi calls MiB, and counts in

THROTTLE_FIELD = "clocks_event_reasons.active"


class Cell(NamedTuple):
    """One figure of a device in a table, and which numbers make sense for it."""

    figure: Figure
    factor: int = 1
    lowest: float = 0.0
    highest: float = 1e9

    @property
    def field(self) -> str:
        """What nvidia-smi calls it."""
        return self.figure.smi[0]


CELLS = (
    Cell(find_device_figure("used_bytes"), MIB),
    Cell(find_device_figure("reserved_bytes"), MIB),
    Cell(find_device_figure("utilization_percent"), highest=100),
    Cell(find_device_figure("memory_utilization_percent"), highest=100),
    Cell(find_device_figure("power_watts"), highest=1e5),
    Cell(find_device_figure("temperature_celsius"), lowest=-100, highest=1000),
    Cell(find_device_figure("sm_clock_mhz"), highest=1e5),
    Cell(find_device_figure("memory_clock_mhz"), highest=1e5),
)
_DETAIL_FIELDS = ("pstate", "fan.speed", "power.limit", THROTTLE_FIELD)
DEVICE_FIELDS = (
    "index",
    "uuid",
    *(cell.field for cell in CELLS),
    *_DETAIL_FIELDS,
    "pci.bus_id",
    "driver_version",
    "memory.total",
    "mig.mode.current",
    "name",  # it may hold a comma, so it is last
)
APP_FIELDS = ("gpu_uuid", "pid", "used_memory")
# Without these a row cannot be placed.
NEEDED_FIELDS = frozenset({"index", "uuid", "gpu_uuid", "pid"})
# New name → what older versions call it.
_OLDER_NAMES = {THROTTLE_FIELD: "clocks_throttle_reasons.active"}

_UNITS = frozenset({"", "MiB", "%", "W", "MHz", "C"})
_LONGEST_NUMBER = 18


# ---- Rows and cells.


def parse_row(line: str, fields: Sequence[str]) -> dict[str, str] | None:
    """The cells of one line by field; None for a heading, prose or garbage."""
    cells = [cell.strip() for cell in line.split(",", len(fields) - 1)]
    if len(cells) != len(fields):
        return None
    row = dict(zip(fields, cells, strict=True))
    key = row["pid"] if "pid" in row else row.get("index", "")
    is_placed = key.isascii() and key.isdigit() and len(key) <= _LONGEST_NUMBER
    return row if is_placed else None


def parse_number(cell: str) -> float | None:
    """The number of a cell, with or without its unit; None if the cell says anything else."""
    digits, _, unit = cell.partition(" ")
    if unit not in _UNITS or not digits.isascii() or len(digits) > _LONGEST_NUMBER:
        return None
    whole, point, fraction = digits.removeprefix("-").partition(".")
    if not whole.isdigit() or (point and not fraction.isdigit()):
        return None
    return float(digits)


def parse_mib(cell: str) -> int | None:
    """Bytes; None if the cell does not tell."""
    number = parse_number(cell)
    return None if number is None or number < 0 else int(number * MIB)


def parse_limits(cell: str) -> tuple[str, ...] | None:
    """What holds the clocks down, from the driver's mask of reasons."""
    try:
        mask = int(cell, 16) if cell.startswith("0x") and len(cell) <= _LONGEST_NUMBER else None
    except ValueError:
        mask = None
    return None if mask is None else name_limits(mask)


def find_failure_kind(cell: str) -> str:
    """What a cell without a figure means: for good, for this user, for the device, or for now."""
    words = cell.strip("[]").lower()
    if words in {"n/a", "not supported", "not available", "function not found"}:
        return UNSUPPORTED
    if words in {"insufficient permissions", "no permission"}:
        return DENIED
    return LOST if words == "gpu is lost" else TROUBLE


def explain_cell(label: str, words: str, cell: str) -> Failure:
    """Why a device does not tell a figure, for the user."""
    kind = find_failure_kind(cell)
    if kind == UNSUPPORTED:
        text = f"{label} does not tell its {words}."
    elif kind == DENIED:
        text = f"{label} does not tell its {words} to this user; an administrator is told."
    elif kind == LOST:
        text = f"{label} was lost; its figures are those up to then. Rebooting the machine brings it back."
    elif "requires reset" in cell:
        text = f"{label} must be reset (`nvidia-smi --gpu-reset`) before it tells its {words} again."
    else:
        said = shorten(cell) or "nothing"
        text = f"{label} did not tell its {words} for a while; nvidia-smi said: {said}."
    return Failure(kind, text)


# ---- Devices and readings.


def parse_gpu(row: Mapping[str, str]) -> Gpu:
    """Which device a row is about."""
    bus_id = parse_bus_id(row.get("pci.bus_id", ""))
    uuid = row["uuid"]
    if not uuid.startswith("GPU-"):
        uuid = f"pci-{bus_id}" if bus_id.count(":") == 2 else f"nvidia-{int(row['index'])}"
    driver = row.get("driver_version", "")
    return Gpu(
        ordinal=int(row["index"]),
        uuid=uuid,
        name=row.get("name") or "NVIDIA GPU",
        memory_bytes=parse_mib(row.get("memory.total", "")),
        source=SOURCE,
        bus_id=bus_id if bus_id.count(":") == 2 else "",
        driver="" if driver.startswith("[") else driver,
    )


class Reading(NamedTuple):
    """One row of the table of devices."""

    reading: GpuReading
    refusals: tuple[tuple[Figure, str], ...]
    """The figures that were asked for and not told, each with what the cell says instead."""


def parse_reading(row: Mapping[str, str], uuid: str) -> Reading:
    """The figures of one device."""
    told: dict[str, float] = {}
    refusals = []
    for cell in CELLS:
        if cell.field not in row:
            continue
        text = row[cell.field]
        number = parse_number(text)
        if number is None or not cell.lowest <= number <= cell.highest:
            refusals.append((cell.figure, text))
        else:
            told[cell.figure.name] = number * cell.factor
    used, reserved = told.get("used_bytes"), told.get("reserved_bytes")
    utilization = told.get("utilization_percent")
    reading = GpuReading(
        uuid,
        used_bytes=None if used is None else int(used),
        utilization_percent=utilization,
        utilization_high_percent=utilization,
        reserved_bytes=None if reserved is None else int(reserved),
        memory_utilization_percent=told.get("memory_utilization_percent"),
        power_watts=told.get("power_watts"),
        temperature_celsius=told.get("temperature_celsius"),
        sm_clock_mhz=told.get("sm_clock_mhz"),
        memory_clock_mhz=told.get("memory_clock_mhz"),
        limits=parse_limits(_find_cell(row, THROTTLE_FIELD)),
    )
    return Reading(reading, tuple(refusals))


def parse_details(row: Mapping[str, str]) -> dict[str, float | str]:
    """What only a curious person asks for; what is not told is left out."""
    details: dict[str, float | str] = {}
    for field in _DETAIL_FIELDS:
        cell = _find_cell(row, field)
        number = parse_number(cell)
        if number is not None:
            details[field] = number
        elif cell and not cell.startswith("[") and cell != "N/A":
            details[field] = cell
    return details


def _find_cell(row: Mapping[str, str], field: str) -> str:
    """Whatever the field is called in this version."""
    return row.get(field) or row.get(_OLDER_NAMES.get(field, field)) or ""


def parse_app(row: Mapping[str, str]) -> GpuProcessReading:
    """One row of the table of processes."""
    return GpuProcessReading(row["gpu_uuid"], int(row["pid"]), parse_mib(row.get("used_memory", "")))


class Listed(NamedTuple):
    """A line of `nvidia-smi -L`: a whole device, or an instance of the one above it."""

    ordinal: int
    name: str
    uuid: str
    parent_uuid: str | None = None


def parse_listing(text: str) -> tuple[Listed, ...]:
    """What `nvidia-smi -L` lists, up to where it gives up."""
    listed: list[Listed] = []
    whole: Listed | None = None
    for line in text.split("\n"):
        front, _, tail = line.partition("(UUID: ")
        uuid, bracket, _ = tail.partition(")")
        words = front.replace(":", " : ").split()
        if not bracket or not uuid or len(words) < 3:
            continue
        if words[0] == "GPU" and _is_ordinal(words[1]):
            name = front.partition(":")[2].strip()
            whole = Listed(int(words[1]), name, uuid)
            listed.append(whole)
        elif words[0] == "MIG" and whole is not None and words[2] == "Device" and _is_ordinal(words[-2]):
            listed.append(Listed(int(words[-2]), f"{whole.name} MIG {words[1]}", uuid, whole.uuid))
    return tuple(listed)


def _is_ordinal(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= _LONGEST_NUMBER


# ---- Prose.

FIELD = "field"  # it does not know one of the fields
HANDLE = "handle"  # one device cannot be opened, and for that it tells of none
NO_DEVICES = "no devices"
SILENCE = "silence"  # it hangs, or ends without a word
OTHER = "other"

# The second with a warning about a device's description of itself, after a table that is good.
_GOOD_STATUSES = (0, 14)


class Complaint(NamedTuple):
    """What nvidia-smi says instead of a table."""

    kind: str
    subject: str
    """The field, or the device by number or bus, if that is told."""
    words: str


def parse_complaint(text: str) -> Complaint:
    """The first thing in a text that makes sense as a complaint."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    for line in lines:
        if line.startswith('Field "') and "is not a valid field" in line:
            return Complaint(FIELD, line.split('"')[1], line)
        front, found, tail = line.partition("device handle for ")
        if found and front.startswith("Unable to"):
            device, _, words = tail.partition(": ")
            device = device.strip(": ")
            device = device[3:].strip() if device[:3].lower() == "gpu" else device
            return Complaint(HANDLE, device, words or line)
        if line.startswith(("No devices were found", "No devices found")):
            return Complaint(NO_DEVICES, "", line)
    return Complaint(OTHER, "", shorten(" ".join(lines)))


class Table(NamedTuple):
    """What became of one question."""

    rows: list[dict[str, str]]
    complaint: Complaint | None
    """Why these are not all the rows there should be."""


def parse_table(text: str | None, status: int | None, fields: Sequence[str], waited_seconds: float) -> Table:
    """What was printed (None: nothing, in all that time), with or without a heading.

    That nobody computes is told by an empty table, for which a crash must not be taken.
    """
    if text is None:
        words = f"nvidia-smi did not answer within {waited_seconds:g} seconds"
        return Table([], Complaint(SILENCE, "", words))
    rows, prose = [], []
    for line in text.split("\n"):
        row = parse_row(line, fields)
        if row is not None:
            rows.append(row)
        elif line.strip() and not line.startswith("WARNING: "):
            prose.append(line)
    may_be_empty = "pid" in fields and not prose
    if status in _GOOD_STATUSES and (rows or may_be_empty):
        return Table(rows, None)
    if prose:
        return Table(rows, parse_complaint("\n".join(prose)))
    return Table(rows, Complaint(SILENCE, "", f"nvidia-smi ended without a word (exit status {status})"))


def drop_field(fields: Sequence[str], unknown: str) -> tuple[str, ...] | None:
    """The fields without one that this version does not know, or with its older name; None if that helps nothing."""
    if unknown not in fields or unknown in NEEDED_FIELDS:
        return None
    older = _OLDER_NAMES.get(unknown)
    kept = (older if field == unknown else field for field in fields)
    return tuple(field for field in kept if field is not None)


def shorten(words: str) -> str:
    """Somebody else's words, fit for a sentence of ours."""
    printable = "".join(letter if letter.isprintable() else " " for letter in words[:1000])
    return " ".join(printable.split())[:200].rstrip(". ")


_ABSENCES = (
    (
        "version mismatch",
        "the NVIDIA driver was updated while the old one was loaded (driver/library version mismatch); "
        "rebooting the machine, or reloading the kernel module, cures that",
    ),
    (
        "insufficient permissions",
        "this user may not open the NVIDIA driver (insufficient permissions); "
        "read and write access to /dev/nvidia* cures that",
    ),
    (
        "couldn't communicate with the nvidia driver",
        "the NVIDIA driver is not loaded; `modprobe nvidia` or installing the driver for this kernel cures that",
    ),
    ("driver not loaded", "the NVIDIA driver is not loaded; `modprobe nvidia` cures that"),
    (
        "couldn't find libnvidia-ml",
        "nvidia-smi is there, but not the driver's library (libnvidia-ml.so); "
        "in a container, the NVIDIA runtime with the `utility` capability brings it",
    ),
    (
        "blocked by the operating system",
        "the operating system blocks the access to the GPU; under WSL, updating Windows' NVIDIA driver and "
        "`wsl --shutdown` cure that",
    ),
    (
        "failed to initialize nvml: unknown error",
        "the NVIDIA driver cannot be opened (unknown error); a container that has lost its devices "
        "must be restarted to get them back",
    ),
    ("gpu is lost", "the GPU is lost; rebooting the machine brings it back"),
)


def explain_absence(complaint: Complaint) -> str:
    """Why no device can be read."""
    lowered = complaint.words.lower()
    known = [why for words, why in _ABSENCES if words in lowered]
    if complaint.kind == SILENCE:
        why = f"{complaint.words}; a device that this user may not open, or a driver in trouble, is the usual cause"
    elif complaint.kind == NO_DEVICES:
        why = "nvidia-smi found no device; in a container, or under a scheduler, one must be asked for"
    else:
        why = known[0] if known else f"nvidia-smi said: {complaint.words or 'nothing'}"
    return f"No NVIDIA GPU was measured: {why}."

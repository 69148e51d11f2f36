"""The output of nvidia-smi, in the words of nine generations of drivers. Pure: text in, values out.

Its errors are on standard output, inside a table or instead of one, and its exit codes differ between versions. So
the text decides: a line is either a row of the requested table, or prose.
"""

from __future__ import annotations

from ...core.figures import Figure, find_device_figure, is_possible
from ...core.model import Gpu, GpuProcessReading, GpuReading
from ...core.values import NamedTuple
from .guard import DENIED, LOST, TROUBLE, UNSUPPORTED, Failure
from .nvidia import name_limits, parse_bus_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

SOURCE = "nvidia_smi"
MIB = 1 << 20  # what nvidia-smi calls MiB, and counts in

THROTTLE_FIELD = "clocks_event_reasons.active"


class Cell(NamedTuple):
    """One figure of a device in a table."""

    figure: Figure
    is_in_mib: bool = False

    @property
    def field(self) -> str:
        """nvidia-smi's name."""
        return self.figure.smi[0]


CELLS = (
    Cell(find_device_figure("used_bytes"), is_in_mib=True),
    Cell(find_device_figure("reserved_bytes"), is_in_mib=True),
    Cell(find_device_figure("utilization_percent")),
    Cell(find_device_figure("memory_utilization_percent")),
    Cell(find_device_figure("power_watts")),
    Cell(find_device_figure("temperature_celsius")),
    Cell(find_device_figure("sm_clock_mhz")),
    Cell(find_device_figure("memory_clock_mhz")),
)
_DETAIL_FIELDS = ("pstate", "fan.speed", "power.limit", "clocks.max.sm", THROTTLE_FIELD)
DEVICE_FIELDS = (
    "index",
    "uuid",
    *(cell.field for cell in CELLS),
    *_DETAIL_FIELDS,
    "pci.bus_id",
    "driver_version",
    "memory.total",
    "mig.mode.current",
    "name",  # last, because it may contain a comma
)
APP_FIELDS = ("gpu_uuid", "pid", "used_memory")
# A row without these cannot be assigned to a device.
NEEDED_FIELDS = frozenset({"index", "uuid", "gpu_uuid", "pid"})
# New name → name in older versions.
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
    """The number in a cell, with or without its unit; None if there is none."""
    digits, _, unit = cell.partition(" ")
    if unit not in _UNITS or not digits.isascii() or len(digits) > _LONGEST_NUMBER:
        return None
    whole, point, fraction = digits.removeprefix("-").partition(".")
    if not whole.isdigit() or (point and not fraction.isdigit()):
        return None
    return float(digits)


def parse_mib(cell: str) -> int | None:
    """Bytes; None if the cell has no number."""
    number = parse_number(cell)
    return None if number is None or number < 0 else int(number * MIB)


def parse_limits(cell: str) -> tuple[str, ...] | None:
    """The causes of throttling, from the driver's bit mask."""
    try:
        mask = int(cell, 16) if cell.startswith("0x") and len(cell) <= _LONGEST_NUMBER else None
    except ValueError:
        mask = None
    return None if mask is None else name_limits(mask)


def find_failure_kind(cell: str) -> str:
    """The kind of failure that a cell without a number means."""
    words = cell.strip("[]").lower()
    if words in {"n/a", "not supported", "not available", "function not found"}:
        return UNSUPPORTED
    if words in {"insufficient permissions", "no permission"}:
        return DENIED
    return LOST if words == "gpu is lost" else TROUBLE


def explain_cell(label: str, words: str, cell: str) -> Failure:
    """Why a device does not report a figure, for the user."""
    kind = find_failure_kind(cell)
    if kind == UNSUPPORTED:
        text = f"{label} does not report {words}."
    elif kind == DENIED:
        text = f"{words[0].upper()}{words[1:]} of {label} requires administrator rights."
    elif kind == LOST:
        text = (
            f"{label} was lost; its figures are missing until it returns. Reboot the machine to restore it."
        )
    elif "requires reset" in cell:
        text = f"{label} does not report {words} until it is reset (`nvidia-smi --gpu-reset`)."
    else:
        said = shorten(cell) or "nothing"
        text = f"{label} did not report {words} for a while; nvidia-smi said: {said}."
    return Failure(kind, text)


# ---- Devices and readings.


def parse_gpu(row: Mapping[str, str]) -> Gpu:
    """The device of a row."""
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
        power_limit_watts=parse_number(row.get("power.limit", "")),
        top_sm_clock_mhz=parse_number(row.get("clocks.max.sm", "")),
    )


class Reading(NamedTuple):
    """One row of the table of devices."""

    reading: GpuReading
    refusals: tuple[tuple[Figure, str], ...]
    """The figures that were not reported, each with the text of its cell."""


def parse_reading(row: Mapping[str, str], uuid: str) -> Reading:
    """The figures of one device."""
    known: dict[str, Any] = {}
    refusals = []
    for cell in CELLS:
        if cell.field not in row:
            continue
        text = row[cell.field]
        number = parse_number(text)
        if number is None or not is_possible(cell.figure.name, number * (MIB if cell.is_in_mib else 1)):
            refusals.append((cell.figure, text))
        else:
            known[cell.figure.name] = int(number * MIB) if cell.is_in_mib else number
    reading = GpuReading(
        uuid,
        utilization_high_percent=known.get("utilization_percent"),
        limits=parse_limits(_find_cell(row, THROTTLE_FIELD)),
        **known,
    )
    return Reading(reading, tuple(refusals))


def parse_details(row: Mapping[str, str]) -> dict[str, float | str]:
    """Less common figures; those that are not reported are left out."""
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
    """The cell of a field, under its new or old name."""
    return row.get(field) or row.get(_OLDER_NAMES.get(field, field)) or ""


def parse_app(row: Mapping[str, str]) -> GpuProcessReading:
    """One row of the table of processes."""
    return GpuProcessReading(row["gpu_uuid"], int(row["pid"]), parse_mib(row.get("used_memory", "")))


class Listed(NamedTuple):
    """A line of `nvidia-smi -L`: a device, or a MIG instance of the one above it."""

    ordinal: int
    name: str
    uuid: str
    parent_uuid: str | None = None


def parse_listing(text: str) -> tuple[Listed, ...]:
    """The devices and instances listed by `nvidia-smi -L`."""
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

FIELD = "field"  # it does not support one of the fields
HANDLE = "handle"  # one device cannot be opened, so it lists none
NO_DEVICES = "no devices"
SILENCE = "silence"  # it hangs, or is ended without output
NOTHING = "nothing"  # it ends well without output, which says nothing of a device, not even that there is one
OTHER = "other"

# 14 is a warning about a corrupt infoROM, after a valid table.
_GOOD_STATUSES = (0, 14)


class Complaint(NamedTuple):
    """What nvidia-smi prints instead of a table."""

    kind: str
    subject: str
    """The field, or the device by number or bus, if it is named."""
    words: str


def parse_complaint(text: str) -> Complaint:
    """The first known complaint in a text."""
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
    """The result of one query."""

    rows: list[dict[str, str]]
    complaint: Complaint | None
    """Why rows are missing."""


def parse_table(
    text: str | None, status: int | None, fields: Sequence[str], waited_seconds: float, errors: str = ""
) -> Table:
    """The output (None: no answer in time) as a table, with or without a heading.

    An empty table of processes means that none computes; a crash must not be mistaken for that. What is on standard error may be of any
    library: it only explains why there is no table.
    """
    if text is None:
        words = f"nvidia-smi did not answer within {waited_seconds:g} seconds"
        return Table([], Complaint(SILENCE, "", words))
    rows, prose = [], []
    *lines, last = text.removeprefix("\ufeff").split("\n")
    is_cut = parse_row(last, fields) is not None  # its last number may lack digits
    for line in lines if is_cut else [*lines, last]:
        row = parse_row(line, fields)
        if row is not None:
            rows.append(row)
        elif line.strip() and not line.startswith("WARNING: "):
            prose.append(line)
    if is_cut:
        return Table(rows, Complaint(SILENCE, "", "nvidia-smi's output is cut off"))
    complaint = parse_complaint("\n".join(prose)) if prose else None
    may_be_empty = "pid" in fields and not prose
    is_whole = complaint is None or complaint.kind != HANDLE
    if status in _GOOD_STATUSES and is_whole and (rows or may_be_empty):
        return Table(rows, None)
    if complaint is None and errors.strip():
        complaint = parse_complaint(errors)
    if complaint is not None:
        return Table(rows, complaint)
    kind = NOTHING if status == 0 and not rows else SILENCE
    return Table(rows, Complaint(kind, "", f"nvidia-smi ended without output (exit status {status})"))


def drop_field(fields: Sequence[str], unknown: str) -> tuple[str, ...] | None:
    """The fields without an unsupported one, or with its older name; None if it cannot be dropped."""
    if unknown not in fields or unknown in NEEDED_FIELDS:
        return None
    older = _OLDER_NAMES.get(unknown)
    kept = (older if field == unknown else field for field in fields)
    return tuple(field for field in kept if field is not None)


# Of a message with more of these, nothing can be read.
_MOST_BROKEN = 0.1


def shorten(words: str) -> str:
    """A foreign text, printable and short enough to quote in a sentence."""
    words = words[:1000]
    broken = sum(letter == "\ufffd" or not (letter.isprintable() or letter.isspace()) for letter in words)
    if broken > _MOST_BROKEN * len(words):
        return "what it printed is not text"
    printable = "".join(letter if letter.isprintable() else " " for letter in words)
    return " ".join(printable.split())[:200].rstrip(". ")


_ABSENCES = (
    (
        "version mismatch",
        "the NVIDIA driver was updated while the old one was loaded (driver/library version mismatch); "
        "reboot the machine, or reload the kernel module",
    ),
    (
        "insufficient permissions",
        "this user may not open the NVIDIA driver (insufficient permissions); "
        "ask for read and write access to /dev/nvidia*",
    ),
    (
        "couldn't communicate with the nvidia driver",
        "the NVIDIA driver is not loaded; run `modprobe nvidia`, or install the driver for this kernel",
    ),
    ("driver not loaded", "the NVIDIA driver is not loaded; run `modprobe nvidia`"),
    (
        "couldn't find libnvidia-ml",
        "nvidia-smi is installed, but not the driver's library (libnvidia-ml.so); "
        "in a container, use the NVIDIA runtime with the `utility` capability",
    ),
    (
        "blocked by the operating system",
        "the operating system blocks access to the GPU; under WSL, update the NVIDIA driver of Windows and "
        "run `wsl --shutdown`",
    ),
    (
        "failed to initialize nvml: unknown error",
        "the NVIDIA driver cannot be opened (unknown error); a container that has lost its devices must be restarted",
    ),
    ("gpu is lost", "the GPU was lost; reboot the machine"),
)


def explain_absence(complaint: Complaint) -> str:
    """Why no device can be read."""
    lowered = complaint.words.lower()
    known = [why for words, why in _ABSENCES if words in lowered]
    if complaint.kind in (SILENCE, NOTHING):
        why = f"{complaint.words}; usually this user may not open a device, or the driver hangs"
    elif complaint.kind == NO_DEVICES:
        why = "nvidia-smi found no device; in a container, or under a scheduler, a GPU must be requested"
    else:
        said = f"nvidia-smi said: {complaint.words.rstrip('.') or 'nothing'}"
        why = (
            known[0]
            if known
            else f"{said}; run it by hand, and if it fails there, install the driver again or reboot"
        )
    return f"No NVIDIA GPU was measured: {why}."

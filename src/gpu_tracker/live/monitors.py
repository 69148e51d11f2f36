"""Devices and their processes as scrolling columns: those of nvidia-smi's `dmon` and `pmon`, for every vendor. Pure."""

from __future__ import annotations

from ..core.errors import UsageError
from ..core.moments import write_moment
from ..core.text import neutralize
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..core.observation import Device, DeviceProcess, Observation

_MIB, _MB = 2**20, 10**6
_UNKNOWN = "-"
_CELL = 6
_NAME_LETTERS = 15
_KINDS = {"compute": "C", "graphics": "G", "compute+graphics": "C+G"}
# Letters of `-o`: heading, unit, and how a moment is written.
MOMENTS = {"D": ("Date", "YYYYMMDD", "%Y%m%d"), "T": ("Time", "HH:MM:SS", "%H:%M:%S")}


class Column(NamedTuple):
    """One column about a device."""

    heading: str
    unit: str
    read: Callable[[Device], float | None] | None = None
    """None: the source's details have it."""
    detail: str = ""
    per: float = 1.0
    """A value is divided by this."""
    is_counter: bool = False
    """Its growth counts, since the reading before."""


class Before(NamedTuple):
    """A device at the reading before, and when that was."""

    gpu: Device
    at_seconds: float


def _find(detail: str, heading: str, unit: str, per: float = 1.0) -> Column:
    return Column(heading, unit, None, detail, per)


_UTILIZATION = (
    Column("sm", "%", lambda gpu: gpu.reading.utilization_percent),
    Column("mem", "%", lambda gpu: gpu.reading.memory_utilization_percent),
    _find("utilization.encoder", "enc", "%"),
    _find("utilization.decoder", "dec", "%"),
    _find("utilization.jpeg", "jpg", "%"),
    _find("utilization.ofa", "ofa", "%"),
)
_PROTECTED = _find("protected_memory.used", "ccpm", "MB", _MIB)
DEVICE_GROUPS = {
    "p": (
        Column("pwr", "W", lambda gpu: gpu.reading.power_watts),
        Column("gtemp", "C", lambda gpu: gpu.reading.temperature_celsius),
        _find("temperature.memory", "mtemp", "C"),
    ),
    "u": _UTILIZATION,
    "c": (
        Column("mclk", "MHz", lambda gpu: gpu.reading.memory_clock_mhz),
        Column("pclk", "MHz", lambda gpu: gpu.reading.sm_clock_mhz),
    ),
    "v": (
        _find("violation.power", "pviol", "%")._replace(is_counter=True, per=0.01),
        _find("violation.thermal", "tviol", "bool")._replace(is_counter=True),
    ),
    "m": (
        Column("fb", "MB", lambda gpu: gpu.reading.used_bytes, per=_MIB),
        _find("bar1.used", "bar1", "MB", _MIB),
        _PROTECTED,
    ),
    "e": (
        _find("ecc.errors.corrected.volatile.total", "sbecc", "errs"),
        _find("ecc.errors.uncorrected.volatile.total", "dbecc", "errs"),
        _find("pcie.replays", "pci", "errs"),
    ),
    "t": (
        _find("pcie.throughput.rx", "rxpci", "MB/s", _MB),
        _find("pcie.throughput.tx", "txpci", "MB/s", _MB),
    ),
}
PROCESS_GROUPS = {
    "u": tuple(column.heading for column in _UTILIZATION),
    "m": ("fb", "ccpm"),
}
_PROCESS_UNITS = {"fb": "MB", "ccpm": "MB"}


def parse_letters(option: str, text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Each letter once, in their own order."""
    known = tuple(known)
    unknown = [letter for letter in text if letter not in known]
    if unknown or not text:
        raise UsageError(
            f"{option} {text!r}: unknown {''.join(unknown)!r}.", f"Use one or more of {''.join(known)}."
        )
    return tuple(letter for letter in known if letter in text)


def list_columns(groups: Iterable[str]) -> tuple[Column, ...]:
    """Those of the chosen groups."""
    return tuple(column for group in groups for column in DEVICE_GROUPS[group])


def list_details(columns: Iterable[Column]) -> tuple[str, ...]:
    """What a source must be asked for besides the usual reading."""
    return tuple(column.detail for column in columns if column.detail)


# ---- Devices.


def build_device_heading(
    columns: Sequence[Column], moments: Sequence[str], *, is_csv: bool = False
) -> list[str]:
    """Two lines: names and units."""
    rows = ([column.heading for column in columns], [column.unit for column in columns])
    return [
        _list([f"#{word}", *cells]) if is_csv else _join(_begin(moments, number, word), map(_cell, cells))
        for number, (word, cells) in enumerate(zip(("gpu", "Idx"), rows, strict=True))
    ]


def build_device_row(
    observation: Observation,
    gpu: Device,
    before: Before | None,
    columns: Sequence[Column],
    moments: Sequence[str],
    *,
    is_csv: bool = False,
) -> str:
    """One line."""
    values = [_write(_read(column, gpu, before, observation.at_seconds)) for column in columns]
    if is_csv:
        return _list([gpu.label, *values])
    return _join(_begin_row(observation, gpu, moments), map(_cell, values))


def _read(column: Column, gpu: Device, before: Before | None, at_seconds: float) -> float | None:
    value = _read_now(column, gpu)
    if column.is_counter:
        value = _find_growth(column, value, before, at_seconds)
    return None if value is None else value / column.per


def _find_growth(
    column: Column, value: float | None, before: Before | None, at_seconds: float
) -> float | None:
    """Of a counter of seconds: the share of the time, or whether it has grown."""
    known = None if before is None else _read_now(column, before.gpu)
    if before is None or value is None or known is None or at_seconds <= before.at_seconds:
        return None
    grown = max(0.0, value - known)
    return float(grown > 0) if column.unit == "bool" else min(1.0, grown / (at_seconds - before.at_seconds))


def _read_now(column: Column, gpu: Device) -> float | None:
    if column.read is not None:
        return column.read(gpu)
    value = gpu.details.get(column.detail)
    return None if value is None or isinstance(value, str) else value


# ---- Processes.


def build_process_heading(groups: Sequence[str], moments: Sequence[str]) -> list[str]:
    """Two lines: names and units."""
    names = [name for group in groups for name in PROCESS_GROUPS[group]]
    rows = (
        ("gpu", ["pid".rjust(11), _cell("type"), *map(_cell, names)], "command"),
        (
            "Idx",
            ["#".rjust(11), _cell("C/G"), *(_cell(_PROCESS_UNITS.get(name, "%")) for name in names)],
            "name",
        ),
    )
    return [
        _join(_begin(moments, number, word), [*cells, f"   {last}"])
        for number, (word, cells, last) in enumerate(rows)
    ]


def build_process_rows(
    observation: Observation, gpu: Device, groups: Sequence[str], moments: Sequence[str]
) -> list[str]:
    """A line per process; one without any for a device that has none, or does not list them."""
    begin = _begin_row(observation, gpu, moments)
    processes: Sequence[DeviceProcess | None] = gpu.processes or (None,)
    return [" ".join((begin, *_list_process_cells(process, groups))) for process in processes]


def _list_process_cells(process: DeviceProcess | None, groups: Sequence[str]) -> list[str]:
    pid = kind = name = _UNKNOWN
    values: dict[str, float | None] = {}
    if process is not None:
        command = process.holder.command
        pid, kind = str(process.pid), _KINDS.get(process.kind, process.kind)
        name = neutralize(command[0].rpartition("/")[2]) if command else _UNKNOWN
        used = process.used_bytes
        values = {"sm": process.utilization_percent, "fb": None if used is None else used / _MIB}
    cells = [_cell(_write(values.get(column))) for group in groups for column in PROCESS_GROUPS[group]]
    return [pid.rjust(10), kind.rjust(5), *cells, f"   {name[:_NAME_LETTERS]:<{_NAME_LETTERS}}"]


# ---- Lines.


def _begin(moments: Sequence[str], number: int, word: str) -> str:
    """The first cells of a heading."""
    if not moments:
        return f"# {word}"
    return f"#{_space([MOMENTS[letter][number] for letter in moments])} {word}"


def _begin_row(observation: Observation, gpu: Device, moments: Sequence[str]) -> str:
    index = gpu.label
    if not moments:
        return index.rjust(5)
    written = [write_moment(observation.epoch_seconds, MOMENTS[letter][2]) for letter in moments]
    return f" {_space(written)}{index.rjust(4)}"


def _space(words: Sequence[str]) -> str:
    return "".join(word.ljust(11) for word in words)


def _join(first: str, cells: Iterable[str]) -> str:
    return " ".join((first, *cells, ""))


def _list(cells: Iterable[str]) -> str:
    return ", ".join(cells)


def _cell(text: str) -> str:
    return text.rjust(_CELL)


def _write(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.0f}"

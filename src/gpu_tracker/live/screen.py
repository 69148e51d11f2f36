"""An observation as a small table: the machine, its GPUs, and their processes. Pure."""

from __future__ import annotations

from ..analysis.rates import busy_cores_by_pid, busy_percent
from ..core.observation import list_gpus, list_notes
from ..core.text import BOLD, DIM, PLAIN, YELLOW, Span, choose_style, count_cells, neutralize, pad, shorten
from ..core.units import humanize_bytes
from ..core.values import NamedTuple
from ..core.vendors import NO_GPU
from .lines import UNKNOWN, format_mib, format_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..core.observation import Device, DeviceProcess, Observation

_LONGEST_NAME_CELLS = 30
_LONGEST_USER_CELLS = 12


class Column(NamedTuple):
    """A heading, and whether its cells are numbers."""

    heading: str
    is_number: bool = True


_GPU_COLUMNS = (
    Column("GPU"),
    Column("MEMORY / MiB"),
    Column("MEM"),
    Column("BUSY"),
    Column("TEMP"),
    Column("POWER"),
    Column("NAME", is_number=False),
)
_PROCESS_COLUMNS = (
    Column("GPU"),
    Column("PID"),
    Column("USER", is_number=False),
    Column("MiB"),
    Column("SM"),
    Column("CPU"),
    Column("RAM"),
    Column("COMMAND", is_number=False),
)


def build_screen(
    before: Observation | None, now: Observation, title: str, rows: int | None = None
) -> list[tuple[Span, ...]]:
    """The lines from top to bottom; at most `rows`, the last one then counts the rest."""
    gpus = list_gpus(now)
    lines: list[tuple[Span, ...]] = [(Span(title, BOLD),), _machine_line(before, now)]
    if gpus:
        lines += [(), *_table(_GPU_COLUMNS, [_gpu_cells(observed) for observed in gpus])]
    else:
        lines += [(), (Span(NO_GPU, DIM),)]
    lines += [(Span(neutralize(f"note: {text}"), YELLOW),) for text in list_notes(now)]
    cores = busy_cores_by_pid(before, now)
    processes = [
        _process_cells(observed, process, cores) for observed in gpus for process in observed.processes
    ]
    if processes:
        lines += [(), *_table(_PROCESS_COLUMNS, processes)]
    return lines if rows is None else _fit(lines, rows)


def _fit(lines: list[tuple[Span, ...]], rows: int) -> list[tuple[Span, ...]]:
    if len(lines) <= rows:
        return lines
    left_out = len(lines) - max(0, rows - 1)
    return [*lines[: max(0, rows - 1)], (Span(f"({left_out} more lines)", DIM),)][:rows]


def _machine_line(before: Observation | None, now: Observation) -> tuple[Span, ...]:
    machine = now.machine
    used, total = machine.ram_used_bytes, machine.ram_total_bytes
    cpu_percent = busy_percent(before, now)
    ram_percent = None if used is None or not total else 100 * used / total
    return (
        Span("CPU "),
        Span(_percent(cpu_percent), choose_style(cpu_percent)),
        Span(f" of {machine.cores} cores   RAM "),
        Span(_percent(ram_percent), choose_style(ram_percent)),
        Span(f" of {_size(total)}, {_size(used)} used"),
    )


def _gpu_cells(observed: Device) -> list[Span]:
    gpu, reading = observed.gpu, observed.reading
    used, total = reading.used_bytes, gpu.memory_bytes
    memory_percent = None if used is None or not total else 100 * used / total
    return [
        Span(str(gpu.ordinal), BOLD),
        Span(f"{format_mib(used)} / {format_mib(total)}"),
        Span(_percent(memory_percent), choose_style(memory_percent)),
        Span(_percent(reading.utilization_percent), choose_style(reading.utilization_percent)),
        Span(format_number(reading.temperature_celsius, " C")),
        Span(format_number(reading.power_watts, " W")),
        Span(shorten(gpu.name, _LONGEST_NAME_CELLS), PLAIN if gpu.is_visible else DIM),
    ]


def _process_cells(observed: Device, process: DeviceProcess, cores: Mapping[int, float]) -> list[Span]:
    reading, holder = process.reading, process.holder
    busy = cores.get(holder.pid)
    return [
        Span(str(observed.gpu.ordinal), BOLD),
        Span(str(reading.pid)),
        Span(shorten(holder.user or UNKNOWN, _LONGEST_USER_CELLS)),
        Span(format_mib(reading.used_bytes)),
        Span(_percent(reading.utilization_percent), choose_style(reading.utilization_percent)),
        Span(_percent(None if busy is None else 100 * busy)),
        Span(_size(holder.rss_bytes)),
        Span(neutralize(holder.command_line or UNKNOWN)),
    ]


def _table(columns: Sequence[Column], rows: list[list[Span]]) -> list[tuple[Span, ...]]:
    """Columns as wide as their widest cell, except for the last one."""
    heading = [Span(column.heading, DIM) for column in columns]
    widths = [max(count_cells(row[index].text) for row in (heading, *rows)) for index in range(len(columns))]
    return [(*_pad(row[:-1], columns, widths), row[-1]) for row in (heading, *rows)]


def _pad(spans: list[Span], columns: Sequence[Column], widths: list[int]) -> list[Span]:
    return [
        Span(pad(span.text, width, is_number=column.is_number) + "  ", span.style)
        for span, column, width in zip(spans, columns, widths, strict=False)
    ]


def _size(count: int | None) -> str:
    return UNKNOWN if count is None else humanize_bytes(count)


def _percent(value: float | None) -> str:
    return format_number(value, " %")

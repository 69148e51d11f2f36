"""An observation as tables: the machine, its GPUs, and below them their processes, which scroll. Pure."""

from __future__ import annotations

from ..analysis.rates import busy_cores_by_pid, busy_percent
from ..core.observation import list_gpus, list_notes
from ..core.text import (
    BOLD,
    CYAN,
    DIM,
    PLAIN,
    RED,
    REVERSE,
    YELLOW,
    Span,
    choose_style,
    count_cells,
    count_of,
    neutralize,
    pad,
    shorten,
    wrap,
)
from ..core.units import count_cores, humanize_bytes
from ..core.values import Generic, NamedTuple, Value
from ..core.vendors import NO_GPU, name_vendor
from .choices import DECODER, ENCODER, FAN, HELP, POWER_LIMITS, Choices, Extent
from .keys import draw_help, draw_keys
from .lines import UNKNOWN, format_mib, format_number
from .selection import CPU, GPU, MEMORY, PID, RAM, SM, USER, list_rows, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..core.observation import Device, Observation
    from .choices import Prompt
    from .selection import Row, Selection

    Line = tuple[Span, ...]

_UNREAD = "No GPU could be read; `gpu-tracker doctor` shows why."
_GAP = "  "
_LONGEST_USER_CELLS = 12
_FEWEST_ROWS_WITH_KEYS = 6
# An empty line is left out before fewer processes are visible.
_FEWEST_PROCESSES = 3
# If so many are visible, or all of them, they are set apart by an empty line.
_MANY_PROCESSES = 10
# A line about the processes, and the heading of their table.
_HEADING_ROWS = 2
_NARROWEST_WORDS_CELLS = 10
_ANY_CELLS = 10**6
_PROMPTS = {GPU: "Only these GPUs", USER: "Only these users", PID: "Only these PIDs"}
_LEAVING = Span("  empty: all, Esc: cancel", DIM)


class Size(NamedTuple):
    """How much room there is."""

    columns: int
    rows: int | None = None
    """None: as many as there are lines, for a file."""


class Column(NamedTuple, Generic[Value]):
    """A column of a table."""

    heading: str
    read: Callable[[Value], Span]
    is_number: bool = True
    sort: str = ""
    """What rows are sorted by if it is this column."""
    rank: int = 0
    """Where there is no room for all columns, that with the highest rank is left out first; never if it is 0."""


class _Parts(NamedTuple):
    """Everything above the processes, and how many of them there is room for."""

    lines: list[Line]
    n_visible: int


def build_screen(
    before: Observation | None, now: Observation, title: str, choices: Choices, size: Size
) -> list[Line]:
    """The lines from top to bottom, at most as many as there are rows."""
    devices = select(now, choices.selection)
    rows = list_rows(devices, choices.selection, busy_cores_by_pid(before, now))
    parts = _build_parts(before, now, title, choices, size)
    if size.rows is None:
        processes = _draw_processes(now, rows, choices, size, len(rows))
        return [*parts.lines, *([()] if processes else []), *processes]
    room = size.rows - _count_key_rows(size.rows)
    if choices.has_help:
        body = [*_draw_head(before, now, title, choices), *draw_help(HELP)]
    else:
        body = [*parts.lines, *_draw_processes(now, rows, choices, size, parts.n_visible)]
    lines = [*body[:room], *[()] * (room - len(body))]
    return [*lines, *[_draw_foot(now, choices, size)][: size.rows - room]]


def measure(now: Observation, choices: Choices, size: Size) -> Extent:
    """How much there is to scroll."""
    n_processes = _count(select(now, choices.selection)) if choices.shown.has_processes else 0
    return Extent(n_processes, _build_parts(None, now, "", choices, size).n_visible)


def _count(devices: Sequence[Device]) -> int:
    return sum(len(observed.processes) for observed in devices)


def _count_key_rows(rows: int) -> int:
    return 1 if rows >= _FEWEST_ROWS_WITH_KEYS else 0


# ---- Above the processes.


def _build_parts(
    before: Observation | None, now: Observation, title: str, choices: Choices, size: Size
) -> _Parts:
    head = _draw_head(before, now, title, choices)
    devices = select(now, choices.selection)
    gpus = _draw_gpus(now, devices, choices, size)
    notes = [
        (Span(line, YELLOW),)
        for text in list_notes(now)
        for line in wrap(neutralize(f"note: {text}"), size.columns, 2)
    ]
    n_processes = _count(devices) if choices.shown.has_processes else 0
    if size.rows is None:
        return _Parts([*head, (), *gpus, *notes], n_processes)
    room = size.rows - _count_key_rows(size.rows) - len(head)
    notes = notes[: max(1, room // 4)]
    needed = _HEADING_ROWS + min(n_processes, _FEWEST_PROCESSES) if n_processes else 0
    gpus = _fit_gpus(gpus, room - len(notes), needed)
    left = room - len(gpus) - len(notes) - _HEADING_ROWS
    gap: list[Line] = [()] if left > min(n_processes, _MANY_PROCESSES) else []
    return _Parts([*head, *gpus, *notes, *gap], max(0, left - len(gap)))


def _fit_gpus(lines: list[Line], room: int, needed: int) -> list[Line]:
    """All of them, below an empty line if that leaves room for what else is needed.

    On a low screen they have at least two thirds of it, and those for which that is not enough are counted.
    """
    if len(lines) < room - needed:
        return [(), *lines]
    most = room - min(needed, room // 3)
    if len(lines) <= most:
        return lines
    n_shown = max(1, most - 1)
    left_out = count_of(len(lines) - n_shown, "more GPU")
    return [*lines[:n_shown], (Span(f"({left_out}; g chooses which to show)", DIM),)]


def _draw_head(before: Observation | None, now: Observation, title: str, choices: Choices) -> list[Line]:
    lines: list[Line] = [(Span(title, BOLD),)] if choices.shown.has_title else []
    return [*lines, _draw_machine(before, now)]


def _draw_machine(before: Observation | None, now: Observation) -> Line:
    machine = now.machine
    used, total = machine.ram_used_bytes, machine.ram_total_bytes
    cpu_percent = busy_percent(before, now)
    ram_percent = None if used is None or not total else 100 * used / total
    return (
        Span("CPU "),
        Span(_percent(cpu_percent), choose_style(cpu_percent)),
        Span(f" of {count_cores(machine.cores)}   RAM "),
        Span(_percent(ram_percent), choose_style(ram_percent)),
        Span(f" of {_size(total)}, {_size(used)} used"),
    )


def _draw_gpus(now: Observation, devices: Sequence[Device], choices: Choices, size: Size) -> list[Line]:
    if devices:
        shown = choices.shown
        columns = (
            *_GPU_COLUMNS,
            *(_FAN_COLUMNS if shown.has_fan else ()),
            *(_CODEC_COLUMNS if shown.has_codec else ()),
        )
        whole = (*columns, _make_name_column(shown.name_cells, has_vendor=True))
        lines = _draw_table(whole, devices, _ANY_CELLS)
        if max(sum(count_cells(span.text) for span in line) for line in lines) <= size.columns:
            return lines
        short = (*columns, _make_name_column(shown.name_cells, has_vendor=False))
        return _draw_table(short, devices, size.columns)
    known = [observed.label for observed in list_gpus(now)]
    if known:
        wanted = ", ".join(choices.selection.gpus)
        return [(Span(neutralize(f"There is no GPU {wanted}; there are {', '.join(known)}."), YELLOW),)]
    # A driver that does not answer may have some.
    return [(Span(_UNREAD if list_notes(now) else NO_GPU, DIM),)]


def _make_name_column(name_cells: int, *, has_vendor: bool) -> Column[Device]:
    def read(observed: Device) -> Span:
        name = observed.name
        if not has_vendor:
            name = name.removeprefix(f"{name_vendor(observed.vendor)} ")
        return Span(shorten(name, name_cells), PLAIN if observed.gpu.is_visible else DIM)

    return Column("NAME", read, is_number=False, rank=5)


def _read_gpu_memory(observed: Device) -> float | None:
    used, total = observed.reading.used_bytes, observed.gpu.memory_bytes
    return None if used is None or not total else 100 * used / total


def _show_power(observed: Device) -> Span:
    """The draw and its limit, in one unit."""
    watts = observed.reading.power_watts
    limits = (*(_read_detail(observed, name) for name in POWER_LIMITS), observed.gpu.power_limit_watts)
    limit = next((one for one in limits if one is not None), None)
    if limit is None:
        return Span(format_number(watts, " W"))
    return Span(f"{format_number(watts)} / {format_number(limit, ' W')}")


def _show_limits(observed: Device) -> Span:
    """Why its clocks are lower than they could be. A power limit is often intended, heat never is."""
    limits = observed.reading.limits
    if not limits:
        return Span(UNKNOWN if limits is None else "no", PLAIN if limits is None else DIM)
    return Span(", ".join(limits), YELLOW if limits == ("power",) else RED)


def _show_load(percent: float | None) -> Span:
    return Span(_percent(percent), choose_style(percent))


def _read_detail(observed: Device, name: str) -> float | None:
    value = observed.details.get(name)
    return value if isinstance(value, (int, float)) else None


def _show_detail(name: str) -> Callable[[Device], Span]:
    return lambda observed: Span(_percent(_read_detail(observed, name)))


_GPU_COLUMNS: tuple[Column[Device], ...] = (
    Column("GPU", lambda observed: Span(observed.label, BOLD)),
    Column(
        "MEMORY / MiB",
        lambda observed: Span(
            f"{format_mib(observed.reading.used_bytes)} / {format_mib(observed.gpu.memory_bytes)}"
        ),
    ),
    Column("MEM", lambda observed: _show_load(_read_gpu_memory(observed)), rank=4),
    Column("BUSY", lambda observed: _show_load(observed.reading.utilization_percent)),
    Column("TEMP", lambda observed: Span(format_number(observed.reading.temperature_celsius, " C")), rank=3),
    Column("POWER", _show_power, rank=2),
    Column("THROTTLED", _show_limits, is_number=False, rank=1),
)
_FAN_COLUMNS = (Column("FAN", _show_detail(FAN)),)
_CODEC_COLUMNS = (
    Column("ENC", _show_detail(ENCODER)),
    Column("DEC", _show_detail(DECODER)),
)


# ---- Processes.


def _draw_processes(
    now: Observation, rows: list[Row], choices: Choices, size: Size, n_visible: int
) -> list[Line]:
    """A line about them, the heading, and those that are visible."""
    selection, extent = choices.selection, Extent(len(rows), n_visible)
    if not choices.shown.has_processes or (not rows and selection.is_everything):
        return []
    first = min(choices.first, extent.last)
    lines: list[Line] = []
    if size.rows is not None or not selection.is_everything:
        lines.append((Span(_describe(first, extent, _count(list_gpus(now)), selection), BOLD),))
    if rows and n_visible:
        # All of them, so that columns stay in their places when one scrolls.
        heading, *table = _draw_table(_choose_columns(choices), rows, size.columns, selection.sort)
        lines += [heading, *table[first : first + n_visible]]
    return lines


def _describe(first: int, extent: Extent, n_all: int, selection: Selection) -> str:
    """How many there are, which of them are visible, and what is left out."""
    count, last = extent.n_processes, min(extent.n_processes, first + extent.n_visible)
    text = f"Processes {first + 1}-{last} of {count}" if first < last < count or first else ""
    if selection.is_everything:
        return text or count_of(count, "process")
    named = ((GPU, selection.gpus), (USER, selection.users), (PID, tuple(map(str, selection.pids))))
    filters = ", ".join(f"{kind} {' '.join(words)}" for kind, words in named if words)
    text = f"{text}, {n_all} in all" if text else f"{count} of {count_of(n_all, 'process')}"
    return neutralize(f"{text}: {filters}")


def _choose_columns(choices: Choices) -> tuple[Column[Row], ...]:
    shown = choices.shown
    left_out = {
        heading for heading, is_shown in (("PID", shown.has_pid), ("USER", shown.has_user)) if not is_shown
    }
    columns = tuple(column for column in _PROCESS_COLUMNS if column.heading not in left_out)
    if not shown.has_command:
        return columns
    read = _show_whole_command if shown.has_directory else _show_command
    return (*columns, Column("COMMAND", read, is_number=False))


def _show_command(row: Row) -> Span:
    """Without the directory of its program, which is long and tells little."""
    command = row.process.holder.command
    if not command or not command[0].startswith(("/", ".")) or " " in command[0]:
        return _show_whole_command(row)  # it may be a title that the process has given itself
    return Span(neutralize(" ".join((command[0].rpartition("/")[2], *command[1:]))))


def _show_whole_command(row: Row) -> Span:
    return Span(neutralize(row.process.command or UNKNOWN))


_PROCESS_COLUMNS: tuple[Column[Row], ...] = (
    Column("GPU", lambda row: Span(row.gpu.label, BOLD), sort=GPU),
    Column("PID", lambda row: Span(str(row.process.pid)), sort=PID),
    Column(
        "USER",
        lambda row: Span(shorten(row.process.user or UNKNOWN, _LONGEST_USER_CELLS)),
        is_number=False,
        sort=USER,
    ),
    Column("MiB", lambda row: Span(format_mib(row.process.used_bytes)), sort=MEMORY),
    Column("SM", lambda row: _show_load(row.process.utilization_percent), sort=SM),
    Column(
        "CPU", lambda row: Span(_percent(None if row.cores is None else 100 * row.cores)), sort=CPU, rank=2
    ),
    Column("RAM", lambda row: Span(_size(row.process.holder.rss_bytes)), sort=RAM, rank=3),
)


# ---- The last line.


def _draw_foot(now: Observation, choices: Choices, size: Size) -> Line:
    if choices.prompt is not None:
        return _draw_prompt(now, choices.prompt, size.columns)
    selection, extent = choices.selection, measure(now, choices, size)
    order = f"sort by {selection.sort}{', reversed' if selection.is_reversed else ''}"
    keys = [("q", "quit"), ("h", "help"), ("s", order)]
    if extent.last:
        keys.append(("up down", "scroll"))
    if not selection.is_everything:
        keys.append(("a", "all"))
    return draw_keys([*keys, ("g", "GPU"), ("u", "user"), ("p", "PID"), ("r", "reverse")], size.columns)


def _draw_prompt(now: Observation, prompt: Prompt, columns: int) -> Line:
    """What could be typed, what was typed so far (of a long text its end), and how to leave if there is room for it."""
    devices = list_gpus(now)
    there = {
        GPU: [observed.label for observed in devices],
        USER: sorted({one.user for observed in devices for one in observed.processes if one.user}),
    }.get(prompt.kind, [])
    known = f" ({shorten(', '.join(there), columns // 2)})" if there else ""
    spans = (
        Span(_PROMPTS[prompt.kind], BOLD),
        Span(f"{known}: ", DIM),
        Span(prompt.text[-(columns // 4) :]),
        Span(" ", REVERSE),
    )
    is_wide = sum(count_cells(span.text) for span in (*spans, _LEAVING)) <= columns
    return (*spans, _LEAVING) if is_wide else spans


# ---- Tables.


def _draw_table(
    columns: Sequence[Column[Value]], rows: Sequence[Value], cells: int, sort: str = ""
) -> list[Line]:
    """Columns as wide as their widest cell; of words in the last one the end may be cut."""
    texts = [
        [Span(column.heading, CYAN if column.sort and column.sort == sort else DIM), *map(column.read, rows)]
        for column in columns
    ]
    widths = [max(count_cells(span.text) for span in column) for column in texts]
    kept = _fit_columns(columns, widths, cells)
    padded = [_pad(texts[place], columns[place], widths[place], is_last=place == kept[-1]) for place in kept]
    return list(zip(*padded, strict=True))


def _fit_columns(columns: Sequence[Column[Value]], widths: Sequence[int], cells: int) -> list[int]:
    """The places of those for which there is room: nothing else is cut while another column can be left out."""
    needed = list(widths)
    if not columns[-1].is_number:
        needed[-1] = min(needed[-1], _NARROWEST_WORDS_CELLS)
    kept = list(range(len(columns)))
    while sum(needed[place] + len(_GAP) for place in kept) - len(_GAP) > cells:
        place = max(kept, key=lambda one: columns[one].rank)
        if not columns[place].rank:
            break
        kept.remove(place)
    return kept


def _pad(texts: Iterable[Span], column: Column[Value], width: int, *, is_last: bool) -> list[Span]:
    if is_last and not column.is_number:
        return list(texts)
    gap = "" if is_last else _GAP
    return [Span(pad(span.text, width, is_number=column.is_number) + gap, span.style) for span in texts]


def _size(count: int | None) -> str:
    return UNKNOWN if count is None else humanize_bytes(count)


def _percent(value: float | None) -> str:
    return format_number(value, " %")

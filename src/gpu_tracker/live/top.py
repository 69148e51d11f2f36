"""A run at one moment on a full screen: its graphs, what it is doing, its processes, what was found and what is to come. Pure."""

from __future__ import annotations

from array import array
from math import ceil, inf, isnan, nan

from ..analysis.findings.finding import NOTE, SERIOUS
from ..analysis.series import bin_column, cut_time, make_bins
from ..core.blocks import draw_area, draw_line, draw_trend
from ..core.text import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    PLAIN,
    RED,
    REVERSE,
    YELLOW,
    Span,
    choose_style,
    clip,
    count_cells,
    count_of,
    pad,
    wrap,
)
from ..core.units import (
    BYTES,
    PERCENT,
    approximate_seconds,
    format_cores,
    humanize_bytes,
    humanize_limit,
    humanize_number,
    humanize_part,
    humanize_seconds,
    write_stopwatch,
)
from ..core.values import NamedTuple
from .controls import HELP, SORTS
from .keys import draw_help, draw_keys
from .lines import UNKNOWN
from .scene import CORES, sort_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.columns import Column
    from .controls import Controls
    from .scene import OpenRegion, Process, Scene, Series

    Line = tuple[Span, ...]

FEWEST_COLUMNS, FEWEST_ROWS = 40, 10
_NARROWEST_GRAPH_CELLS = 38
_MOST_ACROSS = 4
_HIGHEST_GRAPH_ROWS = 12
_GAP = "  "
_SHORTEST_SPAN_SECONDS = 60.0
# The next round number above it must be finite.
_LARGEST_DRAWN = 1e307
# A graph is as high as its highest value, unless that is near what there is.
_NEAR_SHARE = 0.25
_NICE = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_AXIS_CELLS = 7
_WIDEST_NAME_CELLS = 24
_SPARK_CELLS = 16
_FEWEST_CELLS_WITH_TIME = 46


class Look(NamedTuple):
    """What a terminal can show."""

    columns: int
    rows: int
    has_unicode: bool = True


class Note(NamedTuple):
    """What the user should know."""

    kind: str
    text: str
    style: str


def build_frame(scene: Scene, controls: Controls, look: Look, n_runs: int = 1) -> list[Line]:
    """As many lines as there are rows, or fewer."""
    if look.columns < FEWEST_COLUMNS or look.rows < FEWEST_ROWS:
        return [(Span(line),) for line in _ask_for_room(look)]
    head, foot = _head(scene, controls, look), _foot(scene, controls, look, n_runs)
    if controls.has_help:
        body = draw_help(HELP)
    elif not scene.series:
        waiting = "There are no samples." if scene.status else "Waiting for the first sample..."
        body = [(), (Span(scene.problem or waiting, DIM),)]
    else:
        body = _body(scene, controls, look)
    height = look.rows - 2
    return [head, *body[:height], *[()] * (height - len(body)), foot]


def _ask_for_room(look: Look) -> list[str]:
    """As many words as there is room for."""
    long = wrap(f"This needs at least {FEWEST_COLUMNS} columns and {FEWEST_ROWS} rows.", look.columns)
    short = wrap(f"Needs {FEWEST_COLUMNS}x{FEWEST_ROWS}", look.columns)
    return long if len(long) <= look.rows else short[: look.rows]


# ---- The first and the last line.


def _head(scene: Scene, controls: Controls, look: Look) -> Line:
    state, style = _tell_state(scene, controls)
    right = f" {scene.host} " if scene.host else ""
    clock = f" {write_stopwatch(scene.seconds)} "
    room = look.columns - count_cells(f" {state} {clock}{right}") - 2
    title = clip(f" {scene.title}", max(0, room))
    spaces = " " * max(0, look.columns - count_cells(title) - count_cells(f" {state} {clock}{right}"))
    return (
        Span(f" {state} ", style),
        Span(clock, BOLD),
        Span(title, BOLD),
        Span(spaces),
        Span(right, DIM),
    )


def _tell_state(scene: Scene, controls: Controls) -> tuple[str, str]:
    """In a word or two, and its style."""
    if scene.problem:
        return "LOST", f"{REVERSE};{RED}"
    if controls.is_paused:
        return "PAUSED", f"{REVERSE};{YELLOW}"
    if controls.speed and controls.moment is not None:
        return f"REPLAY x{controls.speed:g}", f"{REVERSE};{CYAN}"
    if scene.status:
        return scene.status.upper() if len(scene.status) < 12 else scene.status, f"{REVERSE};{DIM}"
    return "LIVE", f"{REVERSE};{GREEN}"


def _foot(scene: Scene, controls: Controls, look: Look, n_runs: int) -> Line:
    if scene.problem and scene.series:
        return (Span(clip(scene.problem, look.columns), RED),)
    keys = [("q", "quit"), ("?", "help"), ("space", "go on" if controls.is_paused else "pause")]
    keys += [("<- ->", "time"), ("+ -", _name_span(controls)), ("s", f"sort by {SORTS[controls.sort]}")]
    if n_runs > 1:
        keys.insert(2, ("n", f"run {controls.run + 1} of {n_runs}"))
    return draw_keys(keys, look.columns)


def _name_span(controls: Controls) -> str:
    seconds = controls.span_seconds
    return (
        "all" if seconds == inf else approximate_seconds(seconds).replace(" 00 min", "").replace(" 00 h", "")
    )


# ---- Between them.


def _body(scene: Scene, controls: Controls, look: Look) -> list[Line]:
    height = look.rows - 2
    notes = _list_notes(scene)
    n_notes = min(len(_wrap_notes(notes, look.columns)), max(2, height // 5))
    n_across = min(_MOST_ACROSS, len(scene.series), max(1, look.columns // _NARROWEST_GRAPH_CELLS))
    n_bands = ceil(len(scene.series) / n_across)
    room = height - n_notes - min(_count_list_rows(scene), max(4, height // 3))
    rows = min(_HIGHEST_GRAPH_ROWS, (room - 1) // n_bands - 1)
    graphs = _draw_graphs(scene, controls, look, n_across, rows)[: max(1, room)]
    lists = _draw_lists(scene, controls, look, height - n_notes - len(graphs))
    return [*graphs, *lists, *_fit_notes(notes, look.columns, height - len(graphs) - len(lists))]


def _list_notes(scene: Scene) -> list[Note]:
    """All forecasts together, then findings."""
    notes = []
    if scene.forecasts:
        is_bad = any(one.is_bad for one in scene.forecasts)
        sentence = "; ".join(one.sentence for one in scene.forecasts)
        notes.append(Note("Forecast", f"{sentence}.", RED if is_bad else PLAIN))
    styles = {SERIOUS: RED, NOTE: PLAIN}
    for finding in scene.findings:
        text = f"{finding.sentence} {finding.advice}".strip()
        notes.append(Note(finding.severity.capitalize(), text, styles.get(finding.severity, YELLOW)))
    return notes


def _fit_notes(notes: Sequence[Note], columns: int, rows: int) -> list[Line]:
    """Whole sentences if there is room for all of them, else one line each."""
    wrapped = _wrap_notes(notes, columns)
    if len(wrapped) <= rows:
        return wrapped
    cut = [_style_note(note, clip(f"{note.kind} {note.text}", columns), is_first=True) for note in notes]
    return cut[:rows]


def _wrap_notes(notes: Sequence[Note], columns: int) -> list[Line]:
    return [
        _style_note(note, line, is_first=not index)
        for note in notes
        for index, line in enumerate(wrap(f"{note.kind} {note.text}", columns, 2))
    ]


def _style_note(note: Note, line: str, *, is_first: bool) -> Line:
    """The first line begins with the kind."""
    if not is_first:
        return (Span(line, note.style),)
    style = ";".join(filter(None, (BOLD, note.style)))
    return Span(line[: len(note.kind)], style), Span(line[len(note.kind) :], note.style)


def _clip_line(line: Line, columns: int) -> Line:
    """Cut with an ellipsis where it is too wide."""
    spans, left = [], columns
    for span in line:
        text = clip(span.text, left)
        spans.append(Span(text, span.style))
        left -= count_cells(text)
        if text != span.text:
            break
    return tuple(spans)


# ---- Graphs.


def _draw_graphs(scene: Scene, controls: Controls, look: Look, n_across: int, rows: int) -> list[Line]:
    """Side by side; without room for rows, each is a line of text with a small picture."""
    span = min(controls.span_seconds, max(_SHORTEST_SPAN_SECONDS, scene.seconds))
    lines: list[Line] = []
    for first in range(0, len(scene.series), n_across):
        band = scene.series[first : first + n_across]
        widths = _share_out(look.columns, n_across)
        if len(band) < n_across:  # the last one has the rest of the line
            widths = [*widths[: len(band) - 1], sum(widths[len(band) - 1 :])]
        pictures = [
            _draw_series(series, scene.seconds, span, width - len(_GAP), rows, look)
            for series, width in zip(band, widths, strict=True)
        ]
        for row in zip(*pictures, strict=True):
            padded = [_pad_line(line, width) for line, width in zip(row, widths, strict=True)]
            lines.append(tuple(span for line in padded for span in line))
    if rows > 0:
        lines.append(_draw_axis(span, scene.seconds, look.columns - len(_GAP)))
    return lines


def _share_out(cells: int, parts: int) -> list[int]:
    return [cells * (index + 1) // parts - cells * index // parts for index in range(parts)]


def _draw_series(series: Series, now: float, span: float, width: int, rows: int, look: Look) -> list[Line]:
    title: Line = (Span(f"{series.label} ", BOLD), Span(series.now, _choose_style(series)))
    cells = width - _AXIS_CELLS if rows > 0 else width - count_cells(f"{series.label} {series.now} ")
    values, highs = _bin(series, now, span, max(1, cells))
    known = [value for value in highs if not isnan(value)]
    highest = max(known, default=0.0)
    top = _find_top(highest, series.capacity)
    if rows <= 0:
        picture = draw_line(values, top, has_unicode=look.has_unicode)
        return [_clip_line((*title, Span(f" {picture}", _choose_style(series) or GREEN)), width)]
    area = draw_area(values, top, rows, has_unicode=look.has_unicode)
    title += (Span(f"{_GAP}max {_format_most(highest, series) if known else UNKNOWN}", DIM),)
    labels = [_format_value(top, series), *[""] * (rows - 2), *(["0"] if rows > 1 else [])]
    stroke = "┤" if look.has_unicode else "|"
    body = [
        (
            Span(f"{pad(label, _AXIS_CELLS - 1, is_number=True)}{stroke}", DIM),
            Span(text, _choose_row_style(series, top * (rows - index) / rows)),
        )
        for index, (label, text) in enumerate(zip(labels, area, strict=True))
    ]
    return [_clip_line(title, width), *body]


def _bin(series: Series, now: float, span: float, cells: int) -> tuple[Column, Column]:
    """The mean and the highest value of each cell. Bins begin at multiples of their length, so that the picture moves by whole cells."""
    length = span / cells
    last = ceil(now / length - 1e-9) * length
    bins = make_bins(cut_time(last - cells * length, last, cells), series.start, series.end)
    binned = bin_column(bins, series.end, series.values, series.values, series.highs)
    return array("d", map(_to_drawable, binned.mean)), array("d", map(_to_drawable, binned.high))


def _to_drawable(value: float) -> float:
    """A gap for what no axis has room for, such as the rate of something that took no time."""
    return value if -_LARGEST_DRAWN < value < _LARGEST_DRAWN else nan


def _find_top(highest: float, capacity: float) -> float:
    """A round number above the highest value, or what there is if that is near."""
    if capacity and highest >= _NEAR_SHARE * capacity:
        return capacity
    if highest <= 0:
        return capacity or 1.0
    power = 10.0 ** _floor_log10(highest)
    return next(power * nice for nice in _NICE if power * nice >= highest * 0.999)


def _floor_log10(number: float) -> int:
    return int(f"{number:.3e}".partition("e")[2])


def _format_value(value: float, series: Series) -> str:
    if series.unit == BYTES:
        return (humanize_limit if value == series.capacity else humanize_bytes)(int(value)).replace(" ", "")
    if series.unit == PERCENT:
        return f"{value:.0f}%"
    return humanize_number(value)


def _format_most(value: float, series: Series) -> str:
    """In the unit of what there is."""
    if series.unit == BYTES and series.capacity:
        part, _, whole = humanize_part(value, int(series.capacity)).partition(" of ")
        return part if " " in part else f"{part} {whole.partition(' ')[2]}"
    if series.unit == CORES:
        return format_cores(100 * value)  # as many digits as that of now, which is not to look larger
    return _format_value(value, series)


def _choose_style(series: Series) -> str:
    """Memory by how much of it is in use; being busy is good."""
    value = series.values[-1] if series.values else 0.0
    return choose_style(100 * value / series.capacity) if series.unit == BYTES and series.capacity else PLAIN


def _choose_row_style(series: Series, value: float) -> str:
    if series.unit == BYTES and series.capacity:
        return choose_style(max(1.0, 99.9 * value / series.capacity))
    return CYAN if series.unit == CORES else GREEN


def _draw_axis(span: float, now: float, width: int) -> Line:
    begin = f"{approximate_seconds(span)} ago"
    end = f"at {write_stopwatch(now)}"
    spaces = " " * max(1, width - _AXIS_CELLS - len(begin) - len(end))
    return (Span(f"{' ' * _AXIS_CELLS}{begin}{spaces}{end}", DIM),)


# ---- Lists.


def _count_list_rows(scene: Scene) -> int:
    left = len(scene.regions) + bool(scene.regions) + len(scene.metrics) + bool(scene.metrics)
    return max(left, len(scene.largest) + 2 if scene.largest else 0)


def _draw_lists(scene: Scene, controls: Controls, look: Look, rows: int) -> list[Line]:
    """What the job is doing on the left, its processes on the right."""
    width = look.columns
    doing = _list_doing(scene, width // 2 - len(_GAP), rows, look) if scene.regions or scene.metrics else []
    if not scene.largest:
        return doing[:rows]
    room = width - width // 2 if doing else width
    processes = _list_processes(scene, controls, room, rows, look)
    if not doing:
        return processes[:rows]
    n_lines = min(rows, max(len(doing), len(processes)))
    pairs = zip(_fill(doing, n_lines), _fill(processes, n_lines), strict=True)
    return [(*_pad_line(one, width // 2), *other) for one, other in pairs]


def _fill(lines: Sequence[Line], count: int) -> list[Line]:
    return [*lines[:count], *[()] * (count - len(lines))]


def _pad_line(line: Line, width: int) -> Line:
    used = sum(count_cells(span.text) for span in line)
    return (*line, Span(" " * max(0, width - used)))


def _rule(title: str, width: int, look: Look) -> Line:
    stroke, title = "─" if look.has_unicode else "-", clip(title, width - 1)
    return Span(f"{title} ", BOLD), Span(stroke * max(0, width - count_cells(title) - 1), DIM)


def _list_doing(scene: Scene, width: int, rows: int, look: Look) -> list[Line]:
    lines: list[Line] = []
    n_metrics = len(scene.metrics) + bool(scene.metrics)
    if scene.regions:
        room = max(2, rows - min(n_metrics, max(2, rows // 2)))
        lines.append(_rule("Regions open now", width, look))
        lines += [_draw_region(region, width) for region in scene.regions[: room - 1]]
    if scene.metrics and rows - len(lines) > 1:
        lines.append(_rule("Metrics", width, look))
        name_cells = min(_WIDEST_NAME_CELLS, width // 2, max(count_cells(one.name) for one in scene.metrics))
        for metric in scene.metrics[: rows - len(lines)]:
            lines.append(_draw_metric(metric.name, metric.values, name_cells, width, look))
    return lines


def _draw_region(region: OpenRegion, width: int) -> Line:
    seconds = humanize_seconds(region.seconds)
    name = clip(f"{'  ' * region.depth}{region.name}", max(1, width - len(seconds) - 1))
    return Span(pad(name, width - len(seconds))), Span(seconds, DIM)


def _draw_metric(name: str, values: Sequence[float], name_cells: int, width: int, look: Look) -> Line:
    number = humanize_number(values[-1])
    text = f"{pad(clip(name, name_cells), name_cells)} {number.rjust(9)} "
    finite = [value for value in values if value - value == 0]
    cells = min(_SPARK_CELLS, width - count_cells(text))
    if cells < 4 or not finite:
        return (Span(text, RED if not finite else PLAIN),)
    picture = draw_trend(values[-cells:], min(finite), max(finite), has_unicode=look.has_unicode)
    return Span(text), Span(picture, CYAN)


def _list_processes(scene: Scene, controls: Controls, width: int, rows: int, look: Look) -> list[Line]:
    by = SORTS[controls.sort]
    processes = "1 process" if scene.processes == 1 else f"{scene.processes} processes"
    title = f"{processes}, {count_of(scene.threads, 'thread')}"
    has_time = width >= _FEWEST_CELLS_WITH_TIME
    heading = _lay_out_process("PID", "cores", "peak RAM", "CPU time" if has_time else None, "name")
    lines: list[Line] = [_rule(title, width, look), (Span(clip(heading, width), DIM),)]
    lines += [
        _draw_process(process, width, has_time=has_time) for process in sort_processes(scene.largest, by)
    ]
    return lines[:rows]


def _draw_process(process: Process, width: int, *, has_time: bool) -> Line:
    cores = "-" if process.cores is None else format_cores(100 * process.cores)
    ram, used = humanize_bytes(process.peak_ram_bytes), _write_time(process.cpu_seconds) if has_time else None
    return (Span(clip(_lay_out_process(str(process.pid), cores, ram, used, process.name), width)),)


def _lay_out_process(pid: str, cores: str, ram: str, used: str | None, name: str) -> str:
    time = "" if used is None else f" {used:>10}"
    return f"{pid:>7} {cores:>5} {ram:>8}{time}  {name}"


def _write_time(seconds: float) -> str:
    return humanize_seconds(seconds) if seconds < 60 else approximate_seconds(seconds)

"""Documents in the output of a notebook's cell: HTML that stays what it is where scripts and styles are removed. Pure.

Charts are an SVG inside an `<img>`: the only picture that is shown in an untrusted notebook too, and needs nothing but a browser.
"""

from __future__ import annotations

from base64 import b64encode
from html import escape
from math import isnan

from ..core.text import align, clip, neutralize, shorten, shorten_middle
from ..core.units import (
    BYTES,
    CELSIUS,
    PERCENT,
    WATTS,
    count_cores,
    format_cores,
    humanize,
    humanize_bytes,
    humanize_seconds,
)
from .charts import find_length, list_charts
from .html import fragments
from .region_tables import show_last
from .report import describe_title
from .svg import COLOURS, GREY, write_text
from .usage_lines import list_held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..analysis.cells import CellUse
    from ..analysis.compare import Comparison
    from ..core.observation import Device
    from .build import Report
    from .charts import Chart, Line

_WIDTH, _LEFT, _TOP, _ROW, _HEIGHT, _BOTTOM = 640, 190, 26, 40, 32, 16
_SHOWN = ("cpu", "ram", "gpu_busy", "gpu_ram", "metrics")
_OF_ONE_LINE = ("cpu", "ram")
_MOST_METRICS, _MOST_LINES = 3, 8
# Together they keep the picture below 10 kB, which is sent once a second.
_MOST_POINTS, _FEWEST_BINS, _MOST_BINS = 600, 24, 80
_HEADING = ("cell", "code", "RAM", "peak RAM", "GPU RAM", "peak GPU RAM", "GPU busy", "time", "CPU time")
_TITLE_CELLS, _NAME_CELLS, _CAPTION_CELLS, _FINDING_CELLS, _CODE_CELLS = (
    66,
    26,
    32,
    104,
    60,
)  # bold letters are wider


def show_report(report: Report) -> str:
    """The picture, and the text to be opened below it."""
    return (
        f"{show_picture(report)}<details><summary>report</summary><pre>{escape(str(report))}</pre></details>"
    )


def show_text(text: str) -> str:
    """In the place of a picture."""
    return f"<pre>{escape(text)}</pre>"


def show_picture(report: Report) -> str:
    """What was used over time, in one `<img>`."""
    picture = b64encode(draw_panel(report).encode()).decode()
    return f'<img alt="{fragments.text(describe_line(report))}" src="data:image/svg+xml;base64,{picture}"/>'


def describe_line(report: Report) -> str:
    """The run in one line."""
    summary = report.summary
    parts = [f"{neutralize(describe_title(report))}, {humanize_seconds(summary.seconds)}"]
    if summary.cpu.combined.mean_percent is not None:
        cores = format_cores(summary.cpu.combined.mean_percent)
        parts.append(f"CPU {cores} of {count_cores(summary.n_expected_cores)}")
    parts.append(f"RAM peak {humanize_bytes(summary.ram.combined.total_bytes)}")
    if summary.gpu_bytes.combined is not None:
        held = ", ".join(list_held(summary.gpus, summary.seconds))
        peak = humanize_bytes(summary.gpu_bytes.combined)
        parts.append(f"GPU memory peak {peak} ({held})" if held else f"GPU memory peak {peak}")
    return "; ".join(parts)


def show_comparison(comparison: Comparison) -> str:
    """What changed in words, then all figures side by side."""
    from .html.several import tabulate_comparison  # with everything that a page needs

    return "".join(tabulate_comparison(comparison))


def show_devices(devices: Sequence[Device]) -> str:
    """One row per GPU."""
    if not devices:
        return "<p>no GPU found (<code>gpu-tracker doctor</code> shows where it looked)</p>"
    heading = ("GPU", "name", "memory used", "of", "busy", "power", "temperature", "processes")
    return fragments.table_of_known(heading, [_list_device(device) for device in devices])


def _list_device(device: Device) -> list[str]:
    return [
        str(device.index),
        device.name,
        humanize(device.memory_used_bytes, BYTES),
        humanize(device.memory_total_bytes, BYTES),
        humanize(device.utilization_percent, PERCENT),
        _add_unit(device.power_watts, WATTS, "W"),
        _add_unit(device.temperature_celsius, CELSIUS, "°C"),
        str(len(device.processes)),
    ]


def _add_unit(value: float | None, unit: str, word: str) -> str:
    return "-" if value is None else f"{humanize(value, unit)} {word}"


# ---- Cells.


def describe_cell(cell: CellUse) -> str:
    """In one line."""
    return f"cell {cell.number}: {describe_use(cell)}"


def describe_use(cell: CellUse) -> str:
    """What it holds more than before, the peak, the time."""
    parts = [f"RAM {_sign(cell.ram_bytes)}, peak {humanize_bytes(cell.peak_ram_bytes)}"]
    if cell.peak_gpu_bytes is not None:
        parts.append(f"GPU RAM {_sign(cell.gpu_bytes)}, peak {humanize_bytes(cell.peak_gpu_bytes)}")
    parts.append(f"{humanize_seconds(cell.seconds)}, CPU {humanize_seconds(cell.cpu_seconds)}")
    return f"{'; '.join(parts)}{_name_failure(cell)}"


def list_cells(cells: Sequence[CellUse]) -> str:
    """A table for a terminal."""
    heading, rows = fragments.keep_known(_HEADING, [_list_cell(cell) for cell in cells])
    return "\n".join(align([heading, *rows], words=frozenset({0, 1})))


def show_cells(cells: Sequence[CellUse]) -> str:
    """The same in HTML."""
    return fragments.table_of_known(_HEADING, [_list_cell(cell) for cell in cells])


def _list_cell(cell: CellUse) -> tuple[str, ...]:
    return (
        str(cell.number),
        clip(f"{neutralize(cell.code)}{_name_failure(cell)}", _CODE_CELLS),
        _sign(cell.ram_bytes),
        humanize_bytes(cell.peak_ram_bytes),
        _sign(cell.gpu_bytes),
        humanize(cell.peak_gpu_bytes, BYTES),
        humanize(cell.gpu_percent, PERCENT),
        humanize_seconds(cell.seconds),
        humanize_seconds(cell.cpu_seconds),
    )


def _sign(size: float | None) -> str:
    return "-" if size is None else f"{'+' * (size >= 0)}{humanize_bytes(size)}"


def _name_failure(cell: CellUse) -> str:
    return f" ({cell.ending})" if cell.ending in ("raised", "interrupted") else ""


# ---- The picture.


def draw_panel(report: Report) -> str:
    """One row per figure: its name, what it is and was, and its line over time."""
    charts = _choose_charts(report)
    body: list[str] = []
    for number, chart in enumerate(charts):
        body += _draw_row(report, chart, _TOP + number * _ROW)
    bottom = _TOP + len(charts) * _ROW
    length = humanize_seconds(find_length(report))
    body += [write_text(_LEFT, bottom + 8, "0 s"), write_text(_WIDTH, bottom + 8, length, "end")]
    if report.findings:
        bottom += _BOTTOM
        body.append(write_text(0, bottom + 8, shorten(_name_finding(report), _FINDING_CELLS)))
    height = bottom + _BOTTOM
    title = shorten(describe_title(report), _TITLE_CELLS)
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
            f' font-family="sans-serif" font-size="11" fill="{GREY}">',
            write_text(0, 14, title, extra=' font-size="13" font-weight="bold"'),
            *body,
            "</svg>",
        ]
    )


def _name_finding(report: Report) -> str:
    finding = report.findings[0]
    return f"{finding.severity}: {finding.sentence}"


def _choose_charts(report: Report) -> list[Chart]:
    n_gpus = min(len(report.summary.gpus), _MOST_LINES)
    n_lines = len(_OF_ONE_LINE) + 2 * n_gpus + min(len(report.logged), _MOST_METRICS)
    n_bins = max(_FEWEST_BINS, min(_MOST_BINS, _MOST_POINTS // n_lines))
    charts = [chart for chart in list_charts(report, n_bins) if chart.name in _SHOWN]
    metrics = [chart for chart in charts if chart.name == "metrics"]
    return [chart for chart in charts if chart not in metrics[_MOST_METRICS:]]


def _draw_row(report: Report, chart: Chart, y: int) -> Iterator[str]:
    yield write_text(0, y + 12, shorten_middle(chart.title, _NAME_CELLS), extra=' font-weight="bold"')
    if chart.problem:
        yield write_text(0, y + 26, chart.problem)
        return
    # The axis is that of the lines that are shown: one that is not, such as the whole machine, must not flatten them.
    chart = chart._replace(lines=chart.lines[: 1 if chart.name in _OF_ONE_LINE else _MOST_LINES])
    lines = chart.lines
    yield write_text(0, y + 26, shorten(_caption(report, chart, lines), _CAPTION_CELLS))
    yield f'<path d="M{_LEFT} {y + _HEIGHT}H{_WIDTH}" stroke="{GREY}" stroke-opacity=".4"/>'
    low, high = chart.bottom, chart.top
    scale = (_HEIGHT - 2) / ((high - low) or 1.0)
    if chart.shows_capacity:
        height = round(y + _HEIGHT - ((chart.capacity or 0.0) - low) * scale)
        yield f'<path d="M{_LEFT} {height}H{_WIDTH}" stroke="{GREY}" stroke-opacity=".6" stroke-dasharray="4 4"/>'
    for number, line in enumerate(lines):
        values = line.values.mean if chart.name == "metrics" else line.values.high
        heights = [value if isnan(value) else y + _HEIGHT - (value - low) * scale for value in values]
        yield from _draw_line(
            heights, COLOURS[number % len(COLOURS)], y + _HEIGHT if len(lines) == 1 else None
        )


def _caption(report: Report, chart: Chart, lines: Sequence[Line]) -> str:
    if chart.name == "metrics":
        # Not the last point of the line, which stands for several values, and for none that cannot be drawn.
        return f"last {next(show_last(metric) for metric in report.metrics if metric.name == chart.title)}"
    last = [value for line in lines for value in _known(line.values.mean)[-1:]]
    now = humanize(sum(last) / len(last), chart.unit)
    most = humanize(max(value for line in lines for value in _known(line.values.high)), chart.unit)
    if chart.name == "ram":  # the kernel may know of a peak between two readings
        most = humanize_bytes(report.summary.ram.combined.total_bytes)
    whole = f" of {humanize(chart.capacity, chart.unit)}" if chart.capacity and chart.unit != PERCENT else ""
    mean = f" (mean of {len(last)})" if len(last) > 1 else ""
    return f"now {now}{mean}, peak {most}" if report.ending == "running" else f"peak {most}{whole}"


def _known(values: Sequence[float]) -> list[float]:
    return [value for value in values if not isnan(value)]


def _draw_line(heights: Sequence[float], colour: str, floor: int | None) -> Iterator[str]:
    """Filled down to the floor, if there is one. What is not known is passed over: in a short run, most bins are empty."""
    step = (_WIDTH - _LEFT) / len(heights)
    points = [
        (round(_LEFT + (index + 0.5) * step), round(height))
        for index, height in enumerate(heights)
        if not isnan(height)
    ]
    path = "M" + "L".join(f"{x} {y}" for x, y in points)
    if floor is not None:
        yield f'<path d="{path}V{floor}H{points[0][0]}z" fill="{colour}" fill-opacity=".2"/>'
    yield f'<path d="{path}h.1" fill="none" stroke="{colour}" stroke-width="1.5" stroke-linecap="round"/>'

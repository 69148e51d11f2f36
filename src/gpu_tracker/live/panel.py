"""A running job as one plain line, or as a few lines below its output. Pure.

The lines below are kept free by a scroll region: what the job writes scrolls above them.
"""

from __future__ import annotations

from math import isnan

from ..analysis.findings.finding import SERIOUS
from ..core.blocks import draw_line
from ..core.text import BOLD, DIM, RED, YELLOW, Span, choose_style, count_cells, neutralize
from ..core.units import (
    count_cores,
    format_cores,
    humanize_bytes,
    humanize_part,
    humanize_percent,
    write_stopwatch,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.findings.finding import Finding
    from ..analysis.intervals import GpuInterval
    from .glimpse import Glimpse

    Line = tuple[Span, ...]

FEWEST_ROWS = 10
_MOST_LINES = 4
_NAME = "gpu-tracker"
_GAP = "  "
_WIDEST_PICTURE, _NARROWEST_PICTURE = 30, 8
# A picture that stays below this share of the capacity is flat.
_SMALLEST_SHARE = 0.02

_SAVE, _RESTORE = "\x1b7", "\x1b8"
_WHOLE_SCREEN = "\x1b[r"
_CLEAR_LINE, _CLEAR_BELOW = "\x1b[K", "\x1b[J"
_NEXT_LINE = "\x1b[E"
# Unlike a line break it keeps the column, also where the terminal adds a carriage return.
_DOWN = "\x1bD"
# Around a frame: a terminal that knows them shows all of it at once.
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_PLAIN = "\x1b[0m"


def build_line(glimpse: Glimpse) -> str:
    """For a log."""
    parts = [f"{_NAME} {write_stopwatch(glimpse.seconds)}", _tell_cores(glimpse), _tell_ram(glimpse)]
    gpus = glimpse.now.gpus if glimpse.now else ()
    parts += ["".join(span.text for span in _tell_gpu(gpu)) for gpu in gpus]
    return neutralize(_GAP.join(filter(None, [*parts, glimpse.region, glimpse.metrics])))


def build_panel(glimpse: Glimpse, columns: int, *, has_unicode: bool) -> list[Line]:
    """Two to four lines: where it is, what it uses, its devices, and the worst that was found."""
    gpus = glimpse.now.gpus if glimpse.now else ()
    lines = [
        _head(glimpse, columns, has_unicode=has_unicode),
        _use(glimpse, columns, has_unicode=has_unicode),
    ]
    if gpus:
        lines.append(tuple(span for gpu in gpus for span in (*_tell_gpu(gpu), Span(_GAP))))
    if glimpse.findings:
        lines.append((_tell_finding(glimpse.findings[0]),))
    return lines[:_MOST_LINES]


def _head(glimpse: Glimpse, columns: int, *, has_unicode: bool) -> Line:
    stroke = "─" if has_unicode else "-"
    words = [f"{_NAME} {write_stopwatch(glimpse.seconds)}", glimpse.region, glimpse.metrics]
    text = "".join(f"{stroke * 2} {word} " for word in words if word)
    return Span(text, BOLD), Span(stroke * (columns - count_cells(text)), DIM)


def _use(glimpse: Glimpse, columns: int, *, has_unicode: bool) -> Line:
    cores, ram = _tell_cores(glimpse), _tell_ram(glimpse)
    if not cores and not ram:
        return (Span("waiting for the first sample", DIM),)
    left = columns - count_cells(f"{cores} {_GAP}{ram} ")
    cells = min(_WIDEST_PICTURE, left // 2)
    if cells < _NARROWEST_PICTURE:
        return (Span(_GAP.join(filter(None, (cores, ram)))),)
    busy = _draw(glimpse.busy_cores, glimpse.cores, cells, has_unicode=has_unicode)
    held = _draw(glimpse.held_bytes, float(glimpse.ram_bytes), cells, has_unicode=has_unicode)
    return Span(f"{cores} "), Span(busy, DIM), Span(f"{_GAP}{ram} "), Span(held, DIM)


def _draw(values: Sequence[float], capacity: float, cells: int, *, has_unicode: bool) -> str:
    values = values[-cells:]
    most = max((value for value in values if not isnan(value)), default=0.0)
    return draw_line(values, max(most, _SMALLEST_SHARE * capacity), has_unicode=has_unicode)


def _tell_cores(glimpse: Glimpse) -> str:
    now = glimpse.now
    if now is None or now.cpu_cores is None:
        return ""
    return f"{format_cores(100 * now.cpu_cores)} of {count_cores(glimpse.cores)}"


def _tell_ram(glimpse: Glimpse) -> str:
    now = glimpse.now
    if now is None or now.ram_bytes is None:
        return ""
    return f"RAM {_tell_part(now.ram_bytes, glimpse.ram_bytes)}"


def _tell_gpu(gpu: GpuInterval) -> Line:
    busy = gpu.utilization_percent
    spans = [Span(f"GPU {gpu.label}")]
    if busy is not None:
        spans.append(Span(f" {humanize_percent(busy)}", choose_style(busy)))
    if gpu.used_bytes is not None:
        spans.append(Span(f" {_tell_part(gpu.used_bytes, gpu.memory_bytes)}"))
    return tuple(spans)


def _tell_part(part: float, whole: int | None) -> str:
    return humanize_part(part, whole) if whole else humanize_bytes(part)


def _tell_finding(finding: Finding) -> Span:
    return Span(f"{finding.severity}: {finding.sentence}", RED if finding.severity == SERIOUS else YELLOW)


# ---- Escape sequences. The cursor is the job's: each of these leaves it where it was.


def reserve(rows: int, n_lines: int) -> str:
    """Make room below the cursor and keep it: clears what is there, also what an earlier size of the window has left."""
    return (
        f"{_SAVE}{_WHOLE_SCREEN}{_RESTORE}"
        f"{_DOWN * n_lines}\x1b[{n_lines}A"
        f"{_SAVE}{_PLAIN}{_NEXT_LINE}{_CLEAR_BELOW}\x1b[1;{rows - n_lines}r{_RESTORE}"
    )


def draw(lines: Sequence[str], rows: int) -> str:
    """One frame."""
    first = rows - len(lines) + 1
    body = "".join(f"\x1b[{first + index};1H{_CLEAR_LINE}{line}" for index, line in enumerate(lines))
    return f"{_BEGIN}{_SAVE}{_PLAIN}{body}{_RESTORE}{_END}"


def abandon() -> str:
    """Give the lines back after the window has shrunk: where they are is not known, but it is below the cursor.

    The terminal may have dropped them already. So nothing on the line of the cursor is cleared, also not at the bottom,
    where there is no line below it before one is made.
    """
    return f"{_SAVE}{_WHOLE_SCREEN}{_RESTORE}{_DOWN}\x1b[A{_SAVE}{_PLAIN}{_NEXT_LINE}{_CLEAR_BELOW}{_RESTORE}"


def release(rows: int, n_lines: int) -> str:
    """Give the lines back, empty."""
    return f"{_SAVE}{_WHOLE_SCREEN}\x1b[{max(1, rows - n_lines + 1)};1H{_PLAIN}{_CLEAR_BELOW}{_RESTORE}"

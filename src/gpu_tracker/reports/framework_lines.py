"""What frameworks hold on GPUs, in words: what tensors need, and what only looks like need. Pure."""

from __future__ import annotations

from ..core.text import clip, neutralize
from ..core.units import humanize_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.frameworks import FrameworkSummary
    from ..core.model import FrameworkMemory

_MOST = 8
_NAME_CELLS = 40
_TENSORS = {"JAX": "arrays"}


def tell_frameworks(summaries: Sequence[FrameworkSummary]) -> list[tuple[str, str]]:
    """Rows of a label and a text; the first rows only where hundreds of processes have something to say."""
    rows: list[tuple[str, str]] = []
    for summary in summaries[:_MOST]:
        label = clip(neutralize(summary.memory.framework), _NAME_CELLS)
        rows += [(label if not place else "", text) for place, text in enumerate(_tell(summary))]
    if len(summaries) > _MOST:
        rows.append(("", f"and {len(summaries) - _MOST} more processes or devices (the JSON report has all)"))
    return rows


def _tell(summary: FrameworkSummary) -> list[str]:
    memory = summary.memory
    where = f"GPU {summary.gpu.ordinal}" if summary.gpu else clip(neutralize(memory.device), _NAME_CELLS)
    tensors = _TENSORS.get(memory.framework, "tensors")
    most = f"{humanize_bytes(memory.peak_in_use_bytes)} at most ({memory.peak_in_use_basis})"
    held = memory.peak_held_bytes
    cache = "" if held is None else f", {humanize_bytes(held)} with its cache"
    lines = [f"{where}, process {memory.pid}: {tensors} {most}{cache}"]
    if memory.split_process_bytes is not None:
        lines.append(_tell_split(summary, memory.split_process_bytes, tensors))
    trouble = _tell_trouble(memory)
    return [*lines, trouble] if trouble else lines


def _tell_split(summary: FrameworkSummary, process_bytes: int, tensors: str) -> str:
    memory = summary.memory
    parts = (
        (tensors, memory.split_in_use_bytes),
        ("cached", summary.cached_bytes),
        ("context and libraries", summary.context_bytes),
    )
    inside = ", ".join(f"{name} {humanize_bytes(size)}" for name, size in parts if size is not None)
    outside = (("other processes", memory.split_others_bytes), ("free", memory.split_free_bytes))
    beside = "".join(f"; {name} {humanize_bytes(size)}" for name, size in outside if size is not None)
    return f"of {humanize_bytes(process_bytes)} held at the fullest moment: {inside}{beside}"


def _tell_trouble(memory: FrameworkMemory) -> str:
    told = []
    if memory.flushes:
        told.append(f"gave its cache back {_times(memory.flushes)} to make room")
    if memory.failures:
        told.append(f"ran out of memory {_times(memory.failures)}")
    return " and ".join(told)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")

"""GPU memory of frameworks in words: what tensors need, apart from caches and contexts. Pure."""

from __future__ import annotations

from ..core.text import shorten
from ..core.units import humanize_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.frameworks import FrameworkSummary
    from ..core.model import FrameworkMemory

_MOST = 8
_NAME_CELLS = 40
_TENSORS = {"JAX": "arrays"}


def format_frameworks(summaries: Sequence[FrameworkSummary]) -> list[tuple[str, str]]:
    """Rows of a label and a text, for the first few processes and devices."""
    rows: list[tuple[str, str]] = []
    for summary in summaries[:_MOST]:
        label = shorten(summary.memory.framework, _NAME_CELLS)
        rows += [(label if not index else "", text) for index, text in enumerate(_format(summary))]
    if len(summaries) > _MOST:
        rows.append(("", f"and {len(summaries) - _MOST} more processes or devices (the JSON report has all)"))
    return rows


def _format(summary: FrameworkSummary) -> list[str]:
    memory = summary.memory
    where = f"GPU {summary.gpu.label}" if summary.gpu else shorten(memory.device, _NAME_CELLS)
    tensors = _TENSORS.get(memory.framework, "tensors")
    peak = f"peak {humanize_bytes(memory.peak_in_use_bytes)} ({memory.peak_in_use_basis})"
    held = memory.peak_held_bytes
    cache = "" if held is None else f", {humanize_bytes(held)} with cache"
    lines = [f"{where}, process {memory.pid}: {tensors} {peak}{cache}"]
    if memory.split_process_bytes is not None:
        lines.append(_format_split(summary, memory.split_process_bytes, tensors))
    trouble = _format_trouble(memory)
    return [*lines, trouble] if trouble else lines


def _format_split(summary: FrameworkSummary, process_bytes: int, tensors: str) -> str:
    memory = summary.memory
    parts = (
        (tensors, memory.split_in_use_bytes),
        ("cached", summary.cached_bytes),
        ("context and libraries", summary.context_bytes),
    )
    inside = ", ".join(f"{name} {humanize_bytes(size)}" for name, size in parts if size is not None)
    outside = (("other processes", memory.split_others_bytes), ("free", memory.split_free_bytes))
    beside = "".join(f"; {name} {humanize_bytes(size)}" for name, size in outside if size is not None)
    return f"at its peak the process held {humanize_bytes(process_bytes)}: {inside}{beside}"


def _format_trouble(memory: FrameworkMemory) -> str:
    parts = []
    if memory.flushes:
        parts.append(f"flushed its cache {_times(memory.flushes)} under memory pressure")
    if memory.failures:
        parts.append(f"ran out of memory {_times(memory.failures)}")
    return " and ".join(parts)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")

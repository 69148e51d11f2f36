"""A peak in words: how much, when, who held it, and in which region. Pure."""

from __future__ import annotations

from ..core.text import shorten, shorten_middle
from ..core.units import humanize_bytes, write_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.model import PeakMoment, PeakProcess

_NAME_CELLS, _REGION_CELLS = 24, 40
_MOST_GROUPS = 4
# Sizes that differ by less are one size.
_ALIKE = 1.2


def explain_peak(moment: PeakMoment, main_pid: int) -> str:
    """`30.1 GB at 3:12: 8 × pt_data_worker 2.4 GB, main 10.9 GB; in epoch/eval`."""
    text = f"{humanize_bytes(moment.size_bytes)} at {write_clock(moment.at_seconds)}"
    holders = list_holders(moment, main_pid)
    text = f"{text}: {holders}" if holders else text
    places = list_places(moment)
    return f"{text}; in {places}" if places else text


def list_holders(moment: PeakMoment, main_pid: int) -> str:
    """Who held it, processes of one name together, the largest part first."""
    groups: dict[str, list[PeakProcess]] = {}
    for process in moment.processes:
        groups.setdefault(
            "main" if process.pid == main_pid else shorten(process.name, _NAME_CELLS) or "?", []
        ).append(process)
    largest = sorted(groups.items(), key=lambda group: -sum(process.size_bytes for process in group[1]))
    shown = largest[:_MOST_GROUPS]
    words = [_describe_group(name, processes) for name, processes in shown]
    others = moment.n_processes - sum(len(processes) for _, processes in shown)
    return ", ".join([*words, f"and {others} more"] if words and others > 0 else words)


def list_places(moment: PeakMoment) -> str:
    """The regions that were open."""
    return ", ".join(shorten_middle("/".join(path), _REGION_CELLS) for path in moment.regions)


def _describe_group(name: str, processes: Sequence[PeakProcess]) -> str:
    sizes = [process.size_bytes for process in processes]
    least, most = min(sizes), max(sizes)
    is_one_size = most <= _ALIKE * least
    size = (
        humanize_bytes(sum(sizes) / len(sizes))
        if is_one_size
        else f"{humanize_bytes(least)} to {humanize_bytes(most)}"
    )
    return f"{name} {size}" if len(sizes) == 1 else f"{len(sizes)} × {name} {size}"

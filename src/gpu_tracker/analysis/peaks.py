"""A peak in words: how much, when, who held it, and in which region. Pure."""

from __future__ import annotations

from ..core.model import EXACT, RAM
from ..core.text import shorten, shorten_middle
from ..core.units import AS_GOOD_AS, humanize_bytes, write_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.model import Path, PeakMoment, PeakProcess, RegionTotals

PEAK = "peak"
NEAREST = "largest reading"
_NAME_CELLS, _REGION_CELLS = 24, 40
_MOST_GROUPS = 4
# Sizes that differ by less are one size.
_ALIKE = 1.2


def drop_contradicted(
    moments: Iterable[PeakMoment], regions: Sequence[RegionTotals]
) -> tuple[PeakMoment, ...]:
    """The same without the regions that were open only when a peak was read, and not when it was; with those in which it was."""
    return tuple(
        _place(moment, regions)
        or moment._replace(
            regions=tuple(path for path in moment.regions if not _is_contradicted(path, moment, regions))
        )
        if moment.subject == RAM
        else moment
        for moment in moments
    )


def _place(moment: PeakMoment, regions: Sequence[RegionTotals]) -> PeakMoment | None:
    """The moment of the region that had the peak of the only process by the kernel's mark, if that was read later; else None."""
    if moment.n_processes != 1 or not moment.processes:
        return None
    process = moment.processes[0]
    peaked = [
        region
        for region in regions
        if region.pid == process.pid
        and region.peak_ram_basis == EXACT
        and (region.peak_ram_bytes or 0) >= AS_GOOD_AS * process.size_bytes
        and _may_contain(region, moment)
    ]
    around = {region.path[:depth] for region in peaked for depth in range(len(region.path))}
    innermost = [region for region in peaked if region.path not in around]
    if not innermost or any(region.path in moment.regions for region in innermost):
        return None
    began = [region.peak_ram_call_seconds for region in innermost if region.peak_ram_call_seconds is not None]
    return moment._replace(
        at_seconds=min([moment.at_seconds, *began]), regions=tuple(region.path for region in innermost)
    )


def _may_contain(region: RegionTotals, moment: PeakMoment) -> bool:
    """Whether its peak need not be a later one, which nobody saw: its call, or the first one, had begun by then."""
    began = region.first_seconds if region.peak_ram_call_seconds is None else region.peak_ram_call_seconds
    return began is None or began <= moment.at_seconds


def _is_contradicted(path: Path, moment: PeakMoment, regions: Sequence[RegionTotals]) -> bool:
    """Whether no process that has this region ever held as much in it, by the kernel's own marks."""
    held = {process.pid: process.size_bytes for process in moment.processes}
    parts = [region for region in regions if region.path == path]
    return bool(parts) and all(
        region.peak_ram_basis == EXACT
        and not region.open_calls  # what is not over has no mark yet
        and (region.peak_ram_bytes or 0) < AS_GOOD_AS * held.get(region.pid, 0)
        for region in parts
    )


def explain_peak(moment: PeakMoment, main_pid: int) -> str:
    """`30.1 GB at 3:12: 8 × pt_data_worker 2.4 GB, main 10.9 GB; in epoch/eval`."""
    text = f"{humanize_bytes(moment.size_bytes)} at {write_clock(moment.at_seconds)}"
    holders = list_holders(moment, main_pid)
    text = f"{text}: {holders}" if holders else text
    places = list_places(moment)
    return f"{text}; in {places}" if places else text


def name_moment(moment: PeakMoment, peak_bytes: int | None) -> str:
    """What that moment was. The kernel keeps a peak between two samples, too, but not who held it."""
    is_peak = peak_bytes is None or humanize_bytes(peak_bytes) == humanize_bytes(moment.size_bytes)
    return PEAK if is_peak else NEAREST


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

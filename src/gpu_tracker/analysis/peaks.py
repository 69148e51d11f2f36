"""Who held the memory at a peak, in one line. Pure."""

from __future__ import annotations

from ..core.text import shorten, shorten_middle
from ..core.units import humanize_bytes, humanize_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.model import Header, PeakMoment, PeakProcess

_NAME_CELLS = 24
_REGION_CELLS = 40
_MOST_GROUPS = 3
_MOST_REGIONS = 2


def describe_peak(moment: PeakMoment, header: Header) -> str:
    """When it was, which processes held how much, and in which regions the job was."""
    when = f"peak {humanize_bytes(moment.size_bytes)} after {humanize_seconds(moment.at_seconds)}"
    holders = _describe_holders(moment, header.pid)
    where = _describe_regions(moment)
    return when + (f": {holders}" if holders else "") + (f"; in {where}" if where else "")


def _describe_holders(moment: PeakMoment, main_pid: int) -> str:
    """The largest first; processes of one name together."""
    groups: dict[str, list[PeakProcess]] = {}
    for process in moment.processes:
        name = "main" if process.pid == main_pid else shorten(process.name, _NAME_CELLS)
        groups.setdefault(name, []).append(process)
    largest = sorted(groups.items(), key=lambda group: -_add(group[1]))[:_MOST_GROUPS]
    parts = [_describe_group(name, members) for name, members in largest]
    left = moment.n_processes - sum(len(members) for _, members in largest)
    return ", ".join([*parts, f"{left} more"] if left > 0 and parts else parts)


def _describe_group(name: str, members: list[PeakProcess]) -> str:
    if len(members) == 1:
        return f"{name} {humanize_bytes(members[0].size_bytes)}"
    return f"{len(members)} × {name} {humanize_bytes(_add(members) / len(members))} each"


def _add(members: list[PeakProcess]) -> int:
    return sum(process.size_bytes for process in members)


def _describe_regions(moment: PeakMoment) -> str:
    names = [shorten_middle("/".join(path), _REGION_CELLS) for path in moment.regions]
    left = len(names) - _MOST_REGIONS
    return ", ".join(names[:_MOST_REGIONS]) + (f" and {left} more" if left > 0 else "")

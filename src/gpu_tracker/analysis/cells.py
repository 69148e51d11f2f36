"""What the cells of a notebook used: one row per execution. Pure."""

from __future__ import annotations

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .summary import Summary

RANKINGS = ("memory", "gpu", "time")


class CellUse(NamedTuple):
    """One execution of a cell. None is not known."""

    number: int
    """As in `In [3]`."""
    code: str
    """Its first line."""
    seconds: float
    cpu_seconds: float
    ram_bytes: int
    """What the notebook's process holds more than before it."""
    gpu_bytes: int | None
    """The same on all devices, with descendants."""
    peak_ram_bytes: int
    """This and the next: the most that the whole process and its descendants held meanwhile."""
    peak_gpu_bytes: int | None
    gpu_percent: float | None
    """How busy the devices were, in all."""
    ending: str


def measure_cell(number: int, code: str, grown_bytes: int, summary: Summary, ending: str) -> CellUse:
    """The row of a cell that has ended. `grown_bytes` is what the process itself has read: the first sample may come late."""
    return CellUse(
        number=number,
        code=next((line.strip() for line in code.splitlines() if line.strip()), ""),
        seconds=summary.seconds,
        cpu_seconds=summary.cpu.combined.seconds,
        ram_bytes=grown_bytes,
        gpu_bytes=summary.gpu_growth_bytes,
        peak_ram_bytes=summary.ram.combined.total_bytes,
        peak_gpu_bytes=summary.gpu_bytes.combined,
        gpu_percent=summary.gpu_mean_sum_percent,
        ending=ending,
    )


def rank_cells(cells: Iterable[CellUse], by: str = RANKINGS[0]) -> list[CellUse]:
    """Those that used most first."""
    keys = {
        "memory": lambda cell: (cell.gpu_bytes or 0.0) + cell.ram_bytes,
        "gpu": lambda cell: (cell.gpu_percent or 0.0) * cell.seconds,
        "time": lambda cell: cell.seconds,
    }
    return sorted(cells, key=keys[by], reverse=True)

"""Energy and carbon dioxide as rows of a report: what was metered, by what, and what was not. Pure."""

from __future__ import annotations

from ..analysis.energy import NOT_RECORDED
from ..core.model import ESTIMATE
from ..core.text import count_of
from ..core.units import humanize_joules, humanize_seconds
from .usage_lines import list_unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..analysis.energy import Carbon, Energy

# Of more, only their number is told.
_MOST_NAMED = 3


def format_energy(energy: Energy | None, carbon: Carbon | None = None) -> list[tuple[str, str]]:
    """Label and text; nothing if nothing was metered, unless carbon dioxide was asked for."""
    if energy is None or (energy.total_joules is None and carbon is None):
        return []
    rows = [("energy", "; ".join([*_list_gpus(energy), *_list_machine(energy)]))]
    return [*rows, *format_carbon(carbon, [*_list_unmetered_gpus(energy), *_list_unmetered_machine(energy)])]


def format_carbon(carbon: Carbon | None, unmetered: Iterable[str] = ()) -> list[tuple[str, str]]:
    """With the formula, so that anybody can check it, and with what its energy is without."""
    return [] if carbon is None else [("CO2", carbon.formula + _in_brackets(unmetered))]


def format_gpu_energy(energy: Energy | None) -> str:
    """The sum over the devices, and what it is without."""
    if energy is None or energy.gpu_joules is None:
        return "-"
    estimated = [meter] if (meter := name_meter((gpu.basis for gpu in energy.gpus), "")) else []
    return humanize_joules(energy.gpu_joules) + _in_brackets([*estimated, *_list_unmetered_gpus(energy)])


def name_meter(bases: Iterable[str], metered: str) -> str:
    """How energy is known: in these words where it was metered."""
    kinds = set(bases)
    if ESTIMATE not in kinds:
        return metered
    return "estimated from power" if kinds == {ESTIMATE} else "partly estimated from power"


def list_unmetered(missing_seconds: Iterable[tuple[str, float]]) -> list[str]:
    """Which parts of a sum are without some of the time: name and seconds of each part."""
    found = [(name, seconds) for name, seconds in missing_seconds if seconds]
    if len(found) > _MOST_NAMED:
        longest = humanize_seconds(max(seconds for _, seconds in found))
        return [f"{len(found)} GPUs without up to {longest} of the time"]
    return [f"{name} {words}" for name, seconds in found for words in list_unknown(seconds)]


def _list_unmetered_gpus(energy: Energy) -> list[str]:
    without = [f"without GPU {', '.join(energy.unmetered_gpus)}"] if energy.unmetered_gpus else []
    return [*list_unmetered((f"GPU {gpu.label}", gpu.missing_seconds) for gpu in energy.gpus), *without]


def _list_unmetered_machine(energy: Energy) -> list[str]:
    return list_unmetered([("CPU", energy.machine_missing_seconds)])


def _in_brackets(remarks: Iterable[str]) -> str:
    joined = "; ".join(remarks)
    return f" ({joined})" if joined else ""


def _list_gpus(energy: Energy) -> list[str]:
    if energy.gpu_joules is None:
        return ["GPUs not measured"]
    devices = count_of(len(energy.gpus), "GPU")
    meter = name_meter((gpu.basis for gpu in energy.gpus), "by the driver's meter")
    remarks = _in_brackets([f"{meter}, whole devices", *_list_unmetered_gpus(energy)])
    return [f"{devices} {humanize_joules(energy.gpu_joules)}{remarks}"]


def _list_machine(energy: Energy) -> list[str]:
    if energy.cpu_joules is None:
        if energy.cpu_reason == NOT_RECORDED:
            return ["CPU energy not recorded"]
        return [f"CPU not measured ({energy.cpu_reason.rstrip('.')})"]
    memory = "" if energy.memory_joules is None else f", memory {humanize_joules(energy.memory_joules)}"
    remarks = _in_brackets(["by RAPL, whole machine", *_list_unmetered_machine(energy)])
    return [f"CPU {humanize_joules(energy.cpu_joules)}{memory}{remarks}"]

"""Energy and carbon dioxide as rows of a report: what was metered, by what, and what was not. Pure."""

from __future__ import annotations

from ..core.text import count_of
from ..core.units import humanize_joules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.energy import Carbon, Energy


def format_energy(energy: Energy | None, carbon: Carbon | None = None) -> list[tuple[str, str]]:
    """Label and text; nothing if nothing was metered, unless carbon dioxide was asked for."""
    if energy is None or (energy.total_joules is None and carbon is None):
        return []
    rows = [("energy", "; ".join([*_list_gpus(energy), *_list_machine(energy)]))]
    return [*rows, *format_carbon(carbon)]


def format_carbon(carbon: Carbon | None) -> list[tuple[str, str]]:
    """With the formula, so that anybody can check it."""
    return [] if carbon is None else [("CO2", carbon.formula)]


def _list_gpus(energy: Energy) -> list[str]:
    if energy.gpu_joules is None:
        return ["GPUs not measured"]
    devices = count_of(len(energy.gpus), "GPU")
    return [f"{devices} {humanize_joules(energy.gpu_joules)} (by the driver's meter, whole devices)"]


def _list_machine(energy: Energy) -> list[str]:
    if energy.cpu_joules is None:
        return [f"CPU not measured ({energy.cpu_reason.rstrip('.')})"]
    memory = "" if energy.memory_joules is None else f", memory {humanize_joules(energy.memory_joules)}"
    return [f"CPU {humanize_joules(energy.cpu_joules)}{memory} (by RAPL, whole machine)"]

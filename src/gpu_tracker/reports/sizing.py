"""The document of `gpu-tracker size`: what to ask for, in every form, and why. Pure."""

from __future__ import annotations

from ..core.text import neutralize
from ..core.values import NamedTuple
from .energy_lines import format_energy
from .plain import to_json as plain_to_json, to_plain
from .sizing_lines import (
    FORMS,
    format_basis,
    format_choice,
    format_kubernetes_line,
    format_spike,
    format_used,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..analysis.energy import Carbon, Energy
    from ..analysis.prices import Choice
    from ..analysis.sizing import Sizing
    from .contract import View

# Where all forms are shown.
_SHORT = {"kubernetes": format_kubernetes_line}


class SizingReport(NamedTuple):
    """Advice for the next request."""

    sizing: Sizing
    forms: tuple[str, ...] = tuple(FORMS)
    """Which forms to show."""
    choice: Choice | None = None
    """The cheapest machine, if the user gave prices."""
    energy: Energy | None = None
    """Of the run that took most."""
    carbon: Carbon | None = None


def to_text(report: SizingReport, _view: View | None = None) -> str:
    """The request in each form, then what it is made of."""
    sizing = report.sizing
    if len(report.forms) == 1:  # to paste
        return FORMS[report.forms[0]](sizing) + "\n"
    lines = [f"next time ({format_basis(sizing)}, confidence {sizing.confidence}):"]
    lines += [f"  {form:<10}  {_SHORT.get(form, FORMS[form])(sizing)}" for form in report.forms]
    used = "; ".join(f"{label} {text}" for label, text in format_used(sizing))
    lines += [f"  used: {used}"] if used else ["  nothing was measured"]
    if sizing.spike is not None:
        lines.append(f"  spike: {format_spike(sizing.spike)}")
    if report.choice is not None:
        lines.append(f"  machine: {format_choice(report.choice)}")
    lines += [f"  {label}: {text}" for label, text in format_energy(report.energy, report.carbon)]
    lines += [f"  note: {note}" for note in sizing.notes]
    return "\n".join(map(neutralize, lines)) + "\n"


def to_json(report: SizingReport, _view: View | None = None) -> str:
    """All figures in base units, and the requests."""
    plain: dict[str, Any] = {
        **to_plain(report.sizing),
        "machine": to_plain(report.choice),
        "energy": to_plain(report.energy),
        "carbon": to_plain(report.carbon),
        "requests": {form: FORMS[form](report.sizing) for form in report.forms},
    }
    return plain_to_json(plain)

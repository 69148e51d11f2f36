"""The document of `gpu-tracker size`: what to ask for, in every form, and why. Pure."""

from __future__ import annotations

from ..core.text import count_of, neutralize, wrap, wrap_all
from ..core.values import NamedTuple
from .energy_lines import format_energy
from .plain import to_json as plain_to_json, to_plain
from .sizing_lines import (
    FORMS,
    format_basis,
    format_choice,
    format_kubernetes_line,
    format_lead,
    format_spike,
    format_used,
    format_words,
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
_HANGING, _REQUEST_HANGING = 4, 14


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


def to_text(report: SizingReport, view: View) -> str:
    """The request in each form, then what it is made of."""
    sizing = report.sizing
    if len(report.forms) == 1:  # to paste
        return FORMS[report.forms[0]](sizing) + "\n"
    lines = []
    used = "; ".join(f"{label} {text}" for label, text in format_used(sizing))
    lines += [f"  used: {used}"] if used else ["  nothing was measured"]
    if sizing.spike is not None:
        lines.append(f"  spike: {format_spike(sizing.spike)}")
    if report.choice is not None:
        lines.append(f"  machine: {format_choice(report.choice)}")
    lines += [f"  {label}: {text}" for label, text in format_energy(report.energy, report.carbon)]
    lines += [f"  note: {note}" for note in sizing.notes]
    wrapped = wrap_all(map(neutralize, lines), view.columns, _HANGING)
    return "\n".join([*_list_requests(report, view), *wrapped]) + "\n"


def _list_requests(report: SizingReport, view: View) -> list[str]:
    """A heading and one request in each form; nothing empty that could be pasted."""
    sizing = report.sizing
    if not format_words(sizing):
        return [f"nothing can be advised (from {count_of(sizing.runs, 'run')}):"]
    heading = f"{format_lead(sizing)} ({format_basis(sizing)}, confidence {sizing.confidence}):"
    requests = [f"  {form:<10}  {_SHORT.get(form, FORMS[form])(sizing)}" for form in report.forms]
    return [
        *wrap(heading, view.columns, _HANGING),
        *wrap_all(map(neutralize, requests), view.columns, _REQUEST_HANGING),
    ]


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

"""What can and cannot be measured here, and what to do about it: a diagnosis as text or JSON. Pure."""

from __future__ import annotations

import json

from ..analysis.checks import FAILED, FINE, NOTHING, WARNING
from ..core.text import BOLD, DIM, GREEN, RED, YELLOW, Span, neutralize, paint, wrap
from .plain import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.checks import Diagnosis
    from .contract import View

_SIGNS = {
    FINE: ("✓", "+", GREEN),
    FAILED: ("✗", "x", RED),
    WARNING: ("!", "!", YELLOW),
    NOTHING: ("·", "-", DIM),
}
# The margin, the sign and the gaps around what is checked; the narrowest text.
_BESIDE_CELLS, _FEWEST_CELLS = 6, 20
_COMPLETE = "Everything on this machine can be measured."
_FINE = "Everything on this machine can be measured except as marked above."
_BROKEN = "Something on this machine cannot be measured; see above for what to do."


def to_text(diagnosis: Diagnosis, view: View) -> str:
    """Groups of aligned lines, then the verdict."""
    checks, has_colour = diagnosis.checks, view.has_colour
    lines = []
    width = max((len(check.what) for check in checks), default=0)
    room = None if view.columns is None else max(_FEWEST_CELLS, view.columns - width - _BESIDE_CELLS)
    group = None
    for check in checks:
        if check.group != group:
            group = check.group
            lines += ["", _paint(Span(group, BOLD), has_colour)]
        unicode_sign, ascii_sign, style = _SIGNS[check.state]
        sign = _paint(Span(unicode_sign if view.has_unicode else ascii_sign, style), has_colour)
        what = neutralize(check.what).ljust(width)
        first, *others = wrap(neutralize(check.text), room)
        lines.append(f"  {sign} {what}  {first}".rstrip())
        lines += [" " * (width + _BESIDE_CELLS) + other for other in others]
    verdict = _COMPLETE if diagnosis.is_complete else _FINE if diagnosis.is_fine else _BROKEN
    lines += ["", _paint(Span(verdict, BOLD), has_colour)]
    return "\n".join(lines[1:]) + "\n"


def to_json(diagnosis: Diagnosis, _view: View | None = None) -> str:
    """One object: the verdict and every check."""
    verdict = {"is_fine": diagnosis.is_fine, "is_complete": diagnosis.is_complete}
    return json.dumps({**verdict, **to_plain(diagnosis)}, indent=1) + "\n"


def _paint(span: Span, has_colour: bool) -> str:
    return paint((span,), len(span.text), has_colour=has_colour)

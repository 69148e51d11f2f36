"""What an experiment used, and what is left of it, in words. Pure."""

from __future__ import annotations

from ..core.text import clip, count_of, neutralize
from ..core.units import humanize_bytes
from ..core.values import NamedTuple
from .html import fragments
from .memory import name_given_back
from .notebook import describe_use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..analysis.cells import CellUse
    from ..core.model import Survivor
    from .memory import Step

_NAMES_CELLS = 160
_NOBODY = "nothing that Python knows of: the graph of another tensor, or C code"


class ExperimentReport(NamedTuple):
    """What the block of an experiment used, and what was deleted after it. `print` shows it in words."""

    name: str
    use: CellUse | None
    """What it consumed, and its peaks; None if it could not be tracked."""
    deleted: tuple[str, ...] | None
    """The variables that are gone; None if they are those of a function, which has its own end."""
    kept: tuple[str, ...]
    given_back: Step | None
    survivors: tuple[Survivor, ...]
    """What could not be freed, and who holds it; the largest first."""
    more: int
    """How many survivors are not listed."""
    missing: tuple[str, ...] = ()
    """Names that were to be kept, and that no variable has."""

    def __str__(self) -> str:
        return "\n".join(_list_lines(self))

    def _repr_pretty_(self, printer: Any, _cycle: object) -> None:
        printer.text(str(self))  # where IPython has no HTML

    def _repr_html_(self) -> str:
        return fragments.statements(str(self).splitlines())


def _list_lines(report: ExperimentReport) -> list[str]:
    use = "not tracked" if report.use is None else describe_use(report.use)
    lines = [f"{f'experiment {neutralize(report.name)}'.rstrip()}: {use}"]
    if report.deleted is None:
        return [*lines, "  nothing deleted: the variables of a function go when it returns"]
    kept = f"; kept: {_join(report.kept)}" if report.kept else ""
    lines.append(f"  deleted: {_join(report.deleted) or 'nothing'}{kept}")
    if report.missing:
        lines.append(f"  to be kept, but there is no such variable: {_join(report.missing)}")
    if report.given_back is not None:
        lines.append(f"  given back: {name_given_back(report.given_back)}")
    lines += [f"  not freed: {_describe(survivor)}" for survivor in report.survivors]
    if report.more:
        lines.append(f"  and {count_of(report.more, 'smaller object')}")
    return lines


def _describe(survivor: Survivor) -> str:
    kind = f"{survivor.kind}, {humanize_bytes(survivor.size_bytes)}"
    what = kind if survivor.name is None else f"{survivor.name} ({kind})"
    return neutralize(f"{what}, held by {survivor.holder or _NOBODY}")


def _join(names: Sequence[str]) -> str:
    return clip(neutralize(", ".join(names)), _NAMES_CELLS)

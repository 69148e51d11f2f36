"""What a user chose for a report. Light, so that whoever waits for a job to end need not have loaded what builds one."""

from __future__ import annotations

from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.energy import CarbonFactor
    from ..analysis.findings.judge import Changes
    from ..analysis.prices import Machine


class Choices(NamedTuple):
    """What the user chose for a report."""

    changes: Changes | None = None
    """Of the rules by which a run is judged."""
    factor: CarbonFactor | None = None
    """Carbon dioxide per energy."""
    machines: tuple[Machine, ...] = ()
    """With their prices."""


NO_CHOICES = Choices()

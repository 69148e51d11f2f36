"""What the sources for cards that the kernel shows in files have in common."""

from __future__ import annotations

from .drm import Clients, explain_denied
from .guard import DENIED, Failure
from .sysfs import Panel, find_cards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .. import Roots
    from .sysfs import Device


def why_no_cards(roots: Roots, vendor_id: bytes, vendor: str) -> str | None:
    """A reason not to try, or None."""
    if find_cards(roots.sys, vendor_id):
        return None
    return f"No {vendor} GPU was measured: {roots.sys}/class/drm shows none with a driver on this machine."


class CardSource:
    """Every card of one vendor that has a driver; how they are read is the vendor's own matter."""

    def __init__(
        self,
        now: Callable[[], float],
        roots: Roots,
        devices: tuple[Device, ...],
        drivers: frozenset[str],
    ) -> None:
        self._now = now
        self._panel = Panel(now, devices)
        self._clients = Clients(now, roots.proc, drivers)
        self.gpus = tuple(device.gpu for device in self._panel.devices)
        self.reasons: Mapping[tuple[str, str], str] = self._panel.guard.reasons
        self.kinds: Mapping[tuple[str, str], str] = self._panel.guard.kinds

    def read_details(self) -> Mapping[str, Mapping[str, float | str]]:
        """Limits, fans, sensors and versions."""
        return self._panel.read_details()

    def take_notes(self) -> tuple[str, ...]:
        """What there is to say since the last call."""
        return self._panel.guard.take_notes()

    def close(self) -> None:
        """Nothing is kept open."""

    def _note_who_is_denied(self) -> None:
        if self._clients.denied and ("", "lists_processes") not in self.reasons:
            denied = Failure(DENIED, explain_denied(min(self._clients.denied)))
            self._panel.guard.fail("", "lists_processes", denied)

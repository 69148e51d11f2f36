"""What the sources for cards in `/sys` have in common; a vendor's module says which files hold which figure."""

from __future__ import annotations

from ...core.model import Gpu
from .. import NotAvailableError, Roots
from .drm import Clients, explain_denied
from .guard import DENIED, Failure
from .product_names import find_product_name
from .sysfs import (
    Device,
    Panel,
    find_cards,
    find_driver_version,
    is_asleep,
    parse_words,
    read_if_there,
    read_known,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from typing_extensions import Self

    from .sysfs import Card, Gauge

_ROOTS = Roots()


class CardSource:
    """Every card of one vendor that has a driver."""

    name: str
    label: str
    vendor_id: bytes
    drivers: frozenset[str]
    poll_seconds = float("inf")
    unopened: tuple[Gpu, ...] = ()
    is_outdated = False

    def __init__(self, now: Callable[[], float], roots: Roots) -> None:
        self._now = now
        self._panel = Panel(now, self._find_devices(roots))
        self._clients = Clients(now, roots.proc, self.drivers)
        self.gpus = tuple(device.gpu for device in self._panel.devices)
        self.reasons: Mapping[tuple[str, str], str] = self._panel.guard.reasons
        self.kinds: Mapping[tuple[str, str], str] = self._panel.guard.kinds

    @classmethod
    def why_absent(cls, roots: Roots = _ROOTS) -> str | None:
        """A reason not to try, or None."""
        if find_cards(roots.sys, cls.vendor_id):
            return None
        return f"No {cls.label} GPU was measured: {roots.sys}/class/drm lists none with a driver."

    @classmethod
    def connect(cls, now: Callable[[], float], roots: Roots = _ROOTS) -> Self:
        """Find the cards, or raise with the reason why there are none."""
        reason = cls.why_absent(roots)
        if reason:
            raise NotAvailableError(reason)
        return cls(now, roots)

    def collect(self) -> None:
        """There are no samples of processes here."""

    def expect_end(self) -> None:
        """Everything is read each time."""

    def read_details(self, names: Collection[str]) -> Mapping[str, Mapping[str, float | str]]:
        """Limits, fans, sensors and versions."""
        return self._panel.read_details(names)

    def take_notes(self) -> tuple[str, ...]:
        """Sentences for the user since the last call."""
        return self._panel.guard.take_notes()

    def close(self) -> None:
        """Nothing is kept open."""

    def _identify(self, card: Card) -> tuple[str | None, str | None, int | None]:
        """The card's own UUID, its product name if it tells it, and its memory size."""
        raise NotImplementedError

    def _find_figures(self, card: Card) -> Mapping[str, tuple[Gauge, ...]]:
        raise NotImplementedError

    def _find_limits(self, card: Card) -> Mapping[str, tuple[Gauge, ...]]:
        """What the card may draw, how fast it may run, and how hot it may get."""
        raise NotImplementedError

    def _find_details(self, card: Card) -> Mapping[str, tuple[Gauge, ...]]:
        raise NotImplementedError

    def _find_devices(self, roots: Roots) -> tuple[Device, ...]:
        devices: list[Device] = []
        for ordinal, card in enumerate(find_cards(roots.sys, self.vendor_id)):
            uuid, name, memory_bytes = self._identify(card)
            if uuid is None or any(device.gpu.uuid == uuid for device in devices):
                uuid = f"pci-{card.bus_id}"
            gpu = Gpu(
                ordinal,
                uuid,
                name or self._find_name(card, roots),
                memory_bytes,
                vendor=self.name,
                source=self.name,
                bus_id=card.bus_id,
                driver=find_driver_version(roots.sys, roots.proc, card.driver),
                **({} if is_asleep(card) else read_known(self._find_limits(card))),
            )
            label = f"{self.label} GPU {ordinal}"
            devices.append(Device(gpu, card, label, self._find_figures(card), self._find_details(card)))
        return tuple(devices)

    def _find_name(self, card: Card, roots: Roots) -> str:
        revision = read_if_there(parse_words, f"{card.path}/device/revision") or ""
        name = find_product_name(roots.share, self.vendor_id.decode(), card.device_id, revision)
        return name or f"{self.label} GPU {card.device_id}"

    def _note_denied(self) -> None:
        if self._clients.denied and ("", "lists_processes") not in self.reasons:
            denied = Failure(DENIED, explain_denied(min(self._clients.denied)))
            self._panel.guard.fail("", "lists_processes", denied)

"""Intel on Linux, from the files of the i915 and xe drivers: no Level Zero, no root, no vendor package.

Neither driver tells anybody but root how busy a card is, and few tell what is used on it. What each process does is
told by DRM; a card's figures are the sum over the processes that may be seen from here, and a note says so.
"""

from __future__ import annotations

import os

from ...core.model import Gpu, GpuProcessReading, GpuReadings
from .. import NotAvailableError, Roots
from .cards import CardSource, why_no_cards
from .drm import add_device_bytes, find_busiest, has_card_memory, name_kind
from .sysfs import (
    Device,
    find_cards,
    find_driver_version,
    find_gauges,
    parse_bytes,
    parse_celsius,
    parse_megahertz,
    parse_micro,
    read_gauges,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.model import GpuReading
    from .drm import ClientReading
    from .sysfs import Candidates, Card

NAME = "intel"

_ROOTS = Roots()
_VENDOR_ID = b"0x8086"
_DRIVERS = frozenset({"i915", "xe"})


def why_absent(roots: Roots = _ROOTS) -> str | None:
    """A reason not to try, or None."""
    return why_no_cards(roots, _VENDOR_ID, "Intel")


def connect(now: Callable[[], float], roots: Roots = _ROOTS) -> IntelSource:
    """Every Intel GPU there is, or the reason why there is none."""
    reason = why_absent(roots)
    if reason:
        raise NotAvailableError(reason)
    return IntelSource(now, roots)


class IntelSource(CardSource):
    """Every Intel GPU that has a driver, inside the processor or on a card."""

    def __init__(self, now: Callable[[], float], roots: Roots) -> None:
        super().__init__(now, roots, _describe_devices(roots), _DRIVERS)
        self._energies: dict[str, tuple[float, float]] = {}
        """By uuid, when the energy was last read, and what it was."""

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """Look at every GPU, and at what these processes do there."""
        awake = self._panel.find_awake()
        asleep = frozenset(gpu.bus_id for gpu in self.gpus) - {device.gpu.bus_id for device in awake}
        clients: dict[str, list[ClientReading]] = {}
        for client in self._clients.read(pids, asleep, of_anybody=True):
            clients.setdefault(client.bus_id, []).append(client)
        devices: list[GpuReading] = []
        processes: list[GpuProcessReading] = []
        for device in awake:
            on_device = clients.get(device.gpu.bus_id, [])
            devices.append(self._complete(device, self._panel.take_reading(device), on_device))
            on_device = [client for client in on_device if pids is None or client.pid in pids]
            processes += _describe_processes(device.gpu.uuid, on_device)
            if on_device:
                self._say_what_is_summed(device)
        self._note_who_is_denied()
        return GpuReadings(self._now(), tuple(devices), tuple(processes))

    def _complete(self, device: Device, reading: GpuReading, clients: list[ClientReading]) -> GpuReading:
        """Fill in what no file tells: from the clients, and the power from the energy."""
        shares = [client.shares for client in clients if client.shares is not None]
        if shares or not clients:
            reading = reading._replace(utilization_percent=find_busiest(shares))
        if not device.gauges.get("used_bytes"):
            reading = reading._replace(used_bytes=_add_bytes(clients))
        if reading.power_watts is None:
            reading = reading._replace(power_watts=self._derive_power(device.gpu.uuid, reading.energy_joules))
        return reading

    def _derive_power(self, uuid: str, energy_joules: float | None) -> float | None:
        """Mean since the last look, from the counter."""
        if energy_joules is None:
            return None
        now = self._now()
        then, before_joules = self._energies.get(uuid, (now, energy_joules))
        self._energies[uuid] = (now, energy_joules)
        grown = energy_joules - before_joules
        return grown / (now - then) if now > then and grown >= 0 else None

    def _say_what_is_summed(self, device: Device) -> None:
        """Only when somebody of interest is there: an idle GPU of a laptop is not worth a sentence."""
        what = "utilization" if device.gauges.get("used_bytes") else "utilization and memory in use"
        self._panel.guard.say(
            device.gpu.uuid,
            "summed",
            f"{device.label} does not tell its {what}: what is shown is the sum over the processes that may be seen "
            "from here, so without those of other users unless run as root.",
        )


def _describe_processes(uuid: str, clients: list[ClientReading]) -> list[GpuProcessReading]:
    by_pid: dict[int, list[ClientReading]] = {}
    for client in clients:
        by_pid.setdefault(client.pid, []).append(client)
    processes = []
    for pid, own in sorted(by_pid.items()):
        shares = [client.shares for client in own if client.shares is not None]
        percent = find_busiest(shares) if shares else None
        kind = name_kind(engine for client in own for engine in client.engines)
        processes.append(GpuProcessReading(uuid, pid, _add_bytes(own), percent, kind))
    return processes


def _add_bytes(clients: list[ClientReading]) -> int:
    return sum(
        add_device_bytes(client.memory_bytes, is_integrated=not has_card_memory(client.memory_bytes))
        for client in clients
    )


def _describe_devices(roots: Roots) -> tuple[Device, ...]:
    devices: list[Device] = []
    for ordinal, card in enumerate(find_cards(roots.sys, _VENDOR_ID)):
        gpu = Gpu(
            ordinal,
            f"pci-{card.bus_id}",
            f"Intel GPU {card.device_id}",
            _find_memory_bytes(card),
            vendor="intel",
            source=NAME,
            bus_id=card.bus_id,
            driver=find_driver_version(roots.sys, roots.proc, card.driver),
        )
        figures = find_gauges(_list_figures(card))
        if not figures["used_bytes"]:
            del figures["used_bytes"]  # known from the clients
        if not figures["power_watts"] and figures["energy_joules"]:
            del figures["power_watts"]  # known from the energy
        devices.append(Device(gpu, card, f"Intel GPU {ordinal}", figures, find_gauges(_list_details(card))))
    return tuple(devices)


def _find_memory_bytes(card: Card) -> int | None:
    """Size of the card's own memory, where a driver tells: an integrated GPU has none."""
    candidates = [
        (_find_in_tiles(card, "vram0/total_bytes"), parse_bytes),
        (_find_in_tiles(card, "physical_vram_size_bytes"), parse_bytes),
        ((f"{card.path}/lmem_total_bytes",), parse_bytes),
    ]
    gauges = find_gauges({"memory_bytes": candidates})["memory_bytes"]
    try:
        return int(read_gauges(gauges)) if gauges else None
    except (OSError, ValueError):
        return None


def _list_figures(card: Card) -> Candidates:
    sensors = card.hwmon
    return {
        "used_bytes": [(_find_in_tiles(card, "vram0/used_bytes"), parse_bytes)],
        "power_watts": [(f"{sensors}/power1_input", parse_micro)],
        # First the whole card, then the chip alone.
        "energy_joules": [
            (f"{sensors}/energy1_input", parse_micro),
            (f"{sensors}/energy2_input", parse_micro),
        ],
        "temperature_celsius": [
            (f"{sensors}/temp1_input", parse_celsius),
            (f"{sensors}/temp2_input", parse_celsius),
        ],
        "sm_clock_mhz": [
            (f"{card.path}/device/tile0/gt0/freq0/act_freq", parse_megahertz),
            (f"{card.path}/gt/gt0/rps_act_freq_mhz", parse_megahertz),
            (f"{card.path}/gt_act_freq_mhz", parse_megahertz),
        ],
    }


def _list_details(card: Card) -> Candidates:
    sensors = card.hwmon
    return {
        "power.limit": [(f"{sensors}/power1_max", _parse_limit), (f"{sensors}/power2_max", _parse_limit)],
        "temperature.memory": [(f"{sensors}/temp3_input", parse_celsius)],
        "clocks.max.graphics": [
            (f"{card.path}/device/tile0/gt0/freq0/rp0_freq", parse_megahertz),
            (f"{card.path}/gt/gt0/rps_RP0_freq_mhz", parse_megahertz),
            (f"{card.path}/gt_RP0_freq_mhz", parse_megahertz),
        ],
        "pcie.link.width.current": [(f"{card.path}/device/current_link_width", parse_bytes)],
    }


def _find_in_tiles(card: Card, name: str) -> tuple[str, ...]:
    """The same file of every tile: a card may be made of several."""
    try:
        entries = sorted(os.listdir(f"{card.path}/device"))
    except OSError:
        return ()
    return tuple(
        f"{card.path}/device/{entry}/{name}"
        for entry in entries
        if entry[:4] == "tile" and entry[4:].isdigit()
    )


def _parse_limit(text: bytes) -> float | None:
    """Watts; 0 means that there is no limit."""
    return parse_micro(text) or None

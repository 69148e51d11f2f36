"""Intel on Linux, from the files of the i915 and xe drivers: no Level Zero, no root, no vendor package.

The drivers report a card's utilization to root only, and its memory in use rarely. DRM reports both per process;
a card's figures are the sum over the processes that this user may see, and a note says so.
"""

from __future__ import annotations

import os

from ...core.model import GpuProcessReading, GpuReadings
from .cards import CardSource
from .drm import add_device_bytes, find_share, has_card_memory, name_kind
from .sysfs import (
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
    from .. import Roots
    from .drm import ClientReading
    from .sysfs import Candidates, Card, Device, Gauge

NAME = "intel"


class IntelSource(CardSource):
    """Every Intel GPU that has a driver, integrated or on a card."""

    name = NAME
    label = "Intel"
    vendor_id = b"0x8086"
    drivers = frozenset({"i915", "xe"})

    def __init__(self, now: Callable[[], float], roots: Roots) -> None:
        super().__init__(now, roots)
        self._energies: dict[str, tuple[float, float]] = {}
        """By uuid: the time of the last energy reading, and its value."""

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """Read every GPU, and what these processes use of it."""
        awake = self._panel.find_awake()
        asleep = frozenset(gpu.bus_id for gpu in self.gpus) - {device.gpu.bus_id for device in awake}
        clients: dict[str, list[ClientReading]] = {}
        for client in self._clients.read(pids, asleep, of_all=True):
            clients.setdefault(client.bus_id, []).append(client)
        devices: list[GpuReading] = []
        processes: list[GpuProcessReading] = []
        for device in awake:
            on_device = clients.get(device.gpu.bus_id, [])
            devices.append(self._complete(device, self._panel.take_reading(device), on_device))
            on_device = [client for client in on_device if pids is None or client.pid in pids]
            processes += _describe_processes(device.gpu.uuid, on_device)
            if on_device:
                self._note_sum(device)
        self._note_denied()
        return GpuReadings(
            self._now(), tuple(devices), tuple(processes), asleep=self._panel.find_asleep(awake)
        )

    def _identify(self, card: Card) -> tuple[str | None, str | None, int | None]:
        return None, None, _find_memory_bytes(card)

    def _find_figures(self, card: Card) -> dict[str, tuple[Gauge, ...]]:
        sensors = card.hwmon
        candidates: Candidates = {
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
        figures = find_gauges(candidates)
        if not figures["used_bytes"]:
            del figures["used_bytes"]  # the sum over the clients
        if not figures["power_watts"] and figures["energy_joules"]:
            del figures["power_watts"]  # derived from the energy
        return figures

    def _find_limits(self, card: Card) -> dict[str, tuple[Gauge, ...]]:
        sensors = card.hwmon
        candidates: Candidates = {
            "power_limit_watts": [
                (f"{sensors}/power1_max", _parse_limit),
                (f"{sensors}/power2_max", _parse_limit),
            ],
            "top_sm_clock_mhz": [
                (f"{card.path}/device/tile0/gt0/freq0/rp0_freq", parse_megahertz),
                (f"{card.path}/gt/gt0/rps_RP0_freq_mhz", parse_megahertz),
                (f"{card.path}/gt_RP0_freq_mhz", parse_megahertz),
            ],
            "slowdown_celsius": [
                (f"{sensors}/temp1_crit", parse_celsius),
                (f"{sensors}/temp2_crit", parse_celsius),
            ],
        }
        return find_gauges(candidates)

    def _find_details(self, card: Card) -> dict[str, tuple[Gauge, ...]]:
        limits = self._find_limits(card)
        candidates: Candidates = {
            "temperature.memory": [(f"{card.hwmon}/temp3_input", parse_celsius)],
            "pcie.link.width.current": [(f"{card.path}/device/current_link_width", parse_bytes)],
        }
        return {
            "power.limit": limits["power_limit_watts"],
            "clocks.max.graphics": limits["top_sm_clock_mhz"],
            **find_gauges(candidates),
        }

    def _complete(self, device: Device, reading: GpuReading, clients: list[ClientReading]) -> GpuReading:
        """Fill in figures without a file: utilization and memory from the clients, power from the energy."""
        percent = find_share(clients) if clients else 0.0
        # The kernel counts the time that engines are busy, so it is the mean since the last reading.
        samples = None if percent is None else ((self._now(), percent),)
        reading = reading._replace(utilization_percent=percent, samples=samples)
        if not device.gauges.get("used_bytes"):
            reading = reading._replace(used_bytes=_add_bytes(clients))
        if reading.power_watts is None:
            reading = reading._replace(power_watts=self._derive_power(device.gpu.uuid, reading.energy_joules))
        return reading

    def _derive_power(self, uuid: str, energy_joules: float | None) -> float | None:
        """Mean since the last reading, from the counter."""
        if energy_joules is None:
            return None
        now = self._now()
        then, before_joules = self._energies.get(uuid, (now, energy_joules))
        self._energies[uuid] = (now, energy_joules)
        grown = energy_joules - before_joules
        return grown / (now - then) if now > then and grown >= 0 else None

    def _note_sum(self, device: Device) -> None:
        """Only once the job uses it: a laptop's idle GPU is not worth a note."""
        what = "utilization" if device.gauges.get("used_bytes") else "utilization and memory in use"
        self._panel.guard.say(
            device.gpu.uuid,
            "summed",
            f"{device.label} does not report {what}: shown is the sum over the processes that this user may see "
            "(as root: all processes).",
        )


def _describe_processes(uuid: str, clients: list[ClientReading]) -> list[GpuProcessReading]:
    by_pid: dict[int, list[ClientReading]] = {}
    for client in clients:
        by_pid.setdefault(client.pid, []).append(client)
    processes = []
    for pid, own in sorted(by_pid.items()):
        kind = name_kind(engine for client in own for engine in client.engines)
        processes.append(GpuProcessReading(uuid, pid, _add_bytes(own), find_share(own), kind))
    return processes


def _add_bytes(clients: list[ClientReading]) -> int:
    return sum(
        add_device_bytes(client.memory_bytes, is_integrated=not has_card_memory(client.memory_bytes))
        for client in clients
    )


def _find_memory_bytes(card: Card) -> int | None:
    """Size of the card's memory, if the driver reports it; an integrated GPU has none."""
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


def _find_in_tiles(card: Card, name: str) -> tuple[str, ...]:
    """The same file in every tile; a card may have several."""
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
    """Watts; 0 means no limit."""
    return parse_micro(text) or None


why_absent = IntelSource.why_absent
connect = IntelSource.connect

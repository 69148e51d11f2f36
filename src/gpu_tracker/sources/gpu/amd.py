"""AMD on Linux, from the files of the amdgpu driver: no ROCm, no root, no vendor package.

Of a process KFD (ROCm's part of the kernel) tells the memory, and DRM tells memory and engines. Both may tell of the
same memory, so the larger counts, never the sum. ROCm's queues go past the engines' clocks: whose engines stand still
while it holds memory through KFD, of that process the utilization is not known.
"""

from __future__ import annotations

import os

from ...core.model import Gpu, GpuProcessReading, GpuReadings
from .. import NotAvailableError, Roots
from ..files import read_file
from .cards import CardSource, why_no_cards
from .drm import add_device_bytes, find_busiest, name_kind
from .evidence import is_in_a_container
from .sysfs import (
    Device,
    find_cards,
    find_driver_version,
    find_gauges,
    parse_bytes,
    parse_celsius,
    parse_fan,
    parse_hertz,
    parse_megahertz,
    parse_micro,
    parse_percent,
    parse_words,
    read_if_there,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .drm import ClientReading
    from .sysfs import Candidates, Card

NAME = "amd"

_ROOTS = Roots()
_VENDOR_ID = b"0x1002"
_DRIVERS = frozenset({"amdgpu", "radeon"})


# ---- Parsers: bytes of a file → a value, or None where they make no sense. Pure.


def parse_clock(text: bytes) -> float | None:
    """MHz of the starred line of `pp_dpm_sclk`, such as `1: 1000Mhz *`."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == b"*":
            return _parse_level(words[1])
    return None


def parse_highest_clock(text: bytes) -> float | None:
    """MHz of the fastest line of `pp_dpm_sclk`."""
    levels = [_parse_level(words[1]) for words in map(bytes.split, text.splitlines()) if len(words) > 1]
    return max((level for level in levels if level is not None), default=None)


def parse_unique_id(text: bytes) -> str | None:
    """The name that ROCm itself gives to a card, `GPU-` and 16 digits; cards without a number have none."""
    word = text.strip().lower()
    digits = word[2:] if word.startswith(b"0x") else word
    if not 0 < len(digits) <= 16 or digits.strip(b"0123456789abcdef") or not digits.strip(b"0"):
        return None
    return f"GPU-{digits.decode().zfill(16)}"


def parse_node_bus_id(properties: bytes) -> str | None:
    """The PCI address of a node of KFD's topology."""
    numbers = {}
    for line in properties.splitlines():
        name, _, value = line.partition(b" ")
        numbers[name] = parse_bytes(value)
    location, domain = numbers.get(b"location_id"), numbers.get(b"domain", 0)
    if location is None or domain is None or location > 0xFFFF:
        return None
    return f"{domain:04x}:{location >> 8:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"


def _parse_level(word: bytes) -> float | None:
    return parse_megahertz(word[:-3]) if word[-3:].lower() == b"mhz" else None


# ---- The source.


def why_absent(roots: Roots = _ROOTS) -> str | None:
    """A reason not to try, or None."""
    return why_no_cards(roots, _VENDOR_ID, "AMD")


def connect(now: Callable[[], float], roots: Roots = _ROOTS) -> AmdSource:
    """Every AMD card there is, or the reason why there is none."""
    reason = why_absent(roots)
    if reason:
        raise NotAvailableError(reason)
    return AmdSource(now, roots)


class AmdSource(CardSource):
    """Every AMD card that has a driver."""

    def __init__(self, now: Callable[[], float], roots: Roots) -> None:
        super().__init__(now, roots, _describe_devices(roots), _DRIVERS)
        self._integrated = frozenset(
            device.gpu.bus_id for device in self._panel.devices if _is_integrated(device.card)
        )
        self._kfd = _Kfd(roots)

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """Look at every card, and at what these processes do there."""
        awake = self._panel.find_awake()
        devices = tuple(map(self._panel.take_reading, awake))
        uuids = {device.gpu.bus_id: device.gpu.uuid for device in awake}
        asleep = frozenset(gpu.bus_id for gpu in self.gpus if gpu.bus_id not in uuids)
        clients: dict[tuple[str, int], list[ClientReading]] = {}
        for client in self._clients.read(pids, asleep):
            clients.setdefault((client.bus_id, client.pid), []).append(client)
        computing = self._kfd.read(pids)
        processes = tuple(
            self._describe_process(
                uuids[bus_id], pid, clients.get((bus_id, pid), []), computing.get((bus_id, pid))
            )
            for bus_id, pid in sorted(clients.keys() | computing.keys())
            if bus_id in uuids
        )
        self._say_what_is_hidden()
        return GpuReadings(self._now(), devices, processes)

    def _describe_process(
        self, uuid: str, pid: int, clients: list[ClientReading], computing_bytes: int | None
    ) -> GpuProcessReading:
        drawing_bytes = sum(
            add_device_bytes(client.memory_bytes, is_integrated=client.bus_id in self._integrated)
            for client in clients
        )
        shares = [client.shares for client in clients if client.shares is not None]
        percent = find_busiest(shares) if shares else None
        return GpuProcessReading(
            uuid,
            pid,
            max(drawing_bytes, computing_bytes or 0),
            percent if percent or not computing_bytes else None,
            name_kind(
                (engine for client in clients for engine in client.engines), computes=bool(computing_bytes)
            ),
        )

    def _say_what_is_hidden(self) -> None:
        self._note_who_is_denied()
        if self._kfd.is_hidden_by_container:
            self._panel.guard.say(
                "",
                "kfd",
                "ROCm's list of processes names them as the machine does, not as this container does, so it is not "
                "used; start the container with `--pid=host` if memory of the job on an AMD GPU is missing.",
            )


class _Kfd:
    """What processes hold through ROCm. The kernel names them by the machine's pids, also in a container."""

    def __init__(self, roots: Roots) -> None:
        self._directory = f"{roots.sys}/class/kfd/kfd/proc"
        self._bus_ids = _map_nodes(f"{roots.sys}/class/kfd/kfd/topology/nodes")
        self._is_nested = is_in_a_container(roots.proc)
        self.is_hidden_by_container = False

    def read(self, pids: frozenset[int] | None) -> dict[tuple[str, int], int]:
        """Bytes by bus id and pid, without those that hold nothing: KFD lists a process on every card there is."""
        held: dict[tuple[str, int], int] = {}
        if not self._bus_ids:
            return held
        try:
            listed = {int(name) for name in os.listdir(self._directory) if name.isdecimal()}
        except OSError:
            return held
        if self._is_nested:
            # A number that is in both lists would be two different processes.
            self.is_hidden_by_container = bool(listed)
            return held
        for pid in listed if pids is None else listed & pids:
            for gpu_id, bus_id in self._bus_ids.items():
                try:
                    size = parse_bytes(read_file(f"{self._directory}/{pid}/vram_{gpu_id}"))
                except OSError:
                    continue  # it has ended, or the card is not its own
                if size:
                    held[bus_id, pid] = held.get((bus_id, pid), 0) + size
        return held


def _describe_devices(roots: Roots) -> tuple[Device, ...]:
    devices: list[Device] = []
    for ordinal, card in enumerate(find_cards(roots.sys, _VENDOR_ID)):
        files = f"{card.path}/device"
        sizes = [f"{files}/mem_info_vram_total"]
        if _is_integrated(card):
            sizes.append(f"{files}/mem_info_gtt_total")
        own_id = read_if_there(parse_unique_id, f"{files}/unique_id")
        is_taken = own_id in [device.gpu.uuid for device in devices]
        gpu = Gpu(
            ordinal,
            own_id if own_id and not is_taken else f"pci-{card.bus_id}",
            read_if_there(parse_words, f"{files}/product_name") or f"AMD GPU {card.device_id}",
            read_if_there(parse_bytes, *sizes),
            vendor="amd",
            source=NAME,
            bus_id=card.bus_id,
            driver=find_driver_version(roots.sys, roots.proc, card.driver),
        )
        label = f"AMD GPU {ordinal}"
        devices.append(
            Device(gpu, card, label, find_gauges(_list_figures(card)), find_gauges(_list_details(card)))
        )
    return tuple(devices)


def _list_figures(card: Card) -> Candidates:
    files, sensors = f"{card.path}/device", card.hwmon
    used: tuple[str, ...] = (f"{files}/mem_info_vram_used",)
    if _is_integrated(card):
        used = (*used, f"{files}/mem_info_gtt_used")
    return {
        "used_bytes": [(used, parse_bytes)],
        "utilization_percent": [(f"{files}/gpu_busy_percent", parse_percent)],
        "memory_utilization_percent": [(f"{files}/mem_busy_percent", parse_percent)],
        "power_watts": [(f"{sensors}/power1_average", parse_micro), (f"{sensors}/power1_input", parse_micro)],
        "energy_joules": [(f"{sensors}/energy1_input", parse_micro)],
        # Accelerators have no sensor at the edge; the second is at the hottest spot.
        "temperature_celsius": [
            (f"{sensors}/temp1_input", parse_celsius),
            (f"{sensors}/temp2_input", parse_celsius),
        ],
        "sm_clock_mhz": [(f"{files}/pp_dpm_sclk", parse_clock), (f"{sensors}/freq1_input", parse_hertz)],
        "memory_clock_mhz": [(f"{files}/pp_dpm_mclk", parse_clock), (f"{sensors}/freq2_input", parse_hertz)],
    }


def _list_details(card: Card) -> Candidates:
    files, sensors = f"{card.path}/device", card.hwmon
    return {
        "power.limit": [(f"{sensors}/power1_cap", parse_micro)],
        "fan.speed": [(f"{sensors}/pwm1", parse_fan)],
        "temperature.memory": [(f"{sensors}/temp3_input", parse_celsius)],
        "clocks.max.graphics": [(f"{files}/pp_dpm_sclk", parse_highest_clock)],
        "clocks.max.memory": [(f"{files}/pp_dpm_mclk", parse_highest_clock)],
        "pcie.link.width.current": [(f"{files}/current_link_width", parse_bytes)],
        "vbios_version": [(f"{files}/vbios_version", parse_words)],
    }


def _is_integrated(card: Card) -> bool:
    """Whether it is a part of the processor, whose video memory is a piece of RAM and most of whose memory is not it.

    Only such have a sensor for the voltage of the processor's north bridge; the driver says so, not the sizes.
    """
    return bool(read_if_there(parse_words, f"{card.hwmon}/in1_label") == "vddnb")


def _map_nodes(directory: str) -> dict[str, str]:
    """KFD's numbers of the cards → their bus ids. Processors are nodes too, with the number 0."""
    try:
        names = os.listdir(directory)
    except OSError:
        return {}
    bus_ids = {}
    for name in names:
        gpu_id = read_if_there(parse_bytes, f"{directory}/{name}/gpu_id")
        bus_id = read_if_there(parse_node_bus_id, f"{directory}/{name}/properties") if gpu_id else None
        if bus_id:
            bus_ids[str(gpu_id)] = bus_id
    return bus_ids

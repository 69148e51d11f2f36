"""AMD on Linux, from the files of the amdgpu driver: no ROCm, no root, no vendor package.

Per process, KFD (ROCm's part of the kernel) reports memory, and DRM reports memory and engines. Both may report the
same memory, so the larger counts, never the sum. ROCm's queues bypass the engines' clocks: if a process holds memory
through KFD while its engines are idle, its utilization is unknown.
"""

from __future__ import annotations

import os

from ...core.model import GpuProcessReading, GpuReading, GpuReadings
from ..files import read_file
from .cards import CardSource
from .drm import add_device_bytes, find_share, name_kind
from .evidence import is_in_a_container
from .guard import DENIED
from .sysfs import (
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
    from collections.abc import Callable, Sequence

    from .. import Roots
    from .drm import ClientReading
    from .sysfs import Candidates, Card, Device, Gauge

NAME = "amd"
_HIDDEN = (
    "ROCm lists processes by their IDs on the host, not in this container, so its list is not used. "
    "If the job's memory on an AMD GPU is missing, start the container with `--pid=host`."
)


# ---- Parsers: bytes of a file → a value, or None if they are invalid. Pure.


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
    """ROCm's own name for a card, `GPU-` and 16 digits; None if the card has no number."""
    word = text.strip().lower()
    digits = word[2:] if word.startswith(b"0x") else word
    if not 0 < len(digits) <= 16 or digits.strip(b"0123456789abcdef") or not digits.strip(b"0"):
        return None
    return f"GPU-{digits.decode().zfill(16)}"


def parse_node_bus_id(properties: bytes) -> str | None:
    """The PCI address of a node in KFD's topology."""
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


class AmdSource(CardSource):
    """Every AMD card that has a driver."""

    name = NAME
    label = "AMD"
    vendor_id = b"0x1002"
    drivers = frozenset({"amdgpu", "radeon"})

    def __init__(self, now: Callable[[], float], roots: Roots) -> None:
        super().__init__(now, roots)
        self._integrated = frozenset(
            device.gpu.bus_id for device in self._panel.devices if _is_integrated(device.card)
        )
        self._kfd = _Kfd(roots)

    def read(self, pids: frozenset[int] | None) -> GpuReadings:
        """Read every card, and what these processes use of it."""
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
                uuids[bus_id], pid, clients.get((bus_id, pid), []), computing.get((bus_id, pid), 0)
            )
            for bus_id, pid in sorted(clients.keys() | computing.keys())
            if bus_id in uuids
        )
        self._note_hidden()
        for uuid in {process.uuid for process in processes if process.used_bytes is None}:
            self._panel.guard.say(
                uuid,
                "process_used_bytes",
                "The memory that a process holds through ROCm is not known: its file below "
                f"{self._kfd.directory} cannot be read.",
            )
        listed = self._without_lists(devices, awake, processes)
        return GpuReadings(self._now(), listed, processes, asleep=self._panel.find_asleep(awake))

    def _without_lists(
        self,
        readings: tuple[GpuReading, ...],
        awake: Sequence[Device],
        processes: tuple[GpuProcessReading, ...],
    ) -> tuple[GpuReading, ...]:
        """Without ROCm's list, only what the job holds through DRM is known, if anything."""
        if not self._kfd.is_hidden_by_container:
            return readings
        known = {process.uuid for process in processes if process.used_bytes}
        hidden = {device.gpu.uuid for device in awake if self._kfd.is_on(device.gpu.bus_id)} - known
        for uuid in hidden:
            self._panel.guard.reasons[uuid, "lists_processes"] = _HIDDEN
            self._panel.guard.kinds[uuid, "lists_processes"] = DENIED
        return tuple(
            reading._replace(lists_processes=False, measures_processes=False)
            if reading.uuid in hidden
            else reading
            for reading in readings
        )

    def _identify(self, card: Card) -> tuple[str | None, str | None, int | None]:
        files = f"{card.path}/device"
        sizes = [f"{files}/mem_info_vram_total"]
        if _is_integrated(card):
            sizes.append(f"{files}/mem_info_gtt_total")
        return (
            read_if_there(parse_unique_id, f"{files}/unique_id"),
            read_if_there(parse_words, f"{files}/product_name"),
            read_if_there(parse_bytes, *sizes),
        )

    def _find_figures(self, card: Card) -> dict[str, tuple[Gauge, ...]]:
        files, sensors = f"{card.path}/device", card.hwmon
        used: tuple[str, ...] = (f"{files}/mem_info_vram_used",)
        if _is_integrated(card):
            used = (*used, f"{files}/mem_info_gtt_used")
        candidates: Candidates = {
            "used_bytes": [(used, parse_bytes)],
            "utilization_percent": [(f"{files}/gpu_busy_percent", parse_percent)],
            "memory_utilization_percent": [(f"{files}/mem_busy_percent", parse_percent)],
            "power_watts": [
                (f"{sensors}/power1_average", parse_micro),
                (f"{sensors}/power1_input", parse_micro),
            ],
            "energy_joules": [(f"{sensors}/energy1_input", parse_micro)],
            # Accelerators have no edge sensor; the second is at the hottest spot.
            "temperature_celsius": [
                (f"{sensors}/temp1_input", parse_celsius),
                (f"{sensors}/temp2_input", parse_celsius),
            ],
            "sm_clock_mhz": [(f"{files}/pp_dpm_sclk", parse_clock), (f"{sensors}/freq1_input", parse_hertz)],
            "memory_clock_mhz": [
                (f"{files}/pp_dpm_mclk", parse_clock),
                (f"{sensors}/freq2_input", parse_hertz),
            ],
        }
        return find_gauges(candidates)

    def _find_limits(self, card: Card) -> dict[str, tuple[Gauge, ...]]:
        files, sensors = f"{card.path}/device", card.hwmon
        candidates: Candidates = {
            "power_limit_watts": [(f"{sensors}/power1_cap", parse_micro)],
            "top_sm_clock_mhz": [(f"{files}/pp_dpm_sclk", parse_highest_clock)],
            "slowdown_celsius": [
                (f"{sensors}/temp1_crit", parse_celsius),
                (f"{sensors}/temp2_crit", parse_celsius),
            ],
        }
        return find_gauges(candidates)

    def _find_details(self, card: Card) -> dict[str, tuple[Gauge, ...]]:
        files, sensors = f"{card.path}/device", card.hwmon
        candidates: Candidates = {
            "power.limit": [(f"{sensors}/power1_cap", parse_micro)],
            "fan.speed": [(f"{sensors}/pwm1", parse_fan)],
            "temperature.memory": [(f"{sensors}/temp3_input", parse_celsius)],
            "clocks.max.graphics": [(f"{files}/pp_dpm_sclk", parse_highest_clock)],
            "clocks.max.memory": [(f"{files}/pp_dpm_mclk", parse_highest_clock)],
            "pcie.link.width.current": [(f"{files}/current_link_width", parse_bytes)],
            "vbios_version": [(f"{files}/vbios_version", parse_words)],
        }
        return find_gauges(candidates)

    def _describe_process(
        self, uuid: str, pid: int, clients: list[ClientReading], computing_bytes: int | None
    ) -> GpuProcessReading:
        drawing_bytes = sum(
            add_device_bytes(client.memory_bytes, is_integrated=client.bus_id in self._integrated)
            for client in clients
        )
        percent = find_share(clients)
        return GpuProcessReading(
            uuid,
            pid,
            None if computing_bytes is None else max(drawing_bytes, computing_bytes),
            percent if percent or computing_bytes == 0 else None,
            name_kind(
                (engine for client in clients for engine in client.engines), computes=computing_bytes != 0
            ),
        )

    def _note_hidden(self) -> None:
        self._note_denied()
        if self._kfd.is_hidden_by_container:
            self._panel.guard.say("", "kfd", _HIDDEN)


class _Kfd:
    """Memory held through ROCm. The kernel lists processes by the host's pids, even in a container."""

    def __init__(self, roots: Roots) -> None:
        self.directory = f"{roots.sys}/class/kfd/kfd/proc"
        self._bus_ids = _map_nodes(f"{roots.sys}/class/kfd/kfd/topology/nodes")
        self._is_nested = is_in_a_container(roots.proc)
        self.is_hidden_by_container = False

    def is_on(self, bus_id: str) -> bool:
        """Whether ROCm can use this card."""
        return bus_id in self._bus_ids.values()

    def read(self, pids: frozenset[int] | None) -> dict[tuple[str, int], int | None]:
        """Bytes by bus id and pid, without zeros: KFD lists every process on every card. None if unreadable."""
        held: dict[tuple[str, int], int | None] = {}
        if not self._bus_ids:
            return held
        try:
            listed = {int(name) for name in os.listdir(self.directory) if name.isdecimal()}
        except OSError:
            return held
        if self._is_nested:
            # The same pid here and on the host is two different processes.
            self.is_hidden_by_container = bool(listed)
            return held
        for pid in listed if pids is None else listed & pids:
            silent = self._find_silent(pid)
            for gpu_id, bus_id in self._bus_ids.items():
                try:
                    size = parse_bytes(read_file(f"{self.directory}/{pid}/vram_{gpu_id}"))
                except (FileNotFoundError, ProcessLookupError):
                    if gpu_id not in silent:
                        continue  # it has ended, or does not use this card
                    size = None
                except OSError:
                    size = None
                if size != 0:
                    known = held.get((bus_id, pid), 0)
                    held[bus_id, pid] = None if size is None or known is None else known + size
        return held

    def _find_silent(self, pid: int) -> set[str]:
        """The cards on which a process works, where the kernel is too old to tell its memory: it has no file of any."""
        directory = f"{self.directory}/{pid}"
        try:
            if any(name.startswith("vram_") for name in os.listdir(directory)):
                return set()
            queues = os.listdir(f"{directory}/queues")
        except OSError:  # it has ended, or has no queues
            return set()
        numbers = (read_if_there(parse_bytes, f"{directory}/queues/{queue}/gpuid") for queue in queues)
        return {str(number) for number in numbers}


def _is_integrated(card: Card) -> bool:
    """Whether the GPU is part of the processor and works mostly in RAM.

    Only those have a voltage sensor of the processor's north bridge; memory sizes do not show it.
    """
    return bool(read_if_there(parse_words, f"{card.hwmon}/in1_label") == "vddnb")


def _map_nodes(directory: str) -> dict[str, str]:
    """KFD's number of each card → its bus id. Processors are nodes, too, with the number 0."""
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


why_absent = AmdSource.why_absent
connect = AmdSource.connect

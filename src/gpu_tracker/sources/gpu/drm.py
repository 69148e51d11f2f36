"""Memory and engine time of processes on cards of any vendor, from the DRM lines of `/proc/PID/fdinfo/FD` on Linux.

An open `/dev/dri` file is a DRM client. It may have several descriptors, by `dup` or inheritance, in several
processes; its client id shows that they are one. Users may read their own processes without being root.
"""

from __future__ import annotations

import os

from ...core.values import NamedTuple
from ..files import read_file
from ..processes import list_pids
from .sysfs import parse_bytes, parse_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_NODES = "/dev/dri/"
_UNITS = {b"KiB": 1024, b"MiB": 1024 * 1024}
# Names of a memory region's size, the best first: resident now, its old name, requested.
_SIZES = (b"resident", b"memory", b"total")
_ON_THE_CARD = ("vram", "local")
_IN_RAM = ("gtt", "system", "stolen", "memory")
_COMPUTE_ENGINES = ("compute", "ccs")
_GRAPHICS_ENGINES = ("gfx", "render", "rcs")
# Scanning 205 descriptors costs 1.1 ms, reading one client 12 us. So descriptors are rescanned rarely: soon for a
# young process (it may not have opened the card yet), at growing intervals later; and where the kernel gives their
# number (the size of the directory, since Linux 6.2), only if that has changed.
_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 4.0
_LONGEST_TRUST_SECONDS = 16.0
# A counter further behind than this many readings is not late but wrong.
_MOST_READINGS_BEHIND = 20


# ---- Parsers. Pure.


class Client(NamedTuple):
    """The kernel's figures of one open file of a graphics card."""

    driver: str
    bus_id: str
    client_id: int | None
    busy_nanoseconds: Mapping[str, int]
    """A counter per engine class."""
    capacities: Mapping[str, int]
    """Number of engines in a class, if more than one."""
    cycles: Mapping[str, tuple[int, int]]
    """Two counters per engine class: busy cycles and all cycles."""
    memory_bytes: Mapping[str, int]
    """By memory region."""


def parse_fdinfo(text: bytes) -> Client | None:
    """A client, or None if the file is not one. Invalid lines are ignored."""
    if b"drm-driver:" not in text:
        return None
    driver, bus_id, client_id = "", "", None
    busy: dict[str, int] = {}
    capacities: dict[str, int] = {}
    busy_cycles: dict[str, int] = {}
    all_cycles: dict[str, int] = {}
    sizes: dict[bytes, dict[str, int]] = {size: {} for size in _SIZES}
    for line in text.splitlines():
        key, colon, value = line.partition(b":")
        if not colon or not key.startswith(b"drm-"):
            continue
        kind, _, name = key[4:].partition(b"-")
        if kind == b"driver":
            driver = parse_words(value) or ""
        elif kind == b"pdev":
            bus_id = parse_words(value) or ""
        elif key == b"drm-client-id":
            client_id = parse_bytes(value)
        elif kind == b"engine" and name.startswith(b"capacity-"):
            _put(capacities, name[9:], _parse_count(value) or 1)
        elif kind == b"engine":
            _put(busy, name, _parse_count(value))
        elif kind == b"cycles":
            _put(busy_cycles, name, _parse_count(value))
        elif kind == b"total" and name.startswith(b"cycles-"):
            _put(all_cycles, name[7:], _parse_count(value))
        elif kind in sizes:
            _put(sizes[kind], name, parse_size(value))
    if not driver:
        return None
    memory = {**sizes[b"total"], **sizes[b"memory"], **sizes[b"resident"]}
    cycles = {
        engine: (busy_cycles[engine], all_cycles[engine]) for engine in busy_cycles if engine in all_cycles
    }
    return Client(driver, bus_id, client_id, busy, capacities, cycles, memory)


def parse_size(text: bytes) -> int | None:
    """Bytes of `12 KiB`, `3 MiB` or `4096`."""
    words = text.split()
    if not words or len(words) > 2:
        return None
    unit = _UNITS.get(words[1]) if len(words) == 2 else 1
    count = parse_bytes(words[0])
    return None if unit is None or count is None else count * unit


def add_device_bytes(memory_bytes: Mapping[str, int], *, is_integrated: bool) -> int:
    """Bytes that a client holds on the card; for a GPU without its own memory, also in RAM.

    Other regions (`cpu`: evicted from the GPU; `gds`, `doorbell`: not memory) do not count.
    """
    families = _ON_THE_CARD + _IN_RAM if is_integrated else _ON_THE_CARD
    return sum(size for region, size in memory_bytes.items() if region.startswith(families))


def has_card_memory(memory_bytes: Mapping[str, int]) -> bool:
    """Whether the driver reports memory on the card."""
    return any(region.startswith(_ON_THE_CARD) for region in memory_bytes)


def find_busiest(shares: Iterable[Mapping[str, float]]) -> float:
    """Percent of the busiest engine class, summed over clients.

    Summed over the classes, a job that copies while computing would use 200 % of a card.
    """
    sums: dict[str, float] = {}
    for share in shares:
        for engine, percent in share.items():
            sums[engine] = sums.get(engine, 0.0) + percent
    return min(100.0, max(sums.values(), default=0.0))


def find_share(clients: Iterable[ClientReading]) -> float | None:
    """Percent of the busiest engine class; None if no client has been read twice."""
    shares = [client.shares for client in clients if client.shares is not None]
    return find_busiest(shares) if shares else None


def name_kind(engines: Iterable[str], *, computes: bool = False) -> str:
    """Compute, graphics or both, by the engines used; graphics if none was used yet."""
    used = frozenset(engines)
    computes = computes or not used.isdisjoint(_COMPUTE_ENGINES)
    draws = not used.isdisjoint(_GRAPHICS_ENGINES) or not computes
    return "compute+graphics" if computes and draws else "compute" if computes else "graphics"


def advance(accepted: int, reported: int, full: int) -> int:
    """The accepted value of a counter that can have grown by at most `full` since the last one.

    A counter may go back (it then stands still until it catches up) and may be reported late (the excess is left for
    the next readings: none is above 100 %, and the mean stays right).
    """
    return max(accepted, min(reported, accepted + full), reported - _MOST_READINGS_BEHIND * full)


# ---- Reading.


class ClientReading(NamedTuple):
    """One client at one instant."""

    bus_id: str
    pid: int
    """The one process that it is attributed to."""
    memory_bytes: Mapping[str, int]
    engines: tuple[str, ...]
    """The engine classes that it has used."""
    shares: Mapping[str, float] | None
    """Percent of each engine class since the last reading; None at the first."""


class _Process:
    """The clients of a process."""

    __slots__ = ("bus_ids", "fds", "n_open", "pause_seconds", "scan_at_seconds", "scanned_seconds")

    def __init__(self) -> None:
        self.fds: dict[int, str] = {}
        """Descriptor → the card's bus id; one per client."""
        self.bus_ids: dict[str, str] = {}
        """Device node → the card's bus id."""
        self.n_open = -1
        self.pause_seconds = 0.0
        self.scan_at_seconds = self.scanned_seconds = float("-inf")


class _Meter:
    """The counters of one client at the last reading."""

    __slots__ = ("accepted", "at_seconds", "owner_pid", "shares", "totals")

    def __init__(self) -> None:
        self.owner_pid = 0
        self.at_seconds: float | None = None
        self.accepted: dict[str, int] = {}
        self.totals: dict[str, int] = {}
        self.shares: dict[str, float] | None = None

    def take(self, client: Client, at_seconds: float) -> None:
        """Take a reading of the counters."""
        is_first = self.at_seconds is None
        elapsed = 0 if self.at_seconds is None else int((at_seconds - self.at_seconds) * 1e9)
        if not is_first and elapsed <= 0:
            return
        self.at_seconds = at_seconds
        shares = {}
        for engine, reported in client.busy_nanoseconds.items():
            if engine not in client.cycles:
                shares[engine] = self._advance(engine, reported, elapsed * client.capacities.get(engine, 1))
        for engine, (reported, total) in client.cycles.items():
            # The card's own clock is more accurate than the machine's.
            passed = max(0, total - self.totals.get(engine, total))
            self.totals[engine] = total
            shares[engine] = self._advance(engine, reported, passed * client.capacities.get(engine, 1))
        self.shares = None if is_first else shares

    def _advance(self, engine: str, reported: int, full: int) -> float:
        if full <= 0:
            # The first reading, or a stopped clock: the counter is accepted as it is, and nothing was used.
            self.accepted[engine] = max(reported, self.accepted.get(engine, 0))
            return 0.0
        # An engine is listed from its first use on, so a new one started at 0.
        before = self.accepted.get(engine, 0)
        after = self.accepted[engine] = advance(before, reported, full)
        return min(100.0, 100.0 * (after - before) / full)


class Clients:
    """The clients of these drivers, in all processes."""

    def __init__(self, now: Callable[[], float], proc: str, drivers: frozenset[str]) -> None:
        self._now = now
        self._proc = proc
        self._drivers = drivers
        self._processes: dict[int, _Process] = {}
        self._meters: dict[tuple[str, int], _Meter] = {}
        self.denied: set[int] = set()
        """Processes of other users among those asked for."""

    def read(
        self, pids: frozenset[int] | None, asleep: frozenset[str], *, of_all: bool = False
    ) -> tuple[ClientReading, ...]:
        """The clients of these processes (None: of all); with `of_all` also those of others.

        Clients of a sleeping card are left out: some drivers would wake it.
        """
        in_reach = list_pids(self._proc) if pids is None or of_all else pids
        for gone in self._processes.keys() - in_reach:
            del self._processes[gone]
        clients: dict[tuple[str, int], Client] = {}
        holders: dict[tuple[str, int], list[int]] = {}
        for pid in sorted(in_reach):
            is_asked_for = pids is not None and pid in pids
            for key, client in self._read_process(pid, asleep, is_asked_for=is_asked_for):
                clients.setdefault(key, client)
                holders.setdefault(key, []).append(pid)
        at = self._now()
        meters = {key: self._meters.get(key) or _Meter() for key in clients}
        self._meters = meters
        readings = []
        for key, client in clients.items():
            meter = meters[key]
            meter.take(client, at)
            meter.owner_pid = _choose_owner(holders[key], meter.owner_pid, pids)
            counters = (
                *client.busy_nanoseconds.items(),
                *((name, pair[0]) for name, pair in client.cycles.items()),
            )
            worked = tuple(engine for engine, count in counters if count)
            readings.append(
                ClientReading(client.bus_id, meter.owner_pid, client.memory_bytes, worked, meter.shares)
            )
        return tuple(readings)

    def _read_process(
        self, pid: int, asleep: frozenset[str], *, is_asked_for: bool
    ) -> list[tuple[tuple[str, int], Client]]:
        process = self._processes.get(pid)
        if process is None:
            process = self._processes[pid] = _Process()
        now = self._now()
        if now >= process.scan_at_seconds:
            self._scan_if_changed(pid, process, asleep, now, is_asked_for=is_asked_for)
        found: dict[tuple[str, int], Client] = {}
        for fd, bus_id in tuple(process.fds.items()):
            if bus_id in asleep:
                continue
            client = self._read_client(pid, fd)
            if client is None or client.driver not in self._drivers:
                # Closed, or reused for another file; a copy of the client may have another number.
                del process.fds[fd]
                process.n_open, process.scan_at_seconds = -1, float("-inf")
                continue
            # Without client ids copies look like clients: count one per card and process.
            number = -pid if client.client_id is None else client.client_id
            found.setdefault((client.bus_id, number), client)
        return list(found.items())

    def _scan_if_changed(
        self, pid: int, process: _Process, asleep: frozenset[str], now: float, *, is_asked_for: bool
    ) -> None:
        process.pause_seconds = min(_LONGEST_PAUSE_SECONDS, 2 * process.pause_seconds or _FIRST_PAUSE_SECONDS)
        process.scan_at_seconds = now + process.pause_seconds
        directory = f"{self._proc}/{pid}/fd"
        try:
            n_open = os.stat(directory).st_size
            if 0 < n_open == process.n_open and now < process.scanned_seconds + _LONGEST_TRUST_SECONDS:
                return
            process.n_open, process.scanned_seconds = n_open, now
            self._scan(pid, process, directory, asleep)
        except PermissionError:
            process.scan_at_seconds = now + _LONGEST_TRUST_SECONDS
            if is_asked_for and self._is_of_another_user(pid):
                self.denied.add(pid)
        except OSError:
            process.fds = {}  # it has ended

    def _scan(self, pid: int, process: _Process, directory: str, asleep: frozenset[str]) -> None:
        """Search a process's descriptors for clients of these drivers."""
        known, process.fds = process.fds, {}
        seen = set()
        for name in os.listdir(directory):
            try:
                node = os.readlink(f"{directory}/{name}")
            except OSError:
                continue
            if not node.startswith(_NODES) or not name.isdecimal():
                continue
            fd = int(name)
            if process.bus_ids.get(node) in asleep:
                if fd in known:
                    process.fds[fd] = known[fd]
                continue
            client = self._read_client(pid, fd)
            if client is None or client.driver not in self._drivers:
                continue
            process.bus_ids[node] = client.bus_id
            key = (client.bus_id, client.client_id)
            if key not in seen:
                seen.add(key)
                process.fds[fd] = client.bus_id

    def _read_client(self, pid: int, fd: int) -> Client | None:
        try:
            return parse_fdinfo(read_file(f"{self._proc}/{pid}/fdinfo/{fd}"))
        except OSError:
            return None

    def _is_of_another_user(self, pid: int) -> bool:
        """Whether access is denied for that reason. Our own zombies are unreadable, too, but hold nothing."""
        try:
            return os.stat(f"{self._proc}/{pid}").st_uid != os.geteuid()
        except OSError:
            return False


def explain_denied(pid: int) -> str:
    """Why a process of the job cannot be measured, and the fix."""
    return (
        f"GPU use of process {pid} is unknown because it runs as another user: "
        "run gpu-tracker as that user, or as root."
    )


def _choose_owner(holders: list[int], owner: int, pids: frozenset[int] | None) -> int:
    """The process to which a shared client is attributed: as before, else the lowest pid, preferably one of `pids`."""
    asked = [pid for pid in holders if pids is None or pid in pids] or holders
    return owner if owner in asked else asked[0]


def _parse_count(text: bytes) -> int | None:
    words = text.split()
    return parse_bytes(words[0]) if words else None


def _put(values: dict[str, int], name: bytes, value: int | None) -> None:
    word = parse_words(name)
    if word and value is not None:
        values[word] = value

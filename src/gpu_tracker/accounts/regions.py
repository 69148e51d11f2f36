"""Regions, with the memory and GPU readings taken while they were open. Pure."""

from __future__ import annotations

from functools import partial
from itertools import chain
from math import inf

from ..core.calls import MOST_ENTERING_SECONDS
from ..core.model import EXACT, SAMPLED, SHARED, RegionTotals, larger
from ..core.units import AS_GOOD_AS
from .gpus import Drawn
from .presence import Presence, count_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..instrument.shared_file import Numbers
    from .gpus import GpuMoment, Span

    Path = tuple[str, ...]
    Key = tuple[int, Path]


# CPU time of which no more than this share and amount may be other code's, or ours, is exact.
_SHARED_SHARE = 0.01
_SHARED_NS = 10_000_000
_MOST_ENDED = 2000
_TOGETHER = 0
# Calls are timed to a millisecond while they are open.
_RESOLUTION_SECONDS = 0.005


class _Sampled:
    """Readings taken while a region was open."""

    __slots__ = (
        "energy_joules",
        "energy_least_joules",
        "energy_most_joules",
        "gpu_bytes",
        "gpu_bytes_call_seconds",
        "gpu_percent_seconds",
        "gpu_seconds",
        "inside_seconds",
        "peak_ram_bytes",
        "peak_ram_call_seconds",
    )

    def __init__(self) -> None:
        self.peak_ram_bytes: int | None = None
        self.peak_ram_call_seconds: float | None = None
        self.gpu_bytes: int | None = None
        self.gpu_bytes_call_seconds: float | None = None
        self.gpu_percent_seconds = self.gpu_seconds = self.inside_seconds = 0.0
        self.energy_joules: float | None = None
        self.energy_least_joules = self.energy_most_joules = 0.0

    def take_ram(self, size: int | None, find_start: Callable[[], float | None]) -> bool:
        """Take a reading of memory; if it is the largest, ask when the call began. Whether it is, and that is known."""
        if size is None or (self.peak_ram_bytes is not None and size <= self.peak_ram_bytes):
            return False
        self.peak_ram_bytes, self.peak_ram_call_seconds = size, find_start()
        return self.peak_ram_call_seconds is not None

    def take_gpu(self, size: int | None, find_start: Callable[[], float | None]) -> None:
        """The same for memory on GPUs."""
        if size is not None and (self.gpu_bytes is None or size > self.gpu_bytes):
            self.gpu_bytes, self.gpu_bytes_call_seconds = size, find_start()

    def take_energy(self, drawn: Drawn, inside_seconds: float) -> None:
        """What a device has drawn in a time, for so much of which the region was open; when in it that was drawn is not known."""
        whole_seconds = drawn.end_seconds - drawn.start_seconds
        is_whole = inside_seconds >= whole_seconds - _RESOLUTION_SECONDS
        share = 1.0 if is_whole else inside_seconds / whole_seconds
        self.energy_joules = (self.energy_joules or 0.0) + share * drawn.joules
        self.energy_least_joules += drawn.joules if is_whole else 0.0
        self.energy_most_joules += drawn.joules

    def find_unknown_seconds(self) -> float | None:
        """How long it was open while the utilization of the devices was not known, if it ever was."""
        return max(0.0, self.inside_seconds - self.gpu_seconds) if self.gpu_seconds else None

    def add(self, other: _Sampled) -> None:
        """Add the readings of the same region in another process."""
        self.take_ram(other.peak_ram_bytes, lambda: other.peak_ram_call_seconds)
        self.take_gpu(other.gpu_bytes, lambda: other.gpu_bytes_call_seconds)
        self.gpu_percent_seconds += other.gpu_percent_seconds
        self.gpu_seconds += other.gpu_seconds
        self.inside_seconds += other.inside_seconds
        self.energy_least_joules += other.energy_least_joules
        self.energy_most_joules += other.energy_most_joules
        if other.energy_joules is not None:
            self.energy_joules = (self.energy_joules or 0.0) + other.energy_joules


class RegionAccount:
    """All regions of the job."""

    def __init__(self) -> None:
        self._sampled: dict[Key, _Sampled] = {}
        self._new_peaks: list[tuple[Key, _Sampled]] = []
        self._active: Mapping[Key, int] = {}
        self._find_start: Callable[[Key], float | None] = lambda _: None
        self._written: dict[Key, RegionTotals] = {}
        self._ended: dict[Key, Numbers] = {}
        self._left_open: dict[Key, int] = {}
        self._presence = Presence()
        self._waiting: list[tuple[float, Span | Drawn]] = []
        """Of devices, each with the part of a device that it counts for: the regions of that time are not known yet."""

    def take(
        self,
        active: Mapping[Key, int],
        rss_bytes: Mapping[int, int],
        find_start: Callable[[Key], float | None] = lambda _: None,
    ) -> None:
        """Take one reading of the processes; each region gets the memory of its own process.

        `find_start` tells when the open call of a region began.
        """
        self._active = active
        self._find_start = find_start
        self._new_peaks.clear()
        for key in active:
            sampled = self._sampled.get(key)
            if sampled is None:
                sampled = self._sampled[key] = _Sampled()
            if sampled.take_ram(rss_bytes.get(key[0]), partial(find_start, key)):
                self._new_peaks.append((key, sampled))

    def list_new_peaks(self) -> list[tuple[Path, int, float, int]]:
        """Of each region whose largest memory was read now: path, process, begin of the call, size."""
        return [
            (path, pid, sampled.peak_ram_call_seconds or 0.0, sampled.peak_ram_bytes or 0)
            for (pid, path), sampled in self._new_peaks
        ]

    def list_open(self) -> list[Path]:
        """The paths of the regions that were open at the last reading."""
        return [path for _, path in self._active]

    def take_presence(
        self,
        at_seconds: float,
        counted: Iterable[tuple[Key, Numbers]],
        since_start: Callable[[int], float | None],
    ) -> None:
        """Take how long regions were open up to this reading, of those that were so since the last one."""
        inside = {key: count_inside(numbers, since_start) for key, numbers in _add_up(counted).items()}
        around = [key for key, calls in self._active.items() if not calls and key not in inside]
        for key, seconds in self._presence.take(at_seconds, inside, around).items():
            self._find_sampled(key).inside_seconds += seconds
        self._divide(at_seconds)

    def take_gpus(self, moment: GpuMoment) -> None:
        """Take one reading of the GPUs: memory for the regions that are open, the rest for those that were open then."""
        for key in self._active:
            self._find_sampled(key).take_gpu(moment.job_bytes, partial(self._find_start, key))
        self._waiting += [(1 / moment.n_devices, span) for span in moment.spans]
        self._waiting += [(1.0, drawn) for drawn in moment.drawn]
        self._divide(self._presence.at_seconds)

    def finish(self) -> None:
        """Nothing more will be known of when regions were open."""
        self._divide(float("inf"))

    def _divide(self, until_seconds: float) -> None:
        """Divide what was read of devices up to this time over the regions of that time."""
        waiting, self._waiting = self._waiting, []
        for weight, told in waiting:
            if told.end_seconds > until_seconds:
                self._waiting.append((weight, told))
                continue
            for key, seconds in self._presence.find(told.start_seconds, told.end_seconds).items():
                sampled = self._find_sampled(key)
                if isinstance(told, Drawn):
                    sampled.take_energy(told, seconds)
                elif told.percent is not None:
                    sampled.gpu_percent_seconds += weight * seconds * told.percent
                    sampled.gpu_seconds += weight * seconds

    def _find_sampled(self, key: Key) -> _Sampled:
        sampled = self._sampled.get(key)
        if sampled is None:
            sampled = self._sampled[key] = _Sampled()
        return sampled

    def retire(
        self,
        key: Key,
        numbers: Numbers,
        open_calls: int,
        since_start: Callable[[int], float | None] = lambda _: None,
    ) -> None:
        """Keep a region of an ended process. Beyond some thousands they are merged under pid 0."""
        known = self._ended
        numbers = _bound_peak(numbers)
        its_own = key
        if key not in known and len(known) >= _MOST_ENDED:
            together = _TOGETHER, key[1]
            sampled = self._sampled.pop(key, None)
            if sampled is not None:
                self._sampled.setdefault(together, _Sampled()).add(sampled)
            key = together
        self._presence.end(its_own, key, count_inside(numbers, since_start))
        known[key] = numbers if key not in known else _add(known[key], numbers)
        if open_calls:
            self._left_open[key] = self._left_open.get(key, 0) + open_calls

    def combine(
        self, counted: Iterable[tuple[Key, Numbers]], since_start: Callable[[int], float | None]
    ) -> list[RegionTotals]:
        """All regions: what the processes have counted, and what was sampled meanwhile."""
        nothing = _Sampled()
        regions = []
        running = ((key, _bound_peak(numbers)) for key, numbers in counted)
        known = _add_up(chain(self._ended.items(), running))
        inner = _add_up_inner(known)
        entered = _count_entered(known)
        cut_off = {(pid, path[:depth]) for pid, path in self._left_open for depth in range(1, len(path) + 1)}
        for key, numbers in known.items():
            sampled = self._sampled.get(key, nothing)
            open_calls = self._active.get(key, 0) + self._left_open.get(key, 0)
            sizes = (numbers.entry_ram_bytes, numbers.exit_ram_bytes, numbers.inside_ram_bytes)
            peak = max((size for size in sizes if size >= 0), default=None)
            high_water = numbers.peak_ram_bytes
            if 0 < numbers.calls == numbers.exact_calls and not open_calls:
                high_water = max(
                    high_water, peak or 0
                )  # every call has an exact peak; samples cannot improve it
            else:
                peak = larger(peak, sampled.peak_ram_bytes)
            # Of a call in which its process has ended, the last rise of the mark is not known.
            is_exact = 0 < high_water >= (peak or 0) * AS_GOOD_AS and key not in cut_off
            was_sampled = not is_exact and peak == sampled.peak_ram_bytes
            regions.append(
                RegionTotals(
                    pid=key[0],
                    path=key[1],
                    calls=numbers.calls,
                    open_calls=open_calls,
                    wall_seconds=(numbers.wall_ns + numbers.open_wall_ns) / 1e9,
                    open_wall_seconds=numbers.open_wall_ns / 1e9,
                    shortest_seconds=numbers.shortest_ns / 1e9 if numbers.calls else None,
                    longest_seconds=numbers.longest_ns / 1e9 if numbers.calls else None,
                    squared_seconds=numbers.squared_seconds,
                    own_wall_seconds=_find_own_wall(numbers, inner.get(key, 0)) / 1e9,
                    cpu_seconds=numbers.cpu_ns / 1e9,
                    own_cpu_seconds=numbers.own_cpu_ns / 1e9,
                    cpu_basis=_find_cpu_basis(numbers, entered[key], is_cut_off=key in cut_off),
                    entry_ram_bytes=numbers.entry_ram_bytes if numbers.entry_ram_bytes >= 0 else None,
                    exit_ram_bytes=numbers.exit_ram_bytes if numbers.exit_ram_bytes >= 0 else None,
                    peak_ram_bytes=max(high_water, peak or 0) if is_exact else peak,
                    peak_ram_basis=EXACT if is_exact else SAMPLED,
                    gpu_bytes=sampled.gpu_bytes,
                    gpu_percent_seconds=sampled.gpu_percent_seconds,
                    gpu_seconds=sampled.gpu_seconds,
                    gpu_unknown_seconds=sampled.find_unknown_seconds(),
                    energy_joules=sampled.energy_joules,
                    energy_least_joules=None
                    if sampled.energy_joules is None
                    else sampled.energy_least_joules,
                    energy_most_joules=None if sampled.energy_joules is None else sampled.energy_most_joules,
                    first_seconds=since_start(numbers.first_ns),
                    last_seconds=since_start(numbers.last_ns),
                    peak_ram_call_seconds=sampled.peak_ram_call_seconds if was_sampled else None,
                    gpu_bytes_call_seconds=sampled.gpu_bytes_call_seconds,
                    switches=numbers.switches,
                    own_cpu_basis=SHARED if numbers.has_own_doubts else None,
                )
            )
        return regions

    def take_changed(self, regions: Iterable[RegionTotals]) -> list[RegionTotals]:
        """Those that have changed since the last call."""
        changed = []
        for region in regions:
            key = (region.pid, region.path)
            if self._written.get(key) != region:
                self._written[key] = region
                changed.append(region)
        return changed


def _bound_peak(numbers: Numbers) -> Numbers:
    """A peak is a lower bound if calls went on since the mark was raised above it elsewhere, or since it was read last."""
    last_ns = inf if numbers.open_calls else numbers.last_ns
    is_below_mark = 0 < numbers.exceeded_ns < last_ns
    if not (is_below_mark or numbers.is_ram_unread):
        return numbers
    inside = max(numbers.inside_ram_bytes, numbers.peak_ram_bytes)
    return numbers._replace(peak_ram_bytes=-1, inside_ram_bytes=inside, exceeded_ns=0, is_ram_unread=0)


def _find_cpu_basis(numbers: Numbers, entered: int, *, is_cut_off: bool) -> str:
    """Of a call in which its process has ended, what was used after the last reading is missing."""
    not_its_own_ns = max(numbers.shared_cpu_ns, entered * MOST_ENTERING_SECONDS * 1e9)
    if not_its_own_ns > max(_SHARED_NS, _SHARED_SHARE * numbers.cpu_ns):
        return SHARED
    return SAMPLED if is_cut_off else EXACT


def _find_own_wall(numbers: Numbers, inner_ns: int) -> int:
    """Of finished calls it was counted; of open ones it is what the regions inside leave."""
    if not numbers.open_wall_ns:
        return numbers.own_wall_ns
    whole = numbers.wall_ns + numbers.open_wall_ns
    return max(numbers.own_wall_ns, whole - inner_ns)


def _add_up_inner(known: Mapping[Key, Numbers]) -> dict[Key, int]:
    """The time of the regions inside each region."""
    inner: dict[Key, int] = {}
    for (pid, path), numbers in known.items():
        around = pid, path[:-1]
        inner[around] = inner.get(around, 0) + numbers.wall_ns + numbers.open_wall_ns
    return inner


def _count_entered(known: Mapping[Key, Numbers]) -> dict[Key, int]:
    """How often each region or one inside it was entered, or its code suspended."""
    entered: dict[Key, int] = {}
    for (pid, path), numbers in known.items():
        for depth in range(1, len(path) + 1):
            around = pid, path[:depth]
            entered[around] = entered.get(around, 0) + numbers.calls + numbers.switches
    return entered


def _add_up(counted: Iterable[tuple[Key, Numbers]]) -> dict[Key, Numbers]:
    """One entry per process and region; after an exec a process counts in a new file."""
    known: dict[Key, Numbers] = {}
    for key, numbers in counted:
        before = known.get(key)
        known[key] = numbers if before is None else _add(before, numbers)
    return known


def _add(one: Numbers, other: Numbers) -> Numbers:
    """The sum of both counts; of memory the later reading."""
    earlier, later = sorted((one, other), key=lambda numbers: numbers.last_ns)
    shortest = [numbers.shortest_ns for numbers in (one, other) if numbers.calls]
    firsts = [numbers.first_ns for numbers in (one, other) if numbers.first_ns]
    return (
        type(one)
        ._make(map(sum, zip(one, other, strict=True)))
        ._replace(
            shortest_ns=min(shortest, default=0),
            longest_ns=max(one.longest_ns, other.longest_ns),
            first_ns=min(firsts, default=0),
            last_ns=later.last_ns,
            entry_ram_bytes=later.entry_ram_bytes if later.entry_ram_bytes >= 0 else earlier.entry_ram_bytes,
            exit_ram_bytes=later.exit_ram_bytes if later.exit_ram_bytes >= 0 else earlier.exit_ram_bytes,
            peak_ram_bytes=max(one.peak_ram_bytes, other.peak_ram_bytes),
            inside_ram_bytes=max(one.inside_ram_bytes, other.inside_ram_bytes),
        )
    )

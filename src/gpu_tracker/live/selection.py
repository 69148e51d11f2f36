"""Which GPUs and processes of an observation are shown, and in which order. Pure."""

from __future__ import annotations

from ..core.gpu_names import find_gpus, may_mean
from ..core.observation import Device, list_gpus
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ..core.model import Gpu
    from ..core.observation import DeviceProcess, Observation

GPU, MEMORY, SM, CPU, RAM, PID, USER = "GPU", "memory", "SM", "CPU", "RAM", "PID", "user"
SORTS = (GPU, MEMORY, SM, CPU, RAM, PID, USER)
"""What processes can be sorted by. Amounts begin with the largest."""


class Selection(NamedTuple):
    """What is wanted; nothing named is everything."""

    gpus: tuple[str, ...] = ()
    """Any of their names."""
    users: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    sort: str = GPU
    is_reversed: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.gpus or self.users or self.pids)


class Row(NamedTuple):
    """A process on a device."""

    gpu: Device
    process: DeviceProcess
    cores: float | None = None
    """How many it keeps busy."""


def is_named(observed: Device, names: Collection[str]) -> bool:
    """Whether a device may be meant by one of these."""
    return any(may_mean(observed.gpu, name) for name in names)


def split_words(text: str) -> tuple[str, ...]:
    """The words of a list with commas, spaces or both."""
    return tuple(text.replace(",", " ").split())


def split_names(text: str) -> tuple[str, ...]:
    """The names of devices in a list with commas: a model has spaces."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def find_named(devices: Sequence[Device], names: Sequence[str]) -> tuple[Device, ...]:
    """Those with these names; ValueError for one that none has, or more than it should."""
    gpus = [observed.gpu for observed in devices]
    uuids = {gpu.uuid for name in names for gpu in find_gpus(name, gpus)}
    return tuple(observed for observed in devices if observed.gpu.uuid in uuids)


def find_shown(devices: Sequence[Device], names: Sequence[str]) -> tuple[Device, ...]:
    """Those that these names mean, and all that an ambiguous one may mean; a name may be of none that is there now."""
    gpus = [observed.gpu for observed in devices]
    uuids = {gpu.uuid for name in names for gpu in _find_any(name, gpus)}
    return tuple(observed for observed in devices if observed.gpu.uuid in uuids)


def _find_any(name: str, gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    try:
        return find_gpus(name, gpus)
    except ValueError:
        return tuple(gpu for gpu in gpus if may_mean(gpu, name))


def select(observation: Observation, selection: Selection) -> tuple[Device, ...]:
    """The devices that are wanted, with the processes that are wanted."""
    devices = list_gpus(observation)
    if selection.is_everything:
        return devices
    shown = find_shown(devices, selection.gpus) if selection.gpus else devices
    return tuple(_select_processes(observed, selection) for observed in shown)


def _select_processes(observed: Device, selection: Selection) -> Device:
    return Device(
        observed.gpu,
        observed.reading,
        observed.details,
        tuple(process for process in observed.processes if _is_wanted(process, selection)),
        observed.reasons,
    )


def _is_wanted(process: DeviceProcess, selection: Selection) -> bool:
    if selection.pids and process.pid not in selection.pids:
        return False
    return not selection.users or process.user in selection.users


def list_rows(devices: Sequence[Device], selection: Selection, cores: Mapping[int, float]) -> list[Row]:
    """Their processes in the order that is wanted; those of which it is not known come last."""
    rows = [
        Row(observed, process, cores.get(process.holder.pid))
        for observed in devices
        for process in observed.processes
    ]
    if selection.sort == GPU:  # as they are
        places = {observed.gpu.uuid: place for place, observed in enumerate(devices)}
        return sorted(rows, key=lambda row: places[row.gpu.gpu.uuid], reverse=selection.is_reversed)
    read, is_amount = _READERS[selection.sort]
    known = [(value, row) for row in rows if (value := read(row)) is not None]
    known.sort(key=lambda pair: pair[0], reverse=is_amount != selection.is_reversed)
    return [row for _, row in known] + [row for row in rows if read(row) is None]


_READERS: dict[str, tuple[Callable[[Row], float | str | None], bool]] = {
    MEMORY: (lambda row: row.process.used_bytes, True),
    SM: (lambda row: row.process.utilization_percent, True),
    CPU: (lambda row: row.cores, True),
    RAM: (lambda row: row.process.holder.rss_bytes, True),
    PID: (lambda row: row.process.pid, False),
    USER: (lambda row: row.process.user, False),
}
"""What is sorted by, and whether it is an amount."""

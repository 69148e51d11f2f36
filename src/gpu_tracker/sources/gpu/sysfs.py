"""Graphics cards in Linux's `/sys`: which there are, and the figures that the kernel keeps in files.

Knows no vendor: a source says which file holds which figure. Nothing here wakes a sleeping card.
"""

from __future__ import annotations

import errno
import os

from ...core.figures import find_device_figure, name_device_figure
from ...core.model import GpuReading
from ...core.values import NamedTuple
from ..files import read_file
from .guard import DENIED, LOST, TROUBLE, UNSUPPORTED, Failure, Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from ...core.model import Gpu

    # Ways to read each figure, the best first: files to be added, and the parser of each.
    Candidates = Mapping[str, Iterable[tuple[str | tuple[str, ...], Callable[[bytes], Any]]]]

_LONGEST_NUMBER = 20  # digits of 2^64; the kernel prints no longer ones
_ABSENT = (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ENOTDIR)
_UNSUPPORTED = (
    *_ABSENT,
    errno.EINVAL,
    errno.EOPNOTSUPP,
    errno.ENODATA,
    errno.ENOSYS,
    errno.EISDIR,
)
_ASLEEP = (b"suspended", b"suspending")


# ---- Parsers: bytes of a file → a value, or None if they are invalid. Pure.


def parse_integer(text: bytes) -> int | None:
    """A decimal number and nothing else."""
    digits = text.strip()
    magnitude = digits[1:] if digits[:1] == b"-" else digits
    if not magnitude.isdigit() or len(magnitude) > _LONGEST_NUMBER:
        return None
    return int(digits)


def parse_bytes(text: bytes) -> int | None:
    """A size."""
    size = parse_integer(text)
    return size if size is not None and size >= 0 else None


def parse_percent(text: bytes) -> float | None:
    """A percentage; drivers without a value print 65535 or more."""
    percent = parse_integer(text)
    return float(percent) if percent is not None and 0 <= percent <= 100 else None


def parse_micro(text: bytes) -> float | None:
    """Watts from microwatts, joules from microjoules."""
    micro = parse_bytes(text)
    return None if micro is None else micro / 1e6


def parse_celsius(text: bytes) -> float | None:
    """Degrees from thousandths; may be negative."""
    millidegrees = parse_integer(text)
    return None if millidegrees is None else millidegrees / 1000


def parse_megahertz(text: bytes) -> float | None:
    """A clock in MHz."""
    megahertz = parse_bytes(text)
    return None if megahertz is None else float(megahertz)


def parse_hertz(text: bytes) -> float | None:
    """MHz from Hz."""
    hertz = parse_bytes(text)
    return None if hertz is None else hertz / 1e6


def parse_fan(text: bytes) -> float | None:
    """Percent of full speed, from the kernel's scale of 0 to 255."""
    level = parse_bytes(text)
    return None if level is None or level > 255 else round(level / 2.55, 1)


def parse_words(text: bytes) -> str | None:
    """A name, on one line."""
    words = " ".join(text.decode("utf-8", "replace").split())
    return words if words.isprintable() and words else None


def parse_slot(uevent: bytes) -> str | None:
    """The PCI address of `device/uevent`, such as 0000:03:00.0."""
    for line in uevent.splitlines():
        if line.startswith(b"PCI_SLOT_NAME="):
            return parse_words(line[14:])
    return None


# ---- Cards.


class Card(NamedTuple):
    """A graphics card with a driver."""

    path: str
    """`/sys/class/drm/card0`."""
    bus_id: str
    device_id: str
    """The vendor's product number, such as 0x73bf."""
    driver: str
    hwmon: str
    """Its directory of sensors, or empty."""


class Gauge(NamedTuple):
    """One figure: the files whose values are added up, and the parser of each."""

    paths: tuple[str, ...]
    parse: Callable[[bytes], Any]


class Device(NamedTuple):
    """A card, with the gauges of each figure, of which the first that works is used."""

    gpu: Gpu
    card: Card
    label: str
    gauges: Mapping[str, tuple[Gauge, ...]]
    """By field of GpuReading."""
    details: Mapping[str, tuple[Gauge, ...]]
    """By nvidia-smi's name."""


def find_cards(sys: str, vendor_id: bytes) -> tuple[Card, ...]:
    """Every card of one vendor, in the order of the PCI bus, as in the vendors' own tools."""
    try:
        names = os.listdir(f"{sys}/class/drm")
    except OSError:
        return ()
    cards = []
    for name in names:
        # card0 is a card, card0-HDMI-A-1 is one of its connectors.
        path = f"{sys}/class/drm/{name}"
        if (
            name[:4] == "card"
            and name[4:].isdigit()
            and _read_or_nothing(f"{path}/device/vendor") == vendor_id
        ):
            cards.append(_describe_card(path))
    return tuple(sorted(cards, key=lambda card: (len(card.bus_id), card.bus_id)))


def find_driver_version(sys: str, proc: str, driver: str) -> str:
    """The driver's own version, or that of its kernel."""
    version = parse_words(_read_or_nothing(f"{sys}/module/{driver}/version"))
    return (
        f"{driver} {version or parse_words(_read_or_nothing(f'{proc}/sys/kernel/osrelease')) or ''}".strip()
    )


def find_gauges(candidates: Candidates) -> dict[str, tuple[Gauge, ...]]:
    """The gauges of each figure whose files all exist. Does not read them: that may wake a card."""
    found: dict[str, tuple[Gauge, ...]] = {}
    for figure, choices in candidates.items():
        gauges = (Gauge((paths,) if isinstance(paths, str) else paths, parse) for paths, parse in choices)
        found[figure] = tuple(
            gauge for gauge in gauges if gauge.paths and all(map(os.path.exists, gauge.paths))
        )
    return found


def read_gauges(gauges: tuple[Gauge, ...]) -> Any:
    """The value of the first gauge that works; if none does, the error of the last."""
    for gauge in gauges[:-1]:
        try:
            return _read_gauge(gauge)
        except (OSError, ValueError):
            continue
    return _read_gauge(gauges[-1])


def read_if_there(parse: Callable[[bytes], Any], *paths: str) -> Any:
    """The sum of these files, or None."""
    try:
        return _read_gauge(Gauge(paths, parse))
    except (OSError, ValueError):
        return None


def read_known(figures: Mapping[str, tuple[Gauge, ...]]) -> dict[str, Any]:
    """The values of these figures, without those that cannot be read."""
    found = {}
    for name, gauges in figures.items():
        try:
            if gauges:
                found[name] = read_gauges(gauges)
        except (OSError, ValueError):
            continue
    return found


def is_asleep(card: Card) -> bool:
    """Whether reading it would wake it. Without power management a card never sleeps."""
    return _read_or_nothing(f"{card.path}/device/power/runtime_status").strip() in _ASLEEP


class Panel:
    """The figures of several cards, each read on its own."""

    def __init__(self, now: Callable[[], float], devices: tuple[Device, ...]) -> None:
        self.devices = devices
        self._by_uuid = {device.gpu.uuid: device for device in devices}
        self.guard = Guard(now, (OSError, ValueError), self._explain)
        for device in devices:
            for figure, gauges in device.gauges.items():
                if not gauges:
                    self._note_absent(device, figure)

    def find_awake(self) -> tuple[Device, ...]:
        """The cards to read now: neither lost nor asleep, because reading would wake them."""
        return tuple(device for device in self.devices if self._is_awake(device))

    def find_asleep(self, awake: Sequence[Device]) -> frozenset[str]:
        """The UUIDs of the other cards that are not lost."""
        others = {device.gpu.uuid for device in self.devices} - {device.gpu.uuid for device in awake}
        return frozenset(others - self.guard.lost)

    def take_reading(self, device: Device) -> GpuReading:
        """All figures of a card that have files."""
        uuid = device.gpu.uuid
        figures = {
            figure: self.guard.ask(uuid, figure, read_gauges, gauges)
            for figure, gauges in device.gauges.items()
            if gauges
        }
        return GpuReading(uuid, **figures, measures_processes=True)

    def read_details(self, names: Collection[str]) -> dict[str, dict[str, float | str]]:
        """Less common figures; those that a card does not report are left out."""
        details: dict[str, dict[str, float | str]] = {}
        for device in self.find_awake():
            wanted = {name: gauges for name, gauges in device.details.items() if name in names}
            details[device.gpu.uuid] = read_known(wanted)
        return details

    def _is_awake(self, device: Device) -> bool:
        uuid = device.gpu.uuid
        if uuid in self.guard.lost:
            return False
        if not _is_present(device.card):
            self.guard.fail(uuid, "device", _lost(device.label))
            return False
        if is_asleep(device.card):
            text = f"{device.label} is asleep, and reading it would wake it; its figures cover the time it is awake."
            self.guard.say(uuid, "asleep", text)
            self.guard.reasons[uuid, "device"] = text
            return False
        self.guard.reasons.pop((uuid, "device"), None)
        return True

    def _note_absent(self, device: Device, figure: str) -> None:
        """Record why there is no gauge. Only essential figures are worth a note."""
        text = _unsupported(device.label, figure)
        self.guard.reasons[device.gpu.uuid, figure] = text
        if find_device_figure(figure).is_essential:
            self.guard.say(device.gpu.uuid, figure, text)

    def _explain(self, error: Exception, uuid: str, figure: str) -> Failure:
        device = self._by_uuid[uuid]
        code = error.errno if isinstance(error, OSError) else None
        name = name_device_figure(figure)
        if code in _ABSENT and not _is_present(device.card):
            return _lost(device.label)
        if code in _UNSUPPORTED:
            return Failure(UNSUPPORTED, _unsupported(device.label, figure))
        if code == errno.EACCES:
            path = getattr(error, "filename", None) or "its files"
            text = f"{name} of {device.label} requires administrator rights, or read access to {path}."
            return Failure(DENIED, text[0].upper() + text[1:])
        if code == errno.EPERM:
            # From amdgpu while the card is being reset, and since Linux 6.15 when it has just fallen asleep.
            why = "it is being reset, or has fallen asleep"
        else:
            why = str(error.strerror if isinstance(error, OSError) else error)
        return Failure(TROUBLE, f"{device.label} does not report {name} at the moment: {why}.")


def _read_gauge(gauge: Gauge) -> Any:
    if len(gauge.paths) == 1:
        return _read_value(gauge.paths[0], gauge.parse)
    return sum(_read_value(path, gauge.parse) for path in gauge.paths)


def _read_value(path: str, parse: Callable[[bytes], Any]) -> Any:
    text = read_file(path)
    value = parse(text)
    if value is None:
        raise ValueError(f"{os.path.basename(path)} says {text[:40].decode('utf-8', 'replace').strip()!r}")
    return value


def _describe_card(path: str) -> Card:
    device = f"{path}/device"
    target = os.path.realpath(device)
    return Card(
        path,
        parse_slot(_read_or_nothing(f"{device}/uevent")) or os.path.basename(target),
        parse_words(_read_or_nothing(f"{device}/device")) or "of an unknown kind",
        os.path.basename(os.path.realpath(f"{device}/driver")) if os.path.exists(f"{device}/driver") else "",
        _find_hwmon(device),
    )


def _find_hwmon(device: str) -> str:
    try:
        names = sorted(os.listdir(f"{device}/hwmon"))
    except OSError:
        return ""
    return f"{device}/hwmon/{names[0]}" if names else ""


def _read_or_nothing(path: str) -> bytes:
    try:
        return read_file(path).strip()
    except OSError:
        return b""


def _is_present(card: Card) -> bool:
    return os.path.exists(f"{card.path}/device/vendor")


def _unsupported(label: str, figure: str) -> str:
    return f"{label} does not report {name_device_figure(figure)}: its driver has no such figure."


def _lost(label: str) -> Failure:
    return Failure(
        LOST, f"{label} was lost (unplugged, or driver unloaded); its figures are missing until it returns."
    )

"""GPUs that exist even if no driver answers: devices on the PCI bus, and the drivers' device files."""

from __future__ import annotations

import os

from ...core.values import NamedTuple
from ...core.vendors import VENDORS
from ..files import read_text

_DISPLAY_CLASS = "0x03"


class BusDevice(NamedTuple):
    """A display or compute device on the PCI bus."""

    vendor: str
    bus_id: str


def find_on_bus(sys: str = "/sys", proc: str = "/proc") -> tuple[BusDevice, ...]:
    """The devices of known vendors; a container sees those of its host."""
    root, told = f"{sys}/bus/pci/devices", f"{proc}/driver/nvidia/gpus"
    devices = [BusDevice("nvidia", bus_id) for bus_id in _list_names(told)]
    by_pci_id = {vendor.pci_id: name for name, vendor in VENDORS.items() if vendor.pci_id}
    for bus_id in _list_names(root):
        try:
            vendor = by_pci_id.get(read_text(f"{root}/{bus_id}/vendor").strip())
            is_display = read_text(f"{root}/{bus_id}/class").startswith(_DISPLAY_CLASS)
        except OSError:
            continue
        if vendor is not None and is_display:
            devices.append(BusDevice(vendor, bus_id))
    return tuple(dict.fromkeys(devices))


def find_device_files(vendor: str, dev: str = "/dev") -> tuple[str, ...]:
    """The existing device files through which a job uses the vendor's devices.

    Not `/dev/nvidiactl`, which NVIDIA's library creates even without a driver.
    """
    prefix = VENDORS[vendor].device_files
    if not prefix:
        return ()
    names = _list_names(dev)
    numbers = ((name, name.removeprefix(prefix)) for name in names if name.startswith(prefix))
    return tuple(f"{dev}/{name}" for name, number in numbers if number.isdigit() or not number)


def _list_names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []

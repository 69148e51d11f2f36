"""Whose GPUs can be read. Adding a vendor is one module in `sources/gpu` and one row here."""

from __future__ import annotations

from .values import NamedTuple


class Vendor(NamedTuple):
    """One maker of GPUs."""

    label: str
    """As it writes itself."""
    sources: tuple[str, ...]
    """The modules of `sources/gpu` that can read its devices, the best first."""
    root: str = "/"
    """A directory without which there can be none: then no module is even loaded."""
    pci_id: str = ""
    """Its number on the PCI bus."""
    device_files: str = ""
    """How the files begin, in /dev, through which a job uses its devices."""
    variables: tuple[str, ...] = ()
    """By which a job is limited to some of its devices."""


VENDORS = {
    "nvidia": Vendor(
        "NVIDIA",
        ("nvml", "nvidia_smi"),
        pci_id="0x10de",
        device_files="nvidia",
        variables=("CUDA_VISIBLE_DEVICES",),
    ),
    "amd": Vendor(
        "AMD",
        ("amd",),
        root="/sys/class/drm",
        pci_id="0x1002",
        device_files="kfd",
        variables=("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    ),
    "intel": Vendor("Intel", ("intel",), root="/sys/class/drm", pci_id="0x8086"),
    "apple": Vendor("Apple", ("apple",), root="/System/Library"),
}


def name_vendor(vendor: str) -> str:
    """As the vendor writes it."""
    known = VENDORS.get(vendor)
    return vendor if known is None else known.label

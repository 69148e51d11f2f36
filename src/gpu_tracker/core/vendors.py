"""The vendors whose GPUs can be read. A new vendor is one module in `sources/gpu` and one row here."""

from __future__ import annotations

from .values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Values by which a container asks for no device.
_NO_REQUEST = ("", "none", "void")
NO_GPU = "No GPU found; `gpu-tracker doctor` shows where it looked."


class Vendor(NamedTuple):
    """One vendor of GPUs."""

    label: str
    """Its name as it spells it."""
    sources: tuple[str, ...]
    """The modules of `sources/gpu` that can read its devices, the best first."""
    quick_check: str = ""
    """A small module there that says whether its sources are worth loading, without loading a driver."""
    root: str = "/"
    """Without this directory there can be no device, and no module is loaded."""
    pci_id: str = ""
    """Its number on the PCI bus."""
    device_files: str = ""
    """Prefix of the files in /dev through which a job uses its devices."""
    cure: str = ""
    """What to do if there is a device, but no driver."""
    reset: str = ""
    """The command that resets a device, but for its index."""
    variables: tuple[str, ...] = ()
    """Environment variables that limit a job to some of its devices."""
    request: str = ""
    """The environment variable by which a container asks for its devices."""
    kubernetes: str = ""
    """The name of its devices among a container's resources."""


VENDORS = {
    "nvidia": Vendor(
        "NVIDIA",
        ("nvml", "nvidia_smi"),
        quick_check="nvidia",
        pci_id="0x10de",
        device_files="nvidia",
        cure=(
            "In a container, start it with `--gpus all` and NVIDIA_DRIVER_CAPABILITIES=compute,utility; "
            "elsewhere install NVIDIA's driver with its libraries."
        ),
        reset="nvidia-smi --gpu-reset -i",
        variables=("CUDA_VISIBLE_DEVICES",),
        request="NVIDIA_VISIBLE_DEVICES",
        kubernetes="nvidia.com/gpu",
    ),
    "amd": Vendor(
        "AMD",
        ("amd",),
        root="/sys/class/drm",
        pci_id="0x1002",
        device_files="kfd",
        cure=(
            "In a container, start it with `--device=/dev/kfd --device=/dev/dri`; "
            "elsewhere load the kernel module (`modprobe amdgpu`)."
        ),
        variables=("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
        kubernetes="amd.com/gpu",
    ),
    "intel": Vendor(
        "Intel",
        ("intel",),
        root="/sys/class/drm",
        pci_id="0x8086",
        cure=(
            "In a container, start it with `--device=/dev/dri`; "
            "elsewhere load the kernel module (`modprobe i915` or `xe`)."
        ),
        kubernetes="gpu.intel.com/i915",
    ),
    "apple": Vendor("Apple", ("apple",), root="/System/Library"),
}


def name_vendor(vendor: str) -> str:
    """The vendor's name as it spells it."""
    known = VENDORS.get(vendor)
    return vendor if known is None else known.label


def explain_request(vendor: Vendor, environment: Mapping[str, str]) -> str | None:
    """What to do if the environment asks for devices and no driver is there; None if it does not ask."""
    if environment.get(vendor.request, "").strip() in _NO_REQUEST:
        return None
    cure = f"{vendor.cure[0].lower()}{vendor.cure[1:]}"
    return f"{vendor.request} is set, but there is no {vendor.label} driver here: {cure}"

"""Less common figures of an NVIDIA device, under nvidia-smi's names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_ENABLED = ("Disabled", "Enabled")
_COMPUTE_MODES = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")


def read_details(nvml: Any, handle: Any) -> dict[str, float | str]:
    """All that this device reports; the rest is left out."""
    found: dict[str, float | str] = {}
    for name, read in _READERS.items():
        try:
            found[name] = read(nvml, handle)
        except (nvml.NVMLError, AttributeError, IndexError, UnicodeDecodeError):
            continue
    return found


def _watts(call: str) -> Callable[[Any, Any], float]:
    return lambda nvml, handle: getattr(nvml, call)(handle) / 1000


def _ask(call: str, *arguments: str) -> Callable[[Any, Any], Any]:
    """A call with constants of the library, given by name."""
    return lambda nvml, handle: getattr(nvml, call)(handle, *(getattr(nvml, name) for name in arguments))


def _switch(call: str) -> Callable[[Any, Any], str]:
    return lambda nvml, handle: _ENABLED[getattr(nvml, call)(handle)]


_READERS: dict[str, Callable[[Any, Any], float | str]] = {
    "pstate": lambda nvml, handle: f"P{nvml.nvmlDeviceGetPerformanceState(handle)}",
    "fan.speed": _ask("nvmlDeviceGetFanSpeed"),
    "temperature.memory": lambda nvml, handle: (
        nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_MEMORY_TEMP])[0].value.uiVal
    ),
    "power.limit": _watts("nvmlDeviceGetPowerManagementLimit"),
    "enforced.power.limit": _watts("nvmlDeviceGetEnforcedPowerLimit"),
    "power.default_limit": _watts("nvmlDeviceGetPowerManagementDefaultLimit"),
    "power.min_limit": lambda nvml, handle: (
        nvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)[0] / 1000
    ),
    "power.max_limit": lambda nvml, handle: (
        nvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)[1] / 1000
    ),
    "utilization.encoder": lambda nvml, handle: nvml.nvmlDeviceGetEncoderUtilization(handle)[0],
    "utilization.decoder": lambda nvml, handle: nvml.nvmlDeviceGetDecoderUtilization(handle)[0],
    "clocks.current.graphics": _ask("nvmlDeviceGetClockInfo", "NVML_CLOCK_GRAPHICS"),
    "clocks.current.video": _ask("nvmlDeviceGetClockInfo", "NVML_CLOCK_VIDEO"),
    "clocks.max.graphics": _ask("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_GRAPHICS"),
    "clocks.max.sm": _ask("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
    "clocks.max.memory": _ask("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_MEM"),
    "clocks_event_reasons.active": lambda nvml, handle: (
        f"0x{nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle):016X}"
    ),
    "pcie.link.gen.current": _ask("nvmlDeviceGetCurrPcieLinkGeneration"),
    "pcie.link.gen.max": _ask("nvmlDeviceGetMaxPcieLinkGeneration"),
    "pcie.link.width.current": _ask("nvmlDeviceGetCurrPcieLinkWidth"),
    "pcie.link.width.max": _ask("nvmlDeviceGetMaxPcieLinkWidth"),
    "persistence_mode": _switch("nvmlDeviceGetPersistenceMode"),
    "compute_mode": lambda nvml, handle: _COMPUTE_MODES[nvml.nvmlDeviceGetComputeMode(handle)],
    "mig.mode.current": lambda nvml, handle: _ENABLED[nvml.nvmlDeviceGetMigMode(handle)[0]],
    "accounting.mode": _switch("nvmlDeviceGetAccountingMode"),
    "ecc.mode.current": lambda nvml, handle: _ENABLED[nvml.nvmlDeviceGetEccMode(handle)[0]],
    "ecc.errors.corrected.volatile.total": _ask(
        "nvmlDeviceGetTotalEccErrors", "NVML_MEMORY_ERROR_TYPE_CORRECTED", "NVML_VOLATILE_ECC"
    ),
    "ecc.errors.uncorrected.volatile.total": _ask(
        "nvmlDeviceGetTotalEccErrors", "NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC"
    ),
    "display_active": _switch("nvmlDeviceGetDisplayActive"),
    "display_mode": _switch("nvmlDeviceGetDisplayMode"),
    "compute_cap": lambda nvml, handle: ".".join(map(str, nvml.nvmlDeviceGetCudaComputeCapability(handle))),
    "serial": _ask("nvmlDeviceGetSerial"),
    "vbios_version": _ask("nvmlDeviceGetVbiosVersion"),
}

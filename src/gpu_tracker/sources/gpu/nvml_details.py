"""Less common figures of an NVIDIA device, under nvidia-smi's names and in its words."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

_ENABLED = ("Disabled", "Enabled")
_ACTIVE = ("Not Active", "Active")
_YES = ("No", "Yes")
_PERFORMANCE_STATES = tuple(f"P{number}" for number in range(16))  # a higher one is not known
_COMPUTE_MODES = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
_OPERATION_MODES = ("All On", "Compute", "Low Double Precision")
_ADDRESSING_MODES = ("None", "HMM", "ATS")
_FABRIC_STATES = ("Not Supported", "Not Started", "In Progress", "Completed")
# Names of NVML's constants.
_REASONS = {
    "gpu_idle": "nvmlClocksThrottleReasonGpuIdle",
    "applications_clocks_setting": "nvmlClocksThrottleReasonApplicationsClocksSetting",
    "sw_power_cap": "nvmlClocksThrottleReasonSwPowerCap",
    "hw_slowdown": "nvmlClocksThrottleReasonHwSlowdown",
    "hw_thermal_slowdown": "nvmlClocksThrottleReasonHwThermalSlowdown",
    "hw_power_brake_slowdown": "nvmlClocksThrottleReasonHwPowerBrakeSlowdown",
    "sync_boost": "nvmlClocksThrottleReasonSyncBoost",
    "sw_thermal_slowdown": "nvmlClocksThrottleReasonSwThermalSlowdown",
}
_DISPLAY_REASON = "nvmlClocksThrottleReasonDisplayClockSetting"
_ERRORS = {
    "corrected": "NVML_MEMORY_ERROR_TYPE_CORRECTED",
    "uncorrected": "NVML_MEMORY_ERROR_TYPE_UNCORRECTED",
}
_PERIODS = {"volatile": "NVML_VOLATILE_ECC", "aggregate": "NVML_AGGREGATE_ECC"}
_PLACES = {
    "device_memory": "NVML_MEMORY_LOCATION_DEVICE_MEMORY",
    "dram": "NVML_MEMORY_LOCATION_DRAM",
    "register_file": "NVML_MEMORY_LOCATION_REGISTER_FILE",
    "l1_cache": "NVML_MEMORY_LOCATION_L1_CACHE",
    "l2_cache": "NVML_MEMORY_LOCATION_L2_CACHE",
    "texture_memory": "NVML_MEMORY_LOCATION_TEXTURE_MEMORY",
    "cbu": "NVML_MEMORY_LOCATION_CBU",
    "sram": "NVML_MEMORY_LOCATION_SRAM",
}

_VGPU_CAPABILITIES = {
    "fractional_multiVgpu": "NVML_DEVICE_VGPU_CAP_FRACTIONAL_MULTI_VGPU",
    "heterogeneous_timeSlice_profile": "NVML_DEVICE_VGPU_CAP_HETEROGENEOUS_TIMESLICE_PROFILES",
    "heterogeneous_timeSlice_sizes": "NVML_DEVICE_VGPU_CAP_HETEROGENEOUS_TIMESLICE_SIZES",
}


def read_details(nvml: Any, handle: Any, names: Collection[str]) -> dict[str, float | str]:
    """Those of these that this device reports; the rest is left out."""
    found: dict[str, float | str] = {}
    for name in names:
        try:
            found[name] = _READERS[name](nvml, handle)
        except (nvml.NVMLError, LookupError, AttributeError, UnicodeDecodeError):
            continue
    return found


def _read_field(name: str) -> Callable[[Any, Any], int]:
    """One that NVML has no call of its own for; older versions do not know its number."""

    def read(nvml: Any, handle: Any) -> int:
        (answer,) = nvml.nvmlDeviceGetFieldValues(handle, [getattr(nvml, name)])
        if answer.nvmlReturn:
            raise nvml.NVMLError(answer.nvmlReturn)
        return int(answer.value.uiVal)

    return read


def _pick(call: str, index: int, words: tuple[str, ...]) -> Callable[[Any, Any], str]:
    """One of the answers of a call, such as what is current and what is pending, in words."""
    return lambda nvml, handle: words[getattr(nvml, call)(handle)[index]]


def _read_reasons(nvml: Any, handle: Any) -> int:
    return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _is_active(reason: str) -> Callable[[Any, Any], str]:
    return lambda nvml, handle: _ACTIVE[bool(_read_reasons(nvml, handle) & getattr(nvml, reason))]


def _read_pci(part: str) -> Callable[[Any, Any], str]:
    return lambda nvml, handle: f"0x{getattr(nvml.nvmlDeviceGetPciInfo(handle), part):08X}"


def _read_pci_class(part: str) -> Callable[[Any, Any], str]:
    def read(nvml: Any, handle: Any) -> str:
        from ctypes import byref

        info = nvml.nvmlPciInfoExt_v1_t()
        info.version = nvml.nvmlPciInfoExt_v1
        nvml.nvmlDeviceGetPciInfoExt(handle, byref(info))
        return f"0x{getattr(info, part):X}"

    return read


def _read_fabric(nvml: Any, handle: Any) -> Any:
    from ctypes import byref

    info = nvml.c_nvmlGpuFabricInfo_v2_t()
    nvml.nvmlDeviceGetGpuFabricInfoV(handle, byref(info))
    return info


def _count_retired(cause: str) -> Callable[[Any, Any], int]:
    return lambda nvml, handle: len(nvml.nvmlDeviceGetRetiredPages(handle, getattr(nvml, cause)))


def _read_protected(part: str) -> Callable[[Any, Any], int]:
    return lambda nvml, handle: int(getattr(nvml.nvmlDeviceGetConfComputeProtectedMemoryUsage(handle), part))


def _read_version(part: str) -> Callable[[Any, Any], str]:
    return lambda nvml, handle: str(nvml.nvmlDeviceGetInforomVersion(handle, getattr(nvml, part)))


def _read_throughput(direction: str) -> Callable[[Any, Any], int]:
    """NVML measures for 20 ms."""
    return lambda nvml, handle: 1000 * nvml.nvmlDeviceGetPcieThroughput(handle, getattr(nvml, direction))


def _read_violation(policy: str) -> Callable[[Any, Any], float]:
    return lambda nvml, handle: (
        nvml.nvmlDeviceGetViolationStatus(handle, getattr(nvml, policy)).violationTime / 1e9
    )


def _can(call: Callable[[Any, Any], int]) -> Callable[[Any, Any], str]:
    return lambda nvml, handle: _YES[bool(call(nvml, handle))]


def _list_error_readers() -> dict[str, Callable[[Any, Any], int]]:
    readers = {}
    for kind, kind_constant in _ERRORS.items():
        for period, period_constant in _PERIODS.items():
            constants = (kind_constant, period_constant)
            readers[f"ecc.errors.{kind}.{period}.total"] = _ask("nvmlDeviceGetTotalEccErrors", *constants)
            for place, constant in _PLACES.items():
                readers[f"ecc.errors.{kind}.{period}.{place}"] = _ask(
                    "nvmlDeviceGetMemoryErrorCounter", *constants, constant
                )
    return readers


def _watts(call: str) -> Callable[[Any, Any], float]:
    return lambda nvml, handle: getattr(nvml, call)(handle) / 1000


def _ask(call: str, *arguments: str) -> Callable[[Any, Any], Any]:
    """A call with constants of the library, given by name."""
    return lambda nvml, handle: getattr(nvml, call)(handle, *(getattr(nvml, name) for name in arguments))


def _switch(call: str) -> Callable[[Any, Any], str]:
    return lambda nvml, handle: _ENABLED[getattr(nvml, call)(handle)]


_read_average_power = _read_field("NVML_FI_DEV_POWER_AVERAGE")
_read_instant_power = _read_field("NVML_FI_DEV_POWER_INSTANT")

_READERS: dict[str, Callable[[Any, Any], float | str]] = {
    "pstate": lambda nvml, handle: _PERFORMANCE_STATES[nvml.nvmlDeviceGetPerformanceState(handle)],
    "fan.speed": _ask("nvmlDeviceGetFanSpeed"),
    "temperature.memory": _read_field("NVML_FI_DEV_MEMORY_TEMP"),
    "temperature.gpu.tlimit": _ask("nvmlDeviceGetMarginTemperature"),
    "power.draw.average": lambda nvml, handle: _read_average_power(nvml, handle) / 1000,
    "power.draw.instant": lambda nvml, handle: _read_instant_power(nvml, handle) / 1000,
    "power.management": _switch("nvmlDeviceGetPowerManagementMode"),
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
    "utilization.jpeg": lambda nvml, handle: nvml.nvmlDeviceGetJpgUtilization(handle)[0],
    "utilization.ofa": lambda nvml, handle: nvml.nvmlDeviceGetOfaUtilization(handle)[0],
    "encoder.stats.sessionCount": lambda nvml, handle: nvml.nvmlDeviceGetEncoderStats(handle)[0],
    "encoder.stats.averageFps": lambda nvml, handle: nvml.nvmlDeviceGetEncoderStats(handle)[1],
    "encoder.stats.averageLatency": lambda nvml, handle: nvml.nvmlDeviceGetEncoderStats(handle)[2],
    "clocks.current.graphics": _ask("nvmlDeviceGetClockInfo", "NVML_CLOCK_GRAPHICS"),
    "clocks.current.video": _ask("nvmlDeviceGetClockInfo", "NVML_CLOCK_VIDEO"),
    "clocks.max.graphics": _ask("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_GRAPHICS"),
    "clocks.max.sm": _ask("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
    "clocks.max.memory": _ask("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_MEM"),
    "clocks.applications.graphics": _ask("nvmlDeviceGetApplicationsClock", "NVML_CLOCK_GRAPHICS"),
    "clocks.applications.memory": _ask("nvmlDeviceGetApplicationsClock", "NVML_CLOCK_MEM"),
    "clocks.default_applications.graphics": _ask(
        "nvmlDeviceGetDefaultApplicationsClock", "NVML_CLOCK_GRAPHICS"
    ),
    "clocks.default_applications.memory": _ask("nvmlDeviceGetDefaultApplicationsClock", "NVML_CLOCK_MEM"),
    "clocks_event_reasons.supported": lambda nvml, handle: (
        f"0x{nvml.nvmlDeviceGetSupportedClocksThrottleReasons(handle):016X}"
    ),
    "clocks_event_reasons.active": lambda nvml, handle: f"0x{_read_reasons(nvml, handle):016X}",
    **{f"clocks_event_reasons.{name}": _is_active(reason) for name, reason in _REASONS.items()},
    "clocks_event_reason.display_clocks_setting": _is_active(_DISPLAY_REASON),
    "pci.device_id": _read_pci("pciDeviceId"),
    "pci.sub_device_id": _read_pci("pciSubSystemId"),
    "pci.baseClass": _read_pci_class("baseClass"),
    "pci.subClass": _read_pci_class("subClass"),
    "pcie.link.gen.gpumax": _ask("nvmlDeviceGetGpuMaxPcieLinkGeneration"),
    "pcie.link.gen.current": _ask("nvmlDeviceGetCurrPcieLinkGeneration"),
    "pcie.link.gen.gpucurrent": _ask("nvmlDeviceGetCurrPcieLinkGeneration"),
    "pcie.link.gen.max": _ask("nvmlDeviceGetMaxPcieLinkGeneration"),
    "pcie.link.width.current": _ask("nvmlDeviceGetCurrPcieLinkWidth"),
    "pcie.link.width.max": _ask("nvmlDeviceGetMaxPcieLinkWidth"),
    "persistence_mode": _switch("nvmlDeviceGetPersistenceMode"),
    "compute_mode": lambda nvml, handle: _COMPUTE_MODES[nvml.nvmlDeviceGetComputeMode(handle)],
    "mig.mode.current": _pick("nvmlDeviceGetMigMode", 0, _ENABLED),
    "mig.mode.pending": _pick("nvmlDeviceGetMigMode", 1, _ENABLED),
    "accounting.mode": _switch("nvmlDeviceGetAccountingMode"),
    "accounting.buffer_size": _ask("nvmlDeviceGetAccountingBufferSize"),
    "ecc.mode.current": _pick("nvmlDeviceGetEccMode", 0, _ENABLED),
    "ecc.mode.pending": _pick("nvmlDeviceGetEccMode", 1, _ENABLED),
    **_list_error_readers(),
    "retired_pages.single_bit_ecc.count": _count_retired(
        "NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS"
    ),
    "retired_pages.double_bit.count": _count_retired("NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR"),
    "retired_pages.pending": _can(_ask("nvmlDeviceGetRetiredPagesPendingStatus")),
    "gsp.mode.current": _pick("nvmlDeviceGetGspFirmwareMode", 0, _ENABLED),
    "gsp.mode.default": _pick("nvmlDeviceGetGspFirmwareMode", 1, _ENABLED),
    "c2c.mode": lambda nvml, handle: _ENABLED[nvml.nvmlDeviceGetC2cModeInfoV(handle).isC2cEnabled],
    "protected_memory.total": _read_protected("total"),
    "protected_memory.used": _read_protected("used"),
    "protected_memory.free": _read_protected("free"),
    "fabric.state": lambda nvml, handle: _FABRIC_STATES[_read_fabric(nvml, handle).state],
    "fabric.status": lambda nvml, handle: str(nvml.NVMLError(_read_fabric(nvml, handle).status)),
    "fabric.cliqueId": lambda nvml, handle: _read_fabric(nvml, handle).cliqueId,
    "fabric.clusterUuid": lambda nvml, handle: bytes(_read_fabric(nvml, handle).clusterUuid).hex(),
    "reset_status.reset_required": _can(_read_field("NVML_FI_DEV_RESET_STATUS")),
    "reset_status.drain_and_reset_recommended": _can(_read_field("NVML_FI_DEV_DRAIN_AND_RESET_STATUS")),
    "gom.current": _pick("nvmlDeviceGetGpuOperationMode", 0, _OPERATION_MODES),
    "gom.pending": _pick("nvmlDeviceGetGpuOperationMode", 1, _OPERATION_MODES),
    "inforom.img": _ask("nvmlDeviceGetInforomImageVersion"),
    "inforom.oem": _read_version("NVML_INFOROM_OEM"),
    "inforom.ecc": _read_version("NVML_INFOROM_ECC"),
    "inforom.pwr": _read_version("NVML_INFOROM_POWER"),
    "vgpu_driver_capability.heterogenous_multivGPU": _can(
        lambda nvml, _: nvml.nvmlGetVgpuDriverCapabilities(nvml.NVML_VGPU_DRIVER_CAP_HETEROGENEOUS_MULTI_VGPU)
    ),
    **{
        f"vgpu_device_capability.{name}": _can(_ask("nvmlDeviceGetVgpuCapabilities", constant))
        for name, constant in _VGPU_CAPABILITIES.items()
    },
    "bar1.used": lambda nvml, handle: nvml.nvmlDeviceGetBAR1MemoryInfo(handle).bar1Used,
    "pcie.throughput.rx": _read_throughput("NVML_PCIE_UTIL_RX_BYTES"),
    "pcie.throughput.tx": _read_throughput("NVML_PCIE_UTIL_TX_BYTES"),
    "pcie.replays": _ask("nvmlDeviceGetPcieReplayCounter"),
    "violation.power": _read_violation("NVML_PERF_POLICY_POWER"),
    "violation.thermal": _read_violation("NVML_PERF_POLICY_THERMAL"),
    "display_active": _switch("nvmlDeviceGetDisplayActive"),
    "display_mode": _switch("nvmlDeviceGetDisplayMode"),
    "compute_cap": lambda nvml, handle: ".".join(map(str, nvml.nvmlDeviceGetCudaComputeCapability(handle))),
    "serial": _ask("nvmlDeviceGetSerial"),
    "gpu_serial": _ask("nvmlDeviceGetSerial"),
    "addressing_mode": lambda nvml, handle: _ADDRESSING_MODES[nvml.nvmlDeviceGetAddressingMode(handle)],
    "vbios_version": _ask("nvmlDeviceGetVbiosVersion"),
}

"""The names that can be queried: all of nvidia-smi (as of driver 550), and some that it lacks. Pure."""

from __future__ import annotations

from ..core.figures import find_device_figure
from ..core.moments import write_moment
from ..core.units import BYTES, JOULES, MEGAHERTZ, PERCENT, WATTS
from .smi_fields import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .smi_fields import Row

_TIMESTAMP = Field(
    "timestamp",
    "when the row was read",
    lambda row: write_moment(row.observation.epoch_seconds, "%Y/%m/%d %H:%M:%S.%f"),
)
_GPU_NAME = Field("name", "device name", lambda row: row.gpu.gpu.name or None, aliases=("gpu_name",))
_GPU_UUID = Field("uuid", "device UUID", lambda row: row.gpu.gpu.known_uuid, aliases=("gpu_uuid",))


def _find_index(row: Row) -> int | str:
    gpu = row.gpu.gpu
    return gpu.ordinal if gpu.label == str(gpu.ordinal) else gpu.label


def write_bus_id(bus_id: str) -> str:
    """In nvidia-smi's format: `00000000:4F:00.0` for the kernel's `0000:4f:00.0`."""
    domain, colon, rest = bus_id.upper().partition(":")
    return f"{domain.zfill(8)}{colon}{rest}" if colon else bus_id


def _write_address(bus_id: str, part: int, digits: int) -> str | None:
    """A part of the kernel's `0000:4f:00.0`."""
    parts = bus_id.partition(".")[0].upper().split(":")
    return f"0x{parts[part].zfill(digits)}" if len(parts) == 3 else None


_GPU_BUS_ID = Field(
    "pci.bus_id",
    "address on the PCI bus",
    lambda row: write_bus_id(row.gpu.gpu.bus_id) or None,
    aliases=("gpu_bus_id",),
)

# Our units → those of nvidia-smi.
_UNITS = {BYTES: "MiB", PERCENT: "%", WATTS: "W", MEGAHERTZ: "MHz", JOULES: "J"}


def _reading(figure_name: str, name: str = "") -> Field:
    """A figure of the usual reading."""
    figure = find_device_figure(figure_name)
    smi_name, *aliases = figure.smi or (name,)
    return Field(
        smi_name,
        figure.meaning,
        lambda row: getattr(row.gpu.reading, figure_name),
        _UNITS.get(figure.unit, ""),
        tuple(aliases),
    )


_ERRORS = {"corrected": "corrected", "uncorrected": "uncorrected"}
_PERIODS = {"volatile": "since the driver was loaded", "aggregate": "since the device was made"}
_PLACES = {
    "device_memory": "in device memory",
    "dram": "in DRAM",
    "register_file": "in the register file",
    "l1_cache": "in the L1 cache",
    "l2_cache": "in the L2 cache",
    "texture_memory": "in texture memory",
    "cbu": "in the convergence barrier units",
    "sram": "in SRAM",
    "total": "in all",
}
_REASONS = {
    "gpu_idle": "because the device was idle",
    "applications_clocks_setting": "by the clocks set for applications",
    "sw_power_cap": "by the power limit",
    "hw_slowdown": "by the hardware: heat, power brake or a fast trigger",
    "hw_thermal_slowdown": "by the hardware, because of heat",
    "hw_power_brake_slowdown": "by the power brake outside the device",
    "sync_boost": "to be as fast as other devices of a group",
    "sw_thermal_slowdown": "by the driver, because of heat",
}
_UNITS_OF_CLOCKS = {"graphics": ("gr", "graphics units"), "memory": ("mem", "memory")}
_NOT_ON_LINUX = "it exists on Windows only"
_NOT_IN_NVML = "NVIDIA's library does not report it to other programs"


def _list_errors() -> Iterator[Field]:
    for kind, word in _ERRORS.items():
        for period, since in _PERIODS.items():
            for place, where in _PLACES.items():
                yield Field(f"ecc.errors.{kind}.{period}.{place}", f"{word} errors {where} {since}")


def _list_reasons() -> Iterator[Field]:
    for name, why in _REASONS.items():
        yield Field(
            f"clocks_event_reasons.{name}",
            f"whether clocks are lowered {why}",
            aliases=(f"clocks_throttle_reasons.{name}",),
        )


def _list_clocks(group: str, words: str) -> Iterator[Field]:
    for name, (short, unit) in _UNITS_OF_CLOCKS.items():
        yield Field(
            f"clocks.{group}.{name}",
            f"{words} of the {unit}",
            unit="MHz",
            aliases=(f"clocks.{group}.{short}",),
        )


GPU_FIELDS = (
    _TIMESTAMP,
    Field(
        "index",
        "index in the vendor's own tool; `1:0` is a MIG instance, `amd:0` of several vendors",
        _find_index,
    ),
    Field("count", "number of GPUs", lambda row: row.n_gpus),
    _GPU_NAME,
    _GPU_UUID,
    _GPU_BUS_ID,
    Field("pci.domain", "domain of the PCI bus", lambda row: _write_address(row.gpu.gpu.bus_id, 0, 4)),
    Field("pci.bus", "number of the PCI bus", lambda row: _write_address(row.gpu.gpu.bus_id, 1, 2)),
    Field("pci.device", "number on the PCI bus", lambda row: _write_address(row.gpu.gpu.bus_id, 2, 2)),
    Field("pci.baseClass", "PCI base class"),
    Field("pci.subClass", "PCI subclass"),
    Field("pci.device_id", "PCI device and vendor"),
    Field("pci.sub_device_id", "PCI subsystem and its vendor"),
    Field("vendor", "nvidia, amd, intel or apple (not in nvidia-smi)", lambda row: row.gpu.gpu.vendor),
    Field("source", "interface that was read (not in nvidia-smi)", lambda row: row.gpu.gpu.source),
    Field("driver_version", "driver version", lambda row: row.gpu.gpu.driver or None),
    Field("memory.total", "memory size", lambda row: row.gpu.gpu.memory_bytes, "MiB"),
    _reading("reserved_bytes"),
    _reading("used_bytes"),
    Field(
        "memory.free", "neither used nor reserved by the driver", lambda row: row.gpu.memory_free_bytes, "MiB"
    ),
    _reading("utilization_percent"),
    _reading("memory_utilization_percent"),
    _reading("sm_percent", name="sm.activity"),
    _reading("occupancy_percent", name="sm.occupancy"),
    _reading("tensor_percent", name="tensor.activity"),
    _reading("bandwidth_percent", name="memory.bandwidth"),
    Field("utilization.encoder", "utilization of the video encoder", unit="%"),
    Field("utilization.decoder", "utilization of the video decoder", unit="%"),
    Field("utilization.jpeg", "utilization of the JPEG decoder", unit="%"),
    Field("utilization.ofa", "utilization of the optical flow accelerator", unit="%"),
    Field("encoder.stats.sessionCount", "sessions of the video encoder"),
    Field("encoder.stats.averageFps", "their mean frames per second"),
    Field("encoder.stats.averageLatency", "their mean latency in microseconds"),
    _reading("temperature_celsius"),
    Field("temperature.gpu.tlimit", "degrees Celsius until it is slowed down"),
    Field("temperature.memory", "memory temperature, degrees Celsius"),
    _reading("power_watts"),
    Field("power.draw.average", "mean power of the last second", unit="W"),
    Field("power.draw.instant", "power at this moment", unit="W"),
    Field("power.management", "whether power is limited by the driver"),
    Field("power.limit", "power limit set by software", unit="W"),
    Field("enforced.power.limit", "power limit in force", unit="W"),
    Field("power.default_limit", "default power limit", unit="W"),
    Field("power.min_limit", "lowest power limit", unit="W"),
    Field("power.max_limit", "highest power limit", unit="W"),
    _reading("energy_joules", name="energy"),
    Field("pstate", "performance state; P0 is the fastest"),
    Field("fan.speed", "fan speed", unit="%"),
    _reading("sm_clock_mhz"),
    _reading("memory_clock_mhz"),
    Field("clocks.current.graphics", "clock of the graphics units", unit="MHz", aliases=("clocks.gr",)),
    Field("clocks.current.video", "clock of the video units", unit="MHz", aliases=("clocks.video",)),
    Field(
        "clocks.max.graphics", "highest clock of the graphics units", unit="MHz", aliases=("clocks.max.gr",)
    ),
    Field("clocks.max.sm", "highest clock of the compute units", unit="MHz"),
    Field("clocks.max.memory", "highest clock of the memory", unit="MHz", aliases=("clocks.max.mem",)),
    *_list_clocks("applications", "clock set for applications,"),
    *_list_clocks("default_applications", "default clock for applications,"),
    Field(
        "clocks_event_reasons.supported",
        "throttling reasons that it can report, as a bit mask",
        aliases=("clocks_throttle_reasons.supported",),
    ),
    Field(
        "clocks_event_reasons.active",
        "throttling reasons, as a bit mask",
        aliases=("clocks_throttle_reasons.active",),
    ),
    *_list_reasons(),
    Field("clocks_event_reason.display_clocks_setting", "whether clocks are lowered for a display"),
    Field(
        "limits",
        "the same in words (not in nvidia-smi)",
        lambda row: None if row.gpu.reading.limits is None else " ".join(row.gpu.reading.limits) or "none",
    ),
    Field("pcie.link.gen.current", "generation of the PCIe link"),
    Field("pcie.link.gen.gpucurrent", "the same, as the device says it"),
    Field("pcie.link.gen.max", "highest generation of the PCIe link"),
    Field("pcie.link.gen.gpumax", "highest generation that the device supports"),
    Field("pcie.link.gen.hostmax", "highest generation that its slot supports", never=_NOT_IN_NVML),
    Field("pcie.link.width.current", "lanes of the PCIe link"),
    Field("pcie.link.width.max", "highest number of lanes of the PCIe link"),
    Field("persistence_mode", "whether the driver stays loaded without users"),
    Field("compute_mode", "who may use it: Default, Exclusive_Process, Prohibited"),
    Field("mig.mode.current", "whether it is split into instances (MIG)"),
    Field("mig.mode.pending", "the same after the next reset"),
    Field("addressing_mode", "how it reaches the memory of processes: HMM, ATS or None"),
    Field("accounting.mode", "whether the driver records process statistics"),
    Field("accounting.buffer_size", "of how many processes"),
    Field("ecc.mode.current", "whether ECC is on"),
    Field("ecc.mode.pending", "the same after the next reset"),
    *_list_errors(),
    Field(
        "retired_pages.single_bit_ecc.count",
        "pages retired after corrected errors",
        aliases=("retired_pages.sbe",),
    ),
    Field(
        "retired_pages.double_bit.count",
        "pages retired after an uncorrected error",
        aliases=("retired_pages.dbe",),
    ),
    Field("retired_pages.pending", "whether pages are retired at the next reset"),
    Field("gsp.mode.current", "whether the driver uses the device's own processor (GSP)"),
    Field("gsp.mode.default", "the same by default"),
    Field("c2c.mode", "whether the chip-to-chip link is on"),
    Field("protected_memory.total", "memory for confidential computing", unit="MiB"),
    Field("protected_memory.used", "used of that", unit="MiB"),
    Field("protected_memory.free", "free of that", unit="MiB"),
    Field("fabric.state", "state of the NVLink fabric"),
    Field("fabric.status", "result of joining the fabric"),
    Field("fabric.cliqueId", "clique in the fabric"),
    Field("fabric.clusterUuid", "cluster of the fabric"),
    Field("fabric.health.bandwidth", "bandwidth of the fabric", never=_NOT_IN_NVML),
    Field("reset_status.reset_required", "whether it must be reset"),
    Field("reset_status.drain_and_reset_recommended", "whether it should be, once its jobs have ended"),
    Field("gom.current", "GPU operation mode", aliases=("gpu_operation_mode.current",)),
    Field("gom.pending", "the same after a reboot", aliases=("gpu_operation_mode.pending",)),
    Field("driver_model.current", "driver model", never=_NOT_ON_LINUX),
    Field("driver_model.pending", "the same after a reboot", never=_NOT_ON_LINUX),
    Field("inforom.img", "version of the info ROM", aliases=("inforom.image",)),
    Field("inforom.oem", "version of its OEM object"),
    Field("inforom.ecc", "version of its ECC object"),
    Field("inforom.pwr", "version of its power object", aliases=("inforom.power",)),
    Field("vgpu_driver_capability.heterogenous_multivGPU", "whether the driver mixes vGPU types"),
    Field("vgpu_device_capability.fractional_multiVgpu", "whether fractional vGPUs can be combined"),
    Field(
        "vgpu_device_capability.heterogeneous_timeSlice_profile", "whether it mixes time-sliced vGPU types"
    ),
    Field("vgpu_device_capability.heterogeneous_timeSlice_sizes", "whether it mixes their memory sizes"),
    Field("display_active", "whether a display uses it"),
    Field("display_mode", "whether a display is connected"),
    Field("compute_cap", "CUDA compute capability"),
    Field("serial", "serial number of the board", aliases=("gpu_serial",)),
    Field("vbios_version", "firmware version"),
    Field(
        "bar1.used",
        "used of the window through which processors reach its memory (not in nvidia-smi)",
        unit="MiB",
    ),
    Field("pcie.throughput.rx", "bytes per second received through PCIe (not in nvidia-smi)"),
    Field("pcie.throughput.tx", "bytes per second sent through PCIe (not in nvidia-smi)"),
    Field("pcie.replays", "PCIe transfers that had to be repeated (not in nvidia-smi)"),
    Field("violation.power", "seconds slowed down by the power limit (not in nvidia-smi)"),
    Field("violation.thermal", "seconds slowed down by heat (not in nvidia-smi)"),
    Field(
        "processes",
        "number of processes (not in nvidia-smi)",
        lambda row: len(row.gpu.processes) if row.gpu.reading.lists_processes else None,
    ),
)

PROCESS_FIELDS = (
    _TIMESTAMP,
    _GPU_NAME._replace(name="gpu_name", aliases=()),
    Field("gpu_serial", "serial number of the board"),
    _GPU_UUID._replace(name="gpu_uuid", aliases=()),
    _GPU_BUS_ID._replace(name="gpu_bus_id", aliases=()),
    Field("pid", "process ID", lambda row: row.process and row.process.reading.pid),
    Field(
        "process_name",
        "executable",
        lambda row: (row.process and row.process.holder.command and row.process.holder.command[0]) or None,
        aliases=("name",),
    ),
    Field(
        "used_gpu_memory",
        "memory that the driver attributes to it",
        lambda row: row.process and row.process.reading.used_bytes,
        "MiB",
        ("used_memory",),
    ),
    Field(
        "utilization.sm",
        "its share of the compute units (not in nvidia-smi)",
        lambda row: row.process and row.process.reading.utilization_percent,
        "%",
    ),
    Field(
        "user",
        "owner of the process (not in nvidia-smi)",
        lambda row: row.process and row.process.holder.user,
    ),
    Field(
        "command",
        "command line (not in nvidia-smi)",
        lambda row: row.process and row.process.holder.command_line,
    ),
)

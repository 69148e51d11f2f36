"""One row per named figure: its label, unit and meaning, for everything that shows, compares or exports it. Pure.

(A *metric* is a number that the job logs under a name of its own.)
"""

from __future__ import annotations

from .units import BYTES, CELSIUS, CORES, COUNT, JOULES, MEGAHERTZ, NUMBER, PERCENT, RATE, SECONDS, WATTS
from .values import NamedTuple

GAUGE, COUNTER = "gauge", "counter"


class Figure(NamedTuple):
    """One figure."""

    name: str
    """As in code and options."""
    label: str
    """As in reports."""
    unit: str
    kind: str = GAUGE
    resolution: float = 0.0
    """Smaller differences mean nothing: clocks, readings and allocators are not finer."""
    needs_gpu: bool = False
    smi: tuple[str, ...] = ()
    """Names in nvidia-smi, the current one first."""
    meaning: str = ""
    is_essential: bool = False
    """Whether `doctor` fails if a device does not report it."""
    least: float = 0.0
    most: float = float("inf")
    """No device is beyond these: a driver that says so is wrong."""
    otel: str = ""
    """The name that OpenTelemetry's conventions have for it."""


MOST_BYTES = 2.0**50
MOST_WATTS = 10_000.0
_YEARS_IN_SECONDS = 20 * 366 * 86400
_BOUNDS = {
    BYTES: (0.0, MOST_BYTES),
    PERCENT: (0.0, 100.0),
    CELSIUS: (-100.0, 200.0),
    WATTS: (0.0, MOST_WATTS),
    JOULES: (0.0, MOST_WATTS * _YEARS_IN_SECONDS),
    MEGAHERTZ: (0.0, 100_000.0),
}


def _device(
    name: str,
    label: str,
    unit: str,
    meaning: str,
    smi: str = "",
    kind: str = GAUGE,
    is_essential: bool = False,
) -> Figure:
    least, most = _BOUNDS[unit]
    figure = Figure(
        name, label, unit, kind, meaning=meaning, is_essential=is_essential, least=least, most=most
    )
    return figure._replace(smi=tuple(smi.split()))


# fmt: off
# ---- Of a run or a region.
TIME = Figure("time", "time", SECONDS, COUNTER, 0.01)
RUN = (
    TIME,
    Figure("cpu_time", "CPU time", SECONDS, COUNTER, 0.01),
    Figure("mean_cores", "mean cores", CORES, GAUGE, 0.01),
    Figure("peak_ram", "peak RAM", BYTES, GAUGE, 1e6),
    Figure("peak_gpu_ram", "peak GPU RAM", BYTES, GAUGE, 1e6, needs_gpu=True),
    Figure("gpu_utilization", "GPU busy", PERCENT, GAUGE, 1.0, needs_gpu=True),
    Figure("energy", "GPU energy", JOULES, COUNTER, 1.0, needs_gpu=True),
)
REGION = (
    TIME,
    Figure("calls", "calls", COUNT, COUNTER),
    Figure("time_per_call", "time per call", SECONDS),
    *RUN[1:],
)
LAST_METRIC = Figure("last", "last", NUMBER)

# ---- Of a device: the fields of a GpuReading. Those without a name in nvidia-smi are not in it.
DEVICE = (
    _device("reserved_bytes", "reserved memory", BYTES, "reserved by the driver", "memory.reserved"),
    _device("used_bytes", "memory used", BYTES, "memory used by all processes", "memory.used", is_essential=True),
    _device("utilization_percent", "utilization", PERCENT, "share of time in which any kernel ran", "utilization.gpu", is_essential=True),
    _device("memory_utilization_percent", "memory utilization", PERCENT, "share of time in which memory was accessed", "utilization.memory"),
    _device("temperature_celsius", "temperature", CELSIUS, CELSIUS, "temperature.gpu temperature"),
    _device("power_watts", "power", WATTS, "current power draw", "power.draw"),
    _device("energy_joules", "energy", JOULES, "joules since the driver was loaded (not in nvidia-smi)", kind=COUNTER),
    _device("sm_clock_mhz", "SM clock", MEGAHERTZ, "clock of the compute units", "clocks.current.sm clocks.sm"),
    _device("memory_clock_mhz", "memory clock", MEGAHERTZ, "clock of the memory", "clocks.current.memory clocks.mem"),
    _device("sm_percent", "SM activity", PERCENT, "share of the multiprocessors that had work (not in nvidia-smi)"),
    _device("occupancy_percent", "SM occupancy", PERCENT, "warps on the multiprocessors, of those that fit (not in nvidia-smi)"),
    _device("tensor_percent", "tensor activity", PERCENT, "share of time in which tensor cores worked (not in nvidia-smi)"),
    _device("bandwidth_percent", "memory bandwidth", PERCENT, "bandwidth of the memory that was used (not in nvidia-smi)"),
)
PROCESS_LISTS = ("lists_processes", "lists_graphics_processes", "lists_mps_clients")
"""What a device lists. One that does not list all of its processes does not list them."""
_OTHER_LABELS = {
    "memory_bytes": "memory size",
    "limits": "throttling reasons",
    "lists_processes": "processes",
    "lists_graphics_processes": "graphics processes",
    "lists_mps_clients": "clients of MPS",
    "utilization_of_processes": "utilization by process",
    "process_used_bytes": "memory of a process",
    "traffic": "what goes through its links",
}

# ---- Of a running job: what other programs are told, under these names.
JOB_NOW = (
    Figure("cpu_cores", "CPU", CORES, meaning="cores that the job kept busy"),
    Figure("machine_cores", "CPU of the machine", CORES, meaning="cores that everything on the machine kept busy"),
    Figure("ram_bytes", "RAM", BYTES, meaning="RAM of the job, mean of the interval", otel="process.memory.usage"),
    Figure("highest_ram_bytes", "highest RAM", BYTES, meaning="RAM of the job, highest in the interval"),
    Figure("machine_ram_bytes", "RAM of the machine", BYTES, meaning="RAM used by everything on the machine"),
    Figure("threads", "threads", COUNT, meaning="threads of the job", otel="process.thread.count"),
    Figure("processes", "processes", COUNT, meaning="processes of the job"),
    Figure("read_bytes_per_second", "reading", RATE, meaning="what the job reads from storage"),
    Figure("written_bytes_per_second", "writing", RATE, meaning="what the job writes to storage"),
)
"""The fields of an `Interval`."""
GPU_NOW = (
    Figure("used_bytes", "GPU RAM", BYTES, meaning="memory of the device used by all processes", otel="hw.gpu.memory.usage"),
    Figure("job_bytes", "GPU RAM of the job", BYTES, meaning="memory of the device used by the job"),
    Figure("utilization_percent", "GPU busy", PERCENT, meaning="share of time in which any kernel ran", otel="hw.gpu.utilization"),
    Figure("job_percent", "GPU busy by the job", PERCENT, meaning="share of time in which a kernel of the job ran"),
    Figure("power_watts", "power", WATTS, meaning="power draw of the device", otel="hw.power"),
    Figure("temperature_celsius", "temperature", CELSIUS, meaning="temperature of the device", otel="hw.temperature"),
    Figure("sm_clock_mhz", "SM clock", MEGAHERTZ, meaning="clock of the compute units"),
)
"""The fields of a `GpuInterval`."""
JOB_SO_FAR = (
    Figure("elapsed_seconds", "time", SECONDS, meaning="time since the start of the recording"),
    Figure("peak_ram_bytes", "peak RAM", BYTES, meaning="largest RAM of the job so far"),
    Figure("cpu_seconds", "CPU time", SECONDS, COUNTER, meaning="CPU time of the job", otel="process.cpu.time"),
    Figure("read_bytes", "read", BYTES, COUNTER, meaning="bytes that the job has read from storage", otel="process.disk.io"),
    Figure("written_bytes", "written", BYTES, COUNTER, meaning="bytes that the job has written to storage", otel="process.disk.io"),
)
GPU_SO_FAR = (
    Figure("memory_bytes", "GPU memory", BYTES, meaning="memory that the device has", otel="hw.gpu.memory.limit"),
    Figure("energy_joules", "energy", JOULES, COUNTER, meaning="energy of the device since the start", otel="hw.energy"),
)
LOGGED_NOW = (
    Figure("step", "step", COUNT, meaning="the last step that the job has logged"),
    Figure("metric", "metric", NUMBER, meaning="the last value of a metric that the job logs"),
)
# fmt: on

_BY_NAME = {figure.name: figure for figure in DEVICE}


def find_device_figure(name: str) -> Figure:
    """The figure of that name."""
    return _BY_NAME[name]


def is_possible(name: str, value: float) -> bool:
    """Whether a device can have that value."""
    figure = _BY_NAME[name]
    return figure.least <= value <= figure.most


def name_device_figure(name: str) -> str:
    """The label of something that is read from a device."""
    figure = _BY_NAME.get(name)
    return _OTHER_LABELS.get(name, name) if figure is None else figure.label

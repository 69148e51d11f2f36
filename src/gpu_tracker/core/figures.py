"""One row per named figure: its label, unit and meaning, for everything that shows, compares or exports it. Pure.

(A *metric* is a number that the job logs under a name of its own.)
"""

from __future__ import annotations

from .units import humanize_bytes, humanize_joules, humanize_seconds
from .values import NamedTuple

SECONDS, BYTES, RATE, PERCENT, JOULES, CORES, COUNT, NUMBER, WATTS, CELSIUS, MEGAHERTZ, TEXT = (
    "seconds",
    "bytes",
    "bytes per second",
    "percent",
    "joules",
    "cores",
    "count",
    "number",
    "watts",
    "degrees Celsius",
    "MHz",
    "text",
)
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

# ---- Of a device: the fields of a GpuReading.

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
    least, most = _BOUNDS.get(unit, (0.0, float("inf")))
    return Figure(
        name,
        label,
        unit,
        kind,
        smi=tuple(smi.split()),
        meaning=meaning,
        is_essential=is_essential,
        least=least,
        most=most,
    )


DEVICE = (
    _device("reserved_bytes", "reserved memory", BYTES, "reserved by the driver", "memory.reserved"),
    _device(
        "used_bytes", "memory used", BYTES, "memory used by all processes", "memory.used", is_essential=True
    ),
    _device(
        "utilization_percent",
        "utilization",
        PERCENT,
        "share of time in which any kernel ran",
        "utilization.gpu",
        is_essential=True,
    ),
    _device(
        "memory_utilization_percent",
        "memory utilization",
        PERCENT,
        "share of time in which memory was accessed",
        "utilization.memory",
    ),
    _device("temperature_celsius", "temperature", CELSIUS, CELSIUS, "temperature.gpu temperature"),
    _device("power_watts", "power", WATTS, "current power draw", "power.draw"),
    _device(
        "energy_joules",
        "energy",
        JOULES,
        "joules since the driver was loaded (not in nvidia-smi)",
        kind=COUNTER,
    ),
    _device(
        "sm_clock_mhz", "SM clock", MEGAHERTZ, "clock of the compute units", "clocks.current.sm clocks.sm"
    ),
    _device(
        "memory_clock_mhz",
        "memory clock",
        MEGAHERTZ,
        "clock of the memory",
        "clocks.current.memory clocks.mem",
    ),
)
PROCESS_LISTS = ("lists_processes", "lists_graphics_processes", "lists_mps_clients")
"""What a device lists. One that does not list all of its processes does not list them."""
_BY_NAME = {figure.name: figure for figure in DEVICE}
# Labels of other things that are read from a device.
_OTHER_WORDS = {
    "memory_bytes": "memory size",
    "limits": "throttling reasons",
    "lists_processes": "processes",
    "lists_graphics_processes": "graphics processes",
    "lists_mps_clients": "clients of MPS",
    "utilization_of_processes": "utilization by process",
    "process_used_bytes": "memory of a process",
}


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
    return _OTHER_WORDS.get(name, name) if figure is None else figure.label


def humanize(value: float | None, unit: str) -> str:
    """A figure as text; `-` if it is not known."""
    if value is None:
        return "-"
    if unit == SECONDS:
        return humanize_seconds(value)
    if unit == BYTES:
        return humanize_bytes(value)
    if unit == RATE:
        return f"{humanize_bytes(value)}/s"
    if unit == JOULES:
        return humanize_joules(value)
    if unit == PERCENT:
        return f"{value:.0f} %"
    if unit == COUNT:
        return f"{value:,.0f}"
    return f"{value:.3g}" if unit == CORES else f"{value:.6g}"

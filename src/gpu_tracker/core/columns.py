"""The sampled figures of a recording as columns, one row per interval: what charts and findings need. Pure.

All columns of a recording have the same length. An unknown value is nan, never 0.
"""

from __future__ import annotations

from .values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Mapping
    from typing import TypeAlias

    from .model import Parts

    Column: TypeAlias = array[float]


class RamColumns(NamedTuple):
    """Memory of a part of the tree in bytes."""

    low: Column
    mean: Column
    high: Column
    """Including the kernel's high-water marks."""


class Extremes(NamedTuple):
    """The smallest and the largest value in each interval."""

    low: Column
    high: Column


class GpuColumns(NamedTuple):
    """One device."""

    used_bytes: Column
    job_bytes: Column
    utilization_percent: Column
    job_percent: Column
    power_watts: Column
    temperature_celsius: Column
    sm_clock_mhz: Column
    sm_percent: Column
    occupancy_percent: Column
    tensor_percent: Column
    bandwidth_percent: Column
    pcie_received_bytes_per_second: Column
    pcie_sent_bytes_per_second: Column
    nvlink_received_bytes_per_second: Column
    nvlink_sent_bytes_per_second: Column
    throttled_seconds: Mapping[str, Column]
    """By reason, in each interval. Reasons may overlap."""


class HeldColumns(NamedTuple):
    """What a job held, in each interval, in the order of time."""

    start_seconds: Column
    end_seconds: Column
    ram_bytes: Column
    gpus: Mapping[str, Column]
    """By UUID."""
    grown: tuple[tuple[float, int], ...] = ()
    """When a new peak of RAM was known, and its size."""


class StallColumns(NamedTuple):
    """The share of the time in which something on the machine waited, from 0 to 1."""

    cpu: Column
    memory: Column
    io: Column
    throttled: Column
    """In which the job's own group was stopped by its CPU quota."""


class LoggedColumns(NamedTuple):
    """What the job logged, nan and inf too, in the order in which it was written."""

    metrics: Mapping[str, tuple[Column, Column]]
    """Moments and values, by name."""
    last_seconds: float | None
    """Of any point, also of one without values."""


class SampleColumns(NamedTuple):
    """Each row is an interval, in the order of time."""

    start_seconds: Column
    """The end of the interval before. Rates are over all the time since."""
    read_since_seconds: Column
    """Later than that if the sampler was stopped: what readings show is known only since then."""
    end_seconds: Column
    cpu_cores: Parts[Column]
    """How many cores were busy."""
    machine_cores: Column
    ram_bytes: Parts[RamColumns]
    machine_ram_bytes: Column
    threads: Column
    processes: Column
    gpus: Mapping[str, GpuColumns]
    """By UUID."""
    read_bytes_per_second: Column
    """This and the following are read about once a second."""
    written_bytes_per_second: Column
    waiting_threads: Column
    """How many threads waited for a core."""
    stalled: StallColumns
    extremes: Mapping[tuple[str, str], Extremes] = {}
    """Of what is drawn, by field and UUID: if several samples became one interval, of which the figures above are means."""
    disordered_samples: int = 0
    """Recorded after a later one; they are in their order here."""
    impossible_samples: int = 0
    """With a value that no machine can have; they are not among the rows."""

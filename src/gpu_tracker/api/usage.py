"""The paper's result classes, field for field, and nothing else.

Here an unknown GPU figure is 0.0, as in the paper; the reason is in the tracker's notes. The paper writes
"descendents"; the usual spelling is there too, to read.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class RSSValues:
    """Resident memory; private + shared = total."""

    total_rss: float = 0.0
    private_rss: float = 0.0
    shared_rss: float = 0.0


@dataclasses.dataclass
class MaxRAM:
    """The largest amount of RAM used, in `unit`."""

    unit: str
    system_capacity: float
    system: float = 0.0
    main: RSSValues = dataclasses.field(default_factory=RSSValues)
    descendents: RSSValues = dataclasses.field(default_factory=RSSValues)
    combined: RSSValues = dataclasses.field(default_factory=RSSValues)

    @property
    def descendants(self) -> RSSValues:
        """The same as `descendents`."""
        return self.descendents


@dataclasses.dataclass
class MaxGPURAM:
    """The largest amount of GPU RAM used, in `unit`."""

    unit: str
    system_capacity: float
    system: float = 0.0
    main: float = 0.0
    descendents: float = 0.0
    combined: float = 0.0

    @property
    def descendants(self) -> float:
        """The same as `descendents`."""
        return self.descendents


@dataclasses.dataclass
class ProcessingUnitPercentages:
    """Sum over the units, and that divided by how many are expected to be used."""

    max_sum_percent: float = 0.0
    max_hardware_percent: float = 0.0
    mean_sum_percent: float = 0.0
    mean_hardware_percent: float = 0.0


@dataclasses.dataclass
class CPUUtilization:
    """How busy the cores were."""

    system_core_count: int
    n_expected_cores: float
    system: ProcessingUnitPercentages = dataclasses.field(default_factory=ProcessingUnitPercentages)
    main: ProcessingUnitPercentages = dataclasses.field(default_factory=ProcessingUnitPercentages)
    descendents: ProcessingUnitPercentages = dataclasses.field(default_factory=ProcessingUnitPercentages)
    combined: ProcessingUnitPercentages = dataclasses.field(default_factory=ProcessingUnitPercentages)
    main_n_threads: int = 0
    descendents_n_threads: int = 0
    combined_n_threads: int = 0

    @property
    def descendants(self) -> ProcessingUnitPercentages:
        """The same as `descendents`."""
        return self.descendents

    @property
    def descendants_n_threads(self) -> int:
        """The same as `descendents_n_threads`."""
        return self.descendents_n_threads


@dataclasses.dataclass
class GPUUtilization:
    """How busy the GPUs were."""

    system_gpu_count: int
    n_expected_gpus: int
    gpu_percentages: ProcessingUnitPercentages = dataclasses.field(default_factory=ProcessingUnitPercentages)


@dataclasses.dataclass
class ComputeTime:
    """The real time from start to stop, in `unit`."""

    unit: str
    time: float = 0.0


@dataclasses.dataclass
class ResourceUsage:
    """Everything a task used."""

    max_ram: MaxRAM
    max_gpu_ram: MaxGPURAM
    cpu_utilization: CPUUtilization
    gpu_utilization: GPUUtilization
    compute_time: ComputeTime

"""The paper's module: `Tracker` and the classes of its results."""

from __future__ import annotations

from .api.tracker import Tracker as Tracker
from .api.usage import (
    ComputeTime as ComputeTime,
    CPUUtilization as CPUUtilization,
    GPUUtilization as GPUUtilization,
    MaxGPURAM as MaxGPURAM,
    MaxRAM as MaxRAM,
    ProcessingUnitPercentages as ProcessingUnitPercentages,
    ResourceUsage as ResourceUsage,
    RSSValues as RSSValues,
)

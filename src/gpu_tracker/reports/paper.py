"""A report as the paper shows it: the same result classes, text and JSON."""

from __future__ import annotations

import dataclasses
import json

from ..api.usage import (
    ComputeTime,
    CPUUtilization,
    GPUUtilization,
    MaxGPURAM,
    MaxRAM,
    ProcessingUnitPercentages,
    ResourceUsage,
    RSSValues,
)
from ..core.units import BYTES_PER_UNIT, SECONDS_PER_UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..analysis.summary import CpuSummary
    from ..core.config import Settings
    from ..core.model import RamPeak
    from .build import Report
    from .contract import View

_INDENT = "   "
_PAPERS_SPELLING = "descendents"
_LABELS = {
    "max_ram": "Max RAM",
    "max_gpu_ram": "Max GPU RAM",
    "cpu_utilization": "CPU utilization",
    "gpu_utilization": "GPU utilization",
    "system_gpu_count": "System GPU count",
    "n_expected_cores": "Number of expected cores",
    "n_expected_gpus": "Number of expected GPUs",
    "gpu_percentages": "GPU percentages",
    "main_n_threads": "Main number of threads",
    "descendents_n_threads": "Descendents number of threads",
    "combined_n_threads": "Combined number of threads",
    "total_rss": "Total RSS",
    "private_rss": "Private RSS",
    "shared_rss": "Shared RSS",
}


def build_usage(report: Report, settings: Settings) -> ResourceUsage:
    """The paper's result object, in the units asked for."""
    summary = report.summary
    ram = BYTES_PER_UNIT[settings.ram_unit]
    gpu_ram = BYTES_PER_UNIT[settings.gpu_ram_unit]
    expected = summary.n_expected_cores
    expected_gpus = sum(gpu.is_expected for gpu in summary.gpus)
    return ResourceUsage(
        max_ram=MaxRAM(
            settings.ram_unit,
            summary.ram_capacity_bytes / ram,
            summary.ram_used_bytes / ram,
            *(_rss(peak, ram) for peak in summary.ram),
        ),
        max_gpu_ram=MaxGPURAM(
            settings.gpu_ram_unit,
            *(
                (size or 0) / gpu_ram  # the paper has no word for what is not known
                for size in (summary.gpu_capacity_bytes, summary.system_gpu_bytes, *summary.gpu_bytes)
            ),
        ),
        cpu_utilization=CPUUtilization(
            summary.n_cores,
            int(expected) if expected == int(expected) else expected,
            _percentages(summary.system_cpu, summary.n_cores),
            _percentages(summary.cpu.main, expected),
            _percentages(summary.cpu.descendants, expected),
            _percentages(summary.cpu.combined, expected),
            *(count or 0 for count in summary.threads),
        ),
        gpu_utilization=GPUUtilization(
            len(summary.gpus),
            expected_gpus,
            ProcessingUnitPercentages(
                *(
                    (percent or 0.0) / units
                    for percent in (summary.gpu_max_sum_percent, summary.gpu_mean_sum_percent)
                    for units in (1, max(1, expected_gpus))
                )
            ),
        ),
        compute_time=ComputeTime(settings.time_unit, summary.seconds / SECONDS_PER_UNIT[settings.time_unit]),
    )


def to_plain(usage: ResourceUsage) -> dict[str, Any]:
    """A dictionary, with full precision. What the paper calls "descendents" is there in the usual spelling, too."""
    return _spell_both_ways(dataclasses.asdict(usage))


def _spell_both_ways(values: dict[str, Any]) -> dict[str, Any]:
    spelled = {}
    for name, value in values.items():
        for spelling in dict.fromkeys((name, name.replace(_PAPERS_SPELLING, "descendants"))):
            spelled[spelling] = _spell_both_ways(value) if isinstance(value, dict) else value
    return spelled


def to_json(usage: ResourceUsage, _view: View | None = None) -> str:
    """Indented by one space, no newline at the end."""
    return json.dumps(to_plain(usage), indent=1)


def to_text(usage: ResourceUsage, _view: View | None = None) -> str:
    """Three spaces per level, numbers to three decimals, no newline at the end."""
    return "\n".join(_lines(dataclasses.asdict(usage), ""))


def _lines(values: dict[str, Any], indent: str) -> list[str]:
    lines = []
    for name, value in values.items():
        label = _LABELS.get(name) or name.replace("_", " ").capitalize()
        if isinstance(value, dict):
            lines.append(f"{indent}{label}:")
            lines.extend(_lines(value, indent + _INDENT))
        else:
            shown = round(value, 3) if isinstance(value, float) else value
            lines.append(f"{indent}{label}: {shown}")
    return lines


def _rss(peak: RamPeak, unit_bytes: int) -> RSSValues:
    return RSSValues(
        peak.total_bytes / unit_bytes, peak.private_bytes / unit_bytes, peak.shared_bytes / unit_bytes
    )


def _percentages(cpu: CpuSummary, units: float) -> ProcessingUnitPercentages:
    most, mean = cpu.max_percent or 0.0, cpu.mean_percent or 0.0
    return ProcessingUnitPercentages(most, most / units, mean, mean / units)

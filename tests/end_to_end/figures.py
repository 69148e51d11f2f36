"""What the tool said, the same for the paper's JSON and for that of `gpu-tracker run`: bytes and seconds."""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Part(NamedTuple):
    """The main process, its descendants, or both together."""

    cpu_seconds: float
    """As it is, or the mean percentage turned back into what it was made of."""
    mean_percent: float
    max_percent: float
    mean_hardware_percent: float
    ram_bytes: float
    private_bytes: float
    shared_bytes: float
    threads: int


class Figures(NamedTuple):
    """One result."""

    seconds: float
    main: Part
    descendants: Part
    combined: Part
    system_ram_bytes: float
    capacity_bytes: float
    n_cores: int
    n_expected_cores: float


def read_paper_json(usage: dict[str, Any]) -> Figures:
    """The paper's result, asked for in bytes and seconds."""
    ram, cpu = usage["max_ram"], usage["cpu_utilization"]
    assert ram["unit"] == "bytes"
    assert usage["compute_time"]["unit"] == "seconds"
    seconds = usage["compute_time"]["time"]

    def part(name: str) -> Part:
        percentages, rss = cpu[name], ram[name]
        return Part(
            percentages["mean_sum_percent"] / 100 * seconds,
            percentages["mean_sum_percent"],
            percentages["max_sum_percent"],
            percentages["mean_hardware_percent"],
            rss["total_rss"],
            rss["private_rss"],
            rss["shared_rss"],
            cpu[f"{name}_n_threads"],
        )

    return Figures(
        seconds,
        part("main"),
        part("descendents"),
        part("combined"),
        ram["system"],
        ram["system_capacity"],
        cpu["system_core_count"],
        cpu["n_expected_cores"],
    )


def read_report_json(report: dict[str, Any]) -> Figures:
    """The full report."""
    summary = report["summary"]
    seconds, n_expected_cores = summary["seconds"], summary["n_expected_cores"]

    def part(name: str) -> Part:
        cpu, ram = summary["cpu"][name], summary["ram"][name]
        # A command that lasts less than a millisecond has no rate.
        mean = math.nan if cpu["mean_percent"] is None else cpu["mean_percent"]
        return Part(
            cpu["seconds"],
            mean,
            cpu["max_percent"],
            mean / n_expected_cores,
            ram["total_bytes"],
            ram["private_bytes"],
            ram["shared_bytes"],
            summary["threads"][name],
        )

    return Figures(
        seconds,
        part("main"),
        part("descendants"),
        part("combined"),
        summary["ram_used_bytes"],
        summary["ram_capacity_bytes"],
        summary["n_cores"],
        n_expected_cores,
    )

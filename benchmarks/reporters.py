"""Tools that make a report or a picture of many samples, each of a file in its own format."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from benchmarks.jobs import script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SAMPLES_PER_SECOND = 10
_START = datetime(2026, 1, 1, tzinfo=timezone.utc)
_GB = 10**9


@dataclass(frozen=True)
class Reporter:
    """One tool."""

    name: str
    distribution: str
    requirement: str
    write: Callable[[str, int], None]
    """Make a file of so many samples."""
    command: Callable[[str, str, str], list[str]]
    """The command line for the directory of its programs, the file, and the file to make."""
    most_samples: int = 1_000_000
    """Of more it would take many minutes."""


def _noise(number: int) -> int:
    return number * 7919 % 1000


def _write_mprof(path: str, n_samples: int) -> None:
    start = _START.timestamp()
    with open(path, "w", encoding="ascii") as file:
        file.write("CMDLINE job\n")
        for number in range(n_samples):
            at = start + number / _SAMPLES_PER_SECOND
            file.write(f"MEM {1000 + _noise(number) / 7:.6f} {at:.4f}\n")


def _plot_mprof(binaries: str, path: str, made: str) -> list[str]:
    return [os.path.join(binaries, "mprof"), "plot", "--output", f"{made}.png", path]


def _write_duct(path: str, n_samples: int) -> None:
    with open(path, "w", encoding="ascii") as file:
        for number in range(n_samples):
            seconds = number // _SAMPLES_PER_SECOND
            at = (_START + timedelta(seconds=number / _SAMPLES_PER_SECOND)).isoformat()
            clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
            usage = {"pcpu": 100.0, "pmem": 1.5, "rss": _GB + 1000 * _noise(number), "vsz": 2 * _GB}
            process = {**usage, "timestamp": at, "etime": clock, "stat": {"R": 1}, "cmd": "job"}
            sample = {
                "timestamp": at,
                "num_samples": 1,
                "processes": {"100": process},
                "totals": usage,
                "averages": {**usage, "num_samples": 1},
            }
            file.write(f"{json.dumps(sample)}\n")


def _plot_duct(binaries: str, path: str, made: str) -> list[str]:
    return [
        os.path.join(binaries, "con-duct"),
        "plot",
        "--log-level",
        "NONE",
        "--output",
        f"{made}.png",
        path,
    ]


def _write_resource_tracker(path: str, n_samples: int) -> None:
    """One file for the job, and one for the machine."""
    for suffix, rows in ((".process", _list_process_rows), (".system", _list_system_rows)):
        with open(f"{path}{suffix}", "w", encoding="ascii", newline="") as file:
            first, *others = rows(n_samples)
            writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
            writer.writerow(first)
            writer.writerow(first.values())
            writer.writerows(row.values() for row in others)


def _list_process_rows(n_samples: int) -> Iterator[dict[str, float]]:
    for number in range(n_samples):
        yield {
            "timestamp": _START.timestamp() + number / _SAMPLES_PER_SECOND,
            "pid": 100,
            "children": 0,
            "utime": 0.09,
            "stime": 0.01,
            "cpu_usage": 1.0,
            "memory_mib": 1000 + _noise(number) / 7,
            "disk_read_bytes": 0,
            "disk_write_bytes": 4096,
            "gpu_usage": 0.0,
            "gpu_vram_mib": 0.0,
            "gpu_utilized": 0,
        }


def _list_system_rows(n_samples: int) -> Iterator[dict[str, float]]:
    memory = ("free", "used", "buffers", "cached", "active", "inactive")
    for number in range(n_samples):
        yield {
            "timestamp": _START.timestamp() + number / _SAMPLES_PER_SECOND,
            "processes": 100,
            "utime": 0.1,
            "stime": 0.02,
            "cpu_usage": 1.2,
            **{f"memory_{name}_mib": 4000 + _noise(number) / 7 for name in memory},
            "disk_read_bytes": 0,
            "disk_write_bytes": 4096,
            "disk_space_total_gb": 100.0,
            "disk_space_used_gb": 50.0,
            "disk_space_free_gb": 50.0,
            "net_recv_bytes": 100,
            "net_sent_bytes": 100,
            "gpu_usage": 0.0,
            "gpu_vram_mib": 0.0,
            "gpu_utilized": 0,
        }


def _report_resource_tracker(binaries: str, path: str, made: str) -> list[str]:
    return [os.path.join(binaries, "python"), script("report_resource_tracker"), path, f"{made}.html"]


REPORTERS = (
    Reporter(
        "mprof plot", "memory_profiler", "memory_profiler matplotlib setuptools", _write_mprof, _plot_mprof
    ),
    Reporter("con-duct plot", "con-duct", "con-duct matplotlib", _write_duct, _plot_duct),
    Reporter(
        "resource-tracker report",
        "resource-tracker",
        "resource-tracker",
        _write_resource_tracker,
        _report_resource_tracker,
        most_samples=10_000,
    ),
)

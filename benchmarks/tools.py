"""The tools that are compared: how each wraps a command, and how its result is read."""

from __future__ import annotations

import csv
import json
import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

RESULT = "result"


@dataclass(frozen=True)
class Reported:
    """What a tool reported about a job."""

    cpu_seconds: float
    peak_bytes: float


@dataclass(frozen=True)
class Tool:
    """One tool. `result_options` are used only when its result is read, not when it is timed."""

    name: str
    distribution: str
    requirement: str | None
    """For pip; None is the project itself."""
    wrap: Callable[[list[str], list[str]], list[str]]
    """The command line for options and a job; its first word is a program in the tool's venv."""
    interval_option: str
    result_options: tuple[str, ...]
    read: Callable[[str, float], Reported]
    """What it reported, from the directory it ran in and the seconds that the job took."""
    has_sampler: bool = False
    """Whether it samples in a separate process, not in the wrapper."""
    has_api: bool = False


def _wrap_ours(options: list[str], job: list[str]) -> list[str]:
    return ["gpu-tracker", "run", *options, "--", *job]


def _read_ours(folder: str, _seconds: float) -> Reported:
    with open(os.path.join(folder, RESULT), encoding="utf-8") as file:
        summary = json.load(file)["summary"]
    return Reported(summary["cpu"]["combined"]["seconds"], summary["ram"]["combined"]["total_bytes"])


def _wrap_original(options: list[str], job: list[str]) -> list[str]:
    return ["gpu-tracker", *options, "-e", " ".join(job)]


def _read_original(folder: str, seconds: float) -> Reported:
    with open(os.path.join(folder, RESULT), encoding="utf-8") as file:
        usage = json.load(file)
    percent = usage["cpu_utilization"]["combined"]["mean_sum_percent"]
    return Reported(percent / 100 * seconds, usage["max_ram"]["combined"]["total_rss"])


def _wrap_duct(options: list[str], job: list[str]) -> list[str]:
    return ["con-duct", "run", *options, *job]


def _read_duct(folder: str, seconds: float) -> Reported:
    with open(os.path.join(folder, f"{RESULT}info.json"), encoding="utf-8") as file:
        summary = json.load(file)["execution_summary"]
    return Reported((summary["average_pcpu"] or 0) / 100 * seconds, summary["peak_rss"] or 0)


def _wrap_psrecord(options: list[str], job: list[str]) -> list[str]:
    # Without an interval it never sleeps and takes a whole core.
    fixed = ["--include-children", "--log-format", "csv", "--log", RESULT, "--interval", "1"]
    return ["psrecord", *fixed, *options, shlex.join(job)]


def _read_psrecord(folder: str, seconds: float) -> Reported:
    with open(os.path.join(folder, RESULT), encoding="utf-8", newline="") as file:
        samples = list(csv.DictReader(file))
    percents = [float(sample["cpu"]) for sample in samples]
    mebibytes = max(float(sample["mem_real"]) for sample in samples)
    return Reported(sum(percents) / len(percents) / 100 * seconds, mebibytes * 2**20)


OURS = Tool(
    "ours",
    "gput",
    None,
    _wrap_ours,
    "--st",
    ("-f", "json", "-o", RESULT),
    _read_ours,
    has_sampler=True,
    has_api=True,
)
PEERS = (
    Tool(
        "gpu-tracker 5.0.1",
        "gpu-tracker",
        "gpu-tracker==5.0.1",
        _wrap_original,
        "--st",
        ("--ru=bytes", "--tu=seconds", "-f", "json", "-o", RESULT),
        _read_original,
        has_sampler=True,
        has_api=True,
    ),
    Tool(
        "con-duct",
        "con-duct",
        "con-duct",
        _wrap_duct,
        "--sample-interval",
        ("-p", RESULT),
        _read_duct,
    ),
    Tool(
        "psrecord",
        "psrecord",
        "psrecord",
        _wrap_psrecord,
        "--interval",
        (),
        _read_psrecord,
    ),
)

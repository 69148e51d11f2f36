"""A trace for Perfetto and chrome://tracing: figures as counters, regions and processes on their tracks.

Times are microseconds since the start of the run, and `baseTimeNanoseconds` says when that was (nanoseconds since 1970):
the same contract as torch.profiler's, so that tools that join traces by it can put both on one time axis.
"""

from __future__ import annotations

import json
from math import isfinite

from ..core.moments import parse_moment
from ..core.text import join_command, neutralize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..analysis.tables import Table
    from ..core.columns import Column
    from ..core.model import Call
    from ..reports.build import Report

    Event = dict[str, Any]

NAME = "trace"
SUFFIXES = (".trace.json",)
HOLDS_ALL_TABLES = True
NEEDS_SAMPLES = True

_MICROSECONDS = 1e6
# More than any number of a thread: lanes of one thread are this far apart.
_LANE = 2**23
_LIFETIMES = 0


def write(path: str, report: Report, tables: Sequence[Table]) -> None:
    """Event by event, a line each."""
    start = parse_moment(report.header.started_at) or 0.0
    about = {
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": round(start * 1000) * 10**6,
        "otherData": {
            "command": " ".join(report.header.command),
            "host": report.header.host,
            "tracker": f"gpu_tracker {report.header.tracker_version}",
        },
    }
    with open(path, "w", encoding="ascii") as file:
        file.write(json.dumps(about)[:-1] + ', "traceEvents": [')
        separator = "\n"
        for event in _list_events(report, tables):
            file.write(separator + json.dumps(event))
            separator = ",\n"
        file.write("\n]}\n")


def _list_events(report: Report, tables: Sequence[Table]) -> Iterator[Event]:
    pid = report.header.pid
    names = {pid: join_command(report.header.command) or f"process {pid}"}
    (processes,) = (table for table in tables if table.name == "processes")
    places = {column.name: index for index, column in enumerate(processes.columns)}
    rows = [{name: row[index] for name, index in places.items()} for row in processes.rows()]
    for row in rows:
        names.setdefault(row["pid"], row["name"])
    for number, name in names.items():
        yield _name("process_name", number, _LIFETIMES, name)
        yield _name("thread_name", number, _LIFETIMES, "process")
    for row in rows:
        args = {"cpu_seconds": row["cpu_seconds"], "peak_ram_bytes": row["peak_ram_bytes"]}
        yield _slice(row["name"], row["pid"], _LIFETIMES, row["first_seconds"], row["last_seconds"], args)
    yield from _list_calls(report.calls, report.summary.seconds)
    yield from _list_counters(report)
    yield from _list_metrics(report)


def _list_calls(calls: Sequence[Call], seconds: float) -> Iterator[Event]:
    """Slices of a track must lie inside each other or apart; calls that overlap otherwise get a track of their own."""
    tracks: dict[tuple[int, int], list[list[float]]] = {}
    spans = [(call, seconds if call.end_seconds is None else call.end_seconds) for call in calls]
    for call, end in sorted(spans, key=lambda span: (span[0].start_seconds, -span[1], len(span[0].path))):
        thread = call.thread or call.pid
        lanes = tracks.setdefault((call.pid, thread), [])
        lane = _find_lane(lanes, call.start_seconds, end)
        if lane == len(lanes):
            lanes.append([])
            also = f", {lane + 1}" if lane else ""
            yield _name("thread_name", call.pid, thread + lane * _LANE, f"regions of thread {thread}{also}")
        lanes[lane].append(end)
        args = {"path": "/".join(call.path), "number": call.number, "peak_ram_bytes": call.peak_ram_bytes}
        yield _slice(call.path[-1], call.pid, thread + lane * _LANE, call.start_seconds, end, args)


def _find_lane(lanes: list[list[float]], start: float, end: float) -> int:
    """The first track where it lies inside what is open; forgets what has ended."""
    for number, open_ends in enumerate(lanes):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if not open_ends or end <= open_ends[-1]:
            return number
    return len(lanes)


def _list_counters(report: Report) -> Iterator[Event]:
    columns, pid = report.columns, report.header.pid
    if columns is None:
        return
    ram = columns.ram_bytes
    counters: dict[str, Mapping[str, Column]] = {
        "CPU (cores)": {"job": columns.cpu_cores.combined, "whole machine": columns.machine_cores},
        "RAM, highest (bytes)": {"job": ram.combined.high, "main process": ram.main.high},
        "RAM, mean (bytes)": {"job": ram.combined.mean, "main process": ram.main.mean},
        "processes": {"job": columns.processes},
    }
    for summary in report.summary.gpus:
        gpu, name = columns.gpus.get(summary.gpu.uuid), f"GPU {summary.gpu.label}"
        if gpu is not None:
            counters |= {
                f"{name} busy (%)": {"device": gpu.utilization_percent, "job": gpu.job_percent},
                f"{name} activity (%)": {"SM": gpu.sm_percent, "tensor cores": gpu.tensor_percent},
                f"{name} memory (bytes)": {"all": gpu.used_bytes, "job": gpu.job_bytes},
                f"{name} power (W)": {"device": gpu.power_watts},
                f"{name} PCIe (bytes/s)": {
                    "received": gpu.pcie_received_bytes_per_second,
                    "sent": gpu.pcie_sent_bytes_per_second,
                },
                f"{name} NVLink (bytes/s)": {
                    "received": gpu.nvlink_received_bytes_per_second,
                    "sent": gpu.nvlink_sent_bytes_per_second,
                },
                f"{name} temperature (C)": {"device": gpu.temperature_celsius},
            }
    for name, series in counters.items():
        yield from _count(name, pid, columns.start_seconds, series)
        yield from _count(
            name, pid, columns.end_seconds[-1:], {key: column[-1:] for key, column in series.items()}
        )


def _count(name: str, pid: int, moments: Iterable[float], series: Mapping[str, Column]) -> Iterator[Event]:
    """A value holds until the next one; an unknown one is left out."""
    for moment, *values in zip(moments, *series.values(), strict=True):
        known = {key: value for key, value in zip(series, values, strict=True) if isfinite(value)}
        if known:
            yield {"ph": "C", "name": neutralize(name), "pid": pid, "ts": _stamp(moment), "args": known}


def _list_metrics(report: Report) -> Iterator[Event]:
    for logged in report.logged:
        yield from _count(logged.name, report.header.pid, logged.at_seconds, {"value": logged.values})


def _slice(name: str, pid: int, tid: int, start: float, end: float, args: Mapping[str, Any]) -> Event:
    return {
        "ph": "X",
        "name": neutralize(name),
        "pid": pid,
        "tid": tid,
        "ts": _stamp(start),
        "dur": round(max(0.0, _stamp(end) - _stamp(start)), 3),
        "args": dict(args),
    }


def _name(kind: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": neutralize(name)}}


def _stamp(seconds: float) -> float:
    return round(seconds * _MICROSECONDS, 3)

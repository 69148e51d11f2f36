"""Reading a recording, also one that was cut off anywhere."""

from __future__ import annotations

import json
import os

from ..errors import RecordingError
from ..model import (
    End,
    Header,
    Mark,
    MetricRow,
    Peaks,
    ProcessTotals,
    Recording,
    RegionTotals,
    Sample,
    Totals,
)
from .schema import (
    VERSION,
    decode_end,
    decode_header,
    decode_mark,
    decode_metrics,
    decode_process,
    decode_region,
    decode_sample,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_WRONG_DATA = (KeyError, TypeError, ValueError, IndexError, AttributeError)


def load(path: str) -> Recording:
    """Read a recording from a file."""
    try:
        with open(path, "rb") as file:
            return read_lines(file, path)
    except OSError as error:
        raise RecordingError(f"Cannot read {path}: {error.strerror or error}.") from None


def load_descriptor(fd: int) -> Recording:
    """Read a recording that has no name (any more)."""
    try:
        with open(os.dup(fd), "rb") as file:
            file.seek(0)
            return read_lines(file, "The recording")
    except OSError as error:
        raise RecordingError(f"The recording cannot be read: {error.strerror}.") from None


def read_lines(lines: Iterable[bytes], name: str) -> Recording:
    """Put the lines together. The last one may be torn; any other bad line is said, not hidden."""
    header: Header | None = None
    end: End | None = None
    samples: list[Sample] = []
    marks: list[Mark] = []
    regions: dict[tuple[int, tuple[str, ...]], RegionTotals] = {}
    metrics: list[MetricRow] = []
    processes: dict[tuple[int, float], ProcessTotals] = {}
    problems: list[str] = []
    peaks = Peaks()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            kind, data = _parse_line(line)
            if header is None:
                header = _read_header(kind, data, name)
            elif kind == "sample":
                samples.append(decode_sample(data, peaks))
                peaks = samples[-1].peaks
            elif kind == "mark":
                marks.append(decode_mark(data))
            elif kind == "region":
                region = decode_region(data)
                regions[region.pid, region.path] = region
            elif kind == "metrics":
                metrics += decode_metrics(data)
            elif kind == "process":
                process = decode_process(data)
                processes[process.pid, process.first_seconds] = process
            else:
                end = decode_end(data)
        except _WRONG_DATA:
            # A header that did not fit on a full disk is written again as soon as there is room.
            if header is None and not line.startswith(b'{"header"'):
                raise RecordingError(f"{name} is not a recording of gpu-tracker.") from None
            if line.endswith(b"\n"):
                problems.append(f"Line {number} of the recording is damaged and was left out.")
    if header is None:
        raise RecordingError(f"{name} is empty: the job was killed before anything was recorded.")
    totals = end.totals if end else _totals_at(samples[-1] if samples else None, samples)
    return Recording(
        header,
        tuple(samples),
        tuple(marks),
        end,
        totals,
        tuple(problems),
        tuple(regions.values()),
        tuple(metrics),
        tuple(processes.values()),
    )


def _parse_line(line: bytes) -> tuple[str, dict[str, Any]]:
    ((kind, data),) = json.loads(line).items()
    return kind, data


def _read_header(kind: str, data: dict[str, Any], name: str) -> Header:
    if kind != "header":
        raise ValueError(kind)
    version = data["version"]
    if version != VERSION:
        raise RecordingError(
            f"{name} is a recording of version {version}; this gpu-tracker reads version {VERSION}.",
            "Update gpu-tracker to read it.",
        )
    return decode_header(data)


def _totals_at(last: Sample | None, samples: list[Sample]) -> Totals:
    if last is None:
        return Totals()
    return Totals(
        last.at_seconds,
        last.main_cpu_seconds,
        last.descendants_cpu_seconds,
        last.system_cpu_seconds,
        sum(sample.looks for sample in samples),
        last.gpu_counters,
        last.peaks,
    )

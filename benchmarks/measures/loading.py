"""Time and memory for loading and comparing long recordings."""

from __future__ import annotations

import os
import tempfile

from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import run_inside
from benchmarks.rows import Goal, Row

NAME = "load"

_SAMPLES = (10_000, 100_000, 1_000_000)
_LONGEST_SECONDS = 2.0
_MOST_MEGABYTES = 500.0
_N_COMPARED = 20
_LONGEST_COMPARISON_SECONDS = 20.0
_LONGEST_FRAME_SECONDS = 2.0
_N_EVENTS = 1_000_000
_LONGEST_EVENTS_SECONDS = 3.0
_MONTH_GPUS = 2
_LONGEST_COLUMNS_SECONDS = 0.6
_LINEAR = 10.0
_NEARLY = 1.25


def measure(bench: Bench) -> list[Row]:
    """With one region line per ten samples. The goals are for a million samples."""
    largest = max(_SAMPLES)
    seconds = {
        count: Row(
            f"`load().summary`, {count} samples",
            "s",
            Goal(high=_LONGEST_SECONDS) if count == largest else None,
            2,
        )
        for count in _SAMPLES
    }
    memory = Row(f"the same, peak memory of {largest}", "MB", Goal(high=_MOST_MEGABYTES), 0)
    growth = Row("the same, ten times the samples", "times as long", Goal(high=_LINEAR * _NEARLY), 1)
    frame = Row(f"`to_pandas()`, {largest} samples", "s", Goal(high=_LONGEST_FRAME_SECONDS), 1)
    comparison = Row(
        f"`compare` of {_N_COMPARED}, {largest} samples each", "s", Goal(high=_LONGEST_COMPARISON_SECONDS), 1
    )
    events = Row(f"`load()`, {_N_EVENTS} events", "s", Goal(high=_LONGEST_EVENTS_SECONDS), 1)
    columns = Row(
        f"columns of 30 days with {_MONTH_GPUS} GPUs", "CPU s", Goal(high=_LONGEST_COLUMNS_SECONDS), 2
    )
    all_columns = Row(f"columns of {largest} samples", "CPU s", None, 1)
    with tempfile.TemporaryDirectory() as folder:
        month = os.path.join(folder, "month.jsonl")
        for tools in bench.rounds(NAME, Rounds(3, 0), Rounds(1, 0)):
            for tool in tools:
                took = {}
                for count in _SAMPLES:
                    path = os.path.join(folder, f"{count}.jsonl")
                    truth = run_inside(tool, "load_recording", path, count)
                    took[count] = truth["seconds"]
                    seconds[count].add(tool.name, took[count])
                memory.add(tool.name, truth["peak_bytes"] / 1e6)
                growth.add(tool.name, took[largest] / took[largest // 10])
                framed = run_inside(tool, "frame_recording", path)
                if framed["seconds"] is not None:
                    frame.add(tool.name, framed["seconds"])
                noted = run_inside(tool, "load_events", os.path.join(folder, "events.jsonl"), _N_EVENTS, path)
                events.add(tool.name, noted["seconds"])
                if not os.path.exists(month):
                    run_inside(tool, "month", month, _MONTH_GPUS, 0, 0)
                columns.add(tool.name, run_inside(tool, "read_columns", month)["cpu_seconds"])
                all_columns.add(tool.name, run_inside(tool, "read_columns", path)["cpu_seconds"])
                compared = run_inside(tool, "compare_recordings", path, _N_COMPARED)
                comparison.add(tool.name, compared["seconds"])
    return [*seconds.values(), memory, growth, frame, events, columns, all_columns, comparison]

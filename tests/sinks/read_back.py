"""What experiment trackers have stored, read back: with their own readers, or their own message types."""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from gpu_tracker.analysis.published import Published
from gpu_tracker.recording.follow import follow_path
from gpu_tracker.sinks.reader import PublishedReader

_BLOCK_BYTES = 32768
_HEADER_BYTES = 7
_FULL, _LAST = 1, 4


class Stored(NamedTuple):
    """One number, as it was stored."""

    name: str
    value: float
    step: int
    at_seconds: float


def read_wandb(directory: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of an offline run, and its summary."""
    messages = import_module("wandb.proto.wandb_internal_pb2")
    (file,) = directory.glob("wandb/offline-run-*/*.wandb")
    rows: list[dict[str, Any]] = []
    summary: dict[str, Any] = {}
    for content in _read_records(file.read_bytes()):
        record = messages.Record()
        record.ParseFromString(content)
        if record.WhichOneof("record_type") == "history":
            rows.append(_read_items(record.history.item))
        elif record.WhichOneof("record_type") == "summary":
            summary |= _read_items(record.summary.update)
    return rows, summary


def _read_items(items: Any) -> dict[str, Any]:
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


def _read_records(content: bytes) -> Iterator[bytes]:
    """The records of a LevelDB log, after a header of W&B's; new versions of W&B read it in Go only."""
    at, record = _HEADER_BYTES, b""
    while at + _HEADER_BYTES <= len(content):
        left = _BLOCK_BYTES - at % _BLOCK_BYTES
        if left < _HEADER_BYTES:
            at += left
            continue
        size, kind = struct.unpack_from("<HB", content, at + 4)
        at += _HEADER_BYTES
        record += content[at : at + size]
        at += size
        if kind in (_FULL, _LAST):
            yield record
            record = b""


def read_mlflow(directory: Path) -> list[Stored]:
    """Every point of the only run, by MLflow's client."""
    client = import_module("mlflow").MlflowClient(f"file://{directory}/mlruns")
    (experiment,) = client.search_experiments()
    (run,) = client.search_runs([experiment.experiment_id])
    return [
        Stored(name, point.value, point.step, point.timestamp / 1000)
        for name in run.data.metrics
        for point in client.get_metric_history(run.info.run_id, name)
    ]


def read_mlflow_database(directory: Path) -> list[Stored]:
    """Every point of the only run, as it is in the table: MLflow's client would load what warns in here."""
    with closing(sqlite3.connect(directory / "mlflow.db")) as database:
        ((n_runs,),) = database.execute("SELECT count(*) FROM runs")
        assert n_runs == 1
        rows = database.execute("SELECT key, value, step, timestamp / 1000.0 FROM metrics ORDER BY step")
        return [Stored(*row) for row in rows]


def read_tensorboard(directory: Path) -> list[Stored]:
    """Every point of the event files, by TensorBoard's own accumulator."""
    module = import_module("tensorboard.backend.event_processing.event_accumulator")
    events = module.EventAccumulator(str(directory / "events"), {module.SCALARS: 0, module.TENSORS: 0})
    events.Reload()
    return [
        Stored(name, point.value, point.step, point.wall_time)
        for name in events.Tags()["scalars"]
        for point in events.Scalars(name)
    ]


def read_published(directory: Path) -> list[Published]:
    """All that a recording tells, at once."""
    return PublishedReader(follow_path(str(directory / "run.jsonl"))).look()

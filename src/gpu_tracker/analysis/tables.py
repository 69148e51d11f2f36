"""A recording as tables: columns, and rows made one by one. Pure.

Names end with their unit, `None` is not known, and nothing is rounded. The running peaks of samples are left out:
the summary has those of the whole recording.
"""

from __future__ import annotations

import json
import math
from array import array
from itertools import islice

from ..core.model import (
    ESTIMATE,
    Call,
    FrameworkMemory,
    Gpu,
    GpuCounters,
    GpuSample,
    MachineEnergy,
    Parts,
    ProcessTotals,
    RegionTotals,
    Stalls,
    TreeCounters,
)
from ..core.values import NamedTuple
from .summary import summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from ..core.model import RecordingData, Sample

    Row = tuple[Any, ...]

_BATCH_ROWS = 10_000
_KINDS = {"int": "integer", "bool": "integer", "float": "real", "str": "text"}
SAMPLE_COLUMNS = (
    ("at_seconds", "real"),
    ("readings", "integer"),
    ("late_seconds", "real"),
    *((f"{part}_cpu_seconds", "real") for part in ("main", "descendants", "system")),
    *((f"{part}_ram_bytes_{which}", "real") for part in Parts._fields for which in ("min", "mean", "max")),
    ("system_ram_bytes", "integer"),
    ("threads", "integer"),
    ("processes", "integer"),
    *((name, "real" if name == "waiting_seconds" else "integer") for name in TreeCounters._fields),
    *((f"stalled_{name}", "real") for name in Stalls._fields),
    *((f"metered_{name}", "real") for name in MachineEnergy._fields),
)


class Column(NamedTuple):
    """One column: `integer`, `real` or `text`."""

    name: str
    kind: str


class Table(NamedTuple):
    """One table; each call of `rows` starts a new iteration."""

    name: str
    columns: tuple[Column, ...]
    rows: Callable[[], Iterator[Row]]
    read_arrays: Callable[[Any], list[Any]] | None = None
    """The columns as arrays of pandas, which is given, where that is faster."""

    def batches(self) -> Iterator[list[Row]]:
        """The rows, many at a time."""
        rows = self.rows()
        while batch := list(islice(rows, _BATCH_ROWS)):
            yield batch

    def to_columns(self) -> list[Any]:
        """The values of each column, stored compactly: an unknown value is nan if real, else None."""
        columns: list[Any] = [_new_column(column.kind) for column in self.columns]
        for batch in self.batches():
            for index, values in enumerate(zip(*batch, strict=True)):
                columns[index] = _extend(columns[index], values, self.columns[index].kind)
        return columns


def make_table(recording: RecordingData, name: str) -> Table:
    """The table of that name, one of `TABLES`."""
    return TABLES[name](recording)


def _make_samples(recording: RecordingData) -> Table:
    seen = (gpu.uuid for gpu in recording.totals.peaks.gpus)
    uuids = tuple(dict.fromkeys((*(gpu.uuid for gpu in recording.gpus), *seen)))
    columns = [Column(*column) for column in SAMPLE_COLUMNS]
    for number in range(len(uuids)):
        columns += [
            Column(f"gpu{number}_{column.name}", column.kind)
            for column in (*_columns_of(GpuSample)[1:], *_columns_of(GpuCounters)[1:])
        ]
    samples, fast = recording.samples, getattr(recording.samples, "read_arrays", None)
    make_row = _choose_row(recording, uuids, columns)
    return Table(
        "samples",
        tuple(columns),
        lambda: map(make_row, samples),
        fast and (lambda pandas: fast(pandas, [column.kind for column in columns], make_row)),
    )


def _choose_row(
    recording: RecordingData, uuids: tuple[str, ...], columns: list[Column]
) -> Callable[[Sample], Row]:
    """On a device that does not list the job, but is used by it, zero is not known."""
    unlisted = {gpu.gpu.uuid for gpu in summarize(recording).gpus if gpu.basis == ESTIMATE}
    prefixes = tuple(f"gpu{number}_job_" for number, uuid in enumerate(uuids) if uuid in unlisted)
    hidden = [column.name.startswith(prefixes) for column in columns]
    if not any(hidden):
        return lambda sample: _sample_row(sample, uuids)
    return lambda sample: tuple(
        None if is_hidden else value
        for is_hidden, value in zip(hidden, _sample_row(sample, uuids), strict=True)
    )


def _sample_row(sample: Sample, uuids: tuple[str, ...]) -> Row:
    main, descendants, _ = sample.cpu_seconds
    row: list[Any] = [
        *sample[:3],
        *(main, descendants, sample.system_cpu_seconds),
        *(value for spread in sample.ram_bytes for value in spread),
        *(sample.system_ram_bytes, sample.threads, sample.processes),
        *sample.counters,
        *sample.stalls,
        *sample.energy,
    ]
    if uuids:
        gpus = {gpu.uuid: gpu for gpu in sample.gpus}
        counters = {gpu.uuid: gpu for gpu in sample.gpu_counters}
        for uuid in uuids:
            row += gpus.get(uuid, _NO_GPU)[1:]
            row += map(_plain, counters.get(uuid, _NO_COUNTERS)[1:])
    return tuple(row)


_NO_GPU = GpuSample("")
_NO_COUNTERS: Row = (None,) * len(GpuCounters._fields)


def _make_metrics(recording: RecordingData) -> Table:
    columns = (
        Column("row", "integer"),
        Column("at_seconds", "real"),
        Column("pid", "integer"),
        Column("step", "real"),
        Column("name", "text"),
        Column("value", "real"),
    )
    return Table("metrics", columns, lambda: _metric_rows(recording))


def _metric_rows(recording: RecordingData) -> Iterator[Row]:
    """One per number; a point without numbers is kept too."""
    for number, row in enumerate(recording.metrics):
        for name, value in row.values.items() or ((None, None),):
            yield number, row.at_seconds, row.pid, row.step, name, value


def _make_plain(name: str, kind: type, last: int | None = None) -> Callable[[RecordingData], Table]:
    """For a field of a recording that holds values of one class; with its fields up to the last one."""
    columns = _columns_of(kind)[:last]
    return lambda recording: Table(
        name, columns, lambda: (_plain_row(values[:last]) for values in getattr(recording, name))
    )


def _columns_of(kind: type) -> tuple[Column, ...]:
    """From the annotations of a value class; tuples become JSON text."""
    return tuple(
        Column(name, _KINDS.get(annotation.removesuffix(" | None"), "text"))
        for name, annotation in kind.__annotations__.items()
    )


def _plain_row(values: Iterable[Any]) -> Row:
    return tuple(map(_plain, values))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return json.dumps(value)
    return int(value) if isinstance(value, bool) else value


def _new_column(kind: str) -> Any:
    return {"real": array("d"), "integer": array("q")}.get(kind, [])


def _extend(column: Any, values: Row, kind: str) -> Any:
    if kind == "real":
        column.extend(math.nan if value is None else value for value in values)
        return column
    if kind == "integer" and None in values and not isinstance(column, list):
        column = column.tolist()
    column.extend(values)
    return column


TABLES: dict[str, Callable[[RecordingData], Table]] = {
    "samples": _make_samples,
    "regions": _make_plain("regions", RegionTotals),
    "calls": _make_plain("calls", Call),
    "metrics": _make_metrics,
    "processes": _make_plain("processes", ProcessTotals),
    "frameworks": _make_plain("frameworks", FrameworkMemory),
    "gpus": _make_plain("gpus", Gpu, Gpu._fields.index("is_split")),
}

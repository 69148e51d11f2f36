"""A recording as tables: which columns there are, what they mean, and their rows one by one. Pure.

Units end the names, `None` is not known, and nothing is rounded. The running peaks of a sample are in no table:
those of the whole recording are in its summary.
"""

from __future__ import annotations

import json
import math
from array import array
from itertools import islice

from ..core.model import FrameworkMemory, Gpu, GpuCounters, GpuSample, Parts, ProcessTotals, RegionTotals
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from ..core.model import Recording, Sample

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
)


class Column(NamedTuple):
    """One column: `integer`, `real` or `text`."""

    name: str
    kind: str


class Table(NamedTuple):
    """Rows are made as they are asked for; each call of `rows` begins anew."""

    name: str
    columns: tuple[Column, ...]
    rows: Callable[[], Iterator[Row]]

    def batches(self) -> Iterator[list[Row]]:
        """Many rows at a time."""
        rows = self.rows()
        while batch := list(islice(rows, _BATCH_ROWS)):
            yield batch

    def to_columns(self) -> list[Any]:
        """The values of each column, as small as they can be kept: what is not known is nan in a real one, else None."""
        columns: list[Any] = [_new_column(column.kind) for column in self.columns]
        for batch in self.batches():
            for index, values in enumerate(zip(*batch, strict=True)):
                columns[index] = _extend(columns[index], values, self.columns[index].kind)
        return columns


def make_table(recording: Recording, name: str) -> Table:
    """The table of that name, one of `TABLES`."""
    return TABLES[name](recording)


def _make_samples(recording: Recording) -> Table:
    uuids = tuple(dict.fromkeys((*_uuids_found(recording), *_uuids_met(recording))))
    columns = [Column(*column) for column in SAMPLE_COLUMNS]
    for number in range(len(uuids)):
        columns += [
            Column(f"gpu{number}_{column.name}", column.kind)
            for column in (*_columns_of(GpuSample)[1:], *_columns_of(GpuCounters)[1:])
        ]
    return Table("samples", tuple(columns), lambda: (_sample_row(one, uuids) for one in recording.samples))


def _uuids_found(recording: Recording) -> list[str]:
    return [gpu.uuid for gpu in recording.gpus]


def _uuids_met(recording: Recording) -> list[str]:
    return [gpu.uuid for gpu in recording.totals.peaks.gpus]


def _sample_row(sample: Sample, uuids: tuple[str, ...]) -> Row:
    main, descendants, _ = sample.cpu_seconds
    row: list[Any] = [
        *sample[:3],
        *(main, descendants, sample.system_cpu_seconds),
        *(value for spread in sample.ram_bytes for value in spread),
        *(sample.system_ram_bytes, sample.threads, sample.processes),
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


def _make_metrics(recording: Recording) -> Table:
    columns = (
        Column("row", "integer"),
        Column("at_seconds", "real"),
        Column("pid", "integer"),
        Column("step", "real"),
        Column("name", "text"),
        Column("value", "real"),
    )
    return Table("metrics", columns, lambda: _metric_rows(recording))


def _metric_rows(recording: Recording) -> Iterator[Row]:
    """One per number; a point without any is kept too."""
    for number, row in enumerate(recording.metrics):
        for name, value in row.values.items() or ((None, None),):
            yield number, row.at_seconds, row.pid, row.step, name, value


def _make_regions(recording: Recording) -> Table:
    return Table("regions", _columns_of(RegionTotals), lambda: map(_plain_row, recording.regions))


def _make_processes(recording: Recording) -> Table:
    return Table("processes", _columns_of(ProcessTotals), lambda: map(_plain_row, recording.processes))


def _make_frameworks(recording: Recording) -> Table:
    return Table("frameworks", _columns_of(FrameworkMemory), lambda: map(_plain_row, recording.frameworks))


def _make_gpus(recording: Recording) -> Table:
    return Table("gpus", _columns_of(Gpu), lambda: map(_plain_row, recording.gpus))


def _columns_of(kind: type) -> tuple[Column, ...]:
    """By the annotations of a value class; a list is JSON text."""
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


# What is found in a recording, by name.
TABLES: dict[str, Callable[[Recording], Table]] = {
    "samples": _make_samples,
    "regions": _make_regions,
    "metrics": _make_metrics,
    "processes": _make_processes,
    "frameworks": _make_frameworks,
    "gpus": _make_gpus,
}

"""`load()` and `combine()`: recordings for analysis, with tables for pandas, polars and Arrow."""

from __future__ import annotations

import os
from functools import cached_property, partial

from ..analysis.job import combine as combine_values
from ..analysis.sizing import advise, find_need
from ..analysis.tables import TABLES, make_table
from ..core.config import check_path
from ..core.errors import UsageError
from ..core.notices import warn_once
from ..exports import frames
from ..recording import reader
from ..recording.find import find_recordings
from ..recording.sampled import read_columns, read_held
from ..reports.build import build
from ..reports.choices import Choices
from .reporting import find_changes, find_findings, report_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..analysis.job import Combined
    from ..analysis.regions import Metric, Region
    from ..analysis.sizing import Sizing
    from ..analysis.summary import Summary
    from ..analysis.tables import Table
    from ..core.model import (
        Call,
        FrameworkMemory,
        Gpu,
        Header,
        MetricRow,
        ProcessTotals,
        RecordingData,
        RegionTotals,
        Sample,
    )
    from ..reports.build import Report


def load(path: str | os.PathLike[str]) -> Recording:
    """Read a recording, finished, still being written, or cut off by a kill.

    Raises `RecordingError` if the file is not a recording. Damaged lines are skipped and listed in `problems`.
    """
    place = os.path.abspath(
        check_path("A recording", path)
    )  # the program may go elsewhere before it looks at the samples
    return Recording(reader.load(place), place)


def combine(*recordings: str | os.PathLike[str] | Recording) -> Combined:
    """Recordings of several ranks or hosts as one job: files, directories of them, or what `load` gave.

    A damaged file in a directory is left out, with a note; one that is named raises `RecordingError`.
    """
    parts: list[tuple[str, RecordingData]] = []
    skipped: tuple[str, ...] = ()
    for one in recordings:
        if isinstance(one, Recording):
            parts.append((one.path, one._values))  # noqa: SLF001 - our own class
        else:
            path = check_path("A recording", one)
            loaded, damaged = reader.load_several(find_recordings(path), (path,))
            parts, skipped = parts + loaded, skipped + damaged
    if not parts:
        raise UsageError("Nothing to combine.", "Name recordings or directories of recordings.")
    judge = partial(find_findings, changes=find_changes(warn_once))
    return combine_values(parts, partial(read_held, plans={}), skipped=skipped, judge=judge)


class Recording:
    """The recording of one job.

    Header and summary are available at once. `samples`, `region_totals`, `calls`, `metric_rows` and `processes` are sequences
    of immutable values, read from the file on access, so the file must stay in place. Sizes are in bytes, times in seconds
    since the start; counters count from the start; None is unknown.
    """

    def __init__(self, values: RecordingData, path: str) -> None:
        self._values = values
        self.path = path

    def __repr__(self) -> str:
        state = "complete" if self.is_complete else "cut off"
        return f"<Recording {self.path!r}: {len(self.samples)} samples, {state}>"

    def _repr_html_(self) -> str:
        """In a notebook: its report."""
        return self.report._repr_html_()

    @property
    def header(self) -> Header:
        """Everything known at the start."""
        return self._values.header

    @property
    def samples(self) -> Sequence[Sample]:
        """One per interval. Iterate over them: a single one needs the peaks from all lines before it."""
        return self._values.samples

    @property
    def regions(self) -> tuple[Region, ...]:
        """Regions, each over all processes, as the report has them."""
        return self._figures.regions

    @property
    def region_totals(self) -> Sequence[RegionTotals]:
        """The same, one per process and path."""
        return self._values.regions

    @property
    def calls(self) -> Sequence[Call]:
        """Single calls of the regions: all while few, then the longest, the largest and a uniform sample."""
        return self._values.calls

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What the job logged, each metric over the whole run, as the report has it."""
        return self._figures.metrics

    @property
    def metric_rows(self) -> Sequence[MetricRow]:
        """The same, one per call of `log`."""
        return self._values.metrics

    @property
    def processes(self) -> Sequence[ProcessTotals]:
        """The processes of the job."""
        return self._values.processes

    @property
    def frameworks(self) -> Sequence[FrameworkMemory]:
        """GPU memory as PyTorch, JAX and TensorFlow report it, one per process and device."""
        return self._values.frameworks

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The devices that were found."""
        return self._values.gpus

    @cached_property
    def report(self) -> Report:
        """The full report: summary, how it ended, notes, and the samples for charts."""
        return report_on(self._values, Choices(find_changes(warn_once)))

    @cached_property
    def _figures(self) -> Report:
        """The same without the samples, which take longer to read than everything else."""
        return build(self._values)

    @property
    def sizing(self) -> Sizing:
        """What to ask for the next time, from all samples."""
        return advise([find_need(self._values, read_columns(self._values))])

    @property
    def summary(self) -> Summary:
        """The whole recording in figures."""
        return self._figures.summary

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be measured or went wrong, one sentence each."""
        return self._figures.notes

    @property
    def problems(self) -> tuple[str, ...]:
        """Damaged lines that were skipped. Reading samples may find more."""
        return tuple(self._values.problems)

    @property
    def is_complete(self) -> bool:
        """Whether it has its closing line, rather than being cut off by a kill."""
        return self._values.end is not None

    def plot(self, charts: str | Sequence[str] | None = None) -> Any:
        """A `matplotlib.figure.Figure` of the charts: cpu, ram, gpu_busy, gpu_ram, power, metrics, regions; or all."""
        return self.report.plot(charts)

    def to_pandas(self, table: str = "samples") -> Any:
        """A table as a `pandas.DataFrame`: "samples", "regions", "calls", "metrics", "processes"..."""
        return frames.to_pandas(self._table(table))

    def to_polars(self, table: str = "samples") -> Any:
        """The same as a `polars.DataFrame`."""
        return frames.to_polars(self._table(table))

    def to_arrow(self, table: str = "samples") -> Any:
        """The same as a `pyarrow.Table`."""
        return frames.to_arrow(self._table(table))

    def _table(self, name: str) -> Table:
        if name not in TABLES:
            raise UsageError(f'"{name}" is not a table. Tables are {", ".join(TABLES)}.')
        return make_table(self._values, name)

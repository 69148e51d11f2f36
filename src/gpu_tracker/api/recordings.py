"""A recording for whoever analyses it: `load(path)`, its parts, its summary, and tables for pandas, polars and Arrow."""

from __future__ import annotations

import os

from ..analysis.job import combine as combine_values
from ..analysis.tables import TABLES, make_table
from ..core.errors import UsageError
from ..exports import frames
from ..recording import reader
from ..recording.find import find_recordings
from ..reports.build import build

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..analysis.job import Combined
    from ..analysis.summary import Summary
    from ..analysis.tables import Table
    from ..core.model import FrameworkMemory, Gpu, Header, MetricRow, ProcessTotals, RegionTotals, Sample
    from ..core.model import Recording as Values
    from ..reports.build import Report


def load(path: str | os.PathLike[str]) -> Recording:
    """Read a recording, finished, still being written, or cut off by a kill.

    Raises `RecordingError` for a file that is none. What is damaged is left out and said in `problems`.
    """
    place = os.path.abspath(os.fspath(path))  # the program may go elsewhere before it looks at the samples
    return Recording(reader.load(place), place)


def combine(*recordings: str | os.PathLike[str] | Recording) -> Combined:
    """Recordings of several ranks or hosts as one job: files, directories of them, or what `load` gave.

    Raises `RecordingError` for a file that is damaged: half a rank beside whole ones would mislead.
    """
    parts: list[tuple[str, Values]] = []
    for one in recordings:
        if isinstance(one, Recording):
            parts.append((one.path, one._values))  # noqa: SLF001 - our own class
        else:
            parts += [(path, reader.load_whole(path)) for path in find_recordings(os.fspath(one))]
    if not parts:
        raise UsageError("There is nothing to combine.", "Name recordings or directories of them.")
    return combine_values(parts)


class Recording:
    """What was recorded of one job.

    Header and summary are there at once. `samples`, `regions`, `metrics` and `processes` are sequences of immutable
    values, read from the file when looked at: it must stay where it is. Bytes are bytes, times are seconds since the
    start, counters count since the start, None is not known.
    """

    def __init__(self, values: Values, path: str) -> None:
        self._values = values
        self._report: Report | None = None
        self.path = path

    def __repr__(self) -> str:
        state = "complete" if self.is_complete else "cut off"
        return f"<Recording {self.path!r}: {len(self.samples)} samples, {state}>"

    @property
    def header(self) -> Header:
        """Everything that was known when it began."""
        return self._values.header

    @property
    def samples(self) -> Sequence[Sample]:
        """One per window. Walk through them: one alone costs as much as its peaks, which are on the lines before it."""
        return self._values.samples

    @property
    def regions(self) -> Sequence[RegionTotals]:
        """Named stretches of the job, one per process and path."""
        return self._values.regions

    @property
    def metrics(self) -> Sequence[MetricRow]:
        """What the job logged itself."""
        return self._values.metrics

    @property
    def processes(self) -> Sequence[ProcessTotals]:
        """The processes of the job."""
        return self._values.processes

    @property
    def frameworks(self) -> Sequence[FrameworkMemory]:
        """What PyTorch, JAX and TensorFlow held on GPUs, by their own account: one per process and device."""
        return self._values.frameworks

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The devices that were found."""
        return self._values.gpus

    @property
    def report(self) -> Report:
        """All there is to say: the summary, how it ended, the notes."""
        if self._report is None:
            self._report = build(self._values)
        return self._report

    @property
    def summary(self) -> Summary:
        """The whole recording in figures."""
        return self.report.summary

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be measured or went wrong, a sentence each."""
        return self.report.notes

    @property
    def problems(self) -> tuple[str, ...]:
        """Which lines of the file are damaged and were left out. Reading samples and the like may find more."""
        return tuple(self._values.problems)

    @property
    def is_complete(self) -> bool:
        """Whether it was closed properly, and not cut off by a kill."""
        return self._values.end is not None

    def to_pandas(self, table: str = "samples") -> Any:
        """A table as a `pandas.DataFrame`: "samples", "regions", "metrics", "processes", "frameworks", "gpus"."""
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

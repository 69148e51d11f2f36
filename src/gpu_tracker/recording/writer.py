"""Writes a recording: whole lines, one `write` each, appended, so that a kill cannot damage it.

No locks, no renames, no rewriting: on network file systems only appends are reliable.
"""

from __future__ import annotations

import os

from ..core.model import Peaks
from .encode import to_json
from .schema import (
    encode_calls,
    encode_end,
    encode_event,
    encode_gaps,
    encode_header,
    encode_known,
    encode_metric_totals,
    encode_metrics,
    encode_sample,
)
from .secrets import mask_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from ..core.model import (
        Call,
        End,
        Event,
        FrameworkMemory,
        Header,
        MetricRow,
        MetricTotals,
        PeakMoment,
        ProcessTotals,
        RegionGaps,
        RegionTotals,
        Sample,
    )


class Writer:
    """Appends lines to a descriptor. The caller keeps a line that cannot be written."""

    def __init__(self, fd: int, *, may_follow_torn_line: bool = False) -> None:
        self._fd = fd
        self._written_peaks = Peaks()
        self._has_torn_line = may_follow_torn_line
        self.written_bytes = 0
        """The size of all lines."""

    def write_header(self, header: Header) -> None:
        """The first line."""
        self._write("header", encode_header(header))

    def write_sample(self, sample: Sample) -> None:
        """One interval."""
        self._write("sample", encode_sample(sample, self._written_peaks))
        self._written_peaks = sample.peaks

    def write_event(self, event: Event) -> None:
        """Something at one instant."""
        self._write("event", encode_event(event._replace(text=mask_text(event.text))))

    def write_region(self, region: RegionTotals) -> None:
        """A region so far."""
        self._write("region", encode_known(region))

    def write_calls(self, path: tuple[str, ...], calls: Sequence[Call]) -> None:
        """Calls of one region."""
        self._write("calls", encode_calls(path, calls))

    def write_gaps(self, gaps: RegionGaps) -> None:
        """What is missing among the regions so far."""
        self._write("gaps", encode_gaps(gaps))

    def write_metrics(self, rows: Sequence[MetricRow]) -> None:
        """Numbers that the job logged, as many as `split_metrics` puts into a line."""
        import json  # faster for thousands of numbers

        self._write("metrics", encode_metrics(rows), lambda line: json.dumps(line, separators=(",", ":")))

    def write_metric_totals(self, known: Iterable[MetricTotals]) -> None:
        """All metrics so far, once not every number is kept."""
        self._write("metric_totals", encode_metric_totals(known))

    def write_process(self, process: ProcessTotals) -> None:
        """A process, with what it has used so far."""
        self._write("process", encode_known(process))

    def write_peak_moment(self, moment: PeakMoment) -> None:
        """Who held what at a peak."""
        self._write("peak", encode_known(moment))

    def write_framework(self, memory: FrameworkMemory) -> None:
        """Memory of a framework on a device."""
        self._write("framework", encode_known(memory))

    def write_end(self, end: End) -> None:
        """The last line."""
        self._write("end", encode_end(end))

    def is_deleted(self) -> bool:
        """Whether the file has been removed."""
        return os.fstat(self._fd).st_nlink == 0

    def is_cut(self) -> bool:
        """Whether the file is shorter than what was written: somebody has truncated it."""
        return os.fstat(self._fd).st_size < self.written_bytes

    def _write(self, kind: str, data: dict[str, Any], encode: Callable[[Any], str] = to_json) -> None:
        text = encode({kind: data})
        line = f"\n{text}\n" if self._has_torn_line else f"{text}\n"
        content = line.encode()
        self._has_torn_line = True
        rest = content
        while rest:  # the second attempt, if one is needed, says why
            rest = rest[os.write(self._fd, rest) :]
        self.written_bytes += len(content)
        self._has_torn_line = False

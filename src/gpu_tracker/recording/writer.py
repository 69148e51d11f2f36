"""Writing a recording: whole lines, one `write` each, appended; nothing that a kill can spoil.

No locks, no renames, no rewriting: network file systems keep what they promise only for appends.
"""

from __future__ import annotations

import os
import time

from ..core.errors import UsageError
from ..core.model import Peaks
from .encode import to_json
from .schema import (
    encode_end,
    encode_event,
    encode_framework,
    encode_header,
    encode_metrics,
    encode_process,
    encode_region,
    encode_sample,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..core.model import (
        End,
        Event,
        FrameworkMemory,
        Header,
        MetricRow,
        ProcessTotals,
        RegionTotals,
        Sample,
    )


def create(place: str, command: Sequence[str], pid: int) -> str:
    """Make a new file that only its owner may read: `place` itself if it is named like one, else inside it."""
    from .naming import SUFFIX, name_recording  # a sampler writes, but names nothing

    path = place
    try:
        path = os.path.abspath(place)
        if not path.endswith(SUFFIX):
            path = os.path.join(path, name_recording(command, pid, time.strftime("%Y%m%d-%H%M%S")))
        directory = os.path.dirname(path)
        if not os.path.isdir(directory):
            os.makedirs(directory)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError as error:
        if os.path.lexists(path):
            raise UsageError(f"{path} exists already.", "A recording never overwrites another.") from None
        raise UsageError(f"Cannot write a recording to {path}: {error.strerror}.") from None
    return path


class Writer:
    """Appends lines to a descriptor. A line that cannot be written is the caller's to keep."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._written_peaks = Peaks()
        self._has_torn_line = False

    def write_header(self, header: Header) -> None:
        """The first line."""
        self._write("header", encode_header(header))

    def write_sample(self, sample: Sample) -> None:
        """A window."""
        self._write("sample", encode_sample(sample, self._written_peaks))
        self._written_peaks = sample.peaks

    def write_event(self, event: Event) -> None:
        """An instant."""
        self._write("event", encode_event(event))

    def write_region(self, region: RegionTotals) -> None:
        """A region, as it stands."""
        self._write("region", encode_region(region))

    def write_metrics(self, rows: Sequence[MetricRow]) -> None:
        """Numbers that the job logged."""
        import json  # thousands of numbers are worth it

        self._write("metrics", encode_metrics(rows), lambda line: json.dumps(line, separators=(",", ":")))

    def write_process(self, process: ProcessTotals) -> None:
        """A process, as far as it was seen."""
        self._write("process", encode_process(process))

    def write_framework(self, memory: FrameworkMemory) -> None:
        """What a framework holds on a device."""
        self._write("framework", encode_framework(memory))

    def write_end(self, end: End) -> None:
        """The last line."""
        self._write("end", encode_end(end))

    def is_deleted(self) -> bool:
        """Whether somebody has removed the file."""
        return os.fstat(self._fd).st_nlink == 0

    def _write(self, kind: str, data: dict[str, Any], encode: Callable[[Any], str] = to_json) -> None:
        text = encode({kind: data})
        line = f"\n{text}\n" if self._has_torn_line else f"{text}\n"
        content = line.encode()
        self._has_torn_line = True
        written = os.write(self._fd, content)
        if written < len(content):
            raise OSError(28, os.strerror(28))
        self._has_torn_line = False

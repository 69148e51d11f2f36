"""A recording up to a moment, to go back in it and to replay it: what its file was then.

Lines are only ever added, so the first part of a file is the file as it was, and whoever follows it sees what could be seen then.
"""

from __future__ import annotations

import re
import time
from array import array
from bisect import bisect_right
from math import inf

from .follow import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .follow import Content

_SAMPLE = re.compile(rb'^\{"sample":\{"at":([0-9.eE+-]+)[^\n]*\n', re.MULTILINE)


class Past:
    """`source` shows the file until `until_seconds`; a follower of it reads anew by itself when that is set back."""

    def __init__(self, source: Source) -> None:
        self._whole = source
        self._forget()
        self.until_seconds = inf
        self.source = Source(source.name, self._read, goes_back=True)

    def _forget(self) -> None:
        self._moments, self._ends = array("d"), array("q")
        """When each sample was taken, and where its line ends."""
        self._n_indexed = 0
        self._file: tuple[int, int] | None = None

    @property
    def last_seconds(self) -> float:
        """The moment of the last sample that is known."""
        return self._moments[-1] if self._moments else 0.0

    def survey(self) -> None:
        """Find out what there is, without understanding it. OSError if there is no file."""
        found = self._look(self._n_indexed)
        while found.content and self._n_indexed < found.size:
            before = self._n_indexed
            found = self._look(before)
            if self._n_indexed == before:  # the rest is no whole line yet
                return

    def _look(self, offset: int) -> Content:
        """The file as it is."""
        found = self._whole.read(offset)
        if self._file not in (None, found.file) or found.size < self._n_indexed:
            self._forget()
        self._file = found.file
        self._index(offset, found.content)
        return found

    def _index(self, offset: int, content: bytes) -> None:
        """Note where samples are; a follower may read what is known already."""
        known = self._n_indexed - offset
        whole = content.rfind(b"\n") + 1
        if not 0 <= known < whole:
            return
        for match in _SAMPLE.finditer(content, known, whole):
            try:
                moment = float(match[1])
            except ValueError:
                continue  # a damaged line
            self._moments.append(max(moment, self.last_seconds))
            self._ends.append(offset + match.end())
        self._n_indexed = offset + whole

    def _read(self, offset: int) -> Content:
        if self.until_seconds == inf:
            return self._look(offset)
        self.survey()
        row = bisect_right(self._moments, self.until_seconds)
        found = self._look(offset)
        if row == len(self._moments):
            return found
        end = self._ends[max(0, row - 1)]
        # It was written at that moment, which is now.
        return found._replace(
            size=end, modified_at=time.time(), content=found.content[: max(0, end - offset)]
        )

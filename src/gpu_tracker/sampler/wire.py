"""What passes between a tracker and its sampler: plain values over two pipes, framed by their length.

`marshal` is built into the interpreter, and both ends are the same interpreter: nothing to import, and
a start-up that nobody notices is worth more here than a format for the ages (that is the recording's part).
"""

from __future__ import annotations

import marshal

from ..values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LENGTH_BYTES = 4


class Plan(NamedTuple):
    """Everything a sampler must know to begin. Plain values only."""

    root_pid: int
    owner_pid: int
    """Who asked for the tracking; when it has gone, nobody will ask for the result."""
    adopter_pid: int
    """Who inherits the job's orphans, or 0."""
    is_newborn: bool
    """The root has just been started for this tracking: everything it ever used counts."""
    started_nanoseconds: int
    """On the monotonic clock, which all processes of a machine share."""
    root_cpu_seconds: tuple[float, float] | None
    """Own and reaped CPU time of the root at the start; None: whatever the first look finds."""
    command: tuple[str, ...]
    sleep_seconds: float
    n_expected_cores: float | None
    gpu_uuids: tuple[str, ...] | None
    max_overhead: float
    full_resolution: bool
    is_named: bool
    """The recording is a file that somebody wants to keep."""
    source: str | None
    """The process source to use, or None for the best there is."""


def pack(word: str, *values: Any) -> bytes:
    """One message: what to do or what happened, and its values."""
    content = marshal.dumps((word, values))
    return len(content).to_bytes(_LENGTH_BYTES, "little") + content


class Inbox:
    """Bytes as they come in, messages as they are complete."""

    def __init__(self) -> None:
        self._bytes = b""

    def feed(self, chunk: bytes) -> list[tuple[str, tuple[Any, ...]]]:
        """Take in a chunk and give the messages that it completes."""
        self._bytes += chunk
        messages = []
        while len(self._bytes) >= _LENGTH_BYTES:
            stop = _LENGTH_BYTES + int.from_bytes(self._bytes[:_LENGTH_BYTES], "little")
            if len(self._bytes) < stop:
                break
            messages.append(marshal.loads(self._bytes[_LENGTH_BYTES:stop]))
            self._bytes = self._bytes[stop:]
        return messages

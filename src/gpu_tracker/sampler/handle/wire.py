"""What passes between a tracker and its sampler: plain values over two pipes, framed by their length.

`marshal` is built into the interpreter, and both ends are the same interpreter: nothing to import, and
a start-up that nobody notices is worth more here than a format for the ages (that is the recording's part).
"""

from __future__ import annotations

import marshal

from ...core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LENGTH_BYTES = 4
# The number of the last answer. It needs no request of its own: whoever asks once more gets the same.
FINAL = 0


class Start(NamedTuple):
    """The moment when the job begins."""

    root_pid: int
    at_nanoseconds: int
    """On the monotonic clock, which all processes of a machine share."""
    root_cpu_seconds: tuple[float, float] | None
    """Own and reaped CPU time of the root at the start; None: whatever the first look finds."""


class Plan(NamedTuple):
    """Everything a sampler must know beforehand. Plain values only."""

    owner_pid: int
    """Who asked for the tracking; when it has gone, nobody will ask for the result."""
    example_pid: int
    """A process that may use what the job may use: the job itself, or who will start it."""
    has_our_environment: bool
    """Whether the job's variables are those that the sampler was started with."""
    starts_the_job: bool
    """The root will be a new child of the owner, who inherits its orphans: all it ever uses counts."""
    command: tuple[str, ...]
    sleep_seconds: float
    n_expected_cores: float | None
    gpu_uuids: tuple[str, ...] | None
    gpu_vendors: tuple[str, ...] | None
    """Whose devices to look at; None: everybody's."""
    max_overhead: float
    full_resolution: bool
    recording_path: str | None
    """The file to write, which exists already; None: nobody wants to keep the recording."""
    regions_place: str | None
    """The directory of the job's boards; None: there is none."""
    source: str | None
    """The process source to use, or None for the best there is."""
    tracking: tuple[str, tuple[str, str, str]] | None = None
    """A tracking file, which exists already, and the units of RAM, GPU RAM and time in it."""


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

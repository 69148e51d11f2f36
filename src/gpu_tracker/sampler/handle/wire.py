"""Messages between a tracker and its sampler: values over two pipes, framed by their length.

`marshal` is built into the interpreter and both ends run the same one, so there is nothing to import; a stable
format is the recording's task. It supports plain values only, so an instance of a value class is sent as a list
that begins with the name of its class. Pure.
"""

from __future__ import annotations

import marshal

from ...core import load_module
from ...core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LENGTH_BYTES = 4
# The number of the last answer, which is sent without a request.
FINAL = 0
# Energy and memory are counted from a reading before the job begins; a driver that wakes up slowly is not waited for.
GPU_PATIENCE_SECONDS = 0.06

_classes: dict[str, Any] = {}


class Start(NamedTuple):
    """The moment when the job begins."""

    root_pid: int
    at_nanoseconds: int
    """On the monotonic clock, which all processes of a machine share."""
    root_cpu_seconds: tuple[float, float] | None
    """Own and reaped CPU time of the root at the start; None: as of the first reading."""
    root_rss_bytes: int | None = None
    """What the root held at the start, if it is the root that tells: it may free that before the first reading."""
    outsiders: tuple[int, ...] = ()
    """Descendants of the owner that are not the job's, because they are older."""


class Plan(NamedTuple):
    """Everything that a sampler must know before the job begins."""

    owner_pid: int
    """The process that tracks; once it has ended, the result will not be requested."""
    example_pid: int
    """A process with the job's allocation: the job itself, or the one that will start it."""
    has_our_environment: bool
    """Whether the job's environment is the sampler's own."""
    starts_the_job: bool
    """The root will be a new child of the owner, which inherits its orphans: everything it uses counts."""
    command: tuple[str, ...]
    sleep_seconds: float
    n_expected_cores: float | None
    gpu_uuids: tuple[str, ...] | None
    gpu_vendors: tuple[str, ...] | None
    """The vendors whose devices to read; None: all."""
    max_overhead: float
    full_resolution: bool
    sources: tuple[str, ...]
    """The process sources to try, the best first."""
    name: str | None = None
    """The user's name for the run."""
    labels: tuple[tuple[str, str], ...] = ()
    recording_path: str | None = None
    """The existing file to write to; None: the recording is not kept."""
    mailbox: str | None = None
    """The directory for messages from processes of the job; None: there is none."""
    tracking: tuple[str, tuple[str, str, str]] | None = None
    """An existing tracking file, and its units of RAM, GPU RAM and time."""
    gpu_patience_seconds: float = GPU_PATIENCE_SECONDS
    """How long a job may be kept waiting for the first reading of the GPUs."""
    job: str | None = None
    """All processes of this job of a scheduler on this machine are tracked, instead of one and its descendants."""


class Request(NamedTuple):
    """What to observe, and how long to wait for it."""

    patience_seconds: float
    settle_seconds: float = 0.0
    """Interval between the first two readings of a source that derives utilization from counters."""
    details: tuple[str, ...] = ()
    """Less common figures that are wanted, by their names."""
    root_pid: int | None = None
    """A process whose memory is wanted, with that of its descendants."""
    linger_seconds: float | None = None
    """If nobody asks again for this long, the sampler ends by itself; None: it waits for its owner."""


def pack(word: str, *values: Any) -> bytes:
    """One message: a command or an event, and its values."""
    content = marshal.dumps((word, _to_plain(values)))
    return len(content).to_bytes(_LENGTH_BYTES, "little") + content


class Inbox:
    """Assembles messages from chunks of bytes."""

    def __init__(self) -> None:
        self._bytes = b""

    def feed(self, chunk: bytes) -> list[tuple[str, tuple[Any, ...]]]:
        """Add a chunk; the messages that it completes."""
        self._bytes += chunk
        messages = []
        while len(self._bytes) >= _LENGTH_BYTES:
            stop = _LENGTH_BYTES + int.from_bytes(self._bytes[:_LENGTH_BYTES], "little")
            if len(self._bytes) < stop:
                break
            word, values = marshal.loads(self._bytes[_LENGTH_BYTES:stop])
            messages.append((word, _from_plain(values)))
            self._bytes = self._bytes[stop:]
        return messages


def _to_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        plain = tuple(map(_to_plain, value))
        return [_name_class(type(value)), *plain] if hasattr(value, "_fields") else plain
    if isinstance(value, list):
        return [None, *map(_to_plain, value)]
    if isinstance(value, dict):
        return {name: _to_plain(item) for name, item in value.items()}
    return value


def _from_plain(plain: Any) -> Any:
    if isinstance(plain, tuple):
        return tuple(map(_from_plain, plain))
    if isinstance(plain, list):
        name, *fields = plain
        values = map(_from_plain, fields)
        return list(values) if name is None else _find_class(name)(*values)
    if isinstance(plain, dict):
        return {name: _from_plain(item) for name, item in plain.items()}
    return plain


def _name_class(kind: type) -> str:
    return f"{kind.__module__}:{kind.__name__}"


def _find_class(name: str) -> Any:
    if name not in _classes:
        module, _, kind = name.partition(":")
        _classes[name] = getattr(load_module(module), kind)
    return _classes[name]

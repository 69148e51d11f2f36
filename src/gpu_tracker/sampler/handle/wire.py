"""What passes between a tracker and its sampler: values over two pipes, framed by their length.

`marshal` is built into the interpreter, and both ends are the same interpreter: nothing to import, and
a start-up that nobody notices is worth more here than a format for the ages (that is the recording's part).
It knows plain values only, so a value class travels as a list that begins with its name. Pure.
"""

from __future__ import annotations

import marshal
from importlib import import_module

from ...core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LENGTH_BYTES = 4
# The number of the last answer. It needs no request of its own: whoever asks once more gets the same.
FINAL = 0

_classes: dict[str, Any] = {}


class Start(NamedTuple):
    """The moment when the job begins."""

    root_pid: int
    at_nanoseconds: int
    """On the monotonic clock, which all processes of a machine share."""
    root_cpu_seconds: tuple[float, float] | None
    """Own and reaped CPU time of the root at the start; None: whatever the first reading finds."""


class Plan(NamedTuple):
    """Everything a sampler must know beforehand."""

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
    """Whose devices to read; None: everybody's."""
    max_overhead: float
    full_resolution: bool
    source: str | None
    """The process source to use, or None for the best there is."""
    name: str | None = None
    """What the user calls the run."""
    labels: tuple[tuple[str, str], ...] = ()
    recording_path: str | None = None
    """The file to write, which exists already; None: nobody wants to keep the recording."""
    mailbox: str | None = None
    """The directory where processes of the job leave word; None: there is none."""
    tracking: tuple[str, tuple[str, str, str]] | None = None
    """A tracking file, which exists already, and the units of RAM, GPU RAM and time in it."""


class Request(NamedTuple):
    """What somebody wants to know, and how long they will wait for it."""

    patience_seconds: float
    settle_seconds: float = 0.0
    """A source that counts needs two readings, so far apart, before it can tell a share of time."""
    wants_details: bool = False


def pack(word: str, *values: Any) -> bytes:
    """One message: what to do or what happened, and its values."""
    content = marshal.dumps((word, _to_plain(values)))
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
        _classes[name] = getattr(import_module(module), kind)
    return _classes[name]

"""What `watch`, `query`, `dmon`, `pmon` and `doctor` share: which devices, interval, timeout, notes."""

from __future__ import annotations

import os
import time

from ..core.errors import NoGpuError, TrackerError, UsageError
from ..core.notices import is_new
from ..core.observation import list_gpus, list_notes
from ..live.selection import find_named, find_shown, is_named
from ..live.terminal import write_all
from ..recording.find import refuse_recording
from ..sampler.handle.client import DEFAULT_PATIENCE_SECONDS
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from ..core.observation import Device, Observation

# Three years. The system's own timers end somewhere above.
_MOST_SECONDS = 1e8


def add_observing(parser: argparse.ArgumentParser) -> None:
    """Add --timeout."""
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        default=str(DEFAULT_PATIENCE_SECONDS),
        help=f"how long to wait for a driver (default {DEFAULT_PATIENCE_SECONDS:g})",
    )


def check_seconds(option: str, text: str, *, least: float, unit: str = "seconds") -> float:
    """The number of seconds, or of another unit, if it is valid."""
    try:
        seconds = float(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is not a number.") from None
    if not least <= seconds <= _MOST_SECONDS:
        limit = f"at least {least:g}" if seconds < least else f"at most {_MOST_SECONDS:g}"
        raise UsageError(f"{option} of {text} is invalid.", f"Must be {limit} {unit}.")
    return seconds


def check_count(option: str, text: str) -> int:
    """The number of readings, if it is valid."""
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise UsageError(f"{option} of {text!r} is not a whole number of at least 1.")
    return int(text)


def repeat(interval_seconds: float, count: int | None = None) -> Iterator[None]:
    """Once per interval, by the clock, so that delays do not add up."""
    start = time.monotonic()
    done = 0
    while True:
        yield
        done += 1
        if done == count:
            return
        elapsed = time.monotonic() - start
        time.sleep(interval_seconds - elapsed % interval_seconds)


def write_lines(lines: Iterable[str], fd: int) -> bool:
    """Write them; False if the reader has gone. What cannot be written for any other reason is said."""
    try:
        write_all("".join(f"{line}\n" for line in lines), fd)
    except BrokenPipeError:
        return False
    except OSError as error:
        raise TrackerError(f"Cannot write: {error.strerror}.") from None
    return True


def say_once(texts: Iterable[str]) -> None:
    """Print each note once, to standard error."""
    for text in texts:
        if is_new(text):
            say(text)


def open_output(path: str | None) -> int:
    """The descriptor of a file, or of standard output."""
    if path is None:
        return 1
    refuse_recording(path)
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UsageError(f"Cannot write to {path}: {error.strerror}.") from None


def choose_gpus(observation: Observation, which: str | None, *, must_exist: bool) -> tuple[Device, ...]:
    """The devices with these indices, UUIDs or bus ids; all of them if none is named."""
    gpus = list_gpus(observation)
    if must_exist and not gpus:
        problems = list_notes(observation)
        if problems:
            raise NoGpuError(problems[0], " ".join(problems[1:]))
        reasons = [missing.text for vendor in observation.vendors for missing in vendor.missing]
        raise NoGpuError("No GPU found.", " ".join(reasons[:1]))
    if which is None:
        return gpus
    wanted = which.split(",")
    if must_exist:
        return refuse_unknown(gpus, wanted)
    return find_shown(gpus, wanted)


def refuse_unknown(gpus: Sequence[Device], names: Sequence[str]) -> tuple[Device, ...]:
    """The devices with these names, or UsageError."""
    for name in names:
        if not any(is_named(observed, (name,)) for observed in gpus):
            known = ", ".join(f"{observed.label} ({observed.gpu.uuid})" for observed in gpus)
            raise UsageError(f"There is no GPU {name.strip()!r}.", f"GPUs: {known}.")
    try:
        return find_named(gpus, names)
    except ValueError as error:
        raise UsageError(f"{error}.".replace("..", ".")) from None

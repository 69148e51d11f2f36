"""What `watch`, `query` and `doctor` share: interval, timeout, notes."""

from __future__ import annotations

import math
import time

from ..core.errors import UsageError
from ..core.notices import is_new
from ..sampler.handle.client import DEFAULT_PATIENCE_SECONDS
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator


def add_observing(parser: argparse.ArgumentParser) -> None:
    """Add --timeout."""
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        default=str(DEFAULT_PATIENCE_SECONDS),
        help=f"how long to wait for a driver (default {DEFAULT_PATIENCE_SECONDS:g})",
    )


def check_seconds(option: str, text: str, *, least: float) -> float:
    """The number of seconds, if it is valid."""
    try:
        seconds = float(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is not a number.") from None
    if not least <= seconds < math.inf:
        raise UsageError(f"{option} of {text} is invalid.", f"Must be at least {least:g} seconds.")
    return seconds


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


def say_once(texts: Iterable[str]) -> None:
    """Print each note once, to standard error."""
    for text in texts:
        if is_new(text):
            say(text)

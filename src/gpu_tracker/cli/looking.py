"""What the commands that look at GPUs have in common: their pace, their patience, and what they say besides."""

from __future__ import annotations

import math
import time

from ..core.errors import UsageError
from ..sampler.handle.client import DEFAULT_PATIENCE_SECONDS
from .output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

_said: set[str] = set()


def add_looking(parser: argparse.ArgumentParser) -> None:
    """How long to wait."""
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        default=str(DEFAULT_PATIENCE_SECONDS),
        help=f"how long a driver may take to answer (default {DEFAULT_PATIENCE_SECONDS:g})",
    )


def check_seconds(option: str, text: str, *, least: float) -> float:
    """A number of seconds that makes sense."""
    try:
        seconds = float(text)
    except ValueError:
        raise UsageError(f"{option} of {text!r} is not a number.") from None
    if not least <= seconds < math.inf:
        raise UsageError(f"{option} of {text} is invalid.", f"Must be at least {least:g} seconds.")
    return seconds


def repeat(interval_seconds: float, count: int | None = None) -> Iterator[None]:
    """Once per interval, on the clock rather than after each pause."""
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
    """Beside the output, each sentence once."""
    for text in texts:
        if text not in _said:
            _said.add(text)
            say(text)

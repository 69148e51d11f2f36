"""Points in time as text, for headers and for people."""

from __future__ import annotations

import time


def write_moment(epoch_seconds: float, pattern: str) -> str:
    """Like `strftime`, with `%f` for milliseconds."""
    second, fraction = divmod(epoch_seconds, 1)
    pattern = pattern.replace("%f", f"{int(fraction * 1000):03d}")
    return time.strftime(pattern, time.localtime(second))


def stamp_moment(epoch_seconds: float) -> str:
    """As in a header: `2026-01-31T12:00:00.123+01:00`."""
    text = write_moment(epoch_seconds, "%Y-%m-%dT%H:%M:%S.%f%z")
    return f"{text[:-2]}:{text[-2:]}"


def parse_moment(text: str) -> float | None:
    """Seconds since 1970 of a header's time, or None if it is not valid."""
    from datetime import datetime

    if text[-5:-4] in ("+", "-"):  # Python 3.10 refuses `+0100`, which earlier headers have
        text = f"{text[:-2]}:{text[-2:]}"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment.timestamp()

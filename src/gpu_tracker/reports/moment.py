"""When an observation was made, for people: local time, as text. Pure."""

from __future__ import annotations

import time


def write_moment(epoch_seconds: float, pattern: str) -> str:
    """As `strftime` has it, with `%f` for milliseconds."""
    second, fraction = divmod(epoch_seconds, 1)
    pattern = pattern.replace("%f", f"{int(fraction * 1000):03d}")
    return time.strftime(pattern, time.localtime(second))

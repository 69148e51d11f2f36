"""Notes that this process has given already: a loop over a thousand trackers warns once."""

from __future__ import annotations

_said: set[str] = set()


def is_new(text: str) -> bool:
    """Whether this process says it for the first time."""
    if text in _said:
        return False
    _said.add(text)
    return True


def warn_once(text: str) -> None:
    """Through the program's own logging, which it may silence."""
    try:
        import logging
    except OSError:
        return  # a program without a free descriptor cannot even import
    if is_new(text):
        logging.getLogger("gpu_tracker").warning("%s", text)

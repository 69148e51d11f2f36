"""Warnings that this process has given already: a loop over a thousand trackers warns once."""

from __future__ import annotations

from sys import is_finalizing

_said: set[str] = set()


def is_new(text: str) -> bool:
    """Whether this text is new in this process."""
    if text in _said:
        return False
    _said.add(text)
    return True


def warn_once(text: str) -> bool:
    """Through the program's own logging, which it may silence. Whether that could be loaded."""
    if is_finalizing():
        return False  # a thread that was stopped may have been loading it
    try:
        import logging
    except (OSError, ImportError):
        return False  # no free file descriptor to import with, or another root
    if is_new(text):
        logging.getLogger("gpu_tracker").warning("%s", text)
    return True

"""Warnings that this process has given already: a loop over a thousand trackers warns once."""

from __future__ import annotations

# How the note begins that the kernel has killed a process of the job for lack of memory.
OUT_OF_MEMORY = "Out of memory:"

_said: set[str] = set()


def is_new(text: str) -> bool:
    """Whether this text is new in this process."""
    if text in _said:
        return False
    _said.add(text)
    return True


def warn_once(text: str) -> None:
    """Through the program's own logging, which it may silence."""
    try:
        import logging
    except OSError:
        return  # no free file descriptor to import with
    if is_new(text):
        logging.getLogger("gpu_tracker").warning("%s", text)

"""Warnings for users of the Python API, each shown once per process."""

from __future__ import annotations

_said: set[str] = set()


def warn_once(text: str) -> None:
    """Log a warning, unless the same one was logged before. The program may silence its logging."""
    if text in _said:
        return
    try:
        import logging
    except OSError:
        return  # no free file descriptor to import with
    _said.add(text)
    logging.getLogger("gpu_tracker").warning("%s", text)

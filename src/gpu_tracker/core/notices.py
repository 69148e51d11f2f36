"""Sentences for the user of a program that has us inside, each said once: a loop over a thousand trackers is told once."""

from __future__ import annotations

_said: set[str] = set()


def warn_once(text: str) -> None:
    """Through the program's own logging, which it may silence."""
    if text in _said:
        return
    try:
        import logging
    except OSError:
        return  # a program without a free descriptor cannot even import
    _said.add(text)
    logging.getLogger("gpu_tracker").warning("%s", text)

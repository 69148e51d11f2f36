"""Ctrl-C until the job runs: noted at once, raised where it cannot get lost.

Raised in the middle of an import it may be swallowed, and in the middle of tidying up it would leave something behind.
"""

from __future__ import annotations

from ..core import signal

_has_come = False
_is_welcome = False


def note_interrupts() -> None:
    """Only note them from now on, unless whoever started us ignores them."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note)


def raise_interrupts() -> None:
    """KeyboardInterrupt if one was noted."""
    global _has_come
    if _has_come:
        _has_come = False
        raise KeyboardInterrupt


def allow_interrupts() -> None:
    """Raise one that was noted, and from now on each when it comes."""
    if signal.getsignal(signal.SIGINT) is _note:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    raise_interrupts()


class interruptible:  # noqa: N801 - used like a keyword
    """While waiting for others, one is raised at once."""

    def __enter__(self) -> None:
        global _is_welcome
        _is_welcome = True
        raise_interrupts()

    def __exit__(self, *_: object) -> None:
        global _is_welcome
        _is_welcome = False


def _note(*_: object) -> None:
    global _has_come, _is_welcome
    _has_come = True
    if _is_welcome:
        _is_welcome = False
        raise_interrupts()

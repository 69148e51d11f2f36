"""Signals that wait for us while they are blocked, whatever would otherwise become of them."""

from __future__ import annotations

from ..core import list_signals, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# What nothing happens on by default. BSD kernels have one more (Ctrl-T), Linux has it not.
_IGNORED_BY_DEFAULT = set(list_signals("SIGCHLD", "SIGURG", "SIGIO", "SIGWINCH", "SIGINFO"))


def keep_pending(numbers: Iterable[int]) -> dict[int, Any]:
    """Have blocked signals wait even if they would be ignored; returns the handlers that this replaces.

    Linux keeps every blocked signal. BSD kernels, and so macOS, drop one that would be ignored, and nobody could wait for it.
    """
    replaced = {}
    for number in numbers:
        handler = signal.getsignal(number)
        if handler is signal.SIG_IGN or (handler is signal.SIG_DFL and number in _IGNORED_BY_DEFAULT):
            replaced[number] = signal.signal(number, _do_nothing)
    return replaced


def restore(handlers: dict[int, Any]) -> None:
    """Have them ignored again."""
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _do_nothing(*_: object) -> None:
    """They are waited for, never handled."""

"""Whether a run ended as it should. Pure."""

from __future__ import annotations

_GOOD = ("exited", "stopped", "running", "sampler lost")


def has_failed(ending: str, exit_code: int | None) -> bool:
    """By its exit code, or how its tracking ended."""
    return bool(exit_code) or ending not in _GOOD

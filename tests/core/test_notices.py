"""A warning is given once per process."""

from __future__ import annotations

import builtins
import logging
from typing import Any

import pytest

from gpu_tracker.core import notices


def test_the_same_warning_is_given_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However often a script asks."""
    monkeypatch.setattr(notices, "_said", set())
    with caplog.at_level(logging.WARNING, "gpu_tracker"):
        for text in ("one", "two", "one"):
            notices.warn_once(text)

    assert caplog.messages == ["one", "two"]


def test_a_program_without_a_free_descriptor_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing needs one."""
    real = builtins.__import__

    def refuse(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "logging":
            raise OSError(24, "Too many open files")
        return real(name, *arguments, **options)

    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.setattr(builtins, "__import__", refuse)
    notices.warn_once("one")

    assert notices._said == set()


def test_nothing_is_loaded_to_warn_once_the_interpreter_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that was stopped may have been loading it."""
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.setattr(notices, "is_finalizing", lambda: True)

    assert not notices.warn_once("late")
    assert notices._said == set()

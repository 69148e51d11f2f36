"""The tracker's side of a sampler."""

from __future__ import annotations

import os
from typing import Any

import pytest

from gpu_tracker.sampler.handle import process


def interrupt() -> None:
    """Ctrl-C, at this moment."""
    raise KeyboardInterrupt


def is_child(pid: int) -> bool:
    """Whether a process has not been waited for yet."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def test_an_interrupt_while_a_sampler_starts_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although the exception is kept, as a notebook does: without its pipes, the sampler ends."""
    before = os.listdir("/proc/self/fd")
    started: list[int] = []
    spawn = process._spawn

    def note(*arguments: Any) -> list[int]:
        started.extend(spawn(*arguments))
        return started

    monkeypatch.setattr(process, "_spawn", note)
    monkeypatch.setattr(process, "_close_handles_in_forks", interrupt)
    with pytest.raises(KeyboardInterrupt) as kept:
        process.SamplerProcess()

    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert not process._open_handles
    assert not is_child(*started)
    del kept


def test_an_interrupt_while_its_starter_is_waited_for_leaves_no_zombie(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever closes it then, waits again."""
    sampler = process.SamplerProcess()
    (starter,) = sampler._starters
    with monkeypatch.context() as patched:
        patched.setattr(process, "_wait_for", lambda _: interrupt())
        with pytest.raises(KeyboardInterrupt):
            sampler.reap_starter()
    sampler.close()

    assert not is_child(starter)

"""What a sink passes on, and to whom."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import gpu_tracker as gput

POINT = gput.sinks.Point(1000.5, 7, {"gpu_tracker/ram_bytes": 5.0})


class Writer:
    """What a SummaryWriter offers."""

    def __init__(self) -> None:
        self.written: list[tuple[Any, ...]] = []
        self.add_scalar = lambda *values: self.written.append(values)


def test_the_program_may_give_its_own_step() -> None:
    """It is asked at each point."""
    writer = Writer()
    steps = iter([41, 42.0])
    sink = gput.sinks.tensorboard(writer, step=lambda: next(steps))
    sink.send(POINT)
    sink.finish(POINT)

    assert writer.written == [
        ("gpu_tracker/ram_bytes", 5.0, 41, 1000.5),
        ("gpu_tracker/ram_bytes", 5.0, 42, 1000.5),
    ]


def test_mlflow_without_a_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and not by starting one."""
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(active_run=lambda: None))

    with pytest.raises(gput.UsageError, match="no active run"):
        gput.sinks.mlflow()

"""Metrics on their way to the sampler."""

from __future__ import annotations

import json
import math
import posix
from pathlib import Path

import pytest

from gpu_tracker.instrument import outbox


def read_values(mailbox: Path) -> list[dict[str, float]]:
    """Of all rows in all files."""
    lines = [line for path in mailbox.iterdir() for line in path.read_text().splitlines()]
    return sorted((json.loads(line)[2] for line in lines), key=str)


def test_rows_are_json(tmp_path: Path) -> None:
    """Whatever their names and numbers."""
    values = {'a "b"\n\ud800é': 0.1, "large": math.inf, "small": -math.inf, "tiny": 5e-324}
    writer = outbox.MetricsWriter(str(tmp_path))
    writer.add(3.0, values)
    writer.add(None, {"none": math.nan})
    writer.close()
    (path,) = tmp_path.iterdir()
    (_, step, first), (_, no_step, second) = map(json.loads, path.read_text().splitlines())

    assert (step, first, no_step) == (3.0, values, None)
    assert math.isnan(second["none"])


def test_after_an_interruption_metrics_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time limit may run out when one file is closed and the next is not open yet."""

    def be_late(*_: object) -> int:
        raise TimeoutError

    monkeypatch.setattr(outbox, "METRICS_BYTES", 1)
    writer = outbox.MetricsWriter(str(tmp_path))
    writer.add(None, {"first": 1.0})
    with monkeypatch.context() as patched:
        patched.setattr(posix, "open", be_late)
        with pytest.raises(TimeoutError):
            writer.add(None, {"late": 1.0})
    writer.add(None, {"next": 1.0})
    writer.close()

    assert read_values(tmp_path) == [{"first": 1.0}, {"next": 1.0}]

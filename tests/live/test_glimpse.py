"""What is worth showing of a running job."""

from __future__ import annotations

from math import isnan

from gpu_tracker.core.model import Call, MetricRow
from gpu_tracker.live.glimpse import Glimpse, name_metrics, name_region
from live.glimpses import make_interval


def make_call(*path: str, pid: int = 7, start: float = 0.0) -> Call:
    """An open one."""
    return Call(path, pid, 0, start, None)


def test_the_region_entered_last_is_named() -> None:
    """The main process counts before others; of regions entered together, the innermost."""
    calls = [make_call("epoch"), make_call("epoch", "train"), make_call("load", pid=8, start=5.0)]

    assert name_region(calls, {}, 7) == "epoch/train"
    assert name_region(calls[2:], {}, 7) == "load"
    assert name_region([], {}, 7) == ""


def test_the_outermost_region_is_counted() -> None:
    """Two have ended, so this is the third. Names are the job's, and may be anything."""
    ended: dict[tuple[int, tuple[str, ...]], int] = {(7, ("epoch",)): 2, (8, ("epoch",)): 9}

    assert name_region([make_call("epoch", "tr\x1bain")], ended, 7) == "epoch 3/tr?ain"


def test_the_metrics_logged_last_are_named() -> None:
    """At most two of them."""
    row = MetricRow(1.0, {"lo\nss": 0.41234, "accuracy": 0.9, "more": 1.0})

    assert name_metrics(row) == "lo?ss 0.412  accuracy 0.9"
    assert name_metrics(None) == ""


def test_what_is_not_known_is_a_gap() -> None:
    """In pictures over time."""
    glimpse = Glimpse(0.0, intervals=(make_interval(cpu_cores=None, ram_bytes=None), make_interval()))

    assert isnan(glimpse.busy_cores[0])
    assert isnan(glimpse.held_bytes[0])
    assert glimpse.busy_cores[1:] == (5.2,)
    assert glimpse.held_bytes[1:] == (11.2 * 2**30,)
    assert Glimpse(0.0).now is None

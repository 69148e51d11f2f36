"""What all trainings share: how slow each part is, what the program counts itself, and what it prints in the end."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import gpu_tracker as gput

N_BATCHES, N_EPOCHS, BATCH_SIZE = 6, 2, 4
IS_SLOW_LOADER = sys.argv[1] == "slow-loader"
HAS_SLOW_HOOKS = sys.argv[1] == "slow-hooks"
RECORD = sys.argv[2]
# Steps so long that a busy machine does not make a healthy loader look slow.
SLOW_SECONDS = 0.2 if IS_SLOW_LOADER else 0.8

counted: dict[str, int] = defaultdict(int)
seconds: dict[str, float] = defaultdict(float)
losses: list[float] = []


@contextlib.contextmanager
def timed(part: str) -> Iterator[None]:
    """Count a part of the training and its time, whoever else does."""
    began = time.perf_counter()
    try:
        yield
    finally:
        counted[part] += 1
        seconds[part] += time.perf_counter() - began


def work(part: str, *, is_slow: bool) -> None:
    """Take as long as this part does in this scene."""
    with timed(part):
        time.sleep(SLOW_SECONDS if is_slow else 0)


class TimedLoader:
    """Batches that take their time to come; each time through takes as long as the program itself measures."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return sum(1 for _ in self.batches)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batches:
            work("load", is_slow=IS_SLOW_LOADER)
            yield batch


def track() -> gput.Tracker:
    """Enough readings for findings about a run of seconds."""
    return gput.Tracker(sleep_time=0.02, max_overhead=0.5, record=RECORD, disable_logs=True)


def tell(tracker: gput.Tracker, **more: object) -> None:
    """Print what the program knows and what the tracker says."""
    report, recording = tracker.report, gput.load(str(tracker.recording_path))
    assert report is not None
    told = {
        "counted": counted,
        "seconds": seconds,
        "losses": losses,
        "regions": {"/".join(region.path): (region.calls, region.wall_seconds) for region in report.regions},
        "open": [region.path for region in report.regions if region.open_calls],
        "rows": [(row.step, row.values) for row in recording.metric_rows],
        "findings": [finding.rule for finding in report.findings],
        **more,
    }
    print(f"\n{json.dumps(told)}")

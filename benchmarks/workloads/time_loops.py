"""What a watched loop costs: microseconds per hook and per batch, and percent of steps that do something."""

from __future__ import annotations

import hashlib
import json
import statistics
import time
from typing import TYPE_CHECKING

import gpu_tracker as gput
from gpu_tracker.api.loops import DATA_WAIT, STEP, Loop

if TYPE_CHECKING:
    from collections.abc import Iterable

_BATCHES = 50_000
_STEPS = 200
_ROUNDS = 9
# Some milliseconds in one call that allocates nothing: else its own speed would depend on what ran before.
_WORK = bytes(5_000_000)


def main() -> None:
    without = _measure_batch()
    with gput.Tracker(disable_logs=True):
        truth = {
            "without": without,
            "hook": _measure_hook(),
            "batch": _measure_batch(),
            "noise": _measure_slowdown(range(_STEPS)),
            "slowdown": _measure_slowdown(gput.watch(range(_STEPS))),
        }
    print(json.dumps(truth))


def _measure_hook() -> float:
    """As the callbacks of frameworks go from one part of a loop to the next."""
    loop = Loop()
    loop.begin_epoch()
    began = time.perf_counter()
    for _ in range(_BATCHES):
        loop.go_to(DATA_WAIT)
        loop.go_to(STEP)
    elapsed = time.perf_counter() - began
    loop.end()
    return 1e6 * elapsed / _BATCHES / 2


def _measure_batch() -> float:
    plain, watched = (_time_empty(loop) for loop in (range(_BATCHES), gput.watch(range(_BATCHES))))
    return 1e6 * (watched - plain) / _BATCHES


def _time_empty(loop: Iterable[int]) -> float:
    began = time.perf_counter()
    for _ in loop:
        pass
    return time.perf_counter() - began


def _measure_slowdown(loop: Iterable[int]) -> float:
    """In turn, so that a busy moment is not taken for it; CPU time, which waiting does not change."""
    ratios = []
    for number in range(_ROUNDS):
        before = _train(range(_STEPS)) if number % 2 else 0.0
        watched = _train(loop)
        ratios.append(watched / (before or _train(range(_STEPS))))
    return 100 * (statistics.median(ratios) - 1)


def _train(loop: Iterable[int]) -> float:
    began = time.process_time()
    for _ in loop:
        hashlib.sha256(_WORK).digest()
    return time.process_time() - began


if __name__ == "__main__":
    main()

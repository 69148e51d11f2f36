"""When a tracked process has ended."""

from __future__ import annotations

import select
import subprocess
import time

import pytest

from gpu_tracker.api.session import Session, Wishes, other_process
from gpu_tracker.core.config import Settings
from gpu_tracker.core.model import Known, RootFigures
from gpu_tracker.sampler.handle.wire import Start

LATER_SECONDS = 3600.0


@pytest.mark.parametrize("is_known", [False, True])
def test_a_parent_that_was_stopped_does_not_make_the_job_longer(is_known: bool) -> None:
    """It learns of the end when it is continued; the sampler was there. What the parent knows of its child still counts."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as job:
        session = Session(other_process(job.pid), Settings(gpu_vendors=()), Wishes(), lambda _: None)
        session.prepare()
        assert session.wait_until_ready()
        session.begin(Start(job.pid, time.monotonic_ns(), None))
        assert job.stdin is not None
        job.stdin.close()
        select.select([session.replies_fd], [], [])  # the sampler has seen it
        end_ns = time.monotonic_ns() + int(LATER_SECONDS * 1e9)
        known = Known(end_ns, RootFigures(0.0, 0.0), RootFigures(7.0, 0.0), 0) if is_known else None
        recording = session.stop(end_ns, known)

    assert 0 < recording.totals.at_seconds < LATER_SECONDS
    assert (recording.totals.cpu_seconds.combined > 1) == is_known


def test_a_parent_that_sees_the_end_first_is_believed() -> None:
    """The sampler wakes up a moment later."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as job:
        session = Session(other_process(job.pid), Settings(gpu_vendors=()), Wishes(), lambda _: None)
        session.prepare()
        assert session.wait_until_ready()
        start = Start(job.pid, time.monotonic_ns(), None)
        session.begin(start)
        assert job.stdin is not None
        job.stdin.close()
        select.select([session.replies_fd], [], [])
        end_ns = start.at_nanoseconds + 1_000_000
        recording = session.stop(end_ns, Known(end_ns, RootFigures(0.0, 0.0), RootFigures(0.0, 0.0), 0))

    assert recording.totals.at_seconds == pytest.approx(0.001)

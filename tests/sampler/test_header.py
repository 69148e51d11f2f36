"""What is known before anything has been measured."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gpu_tracker.core.model import Allocation
from gpu_tracker.core.moments import parse_moment
from gpu_tracker.sampler import header
from gpu_tracker.sampler.handle.wire import Plan, Start

ALLOCATION = Allocation(4, 2.0, "affinity", 10, 10, "machine")
PLAN = Plan(
    owner_pid=1,
    example_pid=1,
    has_our_environment=True,
    starts_the_job=True,
    command=("job",),
    sleep_seconds=1.0,
    n_expected_cores=None,
    gpu_uuids=None,
    gpu_vendors=None,
    max_overhead=0.01,
    full_resolution=False,
    sources=(),
    name="baseline",
    labels=(("seed", "7"),),
)


def test_it_says_which_run_this_is() -> None:
    """By the user's words, the scheduler's and the machine's."""
    made = header.make_header(PLAN, Start(42, time.monotonic_ns(), None), ALLOCATION, "procfs", {"RANK": "1"})

    assert (made.pid, made.command, made.n_expected_cores) == (42, ("job",), 2.0)
    assert (made.identity.name, made.identity.labels) == ("baseline", (("seed", "7"),))
    assert made.identity.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert made.identity.rank is None


def test_it_says_who_has_started_a_rank() -> None:
    """Two launches may have one name; outside of any, nobody has."""
    variables = {"RANK": "1", "TORCHELASTIC_RUN_ID": "job"}
    rank, other = (
        header.make_header(
            PLAN, Start(os.getpid(), time.monotonic_ns(), None), ALLOCATION, "procfs", known
        ).identity
        for known in (variables, {})
    )

    assert (rank.rank_process or "").startswith(f"{os.getpid()}@")
    assert (rank.launcher_process or "").startswith(f"{os.getppid()}@")
    assert (other.rank_process, other.launcher_process) == (None, None)


def test_what_a_scheduler_would_never_say_is_masked() -> None:
    """Anybody can set its variables."""
    spoiled = {"SLURM_JOB_ID": "password=hunter22"}
    made = header.make_header(PLAN, Start(42, time.monotonic_ns(), None), ALLOCATION, "procfs", spoiled)

    assert made.identity.job == "password=***"


def test_it_began_when_the_job_began() -> None:
    """Not when the header was made."""
    an_hour_ago = time.monotonic_ns() - 3600 * 10**9
    made = header.make_header(PLAN, Start(42, an_hour_ago, None), ALLOCATION, "procfs", {})
    began = parse_moment(made.started_at)

    assert began is not None
    assert 3590 < time.time() - began < 3690


def test_a_kernel_without_a_boot_id_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is no reason to fail."""
    monkeypatch.setattr(header, "_BOOT_ID_PATH", "/nowhere")
    made = header.make_header(PLAN, Start(42, 0, None), ALLOCATION, "procfs", {})

    assert made.identity.boot_id is None

"""Rules about memory of devices: each fires, stays silent just below its threshold, and knows its guard."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_tracker.core.model import FrameworkMemory
from made_runs import GB, Device, find, made_run, why_not


def torch(**fields: Any) -> FrameworkMemory:
    """PyTorch on the first device."""
    return FrameworkMemory(100, "PyTorch", "cuda:0", "GPU-0", 9.5, GB, 9 * GB, "exact")._replace(**fields)


JAX = torch(framework="JAX")


# ---- 9. gpu-memory-tight.


@pytest.mark.parametrize(
    ("used", "flushes", "severity"),
    [(36.4, 0, "warning"), (38.9, 0, "serious"), (20.1, 3, "serious"), (36, 0, None), (19.9, 3, None)],
)
def test_memory_that_is_nearly_full_is_tight(used: float, flushes: int, severity: str | None) -> None:
    """By its peak, or because the framework had to make room. With half of it free, one request was huge."""
    run = made_run(Device(used=used * GB), frameworks=(torch(flushes=flushes),))

    finding = find(run, "gpu-memory-tight")

    assert (finding and finding.severity) == severity
    assert finding is None or ("empty its cache 3 times" in finding.sentence) == (flushes == 3)


def test_memory_taken_in_advance_is_not_tight() -> None:
    """Nor is memory that is not known."""
    pool = made_run(Device(used=38 * GB), frameworks=(JAX,))
    unknown = made_run(Device(gpu={"memory_bytes": None}))

    assert why_not(pool, "gpu-memory-tight") == "the framework took its memory in advance"
    assert why_not(unknown, "gpu-memory-tight") == "its memory is not known"


@pytest.mark.parametrize(
    ("device", "flushes"),
    [
        (Device(used=37 * GB, busy=25), 0),
        (Device(used=37 * GB, busy=8), 1),
        (Device(used=[min(37, number) * GB for number in range(100)], busy=8), 0),
    ],
)
def test_a_server_that_waits_has_filled_its_memory_on_purpose(device: Device, flushes: int) -> None:
    """Unless it has work, had to make room, or came to need it."""
    reason = "its memory is filled, as by a server that waits for requests"

    assert why_not(made_run(Device(used=37 * GB, busy=24)), "gpu-memory-tight") == reason
    assert find(made_run(device, frameworks=(torch(flushes=flushes),)), "gpu-memory-tight") is not None


# ---- 10. gpu-out-of-memory.


@pytest.mark.parametrize(
    ("code", "severity", "words"),
    [
        (1, "serious", "2 allocations failed on cuda:0."),
        (0, "warning", "2 allocations failed on cuda:0, and it went on."),
    ],
)
def test_allocations_that_failed_are_counted(code: int, severity: str, words: str) -> None:
    """A job that looks for the largest batch goes on."""
    finding = find(made_run(Device(), frameworks=(torch(failures=2),), exit_code=code), "gpu-out-of-memory")

    assert finding is not None
    assert (finding.severity, finding.sentence) == (severity, words)


def test_no_failure_is_no_finding() -> None:
    """And without a framework nothing is known."""
    assert find(made_run(Device(), frameworks=(torch(),)), "gpu-out-of-memory") is None
    assert why_not(made_run(Device()), "gpu-out-of-memory") == "no framework told its memory"


# ---- 11. fragmentation.


@pytest.mark.parametrize(
    ("in_use", "held", "flushes", "is_found"),
    [(6.9, 10, 1, True), (7, 10, 1, False), (6.9, 10, 0, False), (0, 0, 1, False)],
)
def test_memory_that_is_held_and_not_usable_is_fragmented(
    in_use: float, held: float, flushes: int, is_found: bool
) -> None:
    """More than 30 %, and yet the cache had to be emptied."""
    memory = torch(
        split_in_use_bytes=int(in_use * GB),
        split_held_bytes=int(held * GB),
        split_process_bytes=11 * GB,
        flushes=flushes,
    )

    finding = find(made_run(Device(), frameworks=(torch(), memory)), "fragmentation")

    assert (finding is not None) == is_found
    assert finding is None or finding.sentence.startswith("3.1 GB of 10 GB that PyTorch held on cuda:0")


def test_without_a_framework_fragmentation_is_not_judged() -> None:
    """An allocator that tells nothing included."""
    assert why_not(made_run(Device()), "fragmentation") == "no framework told its memory"
    assert find(made_run(Device(), frameworks=(torch(flushes=2),)), "fragmentation") is None


# ---- 12. pre-allocated-pool.


def test_memory_taken_at_once_and_kept_is_a_pool() -> None:
    """It says nothing about need; the framework's own peak does."""
    finding = find(made_run(Device(used=30 * GB), frameworks=(JAX,)), "pre-allocated-pool")

    assert finding is not None
    assert finding.sentence == "JAX took 75 % of GPU 0 at the start; its own peak was 9 GB."


@pytest.mark.parametrize(
    ("job", "framework"),
    [
        (27.9 * GB, "JAX"),
        ([28 * GB + number * 0.01 * GB for number in range(100)], "JAX"),
        (30 * GB, "PyTorch"),
        (0, "JAX"),
    ],
)
def test_memory_that_grows_or_is_less_is_need(job: Any, framework: str) -> None:
    """And PyTorch takes no pool."""
    run = made_run(Device(job=job), frameworks=(torch(framework=framework),))

    assert find(run, "pre-allocated-pool") is None


def test_without_a_framework_there_is_no_pool() -> None:
    """A server fills the memory, too."""
    assert why_not(made_run(Device()), "pre-allocated-pool") == "no framework told its memory there"


# ---- 13. others-on-gpu.


@pytest.mark.parametrize(
    ("used", "memory", "is_found"),
    [
        (11.1 * GB, 40 * GB, True),
        (11 * GB, 40 * GB, False),
        (10.6 * GB, 10.8 * GB, True),
        (10.5 * GB, 10.8 * GB, False),
        (11.1 * GB, None, True),
    ],
)
def test_memory_of_others_is_told(used: float, memory: int | None, is_found: bool) -> None:
    """A gigabyte, or a twentieth of a small device."""
    device = Device(used=used, job=10 * GB, gpu={"memory_bytes": memory})

    finding = find(made_run(device), "others-on-gpu")

    assert (finding is not None) == is_found


def test_a_single_interval_may_deceive() -> None:
    """Both figures are not read at the same instant; and an unknown list of processes tells nothing."""
    brief = Device(used=[30.0 * GB if number in (5, 6) else 10.0 * GB for number in range(100)], job=10 * GB)

    assert find(made_run(brief), "others-on-gpu") is None
    assert why_not(made_run(Device(job=None)), "others-on-gpu") == "there are no samples of it"

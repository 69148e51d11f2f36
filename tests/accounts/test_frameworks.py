"""Memory by the framework, next to memory by the driver."""

from __future__ import annotations

import pytest

from builders import MB, gpu
from gpu_tracker.accounts.frameworks import FrameworkAccount, FrameworkNote
from gpu_tracker.core.model import (
    FrameworkMemory,
    FrameworkReading,
    GpuProcessReading,
    GpuReading,
    GpuReadings,
)

PID = 100


def reading(in_use: int, held: int | None, **fields: object) -> FrameworkReading:
    """So many MB of tensors, and with the cache."""
    size = None if held is None else held * MB
    made = FrameworkReading("PyTorch", "cuda:0", "0", in_use * MB, in_use * MB, size, size)
    return made._replace(**fields)  # type: ignore[arg-type]


def driver(at: float, process: int | None, used: int | None = 3000) -> GpuReadings:
    """The driver reports so many MB for the process, and so many for all."""
    device = GpuReading("GPU-0", None if used is None else used * MB, reserved_bytes=500 * MB)
    held = None if process is None else process * MB
    return GpuReadings(at, (device,), (GpuProcessReading("GPU-0", PID, held),))


def watch(*events: GpuReadings | tuple[float, FrameworkReading]) -> FrameworkMemory:
    """What is known after all that, in that order."""
    account = FrameworkAccount()
    account.add_gpu(gpu())
    for event in events:
        if isinstance(event, GpuReadings):
            account.take_gpus(event)
        else:
            account.take(FrameworkNote(event[0], PID, False, (event[1],)))
    (memory,) = account.list_memory()
    return memory


def test_memory_is_split_if_the_framework_did_not_change() -> None:
    """It held the same before and after the driver was read."""
    memory = watch((1.0, reading(600, 1000)), driver(1.5, 1400), (2.0, reading(700, 1000)))

    assert memory.uuid == "GPU-0"
    assert (memory.split_in_use_bytes, memory.split_held_bytes) == (700 * MB, 1000 * MB)
    assert memory.split_process_bytes == 1400 * MB
    assert (memory.split_others_bytes, memory.split_free_bytes) == (1600 * MB, (40_000 - 3500) * MB)
    assert (memory.at_seconds, memory.in_use_bytes, memory.held_bytes) == (2.0, 700 * MB, 1000 * MB)


def test_a_driver_reading_may_arrive_late() -> None:
    """Its own time counts."""
    still = watch((1.0, reading(600, 1000)), (2.0, reading(600, 1000)), driver(1.5, 1400))
    moving = watch((1.0, reading(600, 800)), (2.0, reading(600, 1000)), driver(1.5, 1400))
    before = watch((1.0, reading(600, 1000)), (2.0, reading(600, 1000)), driver(0.5, 1400))

    assert still.split_process_bytes == 1400 * MB
    assert moving.split_process_bytes is None
    assert before.split_process_bytes is None


@pytest.mark.parametrize(
    "events",
    [
        ((1.0, reading(600, 800)), driver(1.5, 1400), (2.0, reading(600, 1000))),
        (driver(0.5, 1400), (1.0, reading(600, 1000)), (2.0, reading(600, 1000))),
        ((1.0, reading(600, 1000)), driver(1.5, 1400)),
        ((1.0, reading(600, 1000)), driver(1.5, None), (2.0, reading(600, 1000))),
        ((1.0, reading(600, 1000)), driver(1.5, 900), (2.0, reading(600, 1000))),
    ],
    ids=["grown", "nothing before", "nothing after", "driver does not know", "less than the framework"],
)
def test_readings_of_different_moments_are_not_compared(
    events: tuple[GpuReadings | tuple[float, FrameworkReading], ...],
) -> None:
    """The difference would be meaningless."""
    assert watch(*events).split_process_bytes is None


def test_a_process_that_has_written_its_last_report_does_not_change() -> None:
    """The last reading can be compared with it at once."""
    account = FrameworkAccount()
    account.add_gpu(gpu())
    account.take(FrameworkNote(1.0, PID, True, (reading(600, 1000),)))
    account.take_gpus(driver(1.5, 1400, used=None))
    (memory,) = account.list_memory()

    assert (memory.split_process_bytes, memory.split_held_bytes) == (1400 * MB, 1000 * MB)
    assert (memory.split_others_bytes, memory.split_free_bytes) == (None, None)


@pytest.mark.parametrize("name", ["0", ""], ids=["named", "nameless"])
def test_a_last_report_before_its_device_was_found_counts(name: str) -> None:
    """A job may be over before the driver has listed its devices."""
    account = FrameworkAccount()
    account.take(FrameworkNote(1.0, PID, True, (reading(600, 1000, uuid=name),)))
    account.add_gpu(gpu())
    account.take_gpus(driver(1.5, 1400))
    (memory,) = account.list_memory()

    assert (memory.uuid, memory.split_process_bytes) == ("GPU-0", 1400 * MB)


def test_the_split_is_that_of_the_peak() -> None:
    """Not of the last moment."""
    full = ((1.0, reading(900, 1000)), driver(1.5, 1400), (2.0, reading(900, 1000)))
    memory = watch(*full, (3.0, reading(1, 100)), driver(3.5, 500), (4.0, reading(1, 100)))

    assert (memory.split_process_bytes, memory.split_held_bytes) == (1400 * MB, 1000 * MB)
    assert (memory.in_use_bytes, memory.held_bytes, memory.peak_held_bytes) == (1 * MB, 100 * MB, 1000 * MB)


def test_a_peak_from_before_the_tracking_is_not_the_jobs() -> None:
    """Until the allocator's peak rises: then it is exact."""
    old = {"peak_in_use_bytes": 5000 * MB, "peak_held_bytes": 6000 * MB}
    earlier = {"earlier_peak_in_use_bytes": 5000 * MB, "earlier_peak_held_bytes": 6000 * MB}
    new = {"peak_in_use_bytes": 5500 * MB, "peak_held_bytes": 6500 * MB}
    before = watch((1.0, reading(600, 1000, **old, **earlier)), (2.0, reading(500, 900, **old, **earlier)))
    risen = watch((1.0, reading(600, 1000, **old, **earlier)), (2.0, reading(500, 900, **new, **earlier)))

    assert (before.peak_in_use_bytes, before.peak_held_bytes) == (600 * MB, 1000 * MB)
    assert before.peak_in_use_basis == "sampled"
    assert (risen.peak_in_use_bytes, risen.peak_held_bytes) == (5500 * MB, 6500 * MB)
    assert risen.peak_in_use_basis == "exact"


def test_a_peak_that_the_user_resets_is_kept() -> None:
    """What rose between the last reading and the reset is unknown."""
    high = {"peak_in_use_bytes": 5000 * MB, "peak_held_bytes": 6000 * MB}
    low = {"peak_in_use_bytes": 700 * MB, "peak_held_bytes": 1000 * MB}
    memory = watch((1.0, reading(600, 1000, **high)), (2.0, reading(600, 1000, **low)))

    assert (memory.peak_in_use_bytes, memory.peak_held_bytes) == (5000 * MB, 6000 * MB)
    assert memory.peak_in_use_basis == "sampled"


def test_a_framework_without_device_names_is_where_its_process_is() -> None:
    """If both use a single device."""
    nameless = reading(600, None, framework="JAX", uuid="")
    account = FrameworkAccount()
    account.take_gpus(driver(0.5, 1400))
    account.take(FrameworkNote(1.0, PID, False, (nameless,)))
    account.take_gpus(driver(1.5, 1400))
    account.take(FrameworkNote(2.0, PID, False, (nameless,)))
    account.take(FrameworkNote(2.0, 7, False, (nameless, nameless._replace(device="1"))))
    known, *unknown = account.list_memory()

    assert (known.uuid, known.split_process_bytes, known.peak_held_bytes) == ("GPU-0", 1400 * MB, None)
    assert known.split_free_bytes is None
    assert [memory.uuid for memory in unknown] == ["", ""]


def test_a_device_that_was_not_read_is_unknown() -> None:
    """Only the memory of the process is known."""
    account = FrameworkAccount()
    account.add_gpu(gpu())
    account.take(FrameworkNote(1.0, PID, True, (reading(600, 1000),)))
    account.take_gpus(driver(1.5, 1400)._replace(devices=()))
    account.take_gpus(
        GpuReadings(2.0, (), (GpuProcessReading("GPU-0", 7, 9000 * MB),))
    )  # another process of the job
    (memory,) = account.list_memory()

    assert (memory.split_process_bytes, memory.split_others_bytes) == (1400 * MB, None)


def test_only_what_has_changed_is_written_again() -> None:
    """The last line counts."""
    account = FrameworkAccount()
    account.take(FrameworkNote(1.0, PID, False, (reading(600, 1000),)))

    assert len(account.take_changed()) == 1
    assert account.take_changed() == []
    account.take(FrameworkNote(2.0, PID, False, (reading(600, 1000),)))
    assert [memory.at_seconds for memory in account.take_changed()] == [2.0]


def test_the_fullest_moment_is_the_one_with_the_tensors() -> None:
    """They are freed, the cache stays: the driver's figure is the same for the rest of the run."""
    full, freed = reading(7500, 7500), reading(1070, 7500)
    memory = watch(
        (1.0, full),
        driver(1.5, 8000),
        (2.0, full),
        driver(2.5, 8000),
        (3.0, freed),
        driver(3.5, 8000),
        (4.0, freed),
    )
    at_once = watch((1.0, full), driver(1.5, 8000), (2.0, freed), driver(2.5, 8000), (3.0, freed))
    late = watch((1.0, full), (2.0, freed), driver(1.5, 8000), (3.0, freed))

    for known in (memory, at_once, late):
        assert (known.split_in_use_bytes, known.split_held_bytes) == (7500 * MB, 7500 * MB)
        assert known.split_process_bytes == 8000 * MB


def test_the_fullest_moment_without_a_driver_is_the_frameworks_own() -> None:
    """Tensors and cache at one moment, not the peak of each."""
    memory = watch((1.0, reading(500, 600)), (2.0, reading(7500, 7500)), (3.0, reading(1070, 7500)))
    without_cache = watch((1.0, reading(300, None)), (2.0, reading(200, None)))

    assert (memory.split_in_use_bytes, memory.split_held_bytes) == (7500 * MB, 7500 * MB)
    assert memory.split_process_bytes is None
    assert (without_cache.split_in_use_bytes, without_cache.split_held_bytes) == (300 * MB, None)

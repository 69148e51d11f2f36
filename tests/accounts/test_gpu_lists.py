"""Lists without processes that still hold memory."""

from __future__ import annotations

from gpu_tracker.accounts.gpu_lists import ListCheck
from gpu_tracker.core.model import GpuReading

MB = 1_000_000
OURS = 100, 101


def read(used: int | None, listed: int | None) -> GpuReading:
    """What a device has in use, and what the processes in its list hold."""
    return GpuReading(
        "GPU-0",
        used_bytes=None if used is None else used * MB,
        listed_bytes=None if listed is None else listed * MB,
    )


def check_after(known: dict[int, int | None], first: GpuReading, *later: GpuReading) -> list[bool]:
    """A list with these processes of the job, and others without any; both live on."""
    check = ListCheck()
    assert not check.is_lost(first, {pid: size and size * MB for pid, size in known.items()}, OURS)
    return [check.is_lost(reading, {}, OURS) for reading in later]


def test_memory_that_stays_in_use_without_its_process_is_still_held() -> None:
    """Also while it grows, until it is given back."""
    later = read(1300, 0), read(6300, 0), read(300, 0), read(1300, 0)

    assert check_after({100: 1000}, read(1300, 1000), *later) == [True, True, False, False]


def test_one_of_several_processes_may_be_missing() -> None:
    """The other one is still listed."""
    check = ListCheck()

    assert not check.is_lost(read(3000, 3000), {100: 1000 * MB, 101: 2000 * MB}, OURS)
    assert check.is_lost(read(3000, 1000), {100: 1000 * MB}, OURS)
    assert not check.is_lost(read(3000, 3000), {100: 1000 * MB, 101: 2000 * MB}, OURS)


def test_a_process_that_has_ended_is_not_missing() -> None:
    """Its memory may be given back a moment later."""
    check = ListCheck()

    assert not check.is_lost(read(1000, 1000), {100: 1000 * MB}, OURS)
    assert not check.is_lost(read(1000, 0), {}, ())


def test_what_others_hold_unlisted_is_not_the_jobs() -> None:
    """Processes of another container may come while the job is listed."""
    check = ListCheck()

    assert not check.is_lost(read(1000, 1000), {100: 1000 * MB}, OURS)
    assert not check.is_lost(read(9000, 1000), {100: 1000 * MB}, OURS)
    assert not check.is_lost(read(8000, 0), {}, OURS)


def test_what_is_not_known_is_no_evidence() -> None:
    """A list that failed, sizes that are not told, or too little to be told from noise."""
    first = read(1000, 1000)
    unknown = read(None, 0), read(1000, None), read(1000, 0)._replace(lists_processes=False)

    assert check_after({100: 1000}, first, *unknown, read(1000, 0)) == [False, False, False, True]
    assert check_after({100: None}, first, read(1000, 0)) == [False]
    assert check_after({100: 20}, read(1000, 20), read(1000, 0)) == [False]

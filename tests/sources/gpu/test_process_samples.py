"""The driver's samples of processes, whatever its buffer contains."""

from __future__ import annotations

from hypothesis import given, strategies as st

from gpu_tracker.sources.gpu.process_samples import (
    WINDOW_US,
    SamplePeriod,
    SampleWindow,
    find_share,
    limit_percents,
)

SAMPLES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 100), st.integers(0, 300)))


@given(SAMPLES, st.integers(0, 100))
def test_percents_are_percents(samples: list[tuple[int, int, int]], start: int) -> None:
    """Old samples do not count, and invalid ones are not known."""
    window = SampleWindow(start)
    new = window.take(samples, now_us=100)
    named = {pid for pid, at_us, _ in samples if at_us > start}

    assert window.newest_us == max([start, *(at_us for _, at_us, _ in samples)])
    assert {pid for pids in new.values() for pid in pids} == named
    assert all(window.find_percents([pid])[pid] == 0 for pid in range(6) if pid not in named)
    assert all((percent := window.find_percents([pid])[pid]) is None or 0 <= percent <= 100 for pid in named)


def test_a_process_shares_the_window_with_others() -> None:
    """Each sample names one; without any sample all are idle."""
    window = SampleWindow(0)
    window.take([(7, 1000, 60), (8, 2000, 80), (7, 3000, 20), (9, 4000, 255)], now_us=5000)

    assert [window.find_percents([pid])[pid] for pid in (7, 8, 9, 10)] == [20.0, 20.0, None, 0.0]
    assert window.are_complete  # one process was returned twice
    assert window.names_any({9, 10})
    assert not window.names_any({10})
    assert window.take([(7, 4000, 99)], now_us=5000 + WINDOW_US) == {}
    assert window.find_percents([7])[7] == 0.0


def test_a_driver_that_returns_the_newest_only_is_not_taken_for_complete() -> None:
    """One sample of each process proves nothing."""
    window = SampleWindow(0)
    window.take([(7, 1000, 60), (8, 2000, 80)], now_us=5000)

    assert not window.are_complete


def test_a_driver_may_name_only_one_of_those_that_ran() -> None:
    """Which is known once it has named several processes, and never two at one instant, however roughly that is dated."""
    one, idle, both, roughly = (SampleWindow(0) for _ in range(4))
    one.take([(7, 100_000, 80), (8, 300_000, 80)], now_us=500_000)
    idle.take([(7, 100_000, 80), (8, 100_000, 0), (9, 300_000, 255)], now_us=500_000)
    both.take([(7, 100_000, 30), (8, 100_000, 50)], now_us=500_000)
    roughly.take([(7, 100_000, 30), (8, 110_000, 50)], now_us=500_000)

    assert [window.names_one for window in (one, idle, both, roughly)] == [True, False, False, False]
    one.take([(7, 600_000, 30), (8, 600_000, 50)], now_us=700_000)
    assert not one.names_one


def test_the_share_of_our_processes_at_one_instant() -> None:
    """Zero if others ran, unknown if ours are invalid or it may be ours, at most everything."""
    assert find_share([(50, False)]) == 0.0
    assert find_share([(60, True), (70, True), (50, False)]) == 100.0
    assert find_share([(None, True), (40, True), (50, False)]) == 40.0
    assert find_share([(40, True), (50, None)]) is None
    assert find_share([(40, True), (0, None), (None, None)]) == 40.0
    assert find_share([(None, True)]) is None
    assert find_share([(50, None), (20, False)]) is None
    assert find_share([(0, None), (20, False)]) == 0.0


def test_a_sample_of_the_future_is_invalid() -> None:
    """It must not hide those that follow."""
    window = SampleWindow(0)

    assert window.take([(7, 2**64 - 1, 60), (7, 4000, 50)], now_us=5000) == {4000: {7: 50}}
    assert window.take([(7, 6000, 40)], now_us=7000) == {6000: {7: 40}}


def test_a_driver_is_read_before_its_next_sample() -> None:
    """As often as it has sampled lately, whatever the order, but not all the time."""
    period = SamplePeriod()
    assert period.pause_seconds == float("inf")
    period.take([3_000_000, 1_000_000, 2_000_000])
    slow = period.pause_seconds
    period.take(range(0, 4_000_000, 100_000))
    fast = period.pause_seconds
    period.take([])
    period.take(range(0, 4_000_000, 1000))

    assert (slow, fast, period.pause_seconds) == (0.6, 0.06, 0.05)


def test_samples_of_several_answers_follow_each_other() -> None:
    """Also if each has one only."""
    period = SamplePeriod()
    for number in range(4):
        period.take([number * 200_000])

    assert period.pause_seconds == 0.12


@given(
    st.dictionaries(st.integers(1, 5), st.none() | st.floats(0, 100)),
    st.none() | st.floats(0, 100),
)
def test_processes_use_no_more_than_the_device(percents: dict[int, float | None], busy: float | None) -> None:
    """If that is known; what is not known stays so, and who used more keeps more."""
    limited = limit_percents(percents, busy)
    known = [percent for percent in limited.values() if percent is not None]

    assert {pid for pid in percents if percents[pid] is None} == {
        pid for pid in limited if limited[pid] is None
    }
    assert busy is None or sum(known) <= busy * 1.000001 + 1e-9
    assert sorted(percents, key=lambda pid: percents[pid] or 0.0) == sorted(
        limited, key=lambda pid: (limited[pid] or 0.0, percents[pid] or 0.0)
    ) or len(set(percents.values())) < len(percents)
    if busy is None:
        assert limited == percents

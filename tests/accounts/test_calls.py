"""Single calls of all processes, and what of them is not written yet."""

from __future__ import annotations

import pytest

from gpu_tracker.accounts import calls as module
from gpu_tracker.accounts.calls import CallAccount
from gpu_tracker.core.calls import MOST_LARGEST, MOST_SAMPLED
from gpu_tracker.core.model import EXACT, SAMPLED, Call

PATH = ("a",)


def call(number: int, pid: int = 1, path: tuple[str, ...] = PATH, priority: int = 5) -> Call:
    """An ended call."""
    return Call(path, pid, number, float(number), number + 1.0, priority=priority)


def unended(start: float, pid: int = 1) -> Call:
    """A call that was not left."""
    return Call(PATH, pid, 0, start, None)


def write(account: CallAccount) -> list[tuple[tuple[str, ...], list[Call]]]:
    """What would be written."""
    changed = account.list_changed()
    for path, _ in changed:
        account.note_written(path)
    return changed


def test_each_call_is_written_once() -> None:
    """However often it is read."""
    account = CallAccount()
    account.take([call(1), call(1, path=("b",))])
    first = write(account)
    account.take([call(1), call(2), call(1, pid=2)])

    assert first == [(PATH, [call(1)]), (("b",), [call(1, path=("b",))])]
    assert write(account) == [(PATH, [call(1, pid=2), call(2)])]
    assert write(account) == []
    assert account.list_calls() == [call(1), call(1, pid=2), call(2), call(1, path=("b",))]


def test_a_call_that_is_no_longer_kept_needs_no_line() -> None:
    """Only new ones do; the reader forgets it by itself."""
    account = CallAccount()
    account.take(call(number, priority=100 + number) for number in range(1, MOST_SAMPLED + 1))
    write(account)
    account.take(call(number, priority=0) for number in range(500, 600))
    ((_, new),) = write(account)

    assert [one.number for one in new] == list(range(500, 600))


def test_open_calls_are_those_of_now() -> None:
    """When one has ended, the recording is told so; one whose process was killed stays."""
    account = CallAccount()
    account.take_open([unended(1.0), unended(2.0)])
    account.take_left_open([unended(0.5, pid=9)])
    both = write(account)
    again = write(account)
    account.take_open([unended(2.0)])
    one = write(account)

    assert both == [(PATH, [unended(0.5, pid=9), unended(1.0), unended(2.0)])]
    assert again == []
    assert one == [(PATH, [unended(0.5, pid=9), unended(2.0)])]


def test_the_number_of_regions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known ones go on."""
    monkeypatch.setattr(module, "_MOST_PATHS", 1)
    account = CallAccount()
    account.take([call(1), call(1, path=("b",))])
    account.take([call(2)])

    assert account.list_calls() == [call(1), call(2)]


def test_the_largest_reading_is_in_the_row_of_its_call() -> None:
    """Unless the process knows more, or exactly; and the row is kept among many."""
    account = CallAccount()
    account.take_peak(PATH, 1, 3.0, 500)
    account.take_peak(PATH, 1, 4.0, 600)
    account.take_peak(PATH, 1, 5.0, 700)
    account.take_peak(PATH, 1, 2.0, 1001)
    exact = call(4)._replace(peak_ram_bytes=590, peak_ram_basis=EXACT)
    larger = call(5)._replace(peak_ram_bytes=800)
    rounded = call(2)._replace(peak_ram_bytes=1000, peak_ram_basis=EXACT)
    others = [call(number, priority=0) for number in range(6, 6 + 2 * MOST_SAMPLED)]
    account.take([rounded, call(3, priority=9), exact, larger, *others])

    known = {one.number: one for one in account.list_calls()}
    assert (known[3].peak_ram_bytes, known[3].peak_ram_basis) == (500, SAMPLED)
    assert (known[4], known[5]) == (exact, larger)
    assert known[2] == rounded._replace(peak_ram_bytes=1001)


def test_few_readings_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest, of a bounded number of regions."""
    monkeypatch.setattr(module, "_MOST_PATHS", 1)
    account = CallAccount()
    for number in range(MOST_LARGEST + 1):
        account.take_peak(PATH, 1, float(number), 100 + number)
    account.take_peak(("b",), 1, 1.0, 100)
    account.take([call(0), call(1)])

    assert [one.peak_ram_bytes for one in account.list_calls()] == [None, 101]

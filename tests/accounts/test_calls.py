"""Single calls of all processes, and what of them is not written yet."""

from __future__ import annotations

import pytest

from gpu_tracker.accounts import calls as module
from gpu_tracker.accounts.calls import CallAccount
from gpu_tracker.core.calls import MOST_SAMPLED
from gpu_tracker.core.model import Call

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

"""Which trackers a process finds."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpu_tracker.instrument import mailbox as module
from gpu_tracker.instrument.mailbox import (
    choose_mailbox,
    find_namespace,
    is_alive,
    is_private,
    list_places,
    make_mailbox,
    remove_mailbox,
)
from gpu_tracker.instrument.search import Search


@pytest.fixture
def parents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two directories instead of those of the system."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.setattr(module, "_PARENTS", (str(first), str(second)))
    monkeypatch.delenv("TMPDIR", raising=False)
    return first, second


@pytest.fixture
def begin(parents: tuple[Path, Path]) -> Iterator[Callable[..., str]]:
    """Makes a mailbox that is locked until the end of the test."""
    locks = []

    def make(pid: int | None = None, namespace: int | None = None) -> str:
        """As the tracker of that process would."""
        path = choose_mailbox({})
        assert path is not None
        place, name = os.path.split(path)
        _, _, word = name.split("-")
        path = f"{place}/{pid or os.getpid()}-{namespace or find_namespace()}-{word}"
        lock = make_mailbox(path)
        assert lock is not None
        locks.append(lock)
        return path

    yield make
    for lock in locks:
        os.close(lock)


def test_trackers_around_are_found_the_innermost_first(begin: Callable[..., str]) -> None:
    """That of the nearest ancestor, and of several in one process the newest."""
    search = Search()
    outer, older, newer = begin(os.getppid()), begin(), begin()

    assert search.has_changed()
    assert search.find() == [newer, older, outer]


def test_other_trackers_are_not_found(begin: Callable[..., str]) -> None:
    """Of another job, of another pid namespace, one that has ended, and one that is just beginning."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        begin(other.pid)
        begin(None, 1)
        ended = choose_mailbox({})
        assert ended is not None
        lock = make_mailbox(ended)
        assert lock is not None
        os.close(lock)
        os.mkdir(f"{ended}0.new", 0o700)
        os.mkdir(f"{ended}-and-more")
        found = Search().find()
        other.communicate(b"\n")

    assert found == []
    assert not is_alive(ended)


def test_a_search_knows_whether_anything_has_changed(
    begin: Callable[..., str], parents: tuple[Path, Path]
) -> None:
    """Once the last change is so old that another one would have another time."""
    search = Search()
    before = search.has_changed()
    begin()
    (place,) = parents[0].iterdir()
    recent = [search.has_changed(), search.has_changed()]
    os.utime(place, (1, 1))
    settled = [search.has_changed(), search.has_changed()]
    search.forget()

    assert before is False
    assert recent == [True, True]
    assert settled == [True, False]
    assert search.has_changed()


@pytest.mark.parametrize("kind", ["open to others", "a link", "a file"])
def test_a_place_that_is_not_private_is_not_used(
    parents: tuple[Path, Path], kind: str, tmp_path: Path
) -> None:
    """Another user may have taken its name: then the next directory serves, for trackers and for workers."""
    taken, free = (Path(place) for place in list_places({}))
    if kind == "open to others":
        taken.mkdir()
        taken.chmod(0o755)
    elif kind == "a link":
        taken.symlink_to(tmp_path)
    else:
        taken.touch()
    path = choose_mailbox({})
    assert path is not None
    lock = make_mailbox(path)
    assert lock is not None
    found = Search().find()
    os.close(lock)

    assert os.path.dirname(path) == str(free)
    assert found == [path]
    assert is_private(str(free))
    assert stat.S_IMODE(free.stat().st_mode) == 0o700


def test_a_mailbox_is_not_made_in_a_place_that_was_taken_meanwhile(parents: tuple[Path, Path]) -> None:
    """Nothing is left there."""
    path = choose_mailbox({})
    assert path is not None
    place = Path(path).parent
    place.mkdir()
    place.chmod(0o755)

    assert make_mailbox(path) is None
    assert list(place.iterdir()) == []


def test_trackers_that_begin_and_end_at_once_all_have_a_mailbox(parents: tuple[Path, Path]) -> None:
    """The last one removes the place, just when the next one needs it."""

    def come_and_go(_: int) -> bool:
        path = choose_mailbox({})
        lock = None if path is None else make_mailbox(path)
        if path is None or lock is None:
            return False
        remove_mailbox(path)
        os.close(lock)
        return True

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(come_and_go, range(2000)))

    assert all(outcomes)
    assert list(parents[0].iterdir()) == []

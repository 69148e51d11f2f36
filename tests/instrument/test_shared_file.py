"""What one process writes, another reads."""

from __future__ import annotations

import os
import posix
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.instrument.mailbox import (
    choose_mailbox,
    find_namespace,
    find_writer,
    has_word,
    make_mailbox,
    name_file,
    remove_leftovers,
    remove_mailbox,
)
from gpu_tracker.instrument.rises import RAM_FRESH_NS
from gpu_tracker.instrument.shared_file import (
    CPU,
    FILE_BYTES,
    MOST_REGIONS,
    NOTHING_FOLLOWS_NS,
    NUMBERS,
    OPEN,
    OWN_CPU,
    RAM_READ,
    SHARED_CPU,
    SWITCHES,
    Numbers,
    SharedFileReader,
    SharedFileWriter,
    count_open,
    find_numbers_offset,
)
from gpu_tracker.sampler.mailbox_reader import is_over


@pytest.fixture
def mailbox() -> Iterator[str]:
    """A mailbox."""
    path = choose_mailbox(os.environ)
    assert path is not None
    lock = make_mailbox(path)
    assert lock is not None
    yield path
    os.close(lock)
    remove_mailbox(path)
    assert not os.path.exists(path)


def close(writer: SharedFileWriter) -> None:
    """Unmap the file."""
    writer.words.release()
    writer.memory.close()


def test_regions_and_their_counters_come_across(mailbox: str) -> None:
    """Paths, figures, and which are open."""
    writer = SharedFileWriter(mailbox)
    outer = writer.add_region(0, "epoch")
    inner = writer.add_region(outer, "forward é")
    finished = (1, 2, 3, 4, 5.5, 6, 7, 8, -1, 10, 11, 12, 13, 14, 19)
    NUMBERS.pack_into(writer.memory, find_numbers_offset(inner), *finished)
    for column, value in ((CPU, 15), (OWN_CPU, 16), (SHARED_CPU, 17), (SWITCHES, 18)):
        writer.words[column + inner] = value
    writer.words[OPEN + inner] = count_open(2_000_000) + count_open(5_000_000)
    writer.words[OPEN + outer] = count_open(1_000_000)
    reader = SharedFileReader(writer.path)
    read = reader.read_all(writer.began_ns + 10_000_000)

    assert reader.pid == os.getpid()
    assert reader.find_path(inner) == ("epoch", "forward é")
    assert read[inner] == Numbers(*finished, 15, 16, 17, 18, 2, 13_000_000, 1)
    assert (read[outer].open_calls, read[outer].open_wall_ns) == (1, 9_000_000)
    assert reader.read_all(writer.began_ns)[inner].open_wall_ns == 0
    assert reader.read_active() == {inner: 2, outer: 1}
    writer.words[OPEN + inner] = writer.words[OPEN + outer] = 0
    assert list(reader.read_all(writer.began_ns, since_ns=7)) == [inner]
    assert list(reader.read_all(writer.began_ns, since_ns=8)) == []
    reader.close()
    close(writer)


def test_calls_since_memory_was_read_last_are_known(mailbox: str) -> None:
    """Those that have ended since, and open ones; a moment is too short for a notable amount of memory."""
    writer = SharedFileWriter(mailbox)
    ended, still_open = (writer.add_region(0, name) for name in ("ended", "open"))
    NUMBERS.pack_into(writer.memory, find_numbers_offset(ended), *[0] * 6, 5 * 10**9, *[0] * 8)
    writer.words[OPEN + still_open] = count_open(0)
    reader = SharedFileReader(writer.path)
    unread = {}
    for read_ns in (4 * 10**9, 5 * 10**9 - RAM_FRESH_NS, 9 * 10**9, NOTHING_FOLLOWS_NS):
        writer.words[RAM_READ] = read_ns
        numbers = reader.read_all(10 * 10**9)
        unread[read_ns] = numbers[ended].is_ram_unread, numbers[still_open].is_ram_unread

    assert list(unread.values()) == [(1, 1), (0, 1), (0, 1), (0, 0)]
    reader.close()
    close(writer)


def test_a_region_that_a_parent_process_is_in_is_read_too(mailbox: str) -> None:
    """It has no open call of its own; one that was left before the region inside is not read."""
    writer = SharedFileWriter(mailbox)
    adopted = writer.add_region(0, "epoch")
    inner = writer.add_region(adopted, "load")
    writer.words[OPEN + inner] = count_open(0)
    reader = SharedFileReader(writer.path)

    assert reader.read_active() == {inner: 1, adopted: 0}
    NUMBERS.pack_into(writer.memory, find_numbers_offset(adopted), *[1] * 15)
    assert reader.read_active() == {inner: 1}
    reader.close()
    close(writer)


def test_the_largest_high_water_mark_stays(mailbox: str) -> None:
    """Whatever the process resets afterwards."""
    writer = SharedFileWriter(mailbox)
    reader = SharedFileReader(writer.path)
    events = [reader.read_high_water()]
    for size in (5, 2**40, 7):
        writer.keep_high_water(size)
        events.append(reader.read_high_water())

    assert events == [0, 5, 2**40, 2**40]
    reader.close()
    close(writer)


def test_too_many_regions_are_refused(mailbox: str) -> None:
    """A name that changes with every call is not a region. Each counts once."""
    writer = SharedFileWriter(mailbox)
    reader = SharedFileReader(writer.path)
    before = reader.read_refused()
    numbers = [writer.add_region(0, f"step {step}") for step in range(MOST_REGIONS + 5)]
    again = [writer.add_region(parent, f"step {MOST_REGIONS}") for parent in (0, 1)]

    assert numbers[:3] == [1, 2, 3]
    assert numbers[MOST_REGIONS:] == [0] * 5
    assert again == [0, 0]
    assert (before, reader.read_refused()) == (0, 6)
    reader.close()
    close(writer)


def test_regions_too_deep_inside_others_are_refused(mailbox: str) -> None:
    """And counted; beside them there is room."""
    writer = SharedFileWriter(mailbox)
    reader = SharedFileReader(writer.path)
    around = 0
    for depth in range(100):
        around = writer.add_region(around, f"{depth}")
        assert around == depth + 1

    assert writer.add_region(around, "too deep") == 0
    assert writer.add_region(around - 1, "beside") == 101
    assert reader.read_refused() == 1
    reader.close()
    close(writer)


def test_regions_may_be_added_while_they_are_read(mailbox: str) -> None:
    """By another process, which waits for nobody."""
    for _ in range(10):
        writer = SharedFileWriter(mailbox)
        pid = os.fork()
        if pid == 0:
            for number in range(MOST_REGIONS):
                writer.add_region(0, str(number))
            os._exit(0)
        reader = SharedFileReader(writer.path)
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            reader.read_all(0)
        assert len(reader.read_all(0)) == MOST_REGIONS
        reader.close()
        close(writer)


def test_long_names_stay_different(mailbox: str) -> None:
    """Each is its beginning and a digest, the same in every process; a cut character is left out."""
    names = ["x" * 118, "x" * 119, "x" * 119 + "y", "é" * 60, "é" * 61]
    found = []
    for _ in range(2):
        writer = SharedFileWriter(mailbox)
        numbers = [writer.add_region(0, name) for name in names]
        reader = SharedFileReader(writer.path)
        found.append([reader.find_path(number)[0] for number in numbers])
        assert reader.long_names == set(found[0][1:])
        reader.close()
        close(writer)

    assert found[0] == found[1]
    assert found[0][0] == names[0]
    assert len(set(found[0])) == len(names)
    for name, shown in zip(names[1:], found[0][1:], strict=True):
        start, _, digest = shown.partition("…")
        assert name.startswith(start)
        assert len(digest) == 16
        assert 117 <= len(shown.encode()) <= 118


def test_a_foreign_file_is_not_a_shared_file(tmp_path: Path) -> None:
    """Of another size, with other content, or a link."""
    for name, content in {"short": b"x", "wrong": bytes(FILE_BYTES)}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError):
            SharedFileReader(str(tmp_path / name))
    (tmp_path / "link").symlink_to("wrong")
    with pytest.raises(OSError):
        SharedFileReader(str(tmp_path / "link"))


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 2000)), max_size=20))
def test_damaged_files_do_not_hang_the_reader(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, int]]
) -> None:
    """Circular parents, invalid numbers."""
    writer = SharedFileWriter(str(tmp_path_factory.mktemp("mailbox")))
    for parent, active in damage:
        writer.add_region(parent, "x")
        writer.words[OPEN + 1 + active % MOST_REGIONS] = count_open(active)
    reader = SharedFileReader(writer.path)
    for number in reader.read_all(0):
        assert len(reader.find_path(number)) <= MOST_REGIONS
    assert set(reader.read_active()) <= set(range(1, MOST_REGIONS + 1))
    reader.close()
    close(writer)


def test_a_mailbox_is_private(mailbox: str, tmp_path: Path) -> None:
    """Foreign files in it are not deleted."""
    assert os.stat(mailbox).st_mode & 0o777 == 0o700
    (tmp_path / "mine.txt").write_text("keep")
    remove_mailbox(str(tmp_path))
    assert (tmp_path / "mine.txt").exists()


def test_a_mailbox_shows_when_something_was_written(mailbox: str) -> None:
    """From the first file on."""
    assert not has_word(mailbox)
    close(SharedFileWriter(mailbox))
    assert has_word(mailbox)
    assert not has_word(f"{mailbox}-gone")


def test_a_mailbox_that_cannot_be_created_is_none(tmp_path: Path) -> None:
    """Regions are then unknown, and nothing else is affected."""
    assert make_mailbox(str(tmp_path / "not there" / "mailbox")) is None


def test_mailboxes_of_killed_samplers_are_removed(mailbox: str) -> None:
    """By the next sampler; those in use, of other users or of other kinds stay."""
    abandoned = choose_mailbox(os.environ)
    assert abandoned is not None
    lock = make_mailbox(abandoned)
    assert lock is not None
    SharedFileWriter(abandoned)
    remove_leftovers(mailbox)
    assert os.path.exists(abandoned)  # its sampler still runs
    os.close(lock)
    link = f"{abandoned}-link"
    os.symlink(abandoned, link)
    remove_leftovers(mailbox)

    assert not os.path.exists(abandoned)
    assert os.path.exists(mailbox)
    assert os.path.islink(link)
    os.unlink(link)


def test_the_name_of_a_file_gives_its_process(tmp_path: Path) -> None:
    """And whether that has ended, if its pid is of this namespace."""
    mine = os.path.basename(name_file(str(tmp_path), ".regions"))
    with subprocess.Popen(["true"]) as child:
        pid = child.pid
    namespace = find_namespace()

    assert find_writer(mine) == (os.getpid(), namespace)
    assert not is_over(mine, namespace)
    assert is_over(f"{pid}-{namespace}-ab.regions", namespace)
    assert not is_over(f"{pid}-{namespace + 1}-ab.regions", namespace)
    assert not is_over(f"1-{namespace}-ab.regions", namespace)
    with pytest.raises(ValueError):
        find_writer("notes.regions")


def test_without_room_there_is_no_file_instead_of_a_fault_later(
    mailbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of a mapped file that cannot be had ends the process with SIGBUS, so room is reserved first."""

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(posix, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="No space left"):
        SharedFileWriter(mailbox)
    assert os.listdir(mailbox) == []


def test_the_room_is_reserved(mailbox: str) -> None:
    """All of it."""
    status = os.stat(SharedFileWriter(mailbox).path)

    assert status.st_blocks * 512 >= status.st_size == FILE_BYTES

"""Single calls that one process keeps and another reads."""

from __future__ import annotations

import os
import posix
from pathlib import Path
from random import Random

import pytest

from gpu_tracker.core.calls import MOST_LARGEST, MOST_LONGEST, MOST_SAMPLED, NO_PRIORITY
from gpu_tracker.instrument.call_file import (
    MOST_OPEN,
    MOST_REGIONS_WITH_CALLS,
    CallFileReader,
    CallFileWriter,
    KeptCall,
    RegionCalls,
)


def begin(tmp_path: Path, number: int = 1) -> tuple[CallFileWriter, RegionCalls, CallFileReader]:
    """The file of a process with one region."""
    path = str(tmp_path / "1-2-3.regions")
    writer = CallFileWriter(path)
    region = writer.add_region(number)
    assert region is not None
    return writer, region, CallFileReader(path)


def end(region: RegionCalls, number: int, start_ns: int, end_ns: int, peak_ram_bytes: int = -1) -> None:
    """Keep a call if it is worth it, as the regions of a process do."""
    if number >= region.due or end_ns - start_ns > region.floor_ns or peak_ram_bytes > region.floor_bytes:
        region.keep(number, start_ns, end_ns, peak_ram_bytes, peak_ram_bytes == 2**40)


def call_often(region: RegionCalls, numbers: range) -> None:
    """Calls that differ in nothing but their number."""
    for number in numbers:
        end(region, number, number, number + 10)


def read(reader: CallFileReader) -> list[KeptCall]:
    """The kept calls of one region, each once, by number."""
    ((_, calls),) = reader.take_changed()
    return [call for _, call in sorted({call.number: call for call in calls}.items())]


def test_few_calls_all_come_across(tmp_path: Path) -> None:
    """With their times, memory and thread, once for each change."""
    _, region, reader = begin(tmp_path, number=7)
    before = list(reader.take_changed())
    end(region, 1, 5, 9, 2**40)
    end(region, 2, 10, 30)
    ((number, calls),) = reader.take_changed()
    first, second = sorted(set(calls))

    assert (before, number) == ([], 7)
    assert first[:5] == (1, 5, 9, 2**40, True)
    assert second[:5] == (2, 10, 30, -1, False)
    assert first.thread == second.thread == os.getpid()
    assert first.priority < NO_PRIORITY > second.priority
    assert list(reader.take_changed()) == []


def test_of_many_calls_the_longest_the_largest_and_a_sample_are_kept(tmp_path: Path) -> None:
    """The room does not grow."""
    _, region, reader = begin(tmp_path)
    call_often(region, range(1, 20_000))
    for number in range(MOST_LONGEST):
        end(region, 20_000 + number, 30_000, 31_000 + number)
    for number in range(MOST_LARGEST):
        end(region, 20_100 + number, 40_000, 40_001, 500 + number)
    call_often(region, range(30_000, 50_000))
    calls = read(reader)

    assert sum(call.end_ns - call.start_ns >= 1000 for call in calls) == MOST_LONGEST
    assert sorted(call.peak_ram_bytes for call in calls)[-MOST_LARGEST:] == list(
        range(500, 500 + MOST_LARGEST)
    )
    assert sum(call.priority < NO_PRIORITY for call in calls) >= MOST_SAMPLED
    assert len(calls) <= MOST_SAMPLED + MOST_LONGEST + MOST_LARGEST


def test_the_sample_is_uniform(tmp_path: Path) -> None:
    """Every tenth of the calls has its share."""
    path = str(tmp_path / "1-2-3.regions")
    writer = CallFileWriter(path)
    writer._random = Random(7).random
    reader = CallFileReader(path)
    n_calls, shares = 3000, [0] * 10
    for number in range(1, 21):
        region = writer.add_region(number)
        assert region is not None
        call_often(region, range(1, n_calls + 1))
    for _, calls in reader.take_changed():
        for call in sorted(set(calls), key=lambda call: call.priority)[:MOST_SAMPLED]:
            shares[(call.number - 1) * 10 // n_calls] += 1

    # 256 are expected in each, with a standard deviation of 15.
    assert all(256 - 60 < share < 256 + 60 for share in shares), shares


def test_open_calls_have_their_start(tmp_path: Path) -> None:
    """As many as there is room for."""
    _, region, reader = begin(tmp_path)
    for number, place in enumerate((0, *reversed(region.free))):
        region.open[place] = 100 + number
    everything = reader.read_open(1)
    for place in range(1, MOST_OPEN):
        region.open[place] = 0

    assert sorted(everything) == list(range(100, 100 + MOST_OPEN))
    assert reader.read_open(1) == [100]
    assert reader.read_open(MOST_REGIONS_WITH_CALLS + 1) == []


def test_an_entry_read_while_it_is_written_is_left_out(tmp_path: Path) -> None:
    """And so is whatever a process of the job has overwritten."""
    writer, region, reader = begin(tmp_path)
    call_often(region, range(1, 4))
    writer._memory[8192 + 48 + 8] ^= 1
    ((_, calls),) = reader.take_changed()

    assert sorted(call.number for call in calls) == [1, 1, 2, 3, 3]


def test_room_is_taken_region_by_region(tmp_path: Path) -> None:
    """A page each, up to a limit, and none if the tracker has ended."""
    writer, _, reader = begin(tmp_path)
    path = Path(reader.path)
    small = path.stat().st_blocks * 512
    writer.add_region(2)

    assert small == 2 * 8192
    assert path.stat().st_blocks * 512 == 3 * 8192
    assert writer.add_region(MOST_REGIONS_WITH_CALLS) is not None
    assert writer.add_region(MOST_REGIONS_WITH_CALLS + 1) is None
    path.unlink()
    assert writer.add_region(3) is None
    assert list(reader.take_changed()) == []


def test_without_room_there_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of a fault later."""

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(posix, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="No space left"):
        CallFileWriter(str(tmp_path / "1-2-3.regions"))
    assert list(tmp_path.iterdir()) == []

"""A recording that is read while it is written ends up as one that is read at once."""

from __future__ import annotations

import json
import os
import time
from array import array
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gpu_tracker.core.errors import RecordingError
from gpu_tracker.core.model import RecordingData
from gpu_tracker.recording import follow
from gpu_tracker.recording.follow import Content, Follower, News, Source, follow_path, read_unnamed
from gpu_tracker.recording.growing import GrowingRecording
from gpu_tracker.recording.lock import hold
from gpu_tracker.recording.reader import load_bytes
from gpu_tracker.recording.sampled import read_columns
from gpu_tracker.recording.schema import decode_sample

GOLDEN = Path(__file__).parent / "golden"
CONTENTS = {name: (GOLDEN / f"v1-{name}.jsonl").read_bytes() for name in ("full", "plain")}


class Growing:
    """A file of which more and more is there."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = content
        self.file = (1, 1)
        self.modified_at = time.time()

    def read(self, offset: int) -> Content:
        """As the real sources do, a few bytes at a time."""
        part = self.content[offset : offset + 5000]
        return Content(self.file, len(self.content), self.modified_at, part)

    def source(self) -> Source:
        """To be followed."""
        return Source("the test", self.read)


def look_at_parts(parts: Iterable[bytes]) -> tuple[GrowingRecording, list[News]]:
    """Look after each part has come."""
    file = Growing()
    growing = GrowingRecording(file.source())
    news = []
    for part in parts:
        file.content += part
        news.append(growing.look())
        while growing.has_more:
            news.append(growing.look())
    return growing, news


def cut(content: bytes, places: Iterable[int]) -> list[bytes]:
    """The content in parts."""
    edges = [0, *sorted(places), len(content)]
    return [content[first:last] for first, last in pairwise(edges)]


def as_bytes(columns: Any) -> Any:
    """Columns as what can be compared: nan is not equal to itself."""
    if isinstance(columns, dict):
        return {key: as_bytes(value) for key, value in columns.items()}
    if isinstance(columns, tuple):
        return tuple(map(as_bytes, columns))
    return columns.tobytes() if isinstance(columns, array) else columns


def without_samples(recording: RecordingData) -> dict[str, Any]:
    """Everything else, with lists and lazy sequences as tuples."""
    fields = {**recording._asdict(), "samples": ()}
    lazy = (
        "regions",
        "metrics",
        "processes",
        "frameworks",
        "framework_readings",
        "calls",
        "peak_moments",
        "problems",
    )
    return {**fields, **{name: tuple(fields[name]) for name in lazy}}


@pytest.mark.parametrize("name", CONTENTS)
@given(data=st.data())
def test_it_does_not_matter_where_the_looks_fall(name: str, data: st.DataObject) -> None:
    """Looks in the middle of lines, of several lines or of none find the same as one look at the end."""
    content = CONTENTS[name]
    places = data.draw(st.lists(st.integers(0, len(content)), max_size=8))
    growing, news = look_at_parts(cut(content, places))
    whole = load_bytes(content)

    assert without_samples(growing.data) == without_samples(whole)
    assert as_bytes(growing.columns) == as_bytes(read_columns(whole))
    assert [one for some in news for one in some.samples] == list(whole.samples)
    assert [some.header for some in news if some.header] == [whole.header]
    assert growing.is_over


@pytest.mark.parametrize("name", CONTENTS)
def test_before_its_end_it_is_running(name: str) -> None:
    """It has what a file that was cut off there has, and does not call it cut off."""
    content = b"".join(CONTENTS[name].splitlines(keepends=True)[:-1])
    growing, _ = look_at_parts([content])
    expected = without_samples(load_bytes(content)._replace(is_running=True))

    assert without_samples(growing.data) == expected
    assert not growing.is_over


def test_a_line_torn_by_a_full_disk_is_counted_and_passed_over() -> None:
    """What is written when there is room again is read."""
    first, *lines = CONTENTS["plain"].splitlines(keepends=True)
    growing, _ = look_at_parts([first, b'{"sample":{"at":', b"\n" + lines[0], *lines[1:]])
    whole = load_bytes(CONTENTS["plain"])

    assert growing.last_sample == whole.samples[-1]
    assert growing.data.problems == ("1 lines of the recording are damaged and were left out.",)


def test_a_line_too_long_to_be_valid_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be the hole of a sparse file, as large as a disk."""
    monkeypatch.setattr("gpu_tracker.recording.follow.LONGEST_LINE_BYTES", 2000)
    first, *lines = CONTENTS["plain"].splitlines(keepends=True)
    growing, _ = look_at_parts([first, b"x" * 3000, b"y" * 3000, b"z\n", *lines])

    assert growing.last_sample == load_bytes(CONTENTS["plain"]).samples[-1]
    assert growing.data.problems


@pytest.mark.parametrize("content", [b"", CONTENTS["plain"][:50]])
def test_without_a_header_there_is_nothing_to_tell_yet(content: bytes) -> None:
    """The job has just been started."""
    growing, _ = look_at_parts([content])

    assert not growing.has_begun
    assert not growing.is_over


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "is empty"), (CONTENTS["plain"][:50], "has no complete header")]
)
def test_a_file_that_nobody_will_begin_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    """Unless its writer may still be starting; as long as somebody holds it, he will begin it."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    assert Follower(follow_path(str(path))).look() == News()

    os.utime(path, (0, 0))
    with pytest.raises(RecordingError, match=f"{reason}: gpu-tracker was killed at the start"):
        Follower(follow_path(str(path))).look()
    with path.open("rb") as file:
        hold(file.fileno())
        assert Follower(follow_path(str(path))).look() == News()


@pytest.mark.parametrize(
    "content",
    [b"hello", b"\xff" * 300, b'{"sample":', b"hello\n", b'{"sample":{}}\n', b"\xff\xfe\n", b"[1]\n"],
)
def test_another_kind_of_file_is_refused(content: bytes) -> None:
    """With its name."""
    with pytest.raises(RecordingError, match="the test is not a gpu-tracker recording"):
        look_at_parts([content])


def test_a_file_that_takes_the_place_of_another_is_read_from_its_start() -> None:
    """Nothing of the first run is left in the second."""
    file = Growing(CONTENTS["full"])
    growing = GrowingRecording(file.source())
    growing.look_at_all()
    file.content, file.file = CONTENTS["plain"], (1, 2)
    news = growing.look()

    assert news.is_another_file
    growing.look_at_all()
    assert without_samples(growing.data) == without_samples(load_bytes(CONTENTS["plain"]))


def test_a_file_that_was_emptied_is_read_from_its_start() -> None:
    """It is the same file, but shorter than what was read of it."""
    file = Growing(CONTENTS["full"])
    growing = GrowingRecording(file.source())
    growing.look_at_all()
    file.content = b""

    assert growing.look() == News(is_another_file=True)
    assert not growing.has_begun
    assert growing.look() == News()


def test_a_file_that_was_truncated_is_refused(tmp_path: Path) -> None:
    """At every look: what was told already must not be told again."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(CONTENTS["full"])
    growing = GrowingRecording(follow_path(str(path)))
    growing.look_at_all()
    os.truncate(path, 3000)

    for _ in range(2):
        with pytest.raises(RecordingError, match="was truncated while it was read"):
            growing.look()


@pytest.mark.parametrize(("ago_seconds", "is_over"), [(0.0, False), (11.0, False), (14.0, True)])
def test_a_file_that_does_not_grow_has_lost_its_writer(ago_seconds: float, is_over: bool) -> None:
    """After two intervals, here of one second, and ten seconds."""
    file = Growing(b"".join(CONTENTS["plain"].splitlines(keepends=True)[:2]))
    file.modified_at = time.time() - ago_seconds
    follower = Follower(file.source())
    follower.look()

    assert follower.is_over == is_over
    assert follower.age_seconds >= ago_seconds - 1


def test_devices_that_are_found_late_have_no_figures_before() -> None:
    """Columns of a recording that grows are filled up with unknown values."""
    whole = load_bytes(CONTENTS["full"])
    since = whole.samples[-1].at_seconds
    growing, _ = look_at_parts([CONTENTS["full"]])
    recent, every = growing.columns_since(since), growing.columns

    assert recent.end_seconds[-1] == every.end_seconds[-1]
    assert as_bytes(recent.cpu_cores.combined[-1:]) == as_bytes(every.cpu_cores.combined[-1:])
    assert recent.gpus.keys() == every.gpus.keys()


def test_a_path_is_opened_anew_at_each_look(tmp_path: Path) -> None:
    """So a file that was moved away and made again is noticed, and one that is gone is said to be."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(CONTENTS["full"])
    follower = Follower(follow_path(str(path)))
    assert follower.look().end is not None
    other = tmp_path / "other"
    other.write_bytes(CONTENTS["plain"])
    other.rename(path)
    assert follower.look().is_another_file
    path.unlink()
    with pytest.raises(RecordingError, match="Cannot read"):
        follower.look()


def test_the_position_of_an_unnamed_file_is_left_alone(tmp_path: Path) -> None:
    """Its writer goes on where it was."""
    with (tmp_path / "unnamed").open("w+b") as file:
        file.write(CONTENTS["full"])
        file.flush()
        assert Follower(Source("unnamed", partial(read_unnamed, file.fileno()))).look().end is not None
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == len(CONTENTS["full"])


def test_an_unnamed_file_is_read_on_when_it_is_closed(tmp_path: Path) -> None:
    """What was kept of it is the same file, and nothing comes twice."""
    path = tmp_path / "unnamed"
    first, rest = CONTENTS["full"][:2000], CONTENTS["full"][2000:]
    path.write_bytes(first)
    with path.open("rb") as file:
        kept: list[int | bytes] = [file.fileno()]
        follower = Follower(Source("unnamed", lambda offset: read_unnamed(kept[0], offset)))
        before = follower.look()
    kept[0] = first + rest
    after = follower.look()
    whole = Follower(Source("unnamed", partial(read_unnamed, first + rest))).look()

    assert not after.is_another_file
    assert [*before.samples, *after.samples] == [*whole.samples]
    assert after.end == whole.end


def test_every_kind_of_line_is_taken_in() -> None:
    """Also those that only long runs have; one of no known kind is damage."""
    totals = (b'{"metric_totals":{"loss":[3,1,2.0,0.5,1.5,1.0,2.5]}}\n', b'{"riddle":{"at":1}}\n')
    content = b"".join(CONTENTS["full"].splitlines(keepends=True)[:-1])
    growing, _ = look_at_parts([content, *totals])
    whole = load_bytes(content + totals[0])

    assert growing.data.metric_totals == whole.metric_totals != ()
    assert growing.data.problems == ("1 lines of the recording are damaged and were left out.",)
    assert growing.open_calls == tuple(call for call in whole.calls if call.end_seconds is None)
    assert growing.age_seconds >= 0


def test_without_a_header_there_is_no_recording_to_give() -> None:
    """Whoever asks for it has not asked whether it has begun."""
    growing, _ = look_at_parts([b""])
    with pytest.raises(ValueError, match="no header"):
        _ = growing.data


def test_of_many_calls_as_many_are_kept_as_in_a_file() -> None:
    """The longest, the largest and a uniform sample."""
    first, *rest = CONTENTS["plain"].splitlines(keepends=True)
    columns = {
        "pid": [1] * 1100,
        "number": list(range(1, 1101)),
        "start_seconds": [float(number) for number in range(1100)],
        "end_seconds": [number + 0.5 for number in range(1100)],
        "thread": [1] * 1100,
        "peak_ram_bytes": [None] * 1100,
        "peak_ram_basis": ["sampled"] * 1100,
        "priority": [number * 7919 % 1100 for number in range(1100)],
    }
    line = json.dumps({"calls": {"path": ["step"], **columns}}, separators=(",", ":")).encode() + b"\n"
    growing, _ = look_at_parts([first, line, *rest])

    assert growing.data.calls == list(load_bytes(first + line + b"".join(rest)).calls)
    assert 100 < len(growing.data.calls) < 1000


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize(("n_parts", "most_shapes"), [(1, 10_000), (3, 10_000), (40, 10_000), (3, 0)])
def test_samples_that_are_read_together_are_the_same(
    name: str, n_parts: int, most_shapes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is between them, damage too; peaks and devices go on from part to part. Shapes are kept as far as there is room."""
    monkeypatch.setattr(follow, "_FEW_LINES", 0)
    monkeypatch.setattr("gpu_tracker.recording.lazy.MOST_SHAPES", most_shapes)
    first, *lines = CONTENTS[name].splitlines(keepends=True)
    sample = next(line for line in lines if line.startswith(b'{"sample"'))
    damaged = sample.replace(b'"threads":', b'"threads":x')
    content = b"".join([first, *lines[:2], damaged, *lines[2:]])
    places = [number * len(content) // n_parts for number in range(1, n_parts)]
    growing, news = look_at_parts(cut(content, places))
    whole = load_bytes(CONTENTS[name])

    assert {**without_samples(growing.data), "problems": ()} == without_samples(whole)
    assert growing.last_sample == whole.samples[-1]
    assert as_bytes(growing.columns) == as_bytes(read_columns(whole))
    assert sum(some.damaged_lines for some in news) == 1


def test_most_samples_that_are_read_together_are_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """That would take ten times as long."""
    head, *lines = CONTENTS["plain"].splitlines(keepends=True)
    samples = [line for line in lines if line.startswith(b'{"sample"')]
    n_made = 0

    def count(*arguments: Any) -> Any:
        nonlocal n_made
        n_made += 1
        return decode_sample(*arguments)

    monkeypatch.setattr("gpu_tracker.recording.lazy.decode_sample", count)
    content = b"".join([head, *samples * 1000])
    growing = GrowingRecording(Source("the test", partial(read_unnamed, content)))
    growing.look()

    assert len(growing.columns.end_seconds) == 1000 * len(samples)
    assert n_made < 20 * len(samples)

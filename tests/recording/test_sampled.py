"""Columns of many lines have what each sample has."""

from __future__ import annotations

import os
import re
from array import array
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, strategies as st

from builders import gpu_totals, sample
from gpu_tracker.core.model import GpuSample, Parts, Peaks, Sample, Spread, add_parts
from gpu_tracker.recording import sampled
from gpu_tracker.recording.figures import Key, known, list_figures
from gpu_tracker.recording.lazy import SampleLines
from gpu_tracker.recording.reader import load
from gpu_tracker.recording.sampled import read_columns, read_figures
from recorded import gpu_sample, make_full, make_plain, run, write

SIZES: st.SearchStrategy[Any] = st.none() | st.integers(0, 2**40)
AMOUNTS = st.integers(0, 10**12) | st.floats(0, 1e9)
NUMBERS = st.integers(0, 1000)
REASONS = st.sampled_from(["power", "heat", "p2"])


def figures_of(path: Path) -> tuple[dict[Key, array[float]], tuple[str, ...]]:
    """All columns of a file, and the damage found on the way."""
    recording = load(str(path))
    assert isinstance(recording.samples, SampleLines)
    return read_figures(recording.samples), tuple(recording.problems)


def check(path: Path) -> None:
    """The columns are those of the samples, and the same damage is found."""
    recording = load(str(path))
    rows = [list_figures(one) for one in recording.samples]
    columns, problems = figures_of(path)

    assert columns.keys() == {key for row in rows for key in row}
    for key, column in columns.items():
        expected = array("d", (known(row.get(key)) for row in rows))
        assert column.tobytes() == expected.tobytes()  # nan is not equal to itself
    assert problems == tuple(recording.problems)


@st.composite
def many_samples(draw: st.DrawFn) -> list[Sample]:
    """Samples of a job on up to two devices, which may be found late."""
    made: list[Sample] = []
    uuids: tuple[str, ...] = ()
    for at in range(draw(st.integers(1, 12))):
        uuids = draw(st.sampled_from([uuids, ("GPU-0",), ("GPU-1", "GPU-0")]))
        spreads = [sorted(draw(st.lists(AMOUNTS, min_size=3, max_size=3))) for _ in Parts._fields]
        counters = [
            gpu_totals(uuid)[0]._replace(
                limited_seconds=tuple(draw(st.dictionaries(REASONS, AMOUNTS)).items())
            )
            for uuid in uuids
        ]
        made.append(
            sample(
                float(at),
                cpu_seconds=add_parts(draw(AMOUNTS), draw(AMOUNTS)),
                ram_bytes=Parts(*(Spread(*spread) for spread in spreads)),
                threads=draw(NUMBERS),
                gpus=tuple(
                    GpuSample(uuid, **{name: draw(SIZES) for name in GpuSample._fields[1:]}) for uuid in uuids
                ),
                gpu_counters=tuple(counters),
                peaks=Peaks(processes=draw(NUMBERS), gpus=tuple(gpu_totals(uuid)[1] for uuid in uuids)),
            )
        )
    return made


@given(many_samples(), st.data())
def test_columns_are_equal_to_samples(samples: list[Sample], data: st.DataObject) -> None:
    """Whatever is in the lines, and wherever a few bytes of them are damaged."""
    with TemporaryDirectory() as folder:
        path = write(Path(folder) / "x.jsonl", run(samples=tuple(samples)))
        check(path)
        content = bytearray(path.read_bytes())
        start = content.index(b'{"sample"')
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(start, len(content) - 1))
            content[at : at + 1] = data.draw(
                st.sampled_from([b"0", b"", b".", b",", b"-", b"x", b"\n", b"99"])
            )
        path.write_bytes(content)
        check(path)


@pytest.mark.parametrize("make", [make_plain, make_full])
@pytest.mark.parametrize("block", [1, 2, 10_000])
@pytest.mark.parametrize("wrong", [b"", b"00", b"0.", b"9" * 30])
def test_a_damaged_line_of_a_known_shape_is_left_out(
    tmp_path: Path, make: object, block: int, wrong: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of any size; the damage is noted."""
    monkeypatch.setattr(sampled, "_BLOCK_LINES", block)
    path = make(tmp_path / "x.jsonl")  # type: ignore[operator]
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(index for index, line in enumerate(lines) if line.startswith(b'{"sample"'))
    lines[last:last] = [lines[last], re.sub(rb'(?<="threads":)\d+', wrong, lines[last])]
    path.write_bytes(b"".join(lines))

    check(path)
    assert len(figures_of(path)[1]) == 1


def test_a_missing_number_is_not_taken_for_a_text(tmp_path: Path) -> None:
    """Even if another line of the same shape has a number more, in a text."""
    first = gpu_sample(1.0)
    path = write(
        tmp_path / "x.jsonl", run(samples=tuple(first._replace(at_seconds=at) for at in range(1, 5)))
    )
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"threads":5', b'"threads":')
    lines[4] = lines[4].replace(b'"heat"', b'"he4at"')
    path.write_bytes(b"".join(lines))

    check(path)


def test_no_sample_is_made_for_most_lines(tmp_path: Path, decoded: list[bytes]) -> None:
    """A few lines of each shape explain the others, also where clocks are throttled."""
    samples = tuple(gpu_sample(float(at))._replace(threads=at) for at in range(1, 3001))
    path = write(tmp_path / "x.jsonl", run(samples=samples))
    recording = load(str(path))
    assert isinstance(recording.samples, SampleLines)
    decoded.clear()

    assert len(read_figures(recording.samples)[Key("threads")]) == 3000
    assert len(decoded) < 10


def test_the_columns_of_a_file_are_explained(tmp_path: Path) -> None:
    """Rates of the CPU, memory, devices by UUID."""
    columns = read_columns(load(str(make_full(tmp_path / "x.jsonl"))))

    assert columns.end_seconds == array("d", [0.5, 1.0, 2.0])
    assert columns.start_seconds == array("d", [0.0, 0.5, 1.0])
    assert columns.machine_cores[2] == 3.0
    assert columns.gpus["GPU-1"].power_watts[1:] == array("d", [250.5, 250.5])
    assert list(columns.gpus["GPU-1"].throttled_seconds) == ["heat"]


def test_a_damaged_line_with_new_devices_names_none(tmp_path: Path) -> None:
    """Those known before it stay in their order."""
    path = make_full(tmp_path / "x.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if b'"peaks"' in line and b'[["GPU-' in line)
    wrong = re.sub(rb'(?<="threads":)\d+', b"9" * 30, lines[at]).replace(b"GPU-1", b"GPU-2")
    path.write_bytes(b"".join([*lines[: at + 1], wrong, *lines[at + 1 :]]))

    check(path)
    assert set(read_columns(load(str(path))).gpus) == {"GPU-1"}


def test_a_file_that_was_cut_after_loading_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """What is missing is damaged."""
    path = make_plain(tmp_path / "x.jsonl")
    recording = load(str(path))
    assert isinstance(recording.samples, SampleLines)
    content = path.read_bytes()
    os.truncate(path, content.index(b'{"sample":{"at":2'))

    assert read_figures(recording.samples)[Key("at")] == array("d", [1.0])
    assert len(recording.problems) == 2

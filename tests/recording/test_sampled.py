"""Columns of many lines have what each sample has."""

from __future__ import annotations

import json
import os
import re
from array import array
from math import isnan, nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import gpu_tracker as gput
from builders import gpu_totals, sample
from gpu_tracker.core.model import (
    GpuProcessPeak,
    GpuSample,
    Parts,
    Peaks,
    Sample,
    Spread,
    TreeCounters,
    add_parts,
)
from gpu_tracker.exports import frames
from gpu_tracker.recording import sampled
from gpu_tracker.recording.figures import Key, known, list_figures, merge
from gpu_tracker.recording.lazy import SampleLines
from gpu_tracker.recording.reader import load
from gpu_tracker.recording.sampled import read_columns, read_figures, read_held
from recorded import gpu_sample, interval, make_full, make_plain, plain_sample, run, write

SIZES: st.SearchStrategy[Any] = st.none() | st.integers(0, 2**40)
AMOUNTS = st.integers(0, 10**12) | st.floats(0, 1e9)
NUMBERS = st.integers(0, 1000)
RATES = ("read_bytes_per_second", "written_bytes_per_second")
GAUGES = ("used_bytes", "job_bytes", "utilization_percent", "power_watts", "sm_percent")
REASONS = st.sampled_from(["power", "heat", "p2"])


def figures_of(path: Path) -> tuple[dict[Key, array[float]], tuple[str, ...]]:
    """All columns of a file, and the damage found on the way."""
    recording = load(str(path))
    assert isinstance(recording.samples, SampleLines)
    return read_figures(recording.samples)[0], tuple(recording.problems)


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


def check_held(path: Path) -> None:
    """What is read of many recordings is what is read of one."""
    recording = load(str(path))
    held, columns = read_held(recording), read_columns(recording)

    assert held.start_seconds.tobytes() == columns.start_seconds.tobytes()
    assert held.end_seconds.tobytes() == columns.end_seconds.tobytes()
    assert held.ram_bytes.tobytes() == columns.ram_bytes.combined.high.tobytes()
    for uuid, gpu in columns.gpus.items():
        unknown = array("d", [nan]) * len(columns.end_seconds)
        assert held.gpus.get(uuid, unknown).tobytes() == gpu.job_bytes.tobytes()
    assert held.gpus.keys() <= columns.gpus.keys()


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


@st.composite
def damaged_files(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """The content of a recording, and the same with a few bytes changed."""
    with TemporaryDirectory() as folder:
        whole = write(Path(folder) / "x.jsonl", run(samples=tuple(draw(many_samples())))).read_bytes()
    content = bytearray(whole)
    start = content.index(b'{"sample"')
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(start, len(content) - 1))
        content[at : at + 1] = draw(st.sampled_from([b"0", b"", b".", b",", b"-", b"x", b"\n", b"99"]))
    return whole, bytes(content)


@given(damaged_files())
def test_columns_are_equal_to_samples(files: tuple[bytes, bytes]) -> None:
    """Whatever is in the lines, and wherever a few bytes of them are damaged."""
    with TemporaryDirectory() as folder:
        for content in files:
            path = Path(folder) / "x.jsonl"
            path.write_bytes(content)
            check(path)
            check_held(path)


@given(damaged_files())
@settings(max_examples=30)
def test_frames_are_equal_to_samples(files: tuple[bytes, bytes]) -> None:
    """The same of a data frame: its rows, its types, and the damage found on the way."""
    with TemporaryDirectory() as folder:
        for content in files:
            path = Path(folder) / "x.jsonl"
            path.write_bytes(content)
            fast, slow = gput.load(path), gput.load(path)
            rows = slow._table("samples")._replace(read_arrays=None)

            assert fast.to_pandas().equals(frames.to_pandas(rows))
            assert fast.problems == slow.problems


def test_no_more_rows_are_made_than_can_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a file or not; what was seen in any sample is in one of them."""
    monkeypatch.setattr(sampled, "_MOST_ROWS", 10)
    samples = [plain_sample(float(at)) for at in range(1, 96)]
    samples[42] = samples[42]._replace(ram_bytes=Parts(*[Spread(1, 10**9, 10**9)] * 3), threads=77)
    shown = run(samples=tuple(samples))
    columns = read_columns(load(str(write(tmp_path / "x.jsonl", shown))))

    assert columns.end_seconds == array("d", [*range(10, 95, 10), 95])
    assert columns.start_seconds == array("d", [0, *range(10, 95, 10)])
    assert columns.ram_bytes.combined.high[4] == 10**9
    assert columns.ram_bytes.combined.low[4] == 1
    assert columns.threads[4] == 77
    assert repr(columns) == repr(read_columns(shown))  # nan is not equal to itself


def busy_second(at: int) -> Sample:
    """A second with work, power and reads that differ from those of every other."""
    device = GpuSample("GPU-1", 10**6 * at, 10**5 * at, at % 97, None, (7 * at) % 400, None, None, at % 13)
    return gpu_sample(float(at))._replace(
        cpu_seconds=add_parts(at * at % 1000 + 1000.0 * at, 10.0 * at),
        system_cpu_seconds=2000.0 * at + at**3 % 500,
        gpus=(device,),
        counters=TreeCounters(read_bytes=10**4 * at + at**2 % 9999, written_bytes=10**5 * at),
    )


@pytest.mark.parametrize("block", [5, 20, 500])
def test_merged_rows_have_the_extremes_of_what_is_drawn(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are in single samples, wherever a block of lines begins. Few samples are not merged, and need none."""
    path = write(tmp_path / "x.jsonl", run(samples=tuple(map(busy_second, range(1, 94)))))
    single = read_columns(load(str(path)))
    monkeypatch.setattr(sampled, "_MOST_ROWS", 20)
    monkeypatch.setattr(sampled, "_BLOCK_LINES", block)
    merged = read_columns(load(str(path)))
    device = single.gpus["GPU-1"]
    drawn = {
        ("cpu_cores", ""): single.cpu_cores.combined,
        **{(name, ""): getattr(single, name) for name in ("machine_cores", *RATES)},
        **{(name, "GPU-1"): getattr(device, name) for name in GAUGES},
    }

    assert not single.extremes
    assert merged.extremes.keys() == drawn.keys()
    for key, column in drawn.items():
        groups = [known_of(column[first : first + 5]) for first in range(0, len(column), 5)]
        assert merged.extremes[key].low == array("d", map(min, groups))
        assert merged.extremes[key].high == array("d", map(max, groups))


def known_of(column: array[float]) -> list[float]:
    """Without what is not known."""
    return [value for value in column if not isnan(value)]


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

    assert len(read_figures(recording.samples)[0][Key("threads")]) == 3000
    assert len(decoded) < 10


@pytest.mark.parametrize("name", ["python", "python3.11", "a-1,b-2"])
def test_no_sample_is_made_where_peaks_of_devices_grow(
    tmp_path: Path, decoded: list[bytes], name: str
) -> None:
    """As in a job whose memory grows in every interval, whatever is in the texts of its lines."""
    peak = gpu_totals("GPU-1")[1]
    samples = tuple(
        gpu_sample(float(at))._replace(
            threads=at,
            peaks=Peaks(
                gpus=(peak._replace(used_bytes=3000 + at),),
                gpu_processes=(GpuProcessPeak("GPU-1", 100, name, at),),
            ),
        )
        for at in range(1, 2001)
    )
    path = write(tmp_path / "x.jsonl", run(samples=samples))
    assert path.read_bytes().count(b'"gpu_processes":') >= 2000
    check(path)
    recording = load(str(path))
    assert isinstance(recording.samples, SampleLines)
    decoded.clear()

    assert list(read_figures(recording.samples)[0][Key("threads")]) == list(range(1, 2001))
    assert len(decoded) < 50


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

    assert read_figures(recording.samples)[0][Key("at")] == array("d", [1.0])
    assert len(recording.problems) == 2


@pytest.mark.parametrize("n_samples", [40, 400])
def test_impossible_and_disordered_samples_are_left_out_and_counted_at_any_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_samples: int
) -> None:
    """Also where several samples become one interval: they are looked at before."""
    monkeypatch.setattr(sampled, "_MOST_ROWS", 50)
    samples = [plain_sample(float(number)) for number in range(1, n_samples + 1)]
    honest = read_columns(load(str(write(tmp_path / "honest.jsonl", run(samples=tuple(samples))))))
    lines = (tmp_path / "honest.jsonl").read_bytes().splitlines(keepends=True)
    places = [index for index, line in enumerate(lines) if line.startswith(b'{"sample"')]
    wrong = lines[places[7]].replace(b'"at":8', b'"at":-8')
    lines[places[20]], lines[places[21]] = lines[places[21]], lines[places[20]]
    lines.insert(places[9], wrong)
    (tmp_path / "odd.jsonl").write_bytes(b"".join(lines))
    odd = read_columns(load(str(tmp_path / "odd.jsonl")))

    assert wrong != lines[places[7]]
    assert (odd.impossible_samples, odd.disordered_samples) == (1, 1)
    assert (honest.impossible_samples, honest.disordered_samples) == (0, 0)
    assert max(odd.ram_bytes.combined.high) == max(honest.ram_bytes.combined.high)
    assert odd.end_seconds[-1] == honest.end_seconds[-1]


def test_a_counter_that_is_unknown_at_the_end_of_an_interval_is_what_it_was_before() -> None:
    """Of several samples that become one, the last known one counts; if none is known, it is not known."""
    counter = [1.0, nan, 3.0, 4.0, nan, nan, 7.0]
    merged = merge({Key("at"): [float(at) for at in range(7)], Key("main_cpu"): counter}, 2)

    assert merged[Key("at")] == array("d", [1.0, 3.0, 5.0, 6.0])
    assert repr(merged[Key("main_cpu")]) == repr(array("d", [1.0, 4.0, nan, 7.0]))


def test_an_early_line_that_comes_late_takes_no_peak_back(tmp_path: Path) -> None:
    """In a recording without an end, whose peaks are those of its lines."""
    path = write(
        tmp_path / "run.jsonl",
        run(samples=tuple(plain_sample(float(number), 100 * number) for number in range(1, 9))),
    )
    lines = [line for line in path.read_bytes().splitlines(keepends=True) if not line.startswith(b'{"end"')]
    grown = [line for line in lines if line.startswith(b'{"sample"') and b'"peaks"' in line]
    path.write_bytes(b"".join(lines))
    honest = gput.load(str(path)).summary
    path.write_bytes(b"".join([*lines[:-1], grown[0], lines[-1]]))
    repeated = gput.load(str(path)).summary

    assert len(grown) > 1
    assert repeated.ram == honest.ram
    assert repeated.ram.combined.total_bytes == 800 * 10**6


def test_peaks_that_grew_are_those_of_the_samples(tmp_path: Path) -> None:
    """Also where a line has other peaks only; one that is damaged is left out and noted."""
    samples = [interval(float(number), 100 * number) for number in range(1, 7)]
    samples[2] = samples[2]._replace(peaks=samples[1].peaks._replace(threads=Parts(9, 9, 9)))
    recording = run(samples=tuple(samples))
    path = write(tmp_path / "run.jsonl", recording)
    found, made = read_held(load(str(path))), read_held(recording)
    lines = path.read_bytes().splitlines(keepends=True)
    (last,) = (at for at, line in enumerate(lines) if line.startswith(b'{"sample":{"at":6.0'))
    data = json.loads(lines[last])
    data["sample"]["peaks"]["ram"][-1][0] = 10**30
    lines[last] = json.dumps(data, separators=(",", ":")).encode() + b"\n"
    path.write_bytes(b"".join(lines))
    damaged = load(str(path))

    assert (
        found.grown
        == made.grown
        == tuple((float(number), (2 if number == 3 else number) * 10**8) for number in range(1, 7))
    )
    assert read_held(damaged).grown == found.grown[:-1]
    assert len(damaged.problems) == 1


def test_what_was_held_of_very_many_is_that_of_several_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The most of each group."""
    monkeypatch.setattr(sampled, "_MOST_ROWS", 4)
    path = write(tmp_path / "run.jsonl", run(samples=tuple(plain_sample(float(at)) for at in range(1, 9))))
    held = read_held(load(str(path)))

    assert list(held.end_seconds) == [2.0, 4.0, 6.0, 8.0]
    check_held(path)


def test_a_text_in_place_of_a_number_is_damage_of_its_line_alone(tmp_path: Path) -> None:
    """Wherever in the file: the other samples are read, as columns and as arrays."""
    path = make_full(tmp_path / "x.jsonl")
    lines = path.read_text().splitlines()
    at = max(number for number, line in enumerate(lines) if re.match(r'{"sample".*"gpus":\[\[', line))
    data = json.loads(lines[at])
    data["sample"]["gpus"][0][0] = "much"
    lines[at] = json.dumps(data, separators=(",", ":"))
    whole = len(load(str(path)).samples)
    path.write_text("\n".join(lines) + "\n")

    columns, problems = figures_of(path)
    assert len(columns[Key("at")]) == whole - 1
    assert len(problems) == 1
    assert "damaged" in problems[0]
    assert len(gput.load(path).to_pandas()) == whole - 1

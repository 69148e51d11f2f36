"""Every format is read back with another program, and nothing is lost."""

from __future__ import annotations

import contextlib
import csv
import json
import sqlite3
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from builders import found, gpu, recording, sample
from gpu_tracker.analysis.tables import TABLES, Table, make_table
from gpu_tracker.core.errors import TrackerError, UsageError
from gpu_tracker.core.model import (
    Activity,
    FrameworkMemory,
    GpuCounters,
    GpuPeaks,
    GpuSample,
    MetricRow,
    Parts,
    Peaks,
    ProcessTotals,
    RecordingData,
    RegionTotals,
    Spread,
    add_parts,
)
from gpu_tracker.core.text import neutralize
from gpu_tracker.exports import FORMATS, find_format
from gpu_tracker.exports.about import spell_number
from gpu_tracker.exports.draft import drafted
from gpu_tracker.recording.contradictions import is_contradiction
from gpu_tracker.recording.reader import load
from gpu_tracker.reports.build import build
from recorded import Made, make_full, write

BYTES = st.integers(0, 2**50)
SECONDS = st.floats(0, 1e6).map(lambda number: float(f"{number:.9g}"))
MAYBE = st.none() | st.floats(0, 100).map(lambda number: round(number, 2))
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
SPREADS = st.tuples(BYTES, st.floats(0, 1), BYTES).map(
    lambda drawn: Spread(
        min(drawn[::2]), min(drawn[::2]) + drawn[1] * abs(drawn[2] - drawn[0]), max(drawn[::2])
    )
)
GPU_SAMPLES = st.builds(
    GpuSample,
    uuid=st.just("GPU-0"),
    used_bytes=st.none() | BYTES,
    job_bytes=st.none() | BYTES,
    utilization_percent=MAYBE,
    job_percent=MAYBE,
    power_watts=MAYBE,
    temperature_celsius=MAYBE,
    sm_clock_mhz=MAYBE,
    **dict.fromkeys(Activity._fields, MAYBE),
)
GPU_COUNTERS = st.builds(
    GpuCounters,
    uuid=st.just("GPU-0"),
    utilization_percent_seconds=SECONDS,
    utilization_seconds=SECONDS,
    job_percent_seconds=SECONDS,
    job_seconds=SECONDS,
    energy_joules=st.none() | SECONDS,
    energy_seconds=SECONDS,
    limited_seconds=st.lists(st.tuples(NAMES, SECONDS), max_size=2).map(tuple),
    activity=st.just(()) | st.tuples(*[st.tuples(SECONDS, SECONDS)] * 4),
    job_bytes_unknown_seconds=SECONDS,
    used_bytes_unknown_seconds=SECONDS,
    traffic=st.just(()) | st.tuples(*[st.none() | BYTES] * 4),
    job_bytes_gap_seconds=SECONDS,
    used_bytes_gap_seconds=SECONDS,
    utilization_gap_seconds=SECONDS,
)
SAMPLES = st.builds(
    sample,
    at=SECONDS,
    readings=st.integers(0, 99),
    cpu_seconds=st.builds(add_parts, SECONDS, SECONDS),
    system_cpu_seconds=SECONDS,
    ram_bytes=st.builds(Parts, SPREADS, SPREADS, SPREADS),
    system_ram_bytes=BYTES,
    threads=st.integers(0, 9),
    processes=st.integers(0, 9),
    gpus=st.just(()) | st.tuples(GPU_SAMPLES),
    gpu_counters=st.tuples(GPU_COUNTERS),
    peaks=st.just(Peaks(gpus=(GpuPeaks("GPU-0"),))),
)
REGIONS = st.builds(
    RegionTotals,
    pid=st.integers(1, 9),
    path=st.lists(NAMES, max_size=3).map(tuple),
    calls=st.integers(0, 9),
    wall_seconds=SECONDS,
    shortest_seconds=st.none() | SECONDS,
    peak_ram_bytes=st.none() | BYTES,
    peak_ram_basis=NAMES,
)
METRICS = st.builds(
    MetricRow, SECONDS, st.dictionaries(NAMES, st.floats(), max_size=3),
    st.none() | st.integers(0, 99), st.integers(0, 9),
)  # fmt: skip
PROCESSES = st.builds(
    ProcessTotals, st.integers(1, 9), st.integers(0, 9), NAMES, SECONDS, SECONDS, SECONDS, BYTES
)
FRAMEWORKS = st.builds(
    FrameworkMemory, st.integers(1, 9), NAMES, NAMES, NAMES, SECONDS, BYTES, BYTES, NAMES, st.none() | BYTES, st.none() | BYTES,
    split_process_bytes=st.none() | BYTES,
)  # fmt: skip
RECORDINGS = st.builds(
    recording,
    events=st.just((found(gpu()),)),
    samples=st.lists(SAMPLES, max_size=3),
    regions=st.lists(REGIONS, max_size=3, unique_by=lambda one: (one.pid, one.path)),
    metrics=st.lists(METRICS, max_size=3),
    processes=st.lists(PROCESSES, max_size=3),
    frameworks=st.lists(FRAMEWORKS, max_size=3),
    end=st.none(),
)

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module", autouse=True)
def _parquet_is_loaded() -> None:
    """Older versions of pyarrow open three descriptors on import, which are not leaks of a test."""
    with contextlib.suppress(ImportError):
        import_module("pyarrow.parquet")


def read_csv(path: Path, table: Table) -> Rows:
    """With the standard library, which reads empty text and None alike."""
    with path.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    assert names == [column.name for column in table.columns]
    make: dict[str, Any] = {
        "integer": int,
        "real": float,
        "text": lambda text: text.removeprefix("'"),
    }
    kinds = [make[column.kind] for column in table.columns]
    return [
        tuple(kind(field) if field else None for kind, field in zip(kinds, row, strict=True)) for row in rows
    ]


def read_parquet(path: Path, table: Table) -> Rows:
    """With pyarrow."""
    parquet = pytest.importorskip("pyarrow.parquet")
    return [tuple(row.values()) for row in parquet.read_table(path).to_pylist()]


def read_sqlite(path: Path, table: Table) -> Rows:
    """With the standard library."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(f'SELECT * FROM "{table.name}"').fetchall()


def read_json(path: Path, table: Table) -> Rows:
    """With the standard library."""
    return [tuple(row.values()) for row in json.loads(path.read_text())[table.name]]


def spell_csv(value: Any) -> Any:
    """What a terminal would obey is replaced; empty text is read like None."""
    return (neutralize(value) or None) if isinstance(value, str) else spell_number(value)


EXPECTED = {"csv": spell_csv}
READERS = {"csv": read_csv, "parquet": read_parquet, "sqlite": read_sqlite, "json": read_json}


@pytest.mark.parametrize("format_name", READERS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RECORDINGS)
def test_a_round_trip_loses_nothing(tmp_path: Path, format_name: str, made: RecordingData) -> None:
    """Every value of every table, but for control characters in CSV; None is not 0. Not that the numbers go together, which are any."""
    path = tmp_path / "x.jsonl"
    path.unlink(missing_ok=True)
    loaded = load(str(write(path, made)))
    assert [text for text in loaded.problems if not is_contradiction(text)] == []
    module = find_format(f"x.{format_name}")
    tables = [make_table(loaded, name) for name in TABLES]
    for group in [tables] if module.HOLDS_ALL_TABLES else [[table] for table in tables]:
        output = tmp_path / "output"
        output.unlink(missing_ok=True)
        module.write(str(output), build(loaded), group)
        for table in group:
            expected = [tuple(map(EXPECTED.get(format_name, spell_number), row)) for row in table.rows()]
            read_back = [tuple(map(spell_number, row)) for row in READERS[format_name](output, table)]
            assert read_back == expected


def test_every_format_but_traces_is_read_back() -> None:
    """A trace is for a viewer, and has its own tests."""
    assert {*FORMATS} - {*READERS} == {"trace"}


@pytest.mark.parametrize("name", TABLES)
def test_no_control_character_is_in_a_csv_file(tmp_path: Path, name: str) -> None:
    """Neither in a cell nor among the names of columns, of which some are those of devices."""
    hostile = "a\x1b]0;b\x07\r\n"
    made = recording(
        events=(found(gpu()._replace(uuid=hostile, name=hostile)),),
        samples=[sample(at=1.0, gpus=(GpuSample(hostile),))],
        regions=[RegionTotals(1, (hostile,))],
        metrics=[MetricRow(0.0, {hostile: 1.0})],
        processes=[ProcessTotals(1, 0, hostile, 0.0, 0.0, 0.0, 0)],
        end=None,
    )
    table = make_table(load(str(write(tmp_path / "x.jsonl", made))), name)
    find_format("x.csv").write(str(tmp_path / "x.csv"), build(made), [table])

    content = (tmp_path / "x.csv").read_bytes().decode()
    assert content.replace("\n", "").isprintable()
    assert content.count("\n") == 1 + len(list(table.rows()))


@pytest.mark.parametrize(
    "text", ["=1+1", " =1+1", "\u3000=1+1", "\uff1d1+1", "\uff0b1", " \uff20SUM(A1)", "-1", "'"]
)
def test_no_text_is_a_formula(tmp_path: Path, text: str) -> None:
    """Whatever a spreadsheet drops in front, or takes for a sign."""
    made = recording(processes=(ProcessTotals(1, 0, text, 0.0, 1.0, 1.0, 1),))
    find_format("x.csv").write(str(tmp_path / "x.csv"), build(made), [make_table(made, "processes")])

    assert ",\"'" in (tmp_path / "x.csv").read_text("utf-8").splitlines()[1]


def test_csv_distinguishes_empty_text_from_none(tmp_path: Path) -> None:
    """One is in quotes, the other is empty."""
    loaded = load(str(make_full(tmp_path / "x.jsonl")))
    table = make_table(loaded, "gpus")
    find_format("x.csv").write(str(tmp_path / "x.csv"), build(loaded), [table])
    _, first, _ = (tmp_path / "x.csv").read_text().splitlines()

    assert first == '0,"GPU-0","Simulated A100",40000000000,"nvidia","nvml","","",,1,,,,,,"0"'


@pytest.mark.parametrize("name", ["x.sqlite", "x.json", "x.parquet"])
def test_the_summary_is_included(tmp_path: Path, name: str) -> None:
    """With the header and the notes."""
    loaded = load(str(make_full(tmp_path / "x.jsonl")))
    path = tmp_path / name
    find_format(name).write(str(path), build(loaded), [make_table(loaded, "samples")])
    if name == "x.sqlite":
        with contextlib.closing(sqlite3.connect(path)) as connection:
            about = {key: json.loads(text) for key, text in connection.execute("SELECT * FROM about")}
    elif name == "x.json":
        about = json.loads(path.read_text())
    else:
        metadata = pytest.importorskip("pyarrow.parquet").read_schema(path).metadata
        about = {key.decode(): json.loads(text) for key, text in metadata.items() if key != b"ARROW:schema"}

    assert about["header"]["host"] == "node1"
    assert about["summary"]["readings"] == 100
    assert (about["ending"], about["exit_code"]) == ("exited", 1)
    assert [note.partition(":")[0] for note in about["notes"]] == ["Names of regions"]


@pytest.mark.parametrize("format_name", READERS)
def test_a_name_that_is_not_utf8_is_escaped(tmp_path: Path, format_name: str) -> None:
    """A process may have any name."""
    with Made(tmp_path / "x.jsonl") as writer:
        writer.write_process(ProcessTotals(1, 0, "a\udcff", 0.0, 1.0, 1.0, 1))
    loaded = load(str(tmp_path / "x.jsonl"))
    table = make_table(loaded, "processes")
    find_format(f"x.{format_name}").write(str(tmp_path / "output"), build(loaded), [table])
    (row,) = READERS[format_name](tmp_path / "output", table)

    assert row[2] in ("a\\udcff", "a\udcff")


def test_an_unknown_suffix_is_refused() -> None:
    """With the known ones."""
    with pytest.raises(UsageError, match=r"\.csv, \.parquet"):
        find_format("x.xlsx")


def test_no_incomplete_file_is_left(tmp_path: Path) -> None:
    """Neither at the path nor beside it; an existing file stays."""
    path = tmp_path / "x.csv"
    path.write_text("before")

    def write_half(error: BaseException) -> None:
        with drafted(str(path), may_replace=True) as draft:
            Path(draft).write_text("half")
            raise error

    with pytest.raises(KeyboardInterrupt):
        write_half(KeyboardInterrupt())
    with pytest.raises(TrackerError, match="No space"):
        write_half(OSError(28, "No space left on device"))

    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_an_existing_file_is_replaced_only_on_request(tmp_path: Path) -> None:
    """A directory, a device or a missing directory never."""
    path = tmp_path / "x.csv"
    path.write_text("before")
    for place, reason in (
        (str(path), "already exists"),
        (str(tmp_path), "directory"),
        ("/dev/null", "not a regular file"),
        (str(tmp_path / "none" / "x.csv"), "No such file"),
    ):
        with pytest.raises(UsageError, match=reason), drafted(place, may_replace=False):
            pass
    with drafted(str(path), may_replace=True) as draft:
        Path(draft).write_text("after")

    assert path.read_text() == "after"


def test_a_database_that_cannot_be_written_raises_oserror(tmp_path: Path) -> None:
    """So that it becomes one sentence."""
    loaded = load(str(make_full(tmp_path / "x.jsonl")))
    (tmp_path / "x.sqlite").write_text("this is no database" * 100)
    with pytest.raises(OSError, match="not a database"):
        find_format("x.sqlite").write(str(tmp_path / "x.sqlite"), build(loaded), [])


@pytest.mark.parametrize(
    ("package", "extra"), [("pandas", "pandas"), ("polars", "polars"), ("pyarrow", "arrow")]
)
def test_a_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch, package: str, extra: str) -> None:
    """With the command that installs it."""
    from gpu_tracker.exports.packages import need

    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TrackerError, match=rf"pip install 'gput\[{extra}\]'"):
        need(package)

"""The tracking file of the existing tool: the same columns, written while the job runs."""

from __future__ import annotations

import csv
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from builders import MB, gpu, header
from gpu_tracker.core.errors import UsageError
from gpu_tracker.core.model import GpuSample, Sample, add_parts
from gpu_tracker.core.units import BYTES_PER_UNIT
from gpu_tracker.recording import tracking_file
from gpu_tracker.recording.tracking_file import (
    TrackingFile,
    check_tracking_path,
    create_tracking_file,
    set_aside,
)
from gpu_tracker.recording.tracking_rows import (
    DATA_COLUMNS,
    STATIC_COLUMNS,
    TrackingUnits,
    make_data_rows,
    make_static_row,
)
from recorded import gpu_sample, plain_sample

UNITS = TrackingUnits("megabytes", "megabytes", "seconds")
GPUS = (gpu(0), gpu(1))


def rows_of(*samples: Sample, **fields: Any) -> list[dict[str, Any]]:
    """The rows of those samples, by column."""
    names = [name for name, _ in DATA_COLUMNS]
    rows = make_data_rows(samples, header(**fields), GPUS, UNITS)
    return [dict(zip(names, row, strict=True)) for row in rows]


def test_the_columns_are_those_of_the_existing_tool() -> None:
    """Their names, their number, their order."""
    assert " ".join(name for name, _ in DATA_COLUMNS) == (
        "main_ram descendants_ram combined_ram system_ram "
        "main_gpu_ram descendants_gpu_ram combined_gpu_ram system_gpu_ram "
        "gpu_sum_utilization_percent gpu_hardware_utilization_percent "
        "main_n_threads descendants_n_threads combined_n_threads "
        "cpu_system_sum_utilization_percent cpu_system_hardware_utilization_percent "
        "cpu_main_sum_utilization_percent cpu_main_hardware_utilization_percent "
        "cpu_descendants_sum_utilization_percent cpu_descendants_hardware_utilization_percent "
        "cpu_combined_sum_utilization_percent cpu_combined_hardware_utilization_percent timestamp"
    )
    assert [name for name, _ in STATIC_COLUMNS][3:5] == ["ram_system_capacity", "gpu_ram_system_capacity"]


def test_the_static_row_is_in_the_chosen_units() -> None:
    """The expected devices are those named, else those the job may use."""
    row = make_static_row(header(), GPUS, UNITS)
    named = make_static_row(header(gpu_uuids=("GPU-1",)), GPUS, UNITS)

    assert row == ("megabytes", "megabytes", "seconds", 16_000.0, 80_000.0, 4, 4.0, 2, 2)
    assert named[-1] == 1


def test_cpu_is_the_mean_over_the_interval() -> None:
    """In percent of one core and of all cores; not known without any time."""
    first, second, third = rows_of(
        plain_sample(0.0), plain_sample(2.0), plain_sample(4.0)._replace(cpu_seconds=add_parts(2.0, 0.0))
    )

    assert first["cpu_main_sum_utilization_percent"] is None
    assert second["cpu_main_sum_utilization_percent"] == 100.0
    assert second["cpu_system_hardware_utilization_percent"] == 25.0
    assert third["cpu_combined_sum_utilization_percent"] == 0.0


def test_figures_that_a_sample_does_not_split_are_empty() -> None:
    """Threads and GPU memory of main and descendants, where there is more than one process."""
    busy = gpu_sample(1.0)._replace(gpus=(GpuSample("GPU-1", 3000 * MB, 2000 * MB, 50.0),))
    (many,) = rows_of(busy)
    (alone,) = rows_of(busy._replace(processes=1))

    gpu_ram = [f"{part}_gpu_ram" for part in ("main", "descendants", "combined", "system")]
    assert [many[name] for name in gpu_ram] == [None, None, 2000.0, 3000.0]
    assert [alone[name] for name in gpu_ram] == [2000.0, 0.0, 2000.0, 3000.0]
    assert (many["main_n_threads"], many["combined_n_threads"]) == (None, 5)
    assert (many["gpu_sum_utilization_percent"], many["gpu_hardware_utilization_percent"]) == (50.0, 25.0)


def test_times_are_since_the_epoch_if_the_header_has_a_start_time() -> None:
    """Else since the start."""
    (row,) = rows_of(plain_sample(1.5), started_at="1970-01-01T00:01:00+0000")
    (other,) = rows_of(plain_sample(1.5), started_at="yesterday")

    assert (row["timestamp"], other["timestamp"]) == (61.5, 1.5)


def begin(path: str) -> TrackingFile:
    """A new file."""
    create_tracking_file(path)
    return TrackingFile(path, header(), UNITS)


@pytest.mark.parametrize("suffix", [".csv", ".sqlite"])
def test_rows_are_written_as_they_come(tmp_path: Path, suffix: str) -> None:
    """The first are held back until the devices are known; then a kill loses none."""
    path = check_tracking_path(str(tmp_path / f"x{suffix}"))
    file = begin(path)
    file.add(plain_sample(1.0), (), are_all_known=False)
    before = read(path)
    file.add(plain_sample(2.0), GPUS)
    static, rows = read(path)
    file.add(plain_sample(3.0), GPUS)
    file.close(GPUS)

    assert before == ([], [])
    assert [float(value) for value in static[3:]] == [16_000.0, 80_000.0, 4, 4.0, 2, 2]
    assert len(rows) == 2
    assert len(read(path)[1]) == 3


def read(path: str) -> tuple[list[Any], list[Any]]:
    """The static values and the rows, as other programs read them."""
    if path.endswith(".csv"):
        with open(path, newline="") as file:
            _, static, _, *rows = [*csv.reader(file)] or [None, [], None]
        return static, rows
    with closing(sqlite3.connect(path)) as connection:
        if not connection.execute("SELECT name FROM sqlite_master").fetchall():
            return [], []
        ((*static,),) = connection.execute("SELECT * FROM static_data").fetchall()
        return static, connection.execute("SELECT * FROM data").fetchall()


def test_a_short_job_is_written_at_its_end(tmp_path: Path) -> None:
    """With all rows held back."""
    path = str(tmp_path / "x.csv")
    file = begin(path)
    file.add(plain_sample(0.0), ())
    file.close(GPUS)

    assert len(read(path)[1]) == 1


def test_unreported_figures_are_empty() -> None:
    """They are 0 only without devices."""
    names = [name for name, _ in STATIC_COLUMNS]
    unknown = dict(zip(names, make_static_row(header(), None, UNITS), strict=True))
    none = dict(zip(names, make_static_row(header(), (), UNITS), strict=True))
    silent = dict(zip(names, make_static_row(header(), (gpu(0, memory=None),), UNITS), strict=True))
    gpu_columns = [name for name, _ in DATA_COLUMNS if "gpu" in name]
    (early,) = rows_of(plain_sample(1.0))  # its devices answered later
    (mute,) = rows_of(gpu_sample(1.0)._replace(gpus=(GpuSample("GPU-0"), GpuSample("GPU-1"))))
    row = next(make_data_rows([plain_sample(1.0)], header(), (), UNITS))
    without = dict(zip((name for name, _ in DATA_COLUMNS), row, strict=True))

    assert [unknown[name] for name in names if "gpu" in name and "unit" not in name] == [None, None, None]
    assert (none["gpu_ram_system_capacity"], none["system_gpu_count"], none["n_expected_gpus"]) == (0.0, 0, 0)
    assert (silent["gpu_ram_system_capacity"], silent["system_gpu_count"]) == (None, 1)
    assert [early[name] for name in gpu_columns] == [None] * 6
    assert [mute[name] for name in gpu_columns] == [None] * 6
    assert [without[name] for name in gpu_columns] == [0.0] * 6


def test_a_driver_that_never_answers_leaves_its_columns_empty(tmp_path: Path) -> None:
    """Rows are not held back forever; once it answers they have its figures."""
    path = str(tmp_path / "x.csv")
    file = begin(path)
    file.add(plain_sample(29.0), (), are_all_known=False)
    held = Path(path).read_text()
    file.add(plain_sample(30.0), (), are_all_known=False)
    file.add(gpu_sample(31.0), GPUS, are_all_known=True)
    file.close(GPUS)
    static, rows = read(path)
    used = [name for name, _ in DATA_COLUMNS].index("system_gpu_ram")

    assert held == ""
    assert static[-2:] == ["", ""]
    assert [row[used] for row in rows[:2]] == ["", ""]
    assert float(rows[2][used]) > 0


def test_a_reader_delays_nothing_and_loses_no_row(tmp_path: Path) -> None:
    """Rows that a locked database refuses are written later."""
    path = str(tmp_path / "x.sqlite")
    file = begin(path)
    file.add(plain_sample(0.0), GPUS)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM data").fetchall()
        for second in range(1, 4):
            file.add(plain_sample(float(second)), GPUS)
        held = len(file._held)
        (wait_milliseconds,) = file._sheet._connection.execute("PRAGMA busy_timeout").fetchone()  # type: ignore[union-attr]
        reader.execute("COMMIT")
    file.add(plain_sample(4.0), GPUS)
    written = len(read(path)[1])
    file.close(GPUS)

    assert (held, wait_milliseconds) == (3, 0)
    assert written == len(read(path)[1]) == 5


def test_a_permanent_lock_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting rows are bounded: every other one is dropped, and at the end the rest is lost."""
    monkeypatch.setattr(tracking_file, "_MOST_HELD", 8)
    path = str(tmp_path / "x.sqlite")
    file = begin(path)
    file.add(plain_sample(0.0), GPUS)
    said = []
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM data").fetchall()
        for second in range(1, 101):
            try:
                file.add(plain_sample(float(second)), GPUS)
            except OSError as error:
                said.append(error.strerror)
            assert len(file._held) < 8
        with pytest.raises(OSError, match="database is locked"):
            file.close(GPUS)

    assert set(said) == {"database is locked"}
    assert len(read(path)[1]) == 1


@contextmanager
def space_for(size_bytes: int) -> Iterator[None]:
    """Limit the size of files, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_tears_no_row(tmp_path: Path) -> None:
    """Only whole rows, and all of them once there is space again."""
    path = str(tmp_path / "x.csv")
    file = begin(path)
    file.add(plain_sample(0.0), GPUS)
    before = Path(path).read_text()
    with space_for(len(before) + 10):
        for second in (1.0, 2.0):
            with pytest.raises(OSError, match="File too large"):  # by the limit that stands for it
                file.add(plain_sample(second), GPUS)
    torn = Path(path).read_text()
    file.add(plain_sample(3.0), GPUS)
    file.close(GPUS)
    _, rows = read(path)

    assert torn == before
    assert [len(row) for row in rows] == [len(DATA_COLUMNS)] * 4


def test_a_database_that_cannot_be_written_raises_oserror(tmp_path: Path) -> None:
    """The sampler notes it and goes on."""
    path = tmp_path / "x.sqlite"
    path.write_text("this is no database" * 100)
    with pytest.raises(OSError, match="not a database"):
        TrackingFile(str(path), header(), UNITS)


def test_paths_are_checked_beforehand(tmp_path: Path) -> None:
    """A known suffix, and no existing file."""
    with pytest.raises(UsageError, match=r'Valid file extensions are "\.csv" and "\.sqlite"'):
        check_tracking_path("x.txt")
    create_tracking_file(str(tmp_path / "x.csv"))
    with pytest.raises(UsageError, match="already exists"):
        check_tracking_path(str(tmp_path / "x.csv"))
    with pytest.raises(UsageError, match="No such file"):
        tracking_file.create_tracking_file(str(tmp_path / "none" / "x.csv"))


def test_a_file_that_may_be_replaced_is_set_aside_first(tmp_path: Path) -> None:
    """Nothing is lost if the job does not start. Directories are never replaced."""
    path = str(tmp_path / "x.csv")
    assert set_aside(check_tracking_path(path, may_replace=True)) is None
    Path(path).write_text("precious")
    aside = set_aside(check_tracking_path(path, may_replace=True))
    (tmp_path / "y.csv").mkdir()

    assert aside is not None
    assert (Path(aside).read_text(), Path(path).exists()) == ("precious", False)
    assert Path(aside).parent == tmp_path
    with pytest.raises(UsageError, match="it is not a regular file"):
        check_tracking_path(str(tmp_path / "y.csv"), may_replace=True)
    with pytest.raises(UsageError, match="Cannot replace"):
        set_aside(f"{aside}/x.csv")


def test_a_recording_is_never_replaced(tmp_path: Path) -> None:
    """Whatever it is called."""
    path = tmp_path / "x.csv"
    path.write_bytes(b'{"header":{"version":1}}\n')
    with pytest.raises(UsageError, match="is a recording, which is never overwritten"):
        check_tracking_path(str(path), may_replace=True)


def test_memory_that_devices_share_counts_once() -> None:
    """In the capacity and in what is used."""
    one, other = gpu(0), gpu(1)._replace(shares_memory_with="GPU-0")
    static = dict(
        zip((name for name, _ in STATIC_COLUMNS), make_static_row(header(), (one, other), UNITS), strict=True)
    )
    used = gpu_sample(1.0)._replace(gpus=(GpuSample("GPU-0", 5 * 10**9), GpuSample("GPU-1", 5 * 10**9)))
    row = next(make_data_rows([used], header(), (one, other), UNITS))
    data = dict(zip((name for name, _ in DATA_COLUMNS), row, strict=True))

    assert static["gpu_ram_system_capacity"] == (one.memory_bytes or 0) / BYTES_PER_UNIT[UNITS.gpu_ram]
    assert data["system_gpu_ram"] == 5 * 10**9 / BYTES_PER_UNIT[UNITS.gpu_ram]

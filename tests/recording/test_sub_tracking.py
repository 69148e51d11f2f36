"""Sub-tracking files: written row by row, read back, and what is refused."""

from __future__ import annotations

import csv
import os
import resource
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from builders import header
from gpu_tracker.core.errors import RecordingError, UsageError
from gpu_tracker.core.sub_tracking import BEGIN, END, BlockEvent
from gpu_tracker.recording.sub_tracking import (
    append_events,
    begin_block_file,
    create_block_file,
    read_events,
    read_tracking_table,
)
from gpu_tracker.recording.tracking_file import TrackingFile, create_tracking_file
from gpu_tracker.recording.tracking_rows import DATA_COLUMNS, TrackingUnits
from recorded import plain_sample

EVENTS = (
    BlockEvent(7, "load, \"all\"\nof 'it'", BEGIN, 1745449609.7528222),
    BlockEvent(8, "=1+1", BEGIN, 1745449610.5),
    BlockEvent(7, "load, \"all\"\nof 'it'", END, 1745449611.25),
)
BOTH = pytest.mark.parametrize("suffix", [".csv", ".sqlite"])


@BOTH
def test_rows_are_read_back_as_they_were_written(tmp_path: Path, suffix: str) -> None:
    """Whatever a name holds, and to the last digit of a time; only the owner may read them."""
    path = str(tmp_path / f"x{suffix}")
    create_block_file(path, may_replace=False)
    before = read_events(path)
    append_events(path, EVENTS[:1])
    append_events(path, EVENTS[1:])

    assert before == ()
    assert read_events(path) == EVENTS
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_the_columns_are_those_of_the_existing_tool(tmp_path: Path) -> None:
    """In CSV, and in the table `data` of a database."""
    names = ["process_id", "code_block_name", "position", "timestamp"]
    for suffix in (".csv", ".sqlite"):
        create_block_file(str(tmp_path / f"x{suffix}"), may_replace=False)
        append_events(str(tmp_path / f"x{suffix}"), [BlockEvent(7, "a", END, 2.5)])
    with open(tmp_path / "x.csv", newline="") as file:
        rows = [*csv.reader(file)]
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection:
        cursor = connection.execute("SELECT * FROM data")
        stored = cursor.fetchall()

    assert rows == [names, ["7", "a", "1", "2.5"]]
    assert [column[0] for column in cursor.description] == names
    assert stored == [(7, "a", 1, 2.5)]


@BOTH
def test_an_existing_file_is_replaced_only_if_asked_for(tmp_path: Path, suffix: str) -> None:
    """It is data of another run."""
    path = tmp_path / f"x{suffix}"
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        create_block_file(str(path), may_replace=False)
    kept = path.read_text()
    create_block_file(str(path), may_replace=True)

    assert kept == "precious"
    assert read_events(str(path)) == ()


@BOTH
def test_a_file_may_have_another_name_until_it_is_complete(tmp_path: Path, suffix: str) -> None:
    """Its final name says which format it has."""
    draft = tmp_path / "draft"
    draft.touch()
    begin_block_file(str(draft), f"x{suffix}")
    append_events(str(draft), EVENTS, f"x{suffix}")
    draft.rename(tmp_path / f"x{suffix}")

    assert read_events(str(tmp_path / f"x{suffix}")) == EVENTS


def test_what_cannot_be_written_raises_oserror(tmp_path: Path) -> None:
    """A directory that is gone; a database that another program has locked."""
    path = str(tmp_path / "x.sqlite")
    create_block_file(path, may_replace=False)
    for gone in ("none/x.csv", "none/x.sqlite"):
        with pytest.raises(OSError, match=r"No such file|unable to open"):
            append_events(str(tmp_path / gone), EVENTS)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN EXCLUSIVE")
        with pytest.raises(OSError, match="locked"):
            append_events(path, EVENTS)
        reader.execute("ROLLBACK")
    append_events(path, EVENTS)

    assert read_events(path) == EVENTS


def test_a_full_disk_tears_no_row(tmp_path: Path) -> None:
    """What was written of it is undone, and it can be written later."""
    path = str(tmp_path / "x.csv")
    create_block_file(path, may_replace=False)
    append_events(path, EVENTS[:1])
    size, limits = os.stat(path).st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
        with pytest.raises(OSError, match="too large"):
            append_events(path, EVENTS[1:])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    torn = os.stat(path).st_size - size
    append_events(path, EVENTS[1:])

    assert torn == 0
    assert read_events(path) == EVENTS


def test_a_row_that_a_kill_has_torn_is_left_out(tmp_path: Path) -> None:
    """The others are all there."""
    path = tmp_path / "x.csv"
    path.write_text("process_id,code_block_name,position,timestamp\n7,a,0,1.5\n\n7,a,1\n")

    assert read_events(str(path)) == (BlockEvent(7, "a", BEGIN, 1.5),)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "process_id,code_block_name,timestamp\n7,a,1.5\n",
        "process_id,code_block_name,position,timestamp\n7,a,2,1.5\n",
        "process_id,code_block_name,position,timestamp\n7,a,0,nan\n",
        "process_id,code_block_name,position,timestamp\nseven,a,0,1\n",
        "process_id,code_block_name,position,timestamp\n7,a\n7,a,0,1\n",
    ],
)
def test_what_is_no_sub_tracking_file_is_refused(tmp_path: Path, content: str) -> None:
    """In one sentence that says what such a file has."""
    path = tmp_path / "x.csv"
    path.write_text(content)
    with pytest.raises(RecordingError, match="needs the columns process_id, code_block_name"):
        read_events(str(path))


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A wrong name, a missing file, no text, a torn quotation, no database."""
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "quoted.csv").write_text('a,"b')
    (tmp_path / "x.sqlite").write_text("this is no database" * 100)
    with pytest.raises(UsageError, match="Invalid file name"):
        read_events("x.txt")
    with pytest.raises(RecordingError, match="No such file"):
        read_events(str(tmp_path / "none.csv"))
    with pytest.raises(RecordingError, match="not a text file"):
        read_events(str(tmp_path / "binary.csv"))
    with pytest.raises(RecordingError, match="is damaged"):
        read_events(str(tmp_path / "quoted.csv"))
    for name in ("x.sqlite", "none.sqlite"):
        with pytest.raises(RecordingError, match="Cannot read"):
            read_events(str(tmp_path / name))


@BOTH
def test_a_tracking_file_of_ours_is_read_back(tmp_path: Path, suffix: str) -> None:
    """Unknown figures are None, and times ascend."""
    path = str(tmp_path / f"x{suffix}")
    create_tracking_file(path)
    file = TrackingFile(path, header(started_at="1970-01-01T00:01:00+0000"), TrackingUnits())
    for seconds in (0.0, 1.0, 2.0):
        file.add(plain_sample(seconds), ())
    file.close(())
    table = read_tracking_table(path)

    assert table.columns == tuple(name for name, _ in DATA_COLUMNS if name != "timestamp")
    assert table.timestamps == (60.0, 61.0, 62.0)
    assert [row[table.columns.index("cpu_main_sum_utilization_percent")] for row in table.rows] == [
        None,
        pytest.approx(100.0),
        pytest.approx(100.0),
    ]
    assert (table.static_data["ram_unit"], table.static_data["system_core_count"]) == ("gigabytes", 4)


def test_rows_of_other_tools_may_be_in_any_order(tmp_path: Path) -> None:
    """And have figures that are none, or a last row that is torn."""
    path = tmp_path / "x.csv"
    path.write_text(
        "ram_unit,share,count,limit\nbytes,0.5,nan,inf\nmain_ram,timestamp\n2,20.5\nnan,10.5\n,5\n3\n"
    )
    table = read_tracking_table(str(path))

    assert table.static_data == {"ram_unit": "bytes", "share": 0.5, "count": None, "limit": None}
    assert table.timestamps == (5.0, 10.5, 20.5)
    assert table.rows == ((None,), (None,), (2.0,))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "ram_unit\n",
        "ram_unit\nbytes\nmain_ram\n5\n",
        "ram_unit\nbytes\nmain_ram,timestamp\n5,\n",
        "ram_unit\nbytes\nmain_ram,timestamp\nmuch,5\n",
        "ram_unit,time_unit\nbytes\nmain_ram,timestamp\n",
    ],
)
def test_what_is_no_tracking_file_is_refused(tmp_path: Path, content: str) -> None:
    """Half of the figures would mislead."""
    path = tmp_path / "x.csv"
    path.write_text(content)
    with pytest.raises(RecordingError, match="is not a tracking file, or it is damaged"):
        read_tracking_table(str(path))

"""`gpu-tracker export`, and tracking files of real jobs."""

from __future__ import annotations

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpu_tracker import Tracker
from recordings_made import make_full


def export(command_line: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        [command_line, "export", *map(str, arguments)], capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet", "sqlite", "json"])
def test_every_format_is_written(command_line: str, tmp_path: Path, suffix: str) -> None:
    """Whole, and nothing beside it."""
    path = make_full(tmp_path / "x.jsonl")
    finished = export(command_line, path, "-o", tmp_path / f"y.{suffix}")

    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(["x.jsonl", f"y.{suffix}"])


def test_one_table_or_all(command_line: str, tmp_path: Path) -> None:
    """Where the format can hold them."""
    path = make_full(tmp_path / "x.jsonl")
    export(command_line, path, "-o", tmp_path / "r.csv", "--table", "regions")
    export(command_line, path, "-o", tmp_path / "r.json", "--table", "metrics")
    export(command_line, path, "-o", tmp_path / "all.json")

    assert (tmp_path / "r.csv").read_text().startswith('"pid","path","calls"')
    assert set(json.loads((tmp_path / "all.json").read_text())) >= {"samples", "regions", "metrics", "gpus"}
    assert "samples" not in json.loads((tmp_path / "r.json").read_text())


def test_what_cannot_be_done_is_one_sentence(command_line: str, tmp_path: Path) -> None:
    """And nothing is written."""
    path = make_full(tmp_path / "x.jsonl")
    (tmp_path / "there.csv").write_text("before")
    (tmp_path / "z.json").symlink_to(path)
    for arguments, sentence in (
        ((path, "-o", tmp_path / "y.xlsx"), "tells no format"),
        ((path, "-o", tmp_path / "y.csv", "--table", "all"), "holds one table"),
        ((path, "-o", tmp_path / "y.csv", "--table", "steps"), "is not a table"),
        ((path, "-o", tmp_path / "y.csv", "--layout", "round"), "is not a layout"),
        ((path, "-o", tmp_path / "y.json", "--layout", "tracking"), "Invalid file name"),
        ((path, "-o", tmp_path / "y.csv", "--layout", "tracking", "--ru", "GB"), "not a valid RAM unit"),
        ((path, "-o", tmp_path / "there.csv"), "exists already"),
        ((path, "-o", tmp_path / "z.json", "--overwrite"), "is the recording itself"),
        ((tmp_path / "none", "-o", tmp_path / "y.csv"), "No such file"),
    ):
        finished = export(command_line, *arguments)
        assert finished.returncode in (1, 2)
        assert sentence in finished.stderr
        assert len(finished.stderr.splitlines()) == 1

    assert (tmp_path / "there.csv").read_text() == "before"
    assert not (tmp_path / "y.csv").exists()
    assert export(command_line, path, "-o", tmp_path / "there.csv", "--overwrite").returncode == 0
    assert (tmp_path / "there.csv").read_text() != "before"


def test_damaged_lines_are_said(command_line: str, tmp_path: Path) -> None:
    """Beside the result, which has the others."""
    path = make_full(tmp_path / "x.jsonl")
    path.write_bytes(path.read_bytes() + b"nonsense\n")

    assert "is damaged" in export(command_line, path, "-o", tmp_path / "y.csv").stderr


@pytest.mark.parametrize("suffix", ["csv", "sqlite"])
def test_the_layout_of_a_tracking_file(command_line: str, tmp_path: Path, suffix: str) -> None:
    """One row per sample below what does not change."""
    path, output = make_full(tmp_path / "x.jsonl"), tmp_path / f"y.{suffix}"
    assert export(command_line, path, "-o", output, "--layout", "tracking", "--ru", "bytes").returncode == 0
    static, rows = read_tracking(output)

    assert (static["ram_unit"], float(static["ram_system_capacity"])) == ("bytes", 16e9)
    assert [float(row["combined_ram"]) for row in rows] == [5.0, 6.0, 6.0]


def read_tracking(path: Path) -> tuple[dict[str, str], list[dict[str, str]]]:
    """What does not change, and the rows."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            names, values, columns, *rows = csv.reader(file)
        return dict(zip(names, values, strict=True)), [dict(zip(columns, row, strict=True)) for row in rows]
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    try:
        (static,) = connection.execute("SELECT * FROM static_data").fetchall()
        return dict(static), [dict(row) for row in connection.execute("SELECT * FROM data")]
    finally:
        connection.close()


@pytest.mark.parametrize("suffix", ["csv", "sqlite"])
def test_a_tracker_writes_a_tracking_file(tmp_path: Path, suffix: str) -> None:
    """While it tracks; the resident memory is that of the process."""
    path = tmp_path / f"x.{suffix}"
    with Tracker(sleep_time=0.1, ram_unit="megabytes", disable_logs=True, tracking_file=path):
        time.sleep(0.5)
    static, rows = read_tracking(path)

    assert static["ram_unit"] == "megabytes"
    assert len(rows) >= 3
    assert all(5 < float(row["main_ram"]) < 2000 for row in rows)


def test_a_kill_leaves_the_rows_so_far(command_line: str, tmp_path: Path) -> None:
    """The command line is killed, and the job with it."""
    path = tmp_path / "x.csv"
    arguments = [
        "run",
        "--no-record",
        "--st",
        "0.1",
        "--tf",
        str(path),
        "--",
        sys.executable,
        "-c",
        "input()",
    ]
    with subprocess.Popen([command_line, *arguments], stdin=subprocess.PIPE, cwd=tmp_path) as process:
        deadline = time.monotonic() + 30
        while not path.exists() or path.read_bytes().count(b"\n") < 8:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    _, rows = read_tracking(path)

    assert len(rows) >= 5
    assert float(rows[-1]["timestamp"]) > float(rows[0]["timestamp"])


def test_a_tracking_file_is_checked_before_the_job_starts(command_line: str, tmp_path: Path) -> None:
    """The job is not even started, and no file is left of a command that does not exist."""
    for name, job, code in (("x.txt", "touch", 2), ("y.csv", "no-such-command", 127)):
        finished = subprocess.run(
            [command_line, "-e", f"{job} made", "--tf", name], cwd=tmp_path, capture_output=True, text=True
        )
        assert finished.returncode == code

    assert list(tmp_path.iterdir()) == []

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

from cli.conftest import Run
from gpu_tracker import Tracker
from nvml_simulator import Simulator
from patience import polls, wait_until
from recorded import Made, make_full, plain_sample


def export(command_line: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        [command_line, "export", *map(str, arguments)], capture_output=True, text=True, timeout=200
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
    assert set(json.loads((tmp_path / "all.json").read_text())) >= {
        "samples",
        "regions",
        "calls",
        "metrics",
        "gpus",
    }
    assert "samples" not in json.loads((tmp_path / "r.json").read_text())


def test_what_cannot_be_done_is_one_sentence(command_line: str, tmp_path: Path) -> None:
    """And nothing is written."""
    path = make_full(tmp_path / "x.jsonl")
    (tmp_path / "there.csv").write_text("before")
    (tmp_path / "z.json").symlink_to(path)
    for arguments, sentence in (
        ((path, "-o", tmp_path / "y.xlsx"), "Unknown format '.xlsx'"),
        ((path, "-o", tmp_path / "y.csv", "--table", "all"), "holds one table"),
        ((path, "-o", tmp_path / "y.csv", "--table", "steps"), "is not a table"),
        ((path, "-o", tmp_path / "y.csv", "--layout", "round"), "is not a layout"),
        ((path, "-o", tmp_path / "y.json", "--layout", "tracking"), "Invalid file name"),
        (
            (path, "-o", tmp_path / "y.csv", "--layout", "tracking", "--table", "regions"),
            "has only one table",
        ),
        ((path, "-o", tmp_path / "y.csv", "--layout", "tracking", "--ru", "GB"), "not a valid RAM unit"),
        ((path, "-o", tmp_path / "there.csv"), "already exists"),
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


def test_an_export_is_replaced_by_the_next(command_line: str, tmp_path: Path) -> None:
    """It has the header of its recording, but is none."""
    path = make_full(tmp_path / "x.jsonl")
    for _ in range(2):
        finished = export(command_line, path, "-o", tmp_path / "y.json", "--overwrite")
        assert (finished.returncode, finished.stderr) == (0, "")
    assert export(command_line, path, "-o", tmp_path / "x.jsonl", "--overwrite").returncode != 0


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


@pytest.mark.parametrize(("suffix", "arguments"), [("csv", ["--layout", "tracking"]), ("json", [])])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_draft(
    command_line: str, tmp_path: Path, suffix: str, arguments: list[str], number: signal.Signals
) -> None:
    """And it ends the command as it ends any other."""
    path, output = make_long(tmp_path / "x.jsonl"), tmp_path / f"y.{suffix}"
    with subprocess.Popen([command_line, "export", str(path), "-o", str(output), *arguments]) as process:
        assert any([*tmp_path.glob("*.tmp")] for _ in polls(30, 0.001))
        process.send_signal(number)

    assert process.returncode == -number
    assert [file.name for file in tmp_path.iterdir()] == ["x.jsonl"]


def make_long(path: Path) -> Path:
    """A recording that takes a while to export: one sample again and again, each a second later."""
    with Made(path) as writer:
        writer.write_sample(plain_sample(0.0))
    first = path.read_text().splitlines()[1]
    assert '"at":0.0' in first.replace(" ", "")
    before, _, after = first.partition("0.0")
    with path.open("a", encoding="ascii") as file:
        file.writelines(f"{before}{second}.0{after}\n" for second in range(1, 20_000))
    return path


def test_a_link_in_the_place_of_a_draft_is_not_followed(command_line: str, tmp_path: Path) -> None:
    """Nobody can foresee the name of a draft, so a file that looks like one is in nobody's way."""
    path, victim = make_full(tmp_path / "x.jsonl"), tmp_path / "victim"
    victim.write_text("precious")
    script = (
        "for output in a.json b.csv; do ln -s victim $output.$$.tmp; done\n"
        f'exec {command_line} $0 $1 -o $2 ${{3+"$3"}}'
    )
    for words in (["report", path, "a.json"], ["export", path, "b.csv", "--overwrite"]):
        finished = subprocess.run(
            ["sh", "-c", script, *map(str, words)], cwd=tmp_path, capture_output=True, text=True
        )
        assert (finished.returncode, finished.stderr) == (0, "")

    assert victim.read_text() == "precious"
    assert (tmp_path / "a.json").is_file()
    assert (tmp_path / "b.csv").is_file()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions(command_line: str, tmp_path: Path, mode: int) -> None:
    """Who may not read the old one may not read the new one."""
    path = make_full(tmp_path / "x.jsonl")
    for command, name, arguments in (("export", "y.csv", ["--overwrite"]), ("report", "y.txt", [])):
        output = tmp_path / name
        output.write_text("before")
        output.chmod(mode)
        subprocess.run([command_line, command, str(path), "-o", str(output), *arguments], check=True)

        assert output.read_text() != "before"
        assert output.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("suffix", ["csv", "sqlite", "json"])
@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_an_export_has_the_readers_of_its_recording(
    command_line: str, tmp_path: Path, suffix: str, mode: int
) -> None:
    """It holds the same."""
    path, output = make_full(tmp_path / "x.jsonl"), tmp_path / f"y.{suffix}"
    path.chmod(mode)
    subprocess.run([command_line, "export", path, "-o", output], check=True)

    assert output.stat().st_mode & 0o777 == mode


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
        wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") >= 8, "there are rows")
        os.kill(process.pid, signal.SIGKILL)
    _, rows = read_tracking(path)

    assert len(rows) >= 5
    assert float(rows[-1]["timestamp"]) > float(rows[0]["timestamp"])


@pytest.mark.parametrize("suffix", ["csv", "sqlite"])
def test_a_driver_that_takes_its_time_is_in_the_tracking_file(
    run: Run, hardware: Simulator, tmp_path: Path, suffix: str
) -> None:
    """Its devices are counted, and nothing is 0 that was not known yet."""
    hardware.delay("nvmlInit*", 2500)
    hardware.set_utilization(0, 80)
    finished = run("run", "--no-record", "--st", "0.2", "--tf", f"x.{suffix}", "--", "sleep", "4")
    static, rows = read_tracking(tmp_path / f"x.{suffix}")
    busy = [row["gpu_sum_utilization_percent"] for row in rows]

    assert finished.returncode == 0
    assert (int(static["system_gpu_count"]), int(static["n_expected_gpus"])) == (2, 2)
    assert float(static["gpu_ram_system_capacity"]) > 70
    assert busy[0] in ("", None)
    assert float(busy[-1]) == 80.0
    assert {float(value) for value in busy if value not in ("", None)} == {80.0}


def test_a_driver_that_hangs_leaves_its_columns_empty(run: Run, hardware: Simulator, tmp_path: Path) -> None:
    """How many GPUs there are is not known, which is not none."""
    hardware.delay("nvmlInit*", 20_000)
    run("run", "--no-record", "--st", "0.2", "--tf", "x.csv", "--", "sleep", "0.5")
    static, rows = read_tracking(tmp_path / "x.csv")

    assert (static["system_gpu_count"], static["gpu_ram_system_capacity"]) == ("", "")
    assert len(rows) >= 2
    assert {row["system_gpu_ram"] for row in rows} == {""}


def test_an_export_of_a_run_without_its_driver_leaves_the_same_columns_empty(
    run: Run, hardware: Simulator, tmp_path: Path
) -> None:
    """As the file that is written while the job runs."""
    hardware.hang("nvmlInit*")
    run("run", "--record", "x.jsonl", "--st", "0.2", "--tf", "live.csv", "--", "sleep", "0.5")
    run("export", "x.jsonl", "--layout", "tracking", "-o", "later.csv")
    columns = ("system_gpu_count", "gpu_ram_system_capacity")
    (live, live_rows), (later, rows) = (read_tracking(tmp_path / name) for name in ("live.csv", "later.csv"))

    assert [live[column] for column in columns] == [later[column] for column in columns] == ["", ""]
    assert {row["system_gpu_ram"] for row in [*live_rows, *rows]} == {""}


def test_a_refused_run_leaves_nothing(run: Run, tmp_path: Path) -> None:
    """So that the corrected one is not refused for what the first has left."""
    (tmp_path / "there.jsonl").write_text("somebody else's")
    before = sorted(tmp_path.iterdir())
    for wrong in (["--record", "there.jsonl"], ["--record", "y.jsonl", "--guuids", "GPU-7"]):
        for command in (
            ["run", *wrong, "--tf", "x.csv", "--", "true"],
            ["attach", *wrong, "--tf", "x.csv", "1"],
        ):
            finished = run(*command)

            assert (finished.returncode, finished.stderr.count("\n")) == (2, 1)
            assert sorted(tmp_path.iterdir()) == before
    assert (
        run("run", "--record", "y.jsonl", "--tf", "x.csv", "--guuids", "GPU-1", "--", "true").returncode == 0
    )


def test_a_tracking_file_is_checked_before_the_job_starts(command_line: str, tmp_path: Path) -> None:
    """The job is not even started, and no file is left of a command that does not exist."""
    for name, job, code in (("x.txt", "touch", 2), ("y.csv", "no-such-command", 127)):
        finished = subprocess.run(
            [command_line, "-e", f"{job} made", "--tf", name], cwd=tmp_path, capture_output=True, text=True
        )
        assert finished.returncode == code

    assert list(tmp_path.iterdir()) == []

"""The recordings of a directory."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from gpu_tracker.live.server import runs as module
from gpu_tracker.live.server.runs import RunDirectory, make_key, parse_key
from live.server.conftest import Grown
from recorded import run, write

NAMES = [
    "a b.jsonl",
    "a%2Fb.jsonl",
    '"><script>.jsonl',
    "é.jsonl",
    os.fsdecode(b"\xff\xfe.jsonl"),
    "a&name=b.jsonl",
    "\n.jsonl",
]


@pytest.fixture
def directory(runs: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """Two runs, looked at anew each time."""
    monkeypatch.setattr(module, "_SHORTEST_SECONDS", 0.0)
    monkeypatch.setattr(module, "_SHARE", 1e9)
    return RunDirectory(str(runs))


def list_names(directory: RunDirectory) -> list[str]:
    """The names, newest first."""
    return [run.path for run in directory.look().runs]


def test_runs_are_listed_newest_first(directory: RunDirectory, runs: Path) -> None:
    """By when their files were written to."""
    os.utime(runs / "run-1.jsonl", (1, 1))
    listing = directory.look()
    assert [(run.path, run.ending) for run in listing.runs] == [
        ("run-2.jsonl", "exited"),
        ("run-1.jsonl", "exited"),
    ]
    assert (listing.n_files, listing.n_unread, listing.problem) == (2, 0, "")


def test_ranks_in_directories_of_jobs_are_listed(directory: RunDirectory, runs: Path) -> None:
    """And found, by their place in the directory; what is below them, or in other directories, is not."""
    for place in ("job-7/s0-n1-r0.jsonl", "job-7/deeper/x.jsonl", "other/x.jsonl"):
        (runs / place).parent.mkdir(parents=True, exist_ok=True)
        write(runs / place, run())
    (runs / "job-8").symlink_to(runs / "other")
    (runs / "job-7/up.jsonl").symlink_to(runs / "run-1.jsonl")
    found = directory.find(make_key("job-7/s0-n1-r0.jsonl"))

    assert sorted(list_names(directory)) == ["job-7/s0-n1-r0.jsonl", "run-1.jsonl", "run-2.jsonl"]
    assert found is not None
    assert found.path == str(runs / "job-7/s0-n1-r0.jsonl")
    for name in (
        "job-7/deeper/x.jsonl",
        "other/x.jsonl",
        "job-8/x.jsonl",
        "job-7/up.jsonl",
        "job-7/../run-1.jsonl",
        "/run-1.jsonl",
        "./run-1.jsonl",
        "job-7/",
        "job-9/x.jsonl",
    ):
        assert directory.find(make_key(name)) is None


def test_a_job_that_vanishes_costs_only_itself(
    directory: RunDirectory, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the directory and the look into it."""
    (runs / "job-7").mkdir()
    real = os.listdir

    def remove_first(path: str) -> list[str]:
        (runs / "job-7").rmdir()
        return real(path)

    monkeypatch.setattr("gpu_tracker.live.server.runs.os.listdir", remove_first)

    assert sorted(list_names(directory)) == ["run-1.jsonl", "run-2.jsonl"]


def test_a_file_is_read_again_only_if_it_has_changed(directory: RunDirectory, runs: Path) -> None:
    """What is known of the others stays the same object."""
    os.utime(runs / "run-1.jsonl", (1, 1))
    before = directory.look().runs
    write(runs / "new.jsonl", run(6.0, 700))
    shutil.copy(runs / "new.jsonl", runs / "run-2.jsonl")
    after = {run.path: run for run in directory.look().runs}
    assert after["run-1.jsonl"] is before[1]
    assert after["run-2.jsonl"].values["peak_ram"] == 700e6
    (runs / "run-1.jsonl").unlink()
    assert "run-1.jsonl" not in list_names(directory)


def test_who_looks_again_at_once_sees_the_same(runs: Path) -> None:
    """However many look."""
    directory = RunDirectory(str(runs))
    assert directory.look() is directory.look()


def test_a_silent_job_is_running_no_more(directory: RunDirectory, grow: object) -> None:
    """Its file does not change, but time passes."""
    grown: Grown = grow()  # type: ignore[operator]
    grown.grow(9)
    assert {run.path: run.ending for run in directory.look().runs}["live.jsonl"] == "running"
    os.utime(grown.path, (time.time() - 5, time.time() - 5))
    assert {run.path: run.ending for run in directory.look().runs}["live.jsonl"] == "running"
    os.utime(grown.path, (time.time() - 100, time.time() - 100))
    assert {run.path: run.ending for run in directory.look().runs}["live.jsonl"] == "killed"


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_asked_for(directory: RunDirectory, runs: Path, name: str) -> None:
    """Its key is plain text, and means it alone."""
    shutil.copy(runs / "run-1.jsonl", runs / name)
    key = make_key(name)
    found = directory.find(key)
    assert found is not None
    assert (found.name, key.isascii(), key.isprintable(), parse_key(key)) == (name, True, True, name)
    assert name in list_names(directory)


@pytest.mark.parametrize(
    "key",
    [
        *(
            "",
            ".",
            "..",
            "../runs/run-1.jsonl",
            "..%2Fruns%2Frun-1.jsonl",
            "%2e%2e%2fruns%2frun-1.jsonl",
            "./run-1.jsonl",
        ),
        *(
            "%252e%252e%252fx.jsonl",
            "/etc/passwd",
            "run-1.jsonl/",
            "run-1.jsonl%00",
            "run-1",
            "nothing.jsonl",
            "x" * 5000 + ".jsonl",
        ),
        *("..\\run-1.jsonl", "inside", "inside.jsonl/a.jsonl"),
    ],
)
def test_nothing_else_can_be_asked_for(directory: RunDirectory, runs: Path, key: str) -> None:
    """Neither by a path nor by an encoded one."""
    (runs / "inside.jsonl").mkdir()
    shutil.copy(runs / "run-1.jsonl", runs / "inside.jsonl" / "a.jsonl")
    assert directory.find(key) is None


def test_links_lead_nowhere_else(directory: RunDirectory, runs: Path, tmp_path: Path) -> None:
    """Not to a file, nor through a directory; within the directory they are followed."""
    shutil.copy(runs / "run-1.jsonl", tmp_path / "secret.jsonl")
    (runs / "out.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (runs / "up.jsonl").symlink_to("../secret.jsonl")
    (runs / "folder").symlink_to(tmp_path)
    (runs / "far.jsonl").symlink_to("folder/secret.jsonl")
    (runs / "passwd.jsonl").symlink_to("/etc/passwd")
    (runs / "broken.jsonl").symlink_to("nothing.jsonl")
    (runs / "loop.jsonl").symlink_to("loop.jsonl")
    (runs / "in.jsonl").symlink_to("run-1.jsonl")

    assert sorted(list_names(directory)) == ["in.jsonl", "run-1.jsonl", "run-2.jsonl"]
    for name in ("out", "up", "far", "passwd", "broken", "loop"):
        assert directory.find(f"{name}.jsonl") is None
    found = directory.find("in.jsonl")
    assert found is not None
    assert found.path == str(runs / "run-1.jsonl")


def test_a_directory_that_is_itself_a_link(runs: Path, tmp_path: Path) -> None:
    """Is what it leads to."""
    (tmp_path / "link").symlink_to(runs)
    directory = RunDirectory(str(tmp_path / "link"))
    assert len(directory.look().runs) == 2
    assert directory.find("run-1.jsonl") is not None


def test_what_is_no_file_is_not_opened(directory: RunDirectory, runs: Path) -> None:
    """A pipe would block for ever."""
    os.mkfifo(runs / "pipe.jsonl")
    assert directory.find("pipe.jsonl") is None
    assert len(directory.look().runs) == 2


def test_files_that_are_none_of_ours_are_damaged(directory: RunDirectory, runs: Path) -> None:
    """Nothing fails because of them."""
    (runs / "text.jsonl").write_text("hello\n")
    (runs / "empty.jsonl").write_text("")
    (runs / "deep.jsonl").write_bytes(b"[" * 100_000 + b"\n")
    (runs / "zeros.jsonl").write_bytes(bytes(100_000))
    problems = {run.path: run.problem for run in directory.look().runs if run.problem}
    assert sorted(problems) == ["deep.jsonl", "empty.jsonl", "text.jsonl", "zeros.jsonl"]


def test_a_directory_that_is_gone(directory: RunDirectory, runs: Path) -> None:
    """Is a sentence; it may come back."""
    runs.rename(runs.with_name("away"))
    assert directory.look().problem == f"Cannot read {runs}: No such file or directory."
    assert directory.find("run-1.jsonl") is None
    runs.with_name("away").rename(runs)
    assert len(directory.look().runs) == 2


def test_ten_thousand_runs_and_more(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest are read first, for a short time; the next look goes on; the oldest are left out."""
    for number in range(10_050):
        os.link(runs / "run-1.jsonl", runs / f"{number:05}.jsonl")
    monkeypatch.setattr(module, "_READING_SECONDS", 0.2)
    directory = RunDirectory(str(runs))
    first = directory.look()
    assert 0 < len(first.runs) < 10_000
    assert (first.n_files, len(first.runs) + first.n_unread) == (10_052, 10_000)
    listing = first
    while listing.n_unread:
        n_read = len(listing.runs)
        listing = directory.look()
        assert len(listing.runs) > n_read
    assert (len(listing.runs), listing.n_files) == (10_000, 10_052)


def test_looking_again_at_known_runs_leaves_time_for_new_ones(
    directory: RunDirectory, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else, on a slow file system, thousands that are known would let only one new one in at a time."""
    for number in range(20):
        os.link(runs / "run-1.jsonl", runs / f"{number:05}.jsonl")
    directory.look()
    for number in range(5):
        os.link(runs / "run-1.jsonl", runs / f"!{number}.jsonl")  # after the others
    now, read = [time.monotonic() + 1.0], directory._read
    began = now[0]

    def take_a_second(*arguments: Any) -> Any:
        now[0] += 1.0
        return read(*arguments)

    monkeypatch.setattr(directory, "_read", take_a_second)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module, "_READING_SECONDS", 10.0)

    assert directory.look().n_unread == 0
    assert now[0] == began + 27

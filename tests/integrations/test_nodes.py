"""Recordings of a job on many machines are where the job is, whoever has which directory."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import gpu_tracker as gput
from gpu_tracker.integrations.nodes import Job, read_part, remove
from patience import wait_until


class Elsewhere(Job):
    """A job with recordings on other machines, which begin with it."""

    def __init__(self, record: str | Path | None, *recordings: tuple[str, Path]) -> None:
        super().__init__(record)
        self.recordings_there = recordings
        self.n_looks = 0
        self.is_lost = False
        self.is_over = False

    def _begin(self) -> None:
        for host, path in self.recordings_there:
            self._add(host, str(path), partial(self._read, str(path)))

    def _look(self) -> None:
        self.n_looks += 1
        if self.n_looks == 1:
            raise ConnectionError("busy")
        self._begin()  # they are known already

    def _end(self) -> None:
        self._bring()
        if self.is_over:
            raise ConnectionError("closed")

    def _read(self, path: str, offset: int) -> bytes:
        if self.is_lost:
            raise ConnectionError("gone")
        return read_part(path, offset)


@pytest.fixture
def record_run(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a short recording in a directory."""

    def make(name: str) -> Path:
        with gput.Tracker(record=tmp_path / name / "run.jsonl", sleep_time=0.05):
            pass
        return tmp_path / name / "run.jsonl"

    return make


def test_a_directory_is_shared_if_the_same_file_is_in_it(tmp_path: Path) -> None:
    """By another path it would not be the same: then there is a new one."""
    job = Elsewhere(tmp_path / "runs")
    other = job.place._replace(directory=str(tmp_path / "others"))
    directory, is_shared = other.choose()

    assert job.place.choose() == (str(tmp_path / "runs"), True)
    assert not is_shared
    assert Path(directory).is_dir()
    remove(directory)
    assert not Path(directory).exists()


def test_recordings_of_the_same_name_are_all_brought(
    tmp_path: Path, record_run: Callable[[str], Path]
) -> None:
    """Two machines, or two runs, may use it."""
    there = record_run("one"), record_run("other")
    with Elsewhere(tmp_path / "runs", *(("node", path) for path in there)) as job:
        pass

    assert [Path(path).name for path in job.recordings] == ["node-run.jsonl", "node-run-2.jsonl"]
    assert [Path(path).read_bytes() for path in job.recordings] == [path.read_bytes() for path in there]
    assert len(job.combined.ranks) == 2
    assert str(job).startswith("2 recordings on 1 host")
    assert sorted(os.listdir(tmp_path / "runs")) == ["node-run-2.jsonl", "node-run.jsonl"]


def test_what_is_new_is_brought_while_it_is_written(
    tmp_path: Path, record_run: Callable[[str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    """So a machine that is lost has little left to lose; whatever the engine raises meanwhile is said once."""
    there = record_run("there")
    whole = there.read_bytes()
    first = whole.index(b"\n") + 1
    there.write_bytes(whole[:first])
    with Elsewhere(tmp_path / "runs", ("node", there)) as job:
        copy = Path(job.recordings[0])
        wait_until(lambda: copy.read_bytes() == whole[:first], "the first line is brought")
        there.write_bytes(whole)
        wait_until(lambda: copy.read_bytes() == whole, "the rest is brought")
        job.is_lost = True

    assert copy.read_bytes() == whole
    assert "cannot be found: ConnectionError: busy." in caplog.text
    assert "may be without its end" in caplog.text
    assert "on node cannot be read any more (ConnectionError)" in caplog.text


def test_an_engine_that_has_ended_costs_nobody_his_result(
    tmp_path: Path, record_run: Callable[[str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    """It is said, and what was brought is there."""
    with Elsewhere(tmp_path / "runs", ("node", record_run("there"))) as job:
        job.is_over = True

    assert "could not be ended everywhere: ConnectionError: closed." in caplog.text
    assert gput.load(job.recordings[0]).is_complete


def test_without_a_directory_there_is_one_as_long_as_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless a variable names one."""
    monkeypatch.delenv("GPU_TRACKER_RECORD", raising=False)
    job = Elsewhere(None)
    directory = Path(job.place.directory)
    assert directory.is_dir()
    del job
    gc.collect()
    assert not directory.exists()


def test_a_variable_names_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a tracker."""
    monkeypatch.setenv("GPU_TRACKER_RECORD", str(tmp_path / "named"))

    assert Elsewhere(None).place.directory == str(tmp_path / "named")

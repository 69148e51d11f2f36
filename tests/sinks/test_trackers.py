"""W&B, MLflow and TensorBoard get the figures of the recording, on the steps of the training."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput
from gpu_tracker.analysis.published import make_point
from gpu_tracker.core.moments import parse_moment
from sinks.read_back import (
    Stored,
    read_mlflow,
    read_mlflow_database,
    read_published,
    read_tensorboard,
    read_wandb,
)

PROGRAM = Path(__file__).parent / "programs/train.py"
STEPS = [0, 10, 20, 30, 40, 50]
LOSSES = [1 / number for number in range(1, 7)]
PACKAGES = {
    "wandb": ("wandb",),
    "mlflow": ("mlflow",),
    "mlflow-sqlite": ("mlflow", "sqlalchemy", "alembic"),
    "tensorboardX": ("tensorboardX", "tensorboard"),
    "torch": ("torch", "tensorboard"),
}
# What the next reading of a counter still tells about the intervals since the last one.
LATE = "_bytes_per_second"
READERS: dict[str, Callable[[Path], list[Stored]]] = {
    "mlflow": read_mlflow,
    "mlflow-sqlite": read_mlflow_database,
    "tensorboardX": read_tensorboard,
    "torch": read_tensorboard,
}


@pytest.fixture(autouse=True)
def _allow_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow would rather have a database, which takes it ten seconds to make."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")


def train(kind: str, directory: Path, case: str) -> dict[str, Any]:
    """Run the program, and return what it says at its end."""
    for package in PACKAGES[kind]:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed (make test WITH=sinks)")
    command = [sys.executable, str(PROGRAM), kind, str(directory), case]
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    *_, last = done.stdout.splitlines()
    return dict(json.loads(last))


def find_truth(directory: Path) -> list[tuple[float, set[int], dict[str, float]]]:
    """Of each interval that was recorded: its moment, the steps that may have been known then, its figures."""
    began_at = parse_moment(gput.load(directory / "run.jsonl").header.started_at)
    assert began_at is not None
    points = [make_point(published, began_at) for published in read_published(directory)]
    # The step is written just after the sample, so a look in between sees the one before.
    before = [points[0], *points]
    return [
        (point.at_seconds, {point.step, earlier.step}, dict(point.values))
        for point, earlier in zip(points, before, strict=False)
    ]


def to_milliseconds(seconds: float) -> float:
    """As MLflow stores a moment."""
    return int(1000 * seconds) / 1000


def to_single(value: float) -> float:
    """As TensorBoard stores it."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def choose_ours(row: dict[str, Any]) -> dict[str, float]:
    """Our figures of an interval."""
    return {
        name: value
        for name, value in row.items()
        if name.startswith("gpu_tracker/") and not name.endswith(LATE)
    }


@pytest.mark.parametrize("kind", READERS)
def test_figures_and_steps_are_those_of_the_recording(kind: str, tmp_path: Path) -> None:
    """Each point has the moment, the values and the training step of an interval; what the program logs is as without a sink."""
    told = train(kind, tmp_path, "explicit")
    stored = READERS[kind](tmp_path)
    ours = [one for one in stored if one.name.startswith("gpu_tracker/")]
    of_the_run = {one.name: one.value for one in ours if one.name.startswith("gpu_tracker/run/")}
    store, keep_time = (float, to_milliseconds) if kind.startswith("mlflow") else (to_single, float)
    truth = find_truth(tmp_path)

    assert told["notes"] == []
    assert [(one.step, one.value) for one in stored if one.name == "loss"] == [
        (step, store(loss)) for step, loss in zip(STEPS, LOSSES, strict=True)
    ]
    assert len({one.at_seconds for one in ours}) > 3
    assert len({one.step for one in ours} & {*STEPS}) > 2
    for one in ours:
        if one.name in of_the_run or one.name.endswith(LATE):
            continue
        assert (one.step, one.value) in [
            (step, store(values[one.name]))
            for at_seconds, steps, values in truth
            if keep_time(at_seconds) == one.at_seconds and one.name in values
            for step in steps
        ]
    report = gput.load(tmp_path / "run.jsonl").report
    assert of_the_run["gpu_tracker/run/peak_ram"] == store(report.summary.ram.combined.total_bytes)
    assert of_the_run["gpu_tracker/run/time"] == store(report.summary.seconds)


@pytest.mark.parametrize(("case", "steps"), [("explicit", STEPS), ("plain", [0, 1, 2, 3, 4, 5])])
def test_wandb_keeps_the_steps_of_the_program(case: str, steps: list[int], tmp_path: Path) -> None:
    """Rows are those of the program, with our figures in them; what came after the last is one more row, at the next step."""
    told = train("wandb", tmp_path, case)
    rows, summary = read_wandb(tmp_path)
    figures = {values["gpu_tracker/elapsed_seconds"]: values for _, _, values in find_truth(tmp_path)}
    ours = [row for row in rows if "gpu_tracker/ram_bytes" in row]

    assert told["notes"] == []
    assert [(row["_step"], row["loss"]) for row in rows if "loss" in row] == [
        *zip(steps, LOSSES, strict=True)
    ]
    assert len(rows) - len(steps) <= 1
    assert len(ours) > 1
    for row in ours:
        values = figures[row["gpu_tracker/elapsed_seconds"]]
        # What is not known of the last interval is that of one before, in the same row.
        assert choose_ours(values).items() <= choose_ours(row).items()
    assert summary["gpu_tracker/run/peak_ram"] == (
        gput.load(tmp_path / "run.jsonl").report.summary.ram.combined.total_bytes
    )


def test_wandb_rows_of_a_program_without_a_sink(tmp_path: Path) -> None:
    """The measure for the test above."""
    train("wandb", tmp_path, "without")
    rows, _ = read_wandb(tmp_path)

    assert [(row["_step"], row["loss"]) for row in rows] == [*zip(STEPS, LOSSES, strict=True)]


@pytest.mark.parametrize(
    ("kind", "reason"), [("wandb", "UsageError: Run ("), ("tensorboardX", "ValueError: the writer is closed")]
)
def test_a_run_that_is_finished_first_is_a_note(kind: str, reason: str, tmp_path: Path) -> None:
    """Nothing is raised; the notes say once how much is missing, and why."""
    told = train(kind, tmp_path, "finished")

    (note,) = told["notes"]
    assert reason in note
    assert told["is_in_report"]


def test_mlflow_takes_figures_of_a_run_that_has_ended(tmp_path: Path) -> None:
    """It belongs to the run all the same."""
    told = train("mlflow", tmp_path, "finished")

    assert told["notes"] == []
    assert "gpu_tracker/run/peak_ram" in {one.name for one in read_mlflow(tmp_path)}


@pytest.mark.parametrize("kind", READERS)
def test_a_forked_child_sends_nothing(kind: str, tmp_path: Path) -> None:
    """It leaves the block without its parent's threads, and the figures of the run are there once."""
    told = train(kind, tmp_path, "fork")
    stored = READERS[kind](tmp_path)

    assert told["notes"] == []
    assert [one.name for one in stored].count("gpu_tracker/run/peak_ram") == 1

"""Real trainings with real frameworks on the CPU: what the recording says is what the program itself has counted."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
# Our folder comes last: it has modules that are called like packages which the frameworks import.
RUN = "import runpy, sys; sys.path.append(sys.argv.pop(1)); runpy.run_module(sys.argv.pop(1), run_name='__main__')"
N_BATCHES, N_EPOCHS = 6, 2
SLOW, HEALTHY, HOOKS = "slow-loader", "healthy", "slow-hooks"

Told = dict[str, Any]


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Told]:
    """Runs the training of a framework in a scene; what it prints."""

    def run(framework: str, scene: str, *options: str, program: str | None = None) -> Told:
        for package in ("torch", framework):
            if importlib.util.find_spec(package) is None:
                pytest.skip(f"{package} is not installed (WITH=trainers)")
        program = f"integrations.trainings.train_{program or framework.removeprefix('pytorch_')}"
        command = [
            sys.executable,
            "-c",
            RUN,
            str(TESTS),
            program,
            scene,
            str(tmp_path / "run.jsonl"),
            *options,
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        *printed, last = done.stdout.splitlines()
        told: Told = json.loads(last)
        told["printed"] = [line for line in printed if line.startswith("gpu_tracker: ")]
        return told

    return run


def calls(told: Told, path: str) -> int:
    """How often a region was entered."""
    return int(told["regions"].get(path, (0, 0))[0])


def spent(told: Told, path: str) -> float:
    """The time in a region."""
    return float(told["regions"][path][1])


def rows_with(told: Told, name: str) -> list[list[float]]:
    """Steps and values of a metric."""
    return [[step, values[name]] for step, values in told["rows"] if name in values]


def check_steps(told: Told, n_steps: int, n_waits: int) -> None:
    """A wait is never shorter than the loader was; all parts together are no longer than the epochs."""
    inside = [path for path in told["regions"] if path.startswith("epoch/")]

    assert told["counted"]["step"] == N_EPOCHS * N_BATCHES
    assert calls(told, "epoch") == N_EPOCHS
    assert calls(told, "epoch/step") == n_steps
    assert calls(told, "epoch/data_wait") == n_waits
    assert told["seconds"]["load"] <= spent(told, "epoch/data_wait")
    assert spent(told, "epoch/data_wait") <= spent(told, "epoch") - told["seconds"]["hook"]
    assert told["seconds"]["step"] <= spent(told, "epoch/step")
    assert sum(spent(told, path) for path in inside) <= spent(told, "epoch")
    assert told["open"] == []


def check_pauses(told: Told, n_evaluations: int) -> None:
    """Evaluations and checkpoints take long here, begin when a step has ended, and are no waits."""
    assert calls(told, "epoch/evaluation") == n_evaluations
    assert calls(told, "epoch/checkpoint") == told["counted"]["checkpoint"] > 0
    assert told["seconds"]["checkpoint"] <= spent(told, "epoch/checkpoint")
    assert told["seconds"]["evaluation"] <= spent(told, "epoch/evaluation") + (
        spent(told, "evaluation") if calls(told, "evaluation") else 0.0
    )


def check_finding(told: Told, scene: str) -> None:
    """A slow loader is found and a healthy one is not, also in what rank 0 prints; slow hooks of the user are none."""
    assert ("waiting-for-data" in told["findings"]) == (scene == SLOW)
    assert any("[waiting-for-data]" in line for line in told["printed"]) == (scene == SLOW)


@pytest.mark.parametrize(
    ("package", "scene"),
    [("lightning", SLOW), ("lightning", HEALTHY), ("lightning", HOOKS), ("pytorch_lightning", SLOW)],
)
def test_lightning(train: Callable[..., Told], package: str, scene: str) -> None:
    """Without a logger; each loss is there once, each metric where it was made and not where it is still kept."""
    told = train(package, scene, {"lightning": "lightning.pytorch"}.get(package, package))
    losses = [[number, loss] for number, loss in enumerate(told["losses"])]

    check_steps(told, n_steps=12, n_waits=12)  # it knows in advance which batch is the last
    check_pauses(told, n_evaluations=4)
    check_finding(told, scene)
    assert calls(told, "evaluation") == 1  # the sanity check
    assert rows_with(told, "loss") == losses
    assert rows_with(told, "train_loss") == losses
    assert rows_with(told, "val_loss") == [[2, 20.0], [5, 30.0], [8, 40.0], [11, 50.0]]
    assert told["steps"] == len(losses)
    assert told["is_restored"]


@pytest.mark.parametrize(
    ("manner", "steps"), [("automatic", [0, 0, 0, 1, 1, 2, 2, 3, 3, 4]), ("manual", list(range(10)))]
)
def test_lightning_with_gradients_of_several_batches(
    train: Callable[..., Told], manner: str, steps: list[int]
) -> None:
    """Each loss is the one that the program has returned; each step number is that of Lightning's loggers."""
    told = train("lightning", HEALTHY, manner, program="lightning_accumulating")

    assert rows_with(told, "loss") == [
        [step, pytest.approx(loss)] for step, loss in zip(steps, told["losses"], strict=True)
    ]
    assert calls(told, "epoch/step") == len(told["losses"]) == 10


@pytest.mark.parametrize(("every", "accumulated"), [(1, 1), (3, 1), (2, 2)])
def test_lightning_has_the_steps_of_its_loggers(
    train: Callable[..., Told], every: int, accumulated: int
) -> None:
    """What the module logs is there at the same steps, with the same values, and at no other."""
    told = train("lightning", HEALTHY, str(every), str(accumulated), program="lightning_logger")
    names = {name for _, name, _ in told["logged"]}
    ours = [
        [step, name, value]
        for step, values in told["rows"]
        for name, value in values.items()
        if name in names
    ]

    assert names == {"of_step", "of_epoch", "of_validation"}
    assert sorted(ours) == sorted(told["logged"])


def test_lightning_resumed_in_an_epoch_and_ended_in_another(train: Callable[..., Told]) -> None:
    """Both are epochs; the last losses are logged, though it is neither the turn of the step nor the last batch."""
    told = train("lightning", HEALTHY, program="lightning_resumed")

    assert told["steps"] == 8
    assert calls(told, "epoch") == 2
    assert calls(told, "epoch/step") == len(told["losses"]) == 5
    assert calls(told, "epoch/data_wait") == 5
    assert rows_with(told, "loss") == [
        [4, pytest.approx(told["losses"][1])],
        [7, pytest.approx(told["losses"][4])],
    ]
    assert told["is_restored"]


@pytest.mark.parametrize(
    ("scene", "saving"), [(SLOW, "steps"), (HEALTHY, "steps"), (HOOKS, "steps"), (HEALTHY, "best")]
)
def test_transformers(train: Callable[..., Told], scene: str, saving: str) -> None:
    """A step waits for two batches; the best checkpoint is not announced; the metrics are those of its own history."""
    told = train("transformers", scene, saving)
    history = [[row.pop("step"), row] for row in [dict(row) for row in told["history"]]]
    losses = [value for _, value in rows_with(told, "loss")]

    check_steps(told, n_steps=6, n_waits=N_EPOCHS * (1 + N_BATCHES))  # first for the loader to begin
    check_pauses(told, n_evaluations=3)
    check_finding(told, scene)
    assert calls(told, "epoch/logging") == told["steps"] == len(losses) == 6
    assert told["rows"] == history
    assert sum(losses) == pytest.approx(sum(told["losses"]), rel=1e-4)


@pytest.mark.parametrize("scene", [SLOW, HEALTHY, HOOKS])
def test_keras(train: Callable[..., Told], scene: str) -> None:
    """Metrics at the end of each epoch, and in between those of Keras: means since the begin of the epoch."""
    told = train("keras", scene)
    history, rows = told["history"], told["rows"]

    check_steps(told, n_steps=12, n_waits=12 + N_EPOCHS)
    check_pauses(told, n_evaluations=2)
    check_finding(told, scene)
    assert [step for step, _ in rows] == [4, 6, 10, 12]
    assert [values for step, values in rows if step % N_BATCHES == 0] == [
        {"loss": loss, "val_loss": val_loss}
        for loss, val_loss in zip(history["loss"], history["val_loss"], strict=True)
    ]
    assert told["is_restored"]

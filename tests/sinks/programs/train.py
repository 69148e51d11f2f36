"""A training that logs to an experiment tracker, with a sink of ours beside it: train.py KIND DIRECTORY CASE.

Prints what the program itself knows, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import gpu_tracker as gput

STEPS = 6


class WandbLogger:
    """Offline, without what W&B measures itself."""

    def __init__(self, directory: str) -> None:
        wandb = import_module("wandb")
        settings = wandb.Settings(mode="offline", x_disable_stats=True, console="off", silent=True)
        self.run = wandb.init(project="test", dir=directory, settings=settings)
        self.sink = gput.sinks.wandb(self.run)
        self.close = self.run.finish

    def log(self, step: int | None, loss: float) -> None:
        """As the program does."""
        self.run.log({"loss": loss}, step=step)


class MlflowLogger:
    """In files, or elsewhere."""

    def __init__(self, directory: str, store: str = "file://{}/mlruns") -> None:
        mlflow = import_module("mlflow")
        mlflow.set_tracking_uri(store.format(directory))
        self.run = mlflow.start_run()
        self.sink = gput.sinks.mlflow()
        self.log_metric = mlflow.log_metric
        self.close = mlflow.end_run

    def log(self, step: int | None, loss: float) -> None:
        """As the program does."""
        self.log_metric("loss", loss, step=step)


class MlflowDatabaseLogger(MlflowLogger):
    """In a database, which is what MLflow uses unless it is told otherwise."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory, "sqlite:///{}/mlflow.db")


class TensorBoardLogger:
    """A writer of tensorboardX, or of PyTorch."""

    def __init__(self, directory: str, module: str = "tensorboardX") -> None:
        writer = import_module(module).SummaryWriter(f"{directory}/events")
        self.writer = writer
        self.sink = gput.sinks.tensorboard(writer)
        self.close = writer.close

    def log(self, step: int | None, loss: float) -> None:
        """As the program does."""
        self.writer.add_scalar("loss", loss, step)


class TorchLogger(TensorBoardLogger):
    """That of PyTorch."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory, "torch.utils.tensorboard")


LOGGERS: dict[str, Any] = {
    "wandb": WandbLogger,
    "mlflow": MlflowLogger,
    "mlflow-sqlite": MlflowDatabaseLogger,
    "tensorboardX": TensorBoardLogger,
    "torch": TorchLogger,
}


def main(kind: str, directory: str, case: str) -> None:
    """Train, in one of the ways that a program may have."""
    logger = LOGGERS[kind](directory)
    sinks = [] if case == "without" else [logger.sink]
    record = Path(directory) / "run.jsonl"
    tracker = gput.Tracker(sleep_time=0.05, every=0.02, record=record, gpu="none", sinks=sinks)
    child = -1
    with tracker:
        child = os.fork() if case == "fork" else -1
        for number in range(STEPS if child else 0):
            if case == "finished" and number == STEPS // 2:
                logger.close()
            time.sleep(0.3)
            step = None if case == "plain" else 10 * number
            gput.log(step=10 * number, loss=1 / (number + 1))
            if case != "finished":
                logger.log(step, 1 / (number + 1))
    if child == 0:
        os._exit(0)  # it has left the block, too
    if case == "fork":
        os.wait()
    if case != "finished":
        logger.close()
    report = tracker.report
    notes = [note for note in tracker.notes if "did not get" in note]
    print(json.dumps({"notes": notes, "is_in_report": report is not None and {*notes} <= {*report.notes}}))


if __name__ == "__main__":
    main(*sys.argv[1:])

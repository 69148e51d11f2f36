"""Experiment trackers. Each sink is two functions, called in a thread of ours; what they raise is told as a note."""

from __future__ import annotations

from ..core import load_module
from ..core.errors import UsageError
from ..core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..analysis.published import Point


class Sink(NamedTuple):
    """Where points go. Neither function is called in the thread of the job."""

    name: str
    """For notes."""
    send: Callable[[Point], object]
    """Called with each point while the job runs."""
    finish: Callable[[Point], object]
    """Called once, with the figures of the whole run."""


def wandb(run: Any) -> Sink:
    """A run of Weights & Biases: what `wandb.init()` returns.

    The figures join the row that the program logs next, so they have its step and add none.
    """
    # A row of our own would take a step from the program.
    return Sink(
        "W&B",
        lambda point: run.log(dict(point.values), commit=False),
        lambda point: run.summary.update(dict(point.values)),
    )


def mlflow(run: Any = None, *, step: Callable[[], float] | None = None) -> Sink:
    """A run of MLflow, or its ID; by default the active one.

    `step` is asked for the training step; without it, the last one that was logged by `gpu_tracker.log` counts.
    """
    module = load_module("mlflow")
    run = module.active_run() if run is None else run
    if run is None:
        raise UsageError("MLflow has no active run.", "Call mlflow.start_run() first, or give the run.")
    run_id = run if isinstance(run, str) else run.info.run_id
    # It keeps the address of now: the program may set another one later.
    client = module.MlflowClient(module.get_tracking_uri())
    make = load_module("mlflow.entities").Metric

    def send(point: Point) -> None:
        milliseconds, at_step = int(1000 * point.at_seconds), _find_step(point, step)
        client.log_batch(
            run_id, metrics=[make(*item, milliseconds, at_step) for item in point.values.items()]
        )

    return Sink("MLflow", send, send)


def tensorboard(writer: Any, *, step: Callable[[], float] | None = None) -> Sink:
    """A `SummaryWriter` of `torch.utils.tensorboard` or of `tensorboardX`.

    `step` is asked for the training step; without it, the last one that was logged by `gpu_tracker.log` counts.
    """

    def send(point: Point) -> None:
        # A writer that was closed would begin another file, and leave it open.
        if getattr(writer, "all_writers", writer) is None:
            raise ValueError("the writer is closed")
        at_step = _find_step(point, step)
        for name, value in point.values.items():
            writer.add_scalar(name, value, at_step, point.at_seconds)

    return Sink("TensorBoard", send, send)


def _find_step(point: Point, ask: Callable[[], float] | None) -> int:
    return point.step if ask is None else int(ask())

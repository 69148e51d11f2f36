"""SHOW. A running job in the programs that people already look at: experiment trackers, dashboards.

Public: `gput.Tracker(sinks=[gput.sinks.wandb(run), gput.sinks.mlflow(), gput.sinks.tensorboard(writer)])`. They take the user's own
object and never its step; nothing of theirs is imported unless the user has.
"""

from __future__ import annotations

from ..analysis.published import Point as Point
from .trackers import Sink as Sink, mlflow as mlflow, tensorboard as tensorboard, wandb as wandb

__all__ = ["Point", "Sink", "mlflow", "tensorboard", "wandb"]

"""A training with Keras on PyTorch: python -m integrations.trainings.train_keras SCENE RECORDING."""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "torch"

from typing import Any

import keras
import numpy as np

from gpu_tracker.integrations.keras import TrackerCallback
from integrations.trainings.scene import (
    BATCH_SIZE,
    HAS_SLOW_HOOKS,
    IS_SLOW_LOADER,
    N_BATCHES,
    N_EPOCHS,
    RECORD,
    counted,
    seconds,
    tell,
    track,
    work,
)


class Batches(keras.utils.PyDataset):
    """Batches that take their time to come, or do not."""

    def __init__(self, n: int, part: str, *, is_slow: bool) -> None:
        super().__init__()
        self._n, self._part, self._is_slow = n, part, is_slow

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: int) -> Any:
        work(self._part, is_slow=self._is_slow)
        return np.ones((BATCH_SIZE, 3)) * index, np.zeros((BATCH_SIZE, 1))


class Model(keras.Sequential):
    """One layer, and parts that take their time."""

    def train_step(self, data: Any) -> Any:
        """A step, as long as the scene wants it."""
        work("step", is_slow=not IS_SLOW_LOADER)
        return super().train_step(data)

    def test_step(self, data: Any) -> Any:
        """Slow in any case: that is no waiting for data."""
        work("evaluation", is_slow=True)
        return super().test_step(data)

    def save(self, *arguments: Any, **options: Any) -> None:
        """So is saving."""
        work("checkpoint", is_slow=True)
        super().save(*arguments, **options)


class Hook(keras.callbacks.Callback):
    """One of the user's own, after ours."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Slow, or not: that is no waiting for data."""
        work("hook", is_slow=HAS_SLOW_HOOKS)


def forget(_: object) -> None:
    """What was before the training: Keras has looked at the first batch."""
    counted.clear()
    seconds.clear()


def main() -> None:
    """Evaluation after each epoch, checkpoints at every fourth batch."""
    tracker = track()
    model = Model([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")
    history = model.fit(
        Batches(N_BATCHES, "load", is_slow=IS_SLOW_LOADER),
        epochs=N_EPOCHS,
        validation_data=Batches(2, "load_evaluation", is_slow=False),
        verbose=0,
        callbacks=[
            keras.callbacks.LambdaCallback(on_train_begin=forget),
            TrackerCallback(tracker, log_every=4),
            Hook(),
            TrackerCallback(log_every=1),  # which does nothing
            keras.callbacks.ModelCheckpoint(RECORD + ".keras", save_freq=4),
        ],
    )
    tell(tracker, history=history.history, is_restored="save" not in vars(model))


main()

"""A training with Lightning: python -m integrations.trainings.train_lightning SCENE RECORDING PACKAGE."""

from __future__ import annotations

import copy
import sys
from importlib import import_module
from typing import Any

import torch

from gpu_tracker.integrations.lightning import TrackerCallback
from integrations.trainings.scene import (
    BATCH_SIZE,
    HAS_SLOW_HOOKS,
    IS_SLOW_LOADER,
    N_BATCHES,
    N_EPOCHS,
    RECORD,
    TimedLoader,
    counted,
    losses,
    tell,
    timed,
    track,
    work,
)

lightning = import_module(sys.argv[3])


class Model(lightning.LightningModule):  # type: ignore[name-defined]
    """One layer, and parts that take their time."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)
        self.at_end: list[float] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """A step, as long as the scene wants it."""
        with timed("step"):
            loss = self.layer(batch).square().mean()
        work("work", is_slow=not IS_SLOW_LOADER)
        losses.append(float(loss.detach()))
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Slow in any case: that is no waiting for data."""
        work("evaluation", is_slow=True)
        self.log("val_loss", 10.0 * counted["evaluation"])

    def on_train_batch_end(self, *_: Any) -> None:
        """A hook of the user's own, which comes after those of all callbacks: no waiting for data either."""
        work("hook", is_slow=HAS_SLOW_HOOKS)

    def on_save_checkpoint(self, checkpoint: Any) -> None:
        """So is saving."""
        work("checkpoint", is_slow=True)

    def configure_optimizers(self) -> Any:
        """Any."""
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main() -> None:
    """Validation in the middle of an epoch and at its end, and checkpoints at other steps; no logger."""
    batches = [torch.ones(BATCH_SIZE, 3)] * N_BATCHES
    tracker = track()
    callback = TrackerCallback(tracker)
    trainer = lightning.Trainer(
        max_epochs=N_EPOCHS,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
        val_check_interval=N_BATCHES // 2,
        num_sanity_val_steps=1,
        callbacks=[
            callback,
            TrackerCallback(),  # which does nothing
            import_module(f"{sys.argv[3]}.callbacks").ModelCheckpoint(RECORD + ".d", every_n_train_steps=4),
        ],
    )
    one_batch = torch.utils.data.DataLoader(batches[0], batch_size=BATCH_SIZE)
    trainer.fit(Model(), TimedLoader(batches), one_batch)
    copy.deepcopy(callback)
    tell(tracker, steps=trainer.global_step, is_restored="save_checkpoint" not in vars(trainer))


main()

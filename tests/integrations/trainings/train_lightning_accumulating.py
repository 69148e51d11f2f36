"""Lightning with gradients of several batches: python -m integrations.trainings.train_lightning_accumulating SCENE RECORDING MANNER."""

from __future__ import annotations

import sys
from typing import Any

import lightning.pytorch as lightning
import torch
from lightning.pytorch.callbacks import GradientAccumulationScheduler

from gpu_tracker.integrations.lightning import TrackerCallback
from integrations.trainings.scene import losses, tell, track

IS_MANUAL = sys.argv[3] == "manual"
N_BATCHES = 5


class Model(lightning.LightningModule):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)
        self.automatic_optimization = not IS_MANUAL

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """The loss as the user knows it."""
        loss = self.layer(batch).square().mean() + batch_idx
        losses.append(float(loss.detach()))
        return loss

    def configure_optimizers(self) -> Any:
        """Any."""
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main() -> None:
    """The number of batches changes with the epochs, and the last ones of an epoch are fewer."""
    tracker = track()
    scheduler = [] if IS_MANUAL else [GradientAccumulationScheduler({0: 3, 1: 2})]
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
        callbacks=[TrackerCallback(tracker), *scheduler],
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(N_BATCHES, 3)))
    tell(tracker, steps=trainer.global_step)


main()

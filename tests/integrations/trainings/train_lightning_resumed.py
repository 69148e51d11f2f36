"""Lightning that is resumed in the middle of an epoch: python -m integrations.trainings.train_lightning_resumed SCENE RECORDING."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as lightning
import torch

from gpu_tracker.integrations.lightning import TrackerCallback
from integrations.trainings.scene import RECORD, losses, tell, track


class Model(lightning.LightningModule):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """A loss for each batch."""
        loss = self.layer(batch).square().mean()
        losses.append(float(loss.detach()))
        return loss

    def configure_optimizers(self) -> Any:
        """Any."""
        return torch.optim.SGD(self.parameters(), lr=0.01)


def fit(n_steps: int, *callbacks: Any, checkpoint: str | None = None) -> Any:
    """Train for so many steps, with five batches in each epoch."""
    trainer = lightning.Trainer(
        max_steps=n_steps,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=list(callbacks),
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(5, 3)), ckpt_path=checkpoint)
    return trainer


def main() -> None:
    """From step 3, which is in the middle of the first epoch, to step 8, which is in the middle of the second."""
    checkpoint = RECORD + ".ckpt"
    fit(3).save_checkpoint(checkpoint)
    losses.clear()
    tracker = track()
    trainer = fit(8, TrackerCallback(tracker), checkpoint=checkpoint)
    tell(
        tracker, steps=trainer.global_step, is_restored=not {"start", "stop"} & vars(trainer.profiler).keys()
    )


main()

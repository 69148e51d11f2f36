"""Lightning with a logger: python -m integrations.trainings.train_lightning_logger SCENE RECORDING EVERY ACCUMULATED."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import lightning.pytorch as lightning
import torch
from lightning.pytorch.loggers import CSVLogger

from gpu_tracker.integrations.lightning import TrackerCallback
from integrations.trainings.scene import RECORD, losses, tell, track


class Model(lightning.LightningModule):
    """One layer, and what it logs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """For each batch, and for each epoch."""
        loss = self.layer(batch).square().mean()
        losses.append(float(loss.detach()))
        self.log("of_step", float(len(losses)))
        self.log("of_epoch", float(len(losses)), on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """In the middle of an epoch and at its end."""
        self.log("of_validation", float(len(losses)))

    def configure_optimizers(self) -> Any:
        """Any."""
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main() -> None:
    """What its logger has written is told as rows of step, name and value."""
    tracker = track()
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=CSVLogger(RECORD + ".d", name="x", version=0),
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=int(sys.argv[3]),
        accumulate_grad_batches=int(sys.argv[4]),
        val_check_interval=4,
        callbacks=[TrackerCallback(tracker)],
    )
    trainer.fit(
        Model(),
        torch.utils.data.DataLoader(torch.ones(8, 3)),
        torch.utils.data.DataLoader(torch.ones(1, 3)),
    )
    with open(Path(RECORD + ".d", "x", "version_0", "metrics.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    logged = [
        [float(row["step"]), name, float(row[name])]
        for row in rows
        for name in ("of_step", "of_epoch", "of_validation")
        if row[name]
    ]
    tell(tracker, logged=logged)


main()

"""A training with the Trainer of Transformers: python -m integrations.trainings.train_transformers SCENE RECORDING SAVE_STRATEGY."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from gpu_tracker.integrations.transformers import TrackerCallback
from integrations.trainings.scene import (
    BATCH_SIZE,
    HAS_SLOW_HOOKS,
    IS_SLOW_LOADER,
    N_BATCHES,
    N_EPOCHS,
    RECORD,
    losses,
    tell,
    timed,
    track,
    work,
)

N_ACCUMULATED = 2


class Items(torch.utils.data.Dataset[Any]):
    """Items that take their time to come, or do not."""

    def __init__(self, n: int, part: str, *, is_slow: bool) -> None:
        self._n, self._part, self._is_slow = n, part, is_slow

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: int) -> Any:
        if index % BATCH_SIZE == 0:
            work(self._part, is_slow=self._is_slow)
        return {"x": torch.ones(3) * index}


class Model(torch.nn.Module):
    """One layer, and parts that take their time."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        """A step, or a slow evaluation."""
        if self.training:
            with timed("step"):
                loss = self.layer(x).square().mean()
            work("work", is_slow=not IS_SLOW_LOADER)
        else:
            work("evaluation", is_slow=True)
            loss = self.layer(x).square().mean()
        return {"loss": loss, "logits": x}


class Hook(TrainerCallback):
    """One of the user's own, after ours."""

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Slow, or not: that is no waiting for data."""
        work("hook", is_slow=HAS_SLOW_HOOKS)


class SlowTrainer(Trainer):
    """It notes its losses, and takes its time to save."""

    def training_step(self, *arguments: Any, **options: Any) -> Any:
        """One batch."""
        loss = super().training_step(*arguments, **options)
        losses.append(float(loss))
        return loss

    def _save_checkpoint(self, *arguments: Any, **options: Any) -> None:
        work("checkpoint", is_slow=True)
        super()._save_checkpoint(*arguments, **options)


def main() -> None:
    """Two batches for each step; evaluation and checkpoints every second step."""
    tracker = track()
    callback = TrackerCallback(tracker)
    arguments = TrainingArguments(
        output_dir=RECORD + ".d",
        num_train_epochs=N_EPOCHS,
        per_device_train_batch_size=BATCH_SIZE,
        per_device_eval_batch_size=BATCH_SIZE,
        gradient_accumulation_steps=N_ACCUMULATED,
        learning_rate=1e-5,
        logging_steps=1,
        eval_strategy="steps",
        eval_steps=2,
        save_strategy=sys.argv[3],
        save_steps=2,
        metric_for_best_model="eval_loss",
        label_names=["x"],
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = SlowTrainer(
        model=Model(),
        args=arguments,
        train_dataset=Items(N_BATCHES * BATCH_SIZE, "load", is_slow=IS_SLOW_LOADER),
        eval_dataset=Items(2 * BATCH_SIZE, "load_evaluation", is_slow=False),
        callbacks=[callback, TrackerCallback(), Hook()],  # the second one does nothing
    )
    trainer.train()
    copy.deepcopy(callback)
    pickle.loads(pickle.dumps(callback))
    tell(tracker, steps=trainer.state.global_step, history=trainer.state.log_history)


main()

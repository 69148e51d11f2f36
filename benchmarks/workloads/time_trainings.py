"""What following a real training costs it: percent of its time, in turns with the same training untracked."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

os.environ["KERAS_BACKEND"] = "torch"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch

import gpu_tracker as gput

if TYPE_CHECKING:
    from collections.abc import Callable

_ROUNDS = 9
_BATCHES, _BATCH_SIZE, _WIDTH = 60, 64, 1024


def _make_layers() -> Any:
    return torch.nn.Sequential(
        torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.ReLU(), torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.ReLU()
    )


def _make_items() -> list[Any]:
    return list(torch.randn(_BATCHES * _BATCH_SIZE, _WIDTH))


def _prepare_loop() -> Callable[[bool], None]:
    """A loop that its author writes."""
    layers = _make_layers()
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(_make_items(), batch_size=_BATCH_SIZE)

    def train(is_tracked: bool) -> None:
        for batch in gput.watch(loader) if is_tracked else loader:
            optimizer.zero_grad()
            loss = layers(batch).square().mean()
            loss.backward()
            optimizer.step()
            if is_tracked:
                gput.step(loss=loss.item())
            else:
                loss.item()

    return train


def _prepare_lightning() -> Callable[[bool], None]:
    import lightning

    from gpu_tracker.integrations.lightning import TrackerCallback

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layers = _make_layers()

        def training_step(self, batch: Any, _: int) -> Any:
            loss = self.layers(batch).square().mean()
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    model, loader = Model(), torch.utils.data.DataLoader(_make_items(), batch_size=_BATCH_SIZE)

    def train(is_tracked: bool) -> None:
        trainer = lightning.Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[TrackerCallback()] if is_tracked else [],
        )
        trainer.fit(model, loader)

    return train


def _prepare_transformers() -> Callable[[bool], None]:
    from transformers import Trainer, TrainingArguments

    from gpu_tracker.integrations.transformers import TrackerCallback

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = _make_layers()

        def forward(self, x: Any) -> Any:
            return {"loss": self.layers(x).square().mean()}

    items, model = [{"x": item} for item in _make_items()], Model()

    def train(is_tracked: bool) -> None:
        arguments = TrainingArguments(
            output_dir="trained",
            num_train_epochs=1,
            per_device_train_batch_size=_BATCH_SIZE,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        callbacks = [TrackerCallback()] if is_tracked else []
        Trainer(model=model, args=arguments, train_dataset=items, callbacks=callbacks).train()

    return train


def _prepare_keras() -> Callable[[bool], None]:
    import keras
    import numpy as np

    from gpu_tracker.integrations.keras import TrackerCallback

    layers = [keras.Input((_WIDTH,)), *(keras.layers.Dense(_WIDTH, activation="relu") for _ in range(2))]
    model = keras.Sequential(layers)
    model.compile(loss="mse", optimizer="sgd")
    x = np.random.default_rng(0).normal(size=(_BATCHES * _BATCH_SIZE, _WIDTH))

    def train(is_tracked: bool) -> None:
        callbacks = [TrackerCallback()] if is_tracked else []
        model.fit(x, x, batch_size=_BATCH_SIZE, verbose=0, callbacks=callbacks)

    return train


def _time(train: Callable[[bool], None], *, is_tracked: bool) -> float:
    """Of a tracked one with starting and stopping left out: that is once per training, however long it takes."""
    if not is_tracked:
        began = time.perf_counter()
        train(False)
        return time.perf_counter() - began
    with gput.Tracker(disable_logs=True):
        began = time.perf_counter()
        train(True)
        return time.perf_counter() - began


def _measure(train: Callable[[bool], None]) -> dict[str, float]:
    slowdowns, noises, steps = [], [], []
    for number in range(_ROUNDS):
        kinds = [False, True, False] if number % 2 else [False, False, True]
        first, *others = [(is_tracked, _time(train, is_tracked=is_tracked)) for is_tracked in kinds]
        times = dict(others)
        slowdowns.append(times[True] / times[False])
        noises.append(abs(times[False] / first[1] - 1))
        steps.append(times[False] / _BATCHES)
    return {
        "slowdown": 100 * (statistics.median(slowdowns) - 1),
        "noise": 100 * statistics.median(noises),
        "step": 1000 * statistics.median(steps),
    }


_KINDS = {
    "loop": _prepare_loop,
    "lightning": _prepare_lightning,
    "transformers": _prepare_transformers,
    "keras": _prepare_keras,
}


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        train = _KINDS[sys.argv[1]]()
        with redirect_stdout(sys.stderr):  # trainers talk
            train(False)
            measured = _measure(train)
        os.chdir("/")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()

"""What the reader has: a program and a finished run."""

from __future__ import annotations

import time

import gpu_tracker as gput


def train() -> None:
    """Stands for one."""
    time.sleep(0.5)


with gput.Tracker(record="runs/train.jsonl"):
    gput.log(loss=1)
    train()

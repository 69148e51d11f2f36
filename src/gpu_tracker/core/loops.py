"""The names of the parts of a training loop: whoever marks them and whoever judges them means the same."""

from __future__ import annotations

EPOCH = "epoch"
STEP = "step"
DATA_WAIT = "data_wait"
BETWEEN_STEPS = "between_steps"
LOGGING = "logging"
EVALUATION = "evaluation"
CHECKPOINT = "checkpoint"

# What users call the same in regions of their own.
STEP_NAMES = (STEP, "train_step", "training_step", "batch")
DATA_WAIT_NAMES = (DATA_WAIT, "data-wait", "wait_for_data", "waiting_for_data")

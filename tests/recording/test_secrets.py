"""What looks like a password is masked."""

from __future__ import annotations

import pytest

from gpu_tracker.recording.secrets import mask_secrets


@pytest.mark.parametrize(
    ("command", "masked"),
    [
        ("python train.py --lr 0.1", "python train.py --lr 0.1"),
        ("job --token abc --n 3", "job --token *** --n 3"),
        ("job --api-key=abc", "job --api-key=***"),
        ("env HF_TOKEN=abc WANDB_API_KEY=def job", "env HF_TOKEN=*** WANDB_API_KEY=*** job"),
        ("job --password --verbose", "job --password --verbose"),
        ("pull https://me:abc@host/x", "pull https://me:***@host/x"),
        ("pull https://host/a:b@c ssh://me@host", "pull https://host/a:b@c ssh://me@host"),
    ],
)
def test_secrets_are_masked_and_nothing_else(command: str, masked: str) -> None:
    """Values of options and variables with secret names, and passwords in URLs."""
    assert mask_secrets(command.split()) == tuple(masked.split())

"""A small training run in plain Python: a network learns XOR.

Track it with `gpu-tracker run -- python examples/train.py`.
"""

from __future__ import annotations

import math
import random

HIDDEN, EPOCHS, RATE = 32, 20_000, 0.5
TRUTH = [((0.0, 0.0), 0.0), ((0.0, 1.0), 1.0), ((1.0, 0.0), 1.0), ((1.0, 1.0), 0.0)]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def train() -> float:
    """Plain gradient descent; return the last loss."""
    dice = random.Random(7)
    inner = [[dice.uniform(-1, 1) for _ in range(3)] for _ in range(HIDDEN)]
    outer = [dice.uniform(-1, 1) for _ in range(HIDDEN + 1)]
    loss = 0.0
    for epoch in range(EPOCHS):
        loss = 0.0
        for (a, b), wanted in TRUTH:
            hidden = [sigmoid(w[0] * a + w[1] * b + w[2]) for w in inner]
            guess = sigmoid(sum(w * h for w, h in zip(outer, hidden, strict=False)) + outer[-1])
            error = guess - wanted
            loss += error * error / len(TRUTH)
            slope = RATE * error * guess * (1 - guess)
            for weights, weight, h in zip(inner, outer, hidden, strict=False):
                step = slope * weight * h * (1 - h)
                weights[0] -= step * a
                weights[1] -= step * b
                weights[2] -= step
            for index, h in enumerate(hidden):
                outer[index] -= slope * h
            outer[-1] -= slope
        if epoch % 4000 == 0:
            print(f"epoch {epoch:5d}  loss {loss:.4f}", flush=True)
    return loss


if __name__ == "__main__":
    print(f"finished    loss {train():.4f}")

"""A small training run in plain Python: a network learns to tell two spirals apart.

Track it with `gpu-tracker run --record runs -- python examples/train.py`, then open the page:
`gpu-tracker report -o report.html`. Regions and metrics cost nothing when nobody tracks.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, NamedTuple

import gpu_tracker as gput

if TYPE_CHECKING:
    from collections.abc import Iterator

POINTS, HIDDEN, EPOCHS, PASSES, BATCH, RATE = 400, 40, 20, 25, 20, 0.01


class Point(NamedTuple):
    """A place, and on which spiral it lies: -1 or 1."""

    x: float
    y: float
    side: float


class Network(NamedTuple):
    """One hidden layer; each unit has two weights and a bias."""

    inner: list[list[float]]
    outer: list[float]


def make_spirals(dice: random.Random) -> list[Point]:
    points = []
    for number in range(POINTS):
        side = 1.0 if number % 2 else -1.0
        angle = 1 + 9 * number / POINTS
        noise = dice.gauss(0, 0.02)
        points.append(
            Point(
                side * angle / 10 * math.cos(angle) + noise, side * angle / 10 * math.sin(angle) + noise, side
            )
        )
    return points


def load_batches(points: list[Point], dice: random.Random) -> Iterator[list[Point]]:
    """In a new order every time."""
    shuffled = dice.sample(points, len(points))
    yield from (shuffled[start : start + BATCH] for start in range(0, POINTS, BATCH))


def guess(network: Network, point: Point) -> tuple[list[float], float]:
    hidden = [math.tanh(a * point.x + b * point.y + c) for a, b, c in network.inner]
    return hidden, math.tanh(sum(map(float.__mul__, network.outer, hidden)))


def learn(network: Network, batch: list[Point]) -> float:
    """One step downhill; the loss before it."""
    loss = 0.0
    for point in batch:
        hidden, answer = guess(network, point)
        error = answer - point.side
        loss += error * error / len(batch)
        slope = RATE * error * (1 - answer * answer)
        for unit, value in enumerate(hidden):
            step = slope * network.outer[unit] * (1 - value * value)
            weights = network.inner[unit]
            weights[0] -= step * point.x
            weights[1] -= step * point.y
            weights[2] -= step
            network.outer[unit] -= slope * value
    return loss


def measure_accuracy(network: Network, points: list[Point]) -> float:
    return sum(guess(network, point)[1] * point.side > 0 for point in points) / len(points)


def train() -> float:
    """The accuracy in the end."""
    dice = random.Random(7)
    points = make_spirals(dice)
    network = Network(
        [[dice.gauss(0, 2), dice.gauss(0, 2), dice.gauss(0, 1)] for _ in range(HIDDEN)],
        [dice.gauss(0, 0.5) for _ in range(HIDDEN)],
    )
    step, accuracy = 0, 0.0
    for epoch in range(EPOCHS):
        with gput.region("epoch"):
            for _ in range(PASSES):
                for batch in load_batches(points, dice):
                    with gput.region("step"):
                        loss = learn(network, batch)
                    step += 1
                    gput.log(step=step, loss=loss)
            with gput.region("eval"):
                accuracy = measure_accuracy(network, points * 20)
            gput.log(step=step, accuracy=accuracy)
        print(f"epoch {epoch + 1:2d}  loss {loss:.3f}  accuracy {accuracy:.2f}", flush=True)
    return accuracy


if __name__ == "__main__":
    print(f"finished  accuracy {train():.2f}")

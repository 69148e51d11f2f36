"""Compare the cost of two models, each on all features and on a compressed set, with five runs of each.

Every run is a separate process, so none inherits another's memory. The kinds take turns, so a machine that gets slower
affects all of them alike. The last step is the same as
`gpu-tracker compare runs/mlp runs/mlp-encoded runs/boosting runs/boosting-encoded`.
"""

from __future__ import annotations

import math
import random
import subprocess
import sys
import tempfile

import gpu_tracker as gput

KINDS = ("mlp", "mlp-encoded", "boosting", "boosting-encoded")
REPEATS, ROWS, FEATURES, CODES = 5, 600, 40, 8

Table = list[list[float]]


def make_data() -> tuple[Table, list[float]]:
    dice = random.Random(7)
    table = [[dice.gauss(0, 1) for _ in range(FEATURES)] for _ in range(ROWS)]
    return table, [1.0 if sum(row[:5]) + 0.2 * dice.gauss(0, 1) > 0 else 0.0 for row in table]


def encode(table: Table) -> Table:
    """A random projection to fewer features."""
    dice = random.Random(8)
    axes = [[dice.gauss(0, 1) / math.sqrt(FEATURES) for _ in range(FEATURES)] for _ in range(CODES)]
    return [[sum(a * x for a, x in zip(axis, row, strict=True)) for axis in axes] for row in table]


def train_mlp(
    table: Table, wanted: list[float], epochs: int = 4, hidden: int = 8, rate: float = 0.05
) -> float:
    """A network with one hidden layer, trained by gradient descent; return its accuracy."""
    dice = random.Random(9)
    width = len(table[0])
    inner = [[dice.gauss(0, 1) / math.sqrt(width) for _ in range(width)] for _ in range(hidden)]
    outer = [dice.gauss(0, 1) for _ in range(hidden)]
    right = 0
    for _ in range(epochs):
        right = 0
        for row, truth in zip(table, wanted, strict=True):
            layer = [math.tanh(sum(w * x for w, x in zip(weights, row, strict=True))) for weights in inner]
            guess = 1 / (1 + math.exp(-sum(w * h for w, h in zip(outer, layer, strict=True))))
            right += (guess > 0.5) == (truth > 0.5)
            for unit, (weight, h) in enumerate(zip(outer, layer, strict=True)):
                slope = rate * (guess - truth) * weight * (1 - h * h)
                outer[unit] -= rate * (guess - truth) * h
                inner[unit] = [w - slope * x for w, x in zip(inner[unit], row, strict=True)]
    return right / len(table)


def train_boosting(table: Table, wanted: list[float], rounds: int = 12, rate: float = 0.5) -> float:
    """Stumps, each fitted to the residuals of those before; return their accuracy. Keeps every column sorted."""
    columns = [
        sorted((value, row) for row, value in enumerate(column)) for column in zip(*table, strict=True)
    ]
    guesses = [0.5] * len(table)
    for _ in range(rounds):
        residuals = [truth - guess for truth, guess in zip(wanted, guesses, strict=True)]
        total, best = sum(residuals), (-1.0, 0, 0)
        for number, column in enumerate(columns):
            below = 0.0
            for count, (_, row) in enumerate(column[:-1], start=1):
                below += residuals[row]
                gain = below**2 / count + (total - below) ** 2 / (len(column) - count)
                best = max(best, (gain, number, count))
        _, number, count = best
        for side in (columns[number][:count], columns[number][count:]):
            step = rate * sum(residuals[row] for _, row in side) / len(side)
            for _, row in side:
                guesses[row] += step
    right = sum((guess > 0.5) == (truth > 0.5) for guess, truth in zip(guesses, wanted, strict=True))
    return right / len(table)


def train(kind: str) -> float:
    table, wanted = make_data()
    model, _, encoding = kind.partition("-")
    features = encode(table) if encoding else table
    return train_mlp(features, wanted) if model == "mlp" else train_boosting(features, wanted)


def run_all(folder: str) -> None:
    for _ in range(REPEATS):
        for kind in KINDS:
            tracker = [
                sys.executable,
                "-m",
                "gpu_tracker",
                "run",
                "--st",
                "0.1",
                "--record",
                f"{folder}/{kind}",
            ]
            subprocess.run([*tracker, "--", sys.executable, __file__, kind], check=True, capture_output=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(f"{sys.argv[1]}: accuracy {train(sys.argv[1]):.2f}")
    else:
        with tempfile.TemporaryDirectory() as runs:
            run_all(runs)
            print(gput.compare(*(f"{runs}/{kind}" for kind in KINDS)))

"""What each part of a training uses: regions and metrics, in the report and in a recording."""

from __future__ import annotations

import random

import gpu_tracker as gput

DICE = random.Random(7)


@gput.region("load")
def load_batch(size: int) -> list[tuple[float, float]]:
    """Points of a noisy line."""
    inputs = [DICE.random() for _ in range(size)]
    return [(x, 3 * x + 1 + DICE.gauss(0, 0.1)) for x in inputs]


def main() -> None:
    slope = offset = 0.0
    with gput.Tracker(sleep_time=0.1, record="gpu-tracker-runs") as tracker:
        for epoch in range(5):
            with gput.region("epoch"):
                batch = load_batch(20_000)
                with gput.region("fit"):
                    errors = [(slope * x + offset - y, x) for x, y in batch]
                    slope -= 0.8 * sum(error * x for error, x in errors) / len(errors)
                    offset -= 0.8 * sum(error for error, _ in errors) / len(errors)
            gput.log(step=epoch, loss=sum(error * error for error, _ in errors) / len(errors))
    print(tracker.report)
    print(f"slope {slope:.2f}, offset {offset:.2f}; recording: {tracker.recording_path}")


if __name__ == "__main__":
    main()

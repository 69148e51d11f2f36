"""Track a block of code, with the paper's interface."""

from __future__ import annotations

import gpu_tracker as gput


def example_function() -> int:
    squares = [number * number for number in range(2_000_000)]
    return sum(squares)


if __name__ == "__main__":
    with gput.Tracker(ram_unit="megabytes", time_unit="seconds", sleep_time=0.1) as tracker:
        example_function()
    print(tracker)

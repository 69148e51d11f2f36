"""Child processes are counted too, apart from the main process and together with it."""

from __future__ import annotations

import multiprocessing

import gpu_tracker as gput


def example_function() -> None:
    block = bytearray(200_000_000)
    sum(block[::4096])
    sum(number * number for number in range(3_000_000))


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=example_function)
    with gput.Tracker(n_expected_cores=2, sleep_time=0.2, time_unit="seconds") as tracker:
        child.start()
        example_function()
        child.join()
    child.close()
    print(tracker)

"""A program written for gpu-tracker 5: everything that its manual shows about tracking. Prints what it knows."""

import json
import multiprocessing as mp
import sys
import time

import gpu_tracker as gput
from gpu_tracker.tracker import ComputeTime, MaxGPURAM, MaxRAM, RSSValues, Tracker


def use_memory(n_bytes: int = 80_000_000, seconds: float = 0.4) -> None:
    """Hold that much for so long."""
    block = bytearray(n_bytes)
    block[::4096] = b"x" * len(block[::4096])
    time.sleep(seconds)


def main() -> None:
    """Start and stop; a block; units; a failure; a child."""
    tracker = gput.Tracker(n_expected_cores=1, sleep_time=0.1, gpu_brand=None, disable_logs=True)
    tracker.start()
    use_memory()
    tracker.stop()
    first = str(tracker)

    began = time.monotonic()
    with gput.Tracker(
        ram_unit="megabytes", gpu_ram_unit="megabytes", time_unit="seconds", sleep_time=0.2, disable_logs=True
    ) as tracker:
        use_memory()
    seconds = time.monotonic() - began
    usage = tracker.resource_usage
    assert usage is not None
    assert isinstance(tracker, Tracker)
    assert isinstance(usage.max_ram, MaxRAM)
    assert isinstance(usage.max_ram.descendants, RSSValues)
    assert isinstance(usage.max_gpu_ram, MaxGPURAM)
    assert isinstance(usage.compute_time, ComputeTime)

    failed = gput.Tracker(disable_logs=True, resource_usage_file="usage.pkl")
    try:
        with failed:
            raise RuntimeError("AN ERROR")
    except RuntimeError as error:
        message = str(error)

    child = mp.get_context("spawn").Process(target=use_memory)
    with gput.Tracker(
        n_expected_cores=2, sleep_time=0.1, tracking_file=sys.argv[1], overwrite=True, disable_logs=True
    ) as parent:
        child.start()
        child.join()
    child.close()

    told = {
        "first": first,
        "second": tracker.to_json(),
        "seconds": seconds,
        "message": message,
        "failed": failed.to_json(),
        "parent": parent.to_json(),
    }
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()

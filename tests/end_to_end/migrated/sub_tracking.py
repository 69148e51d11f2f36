"""A program written for gpu-tracker 5: code blocks, decorated functions and workers. Prints how long it was in each."""

import json
import multiprocessing as mp
import time

import gpu_tracker as gput


def work(seconds: float = 0.25) -> float:
    """Burn so much CPU time; how long that took."""
    began, end = time.monotonic(), time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return time.monotonic() - began


@gput.sub_track(code_block_name="my-function", sub_tracking_file="sub-tracking.csv", overwrite=True)
def my_function(*args: float) -> float:
    """A function whose calls are code blocks."""
    return work(*args)


@gput.sub_track()
def in_a_worker(seconds: float) -> float:
    """The same in other processes; each has a file of its own."""
    return work(seconds)


def main() -> None:
    """Blocks and functions between `start` and `stop`."""
    tracker = gput.Tracker(sleep_time=0.1, tracking_file="tracking.csv", overwrite=False, disable_logs=True)
    tracker.start()
    blocks = []
    for _ in range(4):
        with gput.SubTracker(
            code_block_name="my-code-block", sub_tracking_file="sub-tracking.csv", overwrite=True
        ):
            blocks.append(work())
    functions = [my_function(0.2) for _ in range(3)]
    with mp.get_context("spawn").Pool(2) as pool:
        workers = pool.map(in_a_worker, [0.2] * 4, chunksize=1)
        pool.close()
        pool.join()
    tracker.stop()

    analyzer = gput.SubTrackingAnalyzer(tracking_file="tracking.csv", sub_tracking_file="sub-tracking.csv")
    results = analyzer.sub_tracking_results()
    [code_block, function] = results.code_block_results
    with open("results.json", "w", encoding="utf-8") as file:
        json.dump(results.to_json(), file)
    report = getattr(tracker, "report", None)  # what the existing tool does not have
    regions = {"/".join(region.path): region.calls for region in report.regions} if report else {}
    told = {
        "blocks": blocks,
        "functions": functions,
        "workers": workers,
        "regions": regions,
        "totals": [code_block.compute_time["total"], function.compute_time["total"]],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()

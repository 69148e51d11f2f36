"""Regions and metrics of a program on macOS."""

from __future__ import annotations

import json
import tempfile


def main() -> None:
    """What its tracker has recorded, and what it knows of its own memory."""
    import gpu_tracker as gput
    from gpu_tracker.sources.platform import read_own_rss_bytes

    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/x.jsonl"
        with gput.Tracker(record=path, disable_logs=True):
            for step in range(3):
                with gput.region("step"):
                    gput.log(step=step, loss=1.0)
        recording = gput.load(path)
        told = {
            "regions": [["/".join(region.path), region.calls] for region in recording.regions],
            "metrics": sum(metric.logged for metric in recording.metrics),
            "knows_own_memory": bool(read_own_rss_bytes()),
        }
    print(json.dumps(told))


if __name__ == "__main__":
    main()

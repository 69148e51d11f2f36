"""Draw the picture of a notebook from a recording, again and again: draw_picture.py FILE."""

from __future__ import annotations

import json
import statistics
import sys
import time

import gpu_tracker
from gpu_tracker.reports.notebook import draw_panel

TIMES = 20


def main(path: str) -> None:
    """Prints the CPU time of one picture, and its size."""
    report = gpu_tracker.load(path).report
    seconds = []
    for _ in range(TIMES):
        began = time.thread_time()
        picture = draw_panel(report)
        seconds.append(time.thread_time() - began)
    print(json.dumps({"seconds": statistics.median(seconds), "bytes": len(picture)}))


if __name__ == "__main__":
    main(sys.argv[1])

"""Make a data frame of all samples of a recording: frame_recording.py FILE. Without pandas there is no time."""

from __future__ import annotations

import importlib
import json
import sys
import time


def main(path: str) -> None:
    import gpu_tracker

    recording = gpu_tracker.load(path)
    try:
        importlib.import_module("pandas")  # not to be counted
    except ImportError:
        print(json.dumps({"seconds": None}))
        return
    began = time.perf_counter()
    rows = len(recording.to_pandas())
    print(json.dumps({"seconds": time.perf_counter() - began, "rows": rows}))


if __name__ == "__main__":
    main(sys.argv[1])

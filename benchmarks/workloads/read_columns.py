"""Read the sampled figures of a recording as columns: read_columns.py FILE."""

from __future__ import annotations

import json
import sys
import time

from gpu_tracker.recording.reader import load
from gpu_tracker.recording.sampled import read_columns


def main(path: str) -> None:
    began = time.process_time()
    rows = len(read_columns(load(path)).end_seconds)
    print(json.dumps({"cpu_seconds": time.process_time() - began, "rows": rows}))


if __name__ == "__main__":
    main(sys.argv[1])

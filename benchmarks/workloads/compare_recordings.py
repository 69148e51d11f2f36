"""Compare a recording with copies of itself: compare_recordings.py FILE COUNT."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time


def main(path: str, count: int) -> None:
    import gpu_tracker

    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
        names = [os.path.join(folder, f"{number}.jsonl") for number in range(count)]
        for name in names:
            os.link(path, name)
        began = time.perf_counter()
        report = gpu_tracker.compare(*names)
        text = str(report)
        seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "lines": len(text.splitlines())}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

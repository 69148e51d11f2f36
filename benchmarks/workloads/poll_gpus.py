"""The time of `gpus()` with two simulated GPUs: the first call, and one of many in a row."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from nvml_simulator import Simulator, build

_INSIDE = "--inside"
_CALLS = 50


def main() -> None:
    """Simulate the GPUs, then poll them in a process that uses this driver."""
    if _INSIDE in sys.argv:
        _poll()
        return
    with tempfile.TemporaryDirectory() as folder, Simulator(build(Path(folder))) as hardware:
        for _ in range(2):
            hardware.add_device()
        subprocess.run(
            [sys.executable, __file__, _INSIDE], env={**os.environ, **hardware.environment()}, check=True
        )


def _poll() -> None:
    import gpu_tracker as gput

    seconds = []
    for _ in range(_CALLS):
        began = time.perf_counter()
        gput.gpus()
        seconds.append(time.perf_counter() - began)
    print(json.dumps({"first": seconds[0], "polled": statistics.median(seconds[3:])}))


if __name__ == "__main__":
    main()

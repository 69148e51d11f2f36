"""A process that uses the simulated driver: it has loaded the driver's library, and holds memory on the first device.

Usage: on_gpu.py SECONDS MIB PERCENT [KIND]. With the percentage `random`, it is idle and 80 % busy in turn, for random times.
Prints from when to when it was busy.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from nvml_simulator import Simulator

MIB = 2**20
BUSY_PERCENT = 80


def load_driver() -> mmap.mmap:
    """Map a file of the name by which a program that uses the driver is known."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "libcuda.so.1"
        path.write_bytes(bytes(4096))
        with path.open("r+b") as file:
            return mmap.mmap(file.fileno(), 4096)


def alternate(simulator: Simulator, until: float, mib: int, kind: str) -> list[tuple[float, float]]:
    """Be busy and idle in turn; from when to when it was busy."""
    luck, spans = random.Random(os.getpid()), []
    while time.monotonic() < until:
        simulator.set_process(0, os.getpid(), mib * MIB, kind, BUSY_PERCENT)  # type: ignore[arg-type]
        began = time.monotonic()
        time.sleep(luck.uniform(0.2, 0.6))
        simulator.set_process(0, os.getpid(), mib * MIB, kind, 0)  # type: ignore[arg-type]
        spans.append((began, time.monotonic()))
        time.sleep(luck.uniform(0.3, 0.9))
    return spans


def main() -> None:
    """Hold, and tell."""
    seconds, mib, percent, *kinds = sys.argv[1:]
    kind = kinds[0] if kinds else "compute"
    driver = load_driver()
    began = time.monotonic()
    with Simulator.open() as simulator:
        if percent == "random":
            spans = alternate(simulator, began + float(seconds), int(mib), kind)
        else:
            simulator.set_process(0, os.getpid(), int(mib) * MIB, kind, int(percent))  # type: ignore[arg-type]
            time.sleep(float(seconds))
            spans = [(began, time.monotonic())]
    driver.close()
    # In one piece, because others print at the same time.
    os.write(1, f"{json.dumps({'busy': spans})}\n".encode())


if __name__ == "__main__":
    main()

"""Uses CPU and memory, says so, and stays until its input ends: busy.py CPU MEGABYTES [CODE]."""

from __future__ import annotations

import os
import sys
import time


def main(cpu_seconds: str, megabytes: str, code: str = "0") -> None:
    """Every page is touched, in pieces, so that a limit is met on the way."""
    pieces = [os.urandom(1) * 1_000_000 for _ in range(int(megabytes))]
    while time.process_time() < float(cpu_seconds):
        pass
    print(f"ready {os.getpid()}", flush=True)
    sys.stdin.read()
    sys.exit(int(code) if pieces or not int(megabytes) else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])

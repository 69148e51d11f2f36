"""Load a recording of notes only: load_events.py FILE EVENTS OTHER.

The file is written first if it does not exist, with the header of another recording.
"""

from __future__ import annotations

import json
import os
import sys
import time

import gpu_tracker
from gpu_tracker.core.model import Event
from gpu_tracker.recording.encode import to_json
from gpu_tracker.recording.schema import encode_event


def write(path: str, n_events: int, other: str) -> None:
    with open(other, encoding="ascii") as header, open(f"{path}.tmp", "w", encoding="ascii") as file:
        file.write(header.readline())
        for number in range(n_events):
            event = Event(number / 10, "note", f"Something happened for the {number}. time.")
            file.write(to_json({"event": encode_event(event)}) + "\n")
    os.replace(f"{path}.tmp", path)


def main(path: str, n_events: int, other: str) -> None:
    if not os.path.exists(path):
        write(path, n_events, other)
    began = time.perf_counter()
    gpu_tracker.load(path)
    print(json.dumps({"seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])

"""List a directory of recordings as `serve` does: list_runs.py DIRECTORY COUNT. Prints CPU seconds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

from gpu_tracker.live.server import runs
from gpu_tracker.live.server.pages import Wish, show_list

N_SAMPLES = 300


def fill(folder: str, count: int) -> None:
    """Recordings of five minutes, each a file of its own."""
    os.makedirs(folder)
    first = os.path.join(folder, "0.jsonl")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "load_recording.py")
    subprocess.run([sys.executable, script, first, str(N_SAMPLES)], check=True, stdout=subprocess.DEVNULL)
    for number in range(1, count):
        shutil.copy(first, os.path.join(folder, f"{number}.jsonl"))


def look(directory: runs.RunDirectory) -> float:
    """CPU seconds until all are listed, as a page."""
    began = time.process_time()
    listing = directory.look()
    while listing.n_unread:
        listing = directory.look()
    show_list(listing, Wish(), "runs", runs.make_key)
    return time.process_time() - began


if __name__ == "__main__":
    path, wanted = sys.argv[1], int(sys.argv[2])
    if not os.path.isdir(path):
        fill(path, wanted)
    print(json.dumps({"seconds": look(runs.RunDirectory(path))}))

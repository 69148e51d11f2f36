"""A program that has closed all descriptors and opened files before it forks, and stops a tracker; tells which files were lost."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys

import gpu_tracker as gput

folder = sys.argv[1]
tracker = gput.Tracker(disable_logs=True) if sys.argv[2] == "inside" else None
if tracker is not None:
    tracker.start()
with gput.region("a"):
    gput.log(x=1)
os.closerange(3, 1024)
files = [open(f"{folder}/{number}", "w") for number in range(20)]


def find_lost() -> list[str]:
    """The files that are no longer what they were."""
    lost = []
    for file in files:
        try:
            is_same = os.fstat(file.fileno()).st_ino == os.stat(file.name).st_ino
        except OSError:
            is_same = False
        if not is_same:
            lost.append(file.name)
    return lost


reading, writing = os.pipe()
if not os.fork():
    with gput.region("b"):
        gc.collect()
    os.write(writing, json.dumps(find_lost()).encode())
    os._exit(0)
os.wait()
lost = json.loads(os.read(reading, 10_000))
subprocess.run(["true"], preexec_fn=os.getpid, pass_fds=[file.fileno() for file in files], check=True)
if tracker is not None:
    tracker.stop()
gc.collect()
print(json.dumps(lost + find_lost()))

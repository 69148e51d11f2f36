"""A daemon with regions: it forks, closes all descriptors, opens files of its own, and tells whether they stayed open."""

from __future__ import annotations

import gc
import json
import os
import sys

import gpu_tracker as gput

path = sys.argv[1]
for number in range(500):
    with gput.region("before"):
        gput.log(number=number)
if os.fork():
    os.wait()
    sys.exit(0)
os.closerange(3, 4096)
files = [open(f"{path}.{number}", "w") for number in range(20)]
lost = []
for number in range(10):
    gc.collect()
    with gput.region(f"after {number}"):
        pass
    for file in files:
        try:
            is_same = os.fstat(file.fileno()).st_ino == os.stat(file.name).st_ino
        except OSError:
            is_same = False
        if not is_same:
            lost.append(file.name)
with open(path, "w") as result:
    json.dump(lost, result)
os._exit(0)

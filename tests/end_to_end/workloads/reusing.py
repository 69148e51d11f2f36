"""A program that closes all descriptors in the middle, and uses their numbers for files of its own; tells which were written to."""

from __future__ import annotations

import json
import os
import sys

import gpu_tracker as gput

folder = sys.argv[1]
with gput.region("a"):
    gput.log(x=-1)
os.closerange(3, 1024)
files = [open(f"{folder}/{number}", "w") for number in range(int(sys.argv[2]))]
for file in files:
    file.write("hello")
    file.flush()
for number in range(5):
    gput.log(x=number)
changed = []
for file in files:
    file.close()
    with open(file.name) as written:
        if written.read() != "hello":
            changed.append(file.name)
print(json.dumps(changed))

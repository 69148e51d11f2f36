"""1 GB of memory, held for only 50 ms, at a random time.

The pages are first used by a file that no process maps: a virtual machine may have returned free memory to its host,
and waiting for it would turn the spike into a slow rise.
"""

import json
import mmap
import os
import random
import resource
import time

SPIKE_BYTES = 1_000_000_000
HOLD_SECONDS = 0.05
CHUNK = b"x" * 1_000_000

donor = os.memfd_create("donor")
for _ in range(SPIKE_BYTES // len(CHUNK)):
    os.write(donor, CHUNK)
time.sleep(random.random())
os.close(donor)

memory = mmap.mmap(-1, SPIKE_BYTES)
for start in range(0, SPIKE_BYTES, len(CHUNK)):
    memory[start : start + len(CHUNK)] = CHUNK
time.sleep(HOLD_SECONDS)
memory.close()
time.sleep(0.5)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"peak_bytes": peak}))

"""A process with names that change: for each word after the first, that is its name, and it computes for so long and holds so much.

`ray::burn=0.3,50` is 0.3 s of CPU time and 50 MB. It takes another name by `exec`, so it stays the same process.
"""

import os
import sys
import time


def read_peak() -> int:
    """The high-water mark since it has this program. That of `getrusage` begins with the one of whoever has started it."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


name, _, wish = sys.argv[1].partition("=")
seconds, megabytes = map(float, wish.split(","))
began = time.process_time()
block = bytearray(int(megabytes * 1_000_000))
while time.process_time() < began + seconds:
    sum(range(100))
del block
print(f"{name} {time.process_time()} {read_peak()}", flush=True)
sys.stdin.readline()
if len(sys.argv) > 2:
    following = sys.argv[2].partition("=")[0]
    os.execv("/proc/self/exe", [following, "-I", __file__, *sys.argv[2:]])

"""500 MB that four forks share with their parent, and the sum of their PSS."""

import json
import os
import signal
import time

SHARED_BYTES = 500_000_000
N_FORKS = 4
HOLD_SECONDS = 2.5


def pss_bytes(pid: int) -> int:
    """Resident memory, each page divided by the number of processes that map it."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))


memory = b"x" * SHARED_BYTES
children = []
for _ in range(N_FORKS):
    child = os.fork()
    if child == 0:
        signal.pause()
    children.append(child)
time.sleep(HOLD_SECONDS)
total = sum(pss_bytes(pid) for pid in (os.getpid(), *children))
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print(json.dumps({"pss_bytes": total}))

"""200 children, one after another, each using 20 ms of CPU."""

import json
import os
import resource
import time

N_CHILDREN = 200
CHILD_SECONDS = 0.02

began = time.perf_counter()
for _ in range(N_CHILDREN):
    if os.fork() == 0:
        deadline = time.process_time() + CHILD_SECONDS
        while time.process_time() < deadline:
            sum(range(1000))
        os._exit(0)
    os.wait()
elapsed = time.perf_counter() - began
usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
cpu = sum(usage.ru_utime + usage.ru_stime for usage in usages)
print(json.dumps({"wall_seconds": elapsed, "cpu_seconds": cpu}))

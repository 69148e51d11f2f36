"""A process with 64 idle children, for the given seconds."""

import json
import os
import sys
import time

N_CHILDREN = 64

seconds = sys.argv[1]
for _ in range(N_CHILDREN):
    os.posix_spawnp("sleep", ["sleep", seconds], os.environ)
for _ in range(N_CHILDREN):
    os.wait()
print(json.dumps({"cpu_seconds": time.process_time()}))

"""One process that keeps one core busy for the given seconds."""

import json
import sys
import time

deadline = time.monotonic() + float(sys.argv[1])
while time.monotonic() < deadline:
    sum(range(10_000))
print(json.dumps({"cpu_seconds": time.process_time()}))

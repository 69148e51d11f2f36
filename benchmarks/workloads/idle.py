"""One process that does nothing for the given seconds."""

import json
import sys
import time

time.sleep(float(sys.argv[1]))
print(json.dumps({"cpu_seconds": time.process_time()}))

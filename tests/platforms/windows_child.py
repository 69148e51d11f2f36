"""A process that starts quickly, uses CPU time, tells how much, and ends at once."""

import sys
import time

while time.process_time() < float(sys.argv[1]):
    pass
print(time.process_time())

"""A rank that allocates and computes, and tells what it used by its own account."""

import json
import os
import resource
import signal
import sys
import time

megabytes, seconds = int(sys.argv[1]), float(sys.argv[2])
block = bytearray()


def tell() -> str:
    """What it used, as one line."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {"ram": used.ru_maxrss * 1024, "cpu": used.ru_utime + used.ru_stime, "pid": os.getpid()}
    return f"{json.dumps(told)}\n"


def end(*_: object) -> None:
    """Leave a word where it can be found: what is printed now may reach nobody."""
    block.clear()
    with open("told", "w") as file:
        file.write(f"told to end\n{tell()}")
    os._exit(3)


signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGUSR1, lambda *_: None)
block = bytearray(megabytes * 1_000_000)
until = time.process_time() + seconds
while time.process_time() < until:
    sum(range(1000))
if len(sys.argv) > 3:
    with open("ready", "w"):
        pass
    time.sleep(float(sys.argv[3]))
block.clear()  # giving it back takes time, too
os.write(1, tell().encode())
os._exit(0)  # at once: the interpreter's own end would not be in what was told

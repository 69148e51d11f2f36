"""A rank of torchrun on two nodes: the last rank fails, once. On the other node nobody counts that; then all end well."""

import os
import sys
import time
from pathlib import Path

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if not Path("failed").exists():
    Path(f"there-{rank}").touch()
    until = time.monotonic() + 60
    while rank == ranks - 1 and len(list(Path().glob("there-*"))) < ranks:
        if time.monotonic() > until:
            sys.exit("the others are not there")
        time.sleep(0.05)
    if rank == ranks - 1:
        Path("failed").touch()
        sys.exit(5)
    time.sleep(600)

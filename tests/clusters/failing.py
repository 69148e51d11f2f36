"""A rank of torchrun: rank 2 fails in its first life, while the others wait for it. Then all end well."""

import os
import runpy
import sys
import time
from pathlib import Path

rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
here = Path(__file__).parent
if attempt == 0:
    Path(f"there-{rank}").touch()
    until = time.monotonic() + 60
    while rank == 2 and len(list(Path().glob("there-*"))) < int(os.environ["WORLD_SIZE"]):
        if time.monotonic() > until:
            sys.exit("the others are not there")
        time.sleep(0.05)
    if rank == 2:
        sys.exit(5)
    time.sleep(600)
sys.argv[1:] = [str(30 + 10 * rank), "0.5"]
runpy.run_path(str(here / "work.py"))

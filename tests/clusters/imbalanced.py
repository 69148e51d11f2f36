"""A rank of an MPI program: rank 2 has twice the work of the others, which wait for it in a reduction, and spin."""

import json
import os
import resource
import time

from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]

import gpu_tracker as gput

block = bytearray(80_000_000)  # the kernel's own counts of a small process are not exact
world = MPI.COMM_WORLD
rank = world.rank
seconds = 0.2 * (2 if rank == 2 else 1)
spent = {"compute": 0.0, "reduce": 0.0}
for step in range(5):
    began = time.monotonic()
    with gput.region("compute"):
        until = time.process_time() + seconds
        while time.process_time() < until:
            sum(range(1000))
    between = time.monotonic()
    with gput.region("reduce"):
        world.allreduce(step)
    spent["compute"] += between - began
    spent["reduce"] += time.monotonic() - between
MPI.Finalize()
used = resource.getrusage(resource.RUSAGE_SELF)
told = {"ram": used.ru_maxrss * 1024, "cpu": used.ru_utime + used.ru_stime}
os.write(1, f"{json.dumps({'rank': rank, **spent, **told})}\n".encode())
os._exit(0)  # at once: the interpreter's own end would not be in what was told

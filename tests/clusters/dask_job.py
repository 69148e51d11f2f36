"""A client of Dask that tracks its cluster, and tells what the tasks say of themselves."""

import contextlib
import json
import os
import sys
import threading
import time
from typing import Any

from distributed import Client, KilledWorker, LocalCluster

import gpu_tracker as gput
from gpu_tracker.integrations.dask import track_cluster

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def hold(megabytes: int, seconds: float) -> dict[str, Any]:
    """Hold that much memory, and use the processor for so long besides."""
    began = time.thread_time()
    block = bytearray(megabytes * 1_000_000)
    with open("/proc/self/statm") as file:
        held = int(file.read().split()[1]) * _PAGE_BYTES
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
    return {"ram": held, "cpu": time.thread_time() - began, "pid": os.getpid(), "bytes": len(block)}


def small(number: int) -> dict[str, Any]:
    """A task that needs little."""
    return hold(40, 0.05)


def large(number: int) -> dict[str, Any]:
    """One that needs much."""
    return hold(160, 0.2)


def meet(number: int) -> dict[str, Any]:
    """One that runs beside others."""
    began = time.monotonic()
    time.sleep(0.3)
    return {"seconds": time.monotonic() - began, "thread": threading.get_native_id()}


def hoard(path: str) -> None:
    """One for which its nanny kills the worker."""
    blocks = []
    while True:
        blocks.append(bytearray(20_000_000))
        with open("/proc/self/statm") as statm, open(path, "a") as file:
            file.write(f"{int(statm.read().split()[1]) * _PAGE_BYTES}\n")
        time.sleep(0.02)


def main() -> None:
    """The tasks, each so many times: `small=6 large=4`. In place of the file of a scheduler, `local` starts workers here."""
    scheduler, n_workers, record, *wishes = sys.argv[1:]
    truths: dict[str, list[Any]] = {}
    own = gput.Tracker(sleep_time=0.1)
    with own, contextlib.ExitStack() as stack:
        if scheduler == "local":
            options = {"n_workers": int(n_workers), "threads_per_worker": 1, "host": "127.0.0.1"}
            cluster = stack.enter_context(LocalCluster(dashboard_address=None, **options))
            client = stack.enter_context(Client(cluster))
        else:
            client = stack.enter_context(Client(scheduler_file=scheduler))
        client.wait_for_workers(int(n_workers))
        began = time.monotonic()
        with track_cluster(client, record, sleep_time=0.1) as job:
            up_seconds = time.monotonic() - began
            for wish in wishes:
                name, _, count = wish.partition("=")
                arguments = [os.path.join(record, "hoarded")] if name == "hoard" else range(int(count))
                # Results are not kept: those of a worker that is killed would be computed again.
                try:
                    truths[name] = client.gather(client.map(globals()[name], arguments, pure=False))
                except KilledWorker:
                    client.wait_for_workers(int(n_workers))
    print(
        json.dumps(
            {
                "up_seconds": up_seconds,
                "truths": truths,
                "recordings": job.recordings,
                "peak": job.combined.ram_at_least_bytes,
                "text": str(job),
                "own_notes": own.notes,
                "own_ram": own.report.summary.ram.combined.total_bytes if own.report else None,
            }
        )
    )


if __name__ == "__main__":
    main()

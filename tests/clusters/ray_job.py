"""A driver of Ray that tracks its cluster, and tells what the tasks say of themselves.

A third node joins and is lost while it runs: it says `join` and `lose` when it is ready for that.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import gpu_tracker as gput
from gpu_tracker.integrations.ray import setup_worker, watch_nodes

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MOST_SECONDS = 60.0


def use(megabytes: int, seconds: float) -> dict[str, Any]:
    """Hold that much memory, and use the processor for so long."""
    began = time.process_time()
    block = bytearray(megabytes * 1_000_000)
    with open("/proc/self/statm") as file:
        held = int(file.read().split()[1]) * _PAGE_BYTES
    while time.process_time() < began + seconds:
        sum(range(100))
    told = {"ram": held, "cpu": time.process_time() - began, "node": os.uname().nodename}
    return {**told, "bytes": len(block)}


def burn() -> dict[str, Any]:
    """A task that computes."""
    return use(1, 0.8)


def large() -> dict[str, Any]:
    """One that needs memory."""
    return use(200, 0.3)


def small() -> dict[str, Any]:
    """One that needs less of it, maybe in the same process."""
    return use(40, 0.3)


class Keeper:
    """An actor with methods."""

    def keep(self) -> dict[str, Any]:
        """One of them."""
        return use(80, 0.3)


def die() -> None:
    """A task that is killed."""
    use(120, 0.6)
    os.kill(os.getpid(), signal.SIGKILL)


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """No longer than this."""
    until = time.monotonic() + _MOST_SECONDS
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(0.1)


def find_alive() -> dict[str, str]:
    """The nodes, by host name."""
    return {node["NodeManagerHostname"]: node["NodeID"] for node in ray.nodes() if node["Alive"]}


def is_brought(path: str, seconds: float) -> bool:
    """Whether a recording on this machine has the task, with so much CPU time, and the end of its call."""
    recording = gput.load(path)
    seen = [one.last or 0.0 for one in recording.metrics if one.name == "ray::burn cpu_seconds"]
    calls = [region.calls for region in recording.regions if region.path == ("burn",)]
    return sum(seen) >= seconds and sum(calls) == 1


def main() -> None:
    """All of it."""
    ray.init(
        address="10.77.0.1:6379",
        log_to_driver=False,
        runtime_env={"worker_process_setup_hook": setup_worker},
    )
    wait_until(lambda: len(find_alive()) == 2, "two nodes")
    tasks: dict[str, Any] = {task.__name__: ray.remote(task) for task in (burn, large, small, Keeper, die)}
    truths: dict[str, list[Any]] = {}
    own = gput.Tracker(sleep_time=0.2)
    began = time.monotonic()
    with own, watch_nodes(sys.argv[1], sleep_time=0.2) as job:
        up_seconds = time.monotonic() - began
        for name in ("burn", "large", "small"):
            truths[name] = ray.get([tasks[name].remote() for _ in range(4)])
        keeper = tasks["Keeper"].remote()
        truths["Keeper.keep"] = [ray.get(keeper.keep.remote()) for _ in range(2)]
        try:
            ray.get(tasks["die"].options(max_retries=0).remote())
        except ray.exceptions.WorkerCrashedError:
            truths["die"] = []

        print("join", flush=True)
        wait_until(lambda: len(job.recordings) == 3, "a third recording")
        there = NodeAffinitySchedulingStrategy(find_alive()["r3"], soft=False)
        (far,) = ray.get([tasks["burn"].options(scheduling_strategy=there).remote()])
        wait_until(lambda: is_brought(job.recordings[-1], far["cpu"] * 0.8), "what the third node did")
        print("lose", flush=True)
        wait_until(lambda: len(find_alive()) == 2, "the loss of a node")
    print(
        json.dumps(
            {
                "up_seconds": up_seconds,
                "truths": truths,
                "far": far,
                "recordings": job.recordings,
                "tasks": {use.name: (use.cpu_seconds, use.peak_ram_bytes) for use in job.tasks},
                "text": str(job),
                "own_notes": own.notes,
            }
        )
    )


if __name__ == "__main__":
    main()

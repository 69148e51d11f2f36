"""The same work on every core, and its wall time per CPU second.

Each process times itself, so it does not matter which one finishes first. The CPU use of other processes is reported
too, to leave out runs that were disturbed.
"""

import json
import os
import time

N_STEPS = 45_000_000


def work() -> tuple[float, float]:
    """Wall and CPU seconds of one process."""
    wall, cpu, number = time.perf_counter(), time.process_time(), 1
    for _ in range(N_STEPS):
        number = number * 5 & 0xFFFF
    return time.perf_counter() - wall, time.process_time() - cpu


def busy_seconds() -> float:
    """CPU seconds of the whole machine, a counter; includes time stolen by a hypervisor."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """One process per core."""
    n_processes = len(os.sched_getaffinity(0))
    reading, writing = os.pipe()
    busy, began = busy_seconds(), time.perf_counter()
    for _ in range(n_processes):
        if os.fork() == 0:
            os.write(writing, f"{json.dumps(work())}\n".encode())
            os._exit(0)
    for _ in range(n_processes):
        os.wait()
    elapsed, busy = time.perf_counter() - began, busy_seconds() - busy
    os.close(writing)
    with os.fdopen(reading) as lines:
        shares = [json.loads(line) for line in lines]
    wall, cpu = (sum(column) for column in zip(*shares, strict=True))
    foreign_percent = 100 * max(0.0, busy - cpu) / elapsed
    print(json.dumps({"wall_seconds": wall, "cpu_seconds": cpu, "foreign_percent": foreign_percent}))


main()

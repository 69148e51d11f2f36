"""Has several busy workers at once, which end, or stay idle until their parent has gone."""

from __future__ import annotations

import os
import time

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import burn


def work(n_workers: str, cpu_seconds: str, then: str) -> Truth:
    """Every worker uses that much CPU; `then` is "end" or "stay"."""
    gate_out, gate_in = os.pipe()
    news_out, news_in = os.pipe()
    pids = []
    for _ in range(int(n_workers)):
        pid = os.fork()
        if pid == 0:
            os.close(gate_in)
            burn(float(cpu_seconds))
            # Told before it is idle, so that all but this line is in it.
            os.write(news_in, f"{time.process_time()}\n".encode())
            if then == "stay":
                os.read(gate_out, 1)
            os._exit(0)
        pids.append(pid)
    os.close(news_in)
    with os.fdopen(news_out, encoding="ascii") as news:
        seconds = [float(news.readline()) for _ in pids]
    if then == "stay":
        return {"living_children_cpu_seconds": sum(seconds)}
    for pid in pids:
        os.waitpid(pid, 0)
    return {}


if __name__ == "__main__":
    perform(work)

"""Five processes that all map the same block of shared memory, and touch all of it."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import time
from multiprocessing.shared_memory import SharedMemory
from typing import TYPE_CHECKING

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, describe_sharing

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_N_CHILDREN = 4


def work(kind: str, megabytes: str, seconds: str) -> Truth:
    """`kind` is mmap, inherited by forks, or shared_memory, opened by name in new interpreters."""
    n_bytes = int(megabytes) * MB
    return _with_mmap(n_bytes, seconds) if kind == "mmap" else _with_shared_memory(n_bytes, seconds)


def _with_mmap(n_bytes: int, seconds: str) -> Truth:
    block = mmap.mmap(-1, n_bytes)  # shared and anonymous by default
    _write_to(block)
    gate_out, gate_in = os.pipe()
    news_out, news_in = os.pipe()
    pids = []
    for _ in range(_N_CHILDREN):
        pid = os.fork()
        if pid == 0:
            os.close(gate_in)
            _write_to(block)
            os.write(news_in, b".")
            os.read(gate_out, 1)
            os._exit(0)
        pids.append(pid)
    for _ in pids:
        os.read(news_out, 1)
    truth = _hold(pids, seconds)
    os.close(gate_in)
    for pid in pids:
        os.waitpid(pid, 0)
    block.close()
    return truth


def _with_shared_memory(n_bytes: int, seconds: str) -> Truth:
    memory = SharedMemory(create=True, size=n_bytes)
    _write_to(memory.buf)
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(_N_CHILDREN)]
    children = [context.Process(target=_share, args=(memory.name, there)) for _, there in pipes]
    for child in children:
        child.start()
    for here, _ in pipes:
        here.recv()
    truth = _hold([child.pid or 0 for child in children], seconds)
    for here, _ in pipes:
        here.send("enough")
    for child in children:
        child.join()
    memory.close()
    memory.unlink()
    return truth


def _share(name: str, connection: Connection) -> None:
    memory = SharedMemory(name)
    _write_to(memory.buf)
    connection.send("there")
    connection.recv()
    memory.close()


def _write_to(block: mmap.mmap | memoryview | None) -> None:
    assert block is not None
    for offset in range(0, len(block), _PAGE_BYTES):
        block[offset] = 1


def _hold(pids: list[int], seconds: str) -> Truth:
    truth: Truth = dict(describe_sharing(os.getpid(), pids))
    time.sleep(float(seconds))
    return truth


if __name__ == "__main__":
    perform(work)

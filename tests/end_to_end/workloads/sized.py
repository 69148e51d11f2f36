"""Jobs that need memory in different ways: sized.py KIND FILE.

Fails if a process of it was killed. FILE is a large file, not in memory, or a source file to compile.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from end_to_end.workloads.stage import Truth, perform
from end_to_end.workloads.truth import MB, burn, touch

_SECONDS = 0.5
_PAGE_BYTES = 4096
_TABLE_BYTES = 2**21
_MAP_NORESERVE = 0x4000  # newer versions of Python have it in mmap


def steady(_path: str) -> None:
    """The same all the time."""
    held = touch(150 * MB)
    time.sleep(_SECONDS)
    held.close()


def spike(_path: str) -> None:
    """Between two readings it needs four times as much."""
    held = touch(40 * MB)
    time.sleep(_SECONDS / 2)
    touch(120 * MB).close()
    time.sleep(_SECONDS / 2)
    held.close()


def forks(_path: str) -> None:
    """Workers share what their parent holds."""
    held = touch(110 * MB)
    _fork_all(3, lambda: (held[::_PAGE_BYTES], touch(10 * MB)))


def shared_memory(_path: str) -> None:
    """A file in shared memory that no process maps."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        for _ in range(150):
            file.write(bytes(MB))
        file.flush()
        time.sleep(_SECONDS)


def page_cache(path: str) -> None:
    """Reads a file that is larger than what it needs itself."""
    held = touch(120 * MB)
    with Path(path).open("rb") as file:
        while file.read(MB):
            pass
    time.sleep(_SECONDS)
    held.close()


def mapped_file(path: str) -> None:
    """Maps a file that is larger than what it needs itself."""
    held = touch(120 * MB)
    with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        mapped[::_PAGE_BYTES]
        time.sleep(_SECONDS)
    held.close()


def page_tables(_path: str) -> None:
    """Touches a page here and there: a page table of the kernel for each."""
    with mmap.mmap(-1, 30_000 * _TABLE_BYTES, flags=mmap.MAP_PRIVATE | _MAP_NORESERVE) as held:
        held.madvise(mmap.MADV_NOHUGEPAGE)
        for place in range(0, len(held), _TABLE_BYTES):
            held[place] = 1
        time.sleep(_SECONDS)


def small_processes(_path: str) -> None:
    """Each needs little."""
    _fork_all(40, lambda: touch(3 * MB))


def threads(_path: str) -> None:
    """Two cores at once."""
    held = touch(120 * MB)
    busy = [threading.Thread(target=burn, args=(_SECONDS,)) for _ in range(2)]
    for thread in busy:
        thread.start()
    for thread in busy:
        thread.join()
    held.close()


def growing(_path: str) -> None:
    """A little more at every step."""
    held = []
    for _ in range(15):
        held.append(touch(10 * MB))
        time.sleep(_SECONDS / 15)


def compiler(path: str) -> None:
    """The program that needs the memory is a grandchild."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["gcc", "-c", path, "-o", f"{directory}/object.o"], check=True, capture_output=True)


KINDS = (
    steady,
    spike,
    forks,
    shared_memory,
    page_cache,
    mapped_file,
    page_tables,
    small_processes,
    threads,
    growing,
    compiler,
)


def _fork_all(number: int, hold: Callable[[], object]) -> None:
    """Children that all hold something at the same time; one that is killed fails the job."""
    ready, tell = os.pipe()
    wait, release = os.pipe()
    pids = [_fork(hold, tell, wait, release) for _ in range(number)]
    os.close(tell)
    n_ready = len(Path(f"/dev/fd/{ready}").read_bytes())  # until each has told, or is dead
    time.sleep(_SECONDS)
    os.close(release)
    endings = [os.waitpid(pid, 0)[1] for pid in pids]
    if n_ready < number or any(endings):
        raise SystemExit(f"a child was killed: {endings}")


def _fork(hold: Callable[[], object], tell: int, wait: int, release: int) -> int:
    pid = os.fork()
    if pid == 0:
        os.close(release)
        held = hold()
        os.write(tell, b".")
        os.close(tell)
        os.read(wait, 1)
        os._exit(int(held is None))
    return pid


def work(kind: str, path: str) -> Truth:
    """One of them."""
    {work.__name__: work for work in KINDS}[kind](path)
    return {}


if __name__ == "__main__":
    perform(work)

"""Does unusual things to its descriptors: streams.py WAY."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import subprocess
import sys
import time

from end_to_end.fault_workloads.telling import burn, is_tracked, make_tracker, tell, tell_figures

FEW = 64


def closed() -> None:
    """No standard streams: what is written to them fails, before, during and after tracking."""
    for fd in (0, 1, 2):
        os.close(fd)
    # The closed numbers must be free for nobody but the job.
    tracker = make_tracker()
    with tracker:
        burn(0.2)
        tell(during=[probe(fd) for fd in (0, 1, 2)])
    tell(after=[probe(fd) for fd in (0, 1, 2)])
    tell_figures(tracker)


def probe(fd: int) -> str:
    """What happens to somebody who writes there."""
    try:
        os.write(fd, b"hello?\n")
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "written"


def swept() -> None:
    """The job closes all descriptors it does not know, and opens its own in their place."""
    path = "precious.txt"
    tracker = make_tracker(n_join_attempts=1, join_timeout=0.5)
    with tracker:
        burn(0.2)
        os.closerange(3, 256)
        fds = [os.open(f"{path}{n}", os.O_CREAT | os.O_RDWR, 0o600) for n in range(8)]
        for fd in fds:
            os.write(fd, b"mine")
    states = [probe_file(fd) for fd in fds]
    tell_figures(tracker)
    tell(files=states, contents=[read(f"{path}{n}") for n in range(8)])


def probe_file(fd: int) -> str:
    """Whether the descriptor is still the job's."""
    try:
        os.fstat(fd)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "open"


def read(path: str) -> str:
    """The text of a file."""
    with open(path, encoding="latin-1") as file:
        return file.read()


def piped() -> None:
    """Somebody reads from a pipe until its end, which comes when the job closes the other side."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    high = os.dup2(writing, 200, inheritable=True)
    tracker = make_tracker()
    tracker.start()
    os.close(writing)
    os.close(high)
    tell(read=os.read(reading, 100).decode(), is_tracked=is_tracked())
    burn(0.2)
    tracker.stop()
    tell_figures(tracker)


def exhausted() -> None:
    """Not one descriptor is free when tracking starts; later there are some again."""
    with limit(FEW):
        fds = []
        with contextlib.suppress(OSError):
            while True:
                fds.append(os.open(os.devnull, os.O_RDONLY))
        tracker = make_tracker(n_join_attempts=1, join_timeout=0.5)
        problem = ""
        began = time.monotonic()
        try:
            tracker.start()
        except BaseException as error:
            problem = repr(error)
        started = time.monotonic()
        burn(0.2)
        for fd in fds:
            os.close(fd)
        if not problem:
            tracker.stop()
        tell(problem=problem, start_seconds=started - began)
        if not problem:
            tell_figures(tracker)


def scarce() -> None:
    """Fewer descriptors than the number the sampler's pipes are moved above; the job needs no more."""
    with limit(12):
        tracker = make_tracker()
        with tracker:
            burn(0.2)
        tell_figures(tracker)


def crowd() -> None:
    """More processes than the soft limit of descriptors; the sampler inherits that limit."""
    with limit(FEW):
        tracker = make_tracker()
        with tracker:
            children = [subprocess.Popen(["sleep", "30"], close_fds=False) for _ in range(FEW)]
            burn(0.6)
            for child in children:
                child.kill()
            for child in children:
                child.wait()
    tell_figures(tracker)


@contextlib.contextmanager
def limit(number: int):  # type: ignore[no-untyped-def]
    """A low soft limit for open files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


if __name__ == "__main__":
    globals()[sys.argv[1]]()

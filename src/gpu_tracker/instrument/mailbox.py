"""The directory where processes of the job leave word for the sampler, made by whoever tracks them."""

from __future__ import annotations

import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAILBOX_VARIABLE = "GPU_TRACKER_MAILBOX"
REGIONS_SUFFIX = ".regions"
METRICS_SUFFIX = ".metrics"
METRICS_BYTES = 4_000_000  # then the next file is begun
FRAMEWORKS_SUFFIX = ".frameworks"
UNFINISHED_SUFFIX = ".new"
_SUFFIXES = (REGIONS_SUFFIX, METRICS_SUFFIX, FRAMEWORKS_SUFFIX, UNFINISHED_SUFFIX)

_PREFIX = "gpu-tracker-"
_NEVER = (0, 0)  # the time of the last change as long as there was none
_PARENTS = ("/dev/shm", "/tmp", "/var/tmp")  # noqa: S108 - a directory of our own is made there, for us alone


def choose_mailbox(environment: Mapping[str, str]) -> str | None:
    """A name that nobody has yet, where there is room; None if there is nowhere."""
    for parent in (*_PARENTS, environment.get("TMPDIR") or ""):
        if os.access(parent, os.W_OK | os.X_OK):
            return f"{parent}/{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
    return None


def put_inside(mailbox: str, outer: str | None) -> str:
    """What the variable says of a mailbox: it, and those of the trackers around."""
    return mailbox if outer is None else f"{mailbox}{os.pathsep}{outer}"


def find_innermost(mailboxes: str) -> str:
    """Where what a process says is to go."""
    return mailboxes.partition(os.pathsep)[0]


def name_file(mailbox: str, suffix: str) -> str:
    """A new file there, called after the process that writes it and where its number is valid."""
    return f"{mailbox}/{os.getpid()}-{find_namespace()}-{os.urandom(4).hex()}{suffix}"


def find_namespace() -> int:
    """Which numbering of processes this one is in; 0 where there is but one."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def find_writer(name: str) -> tuple[int, int]:
    """The process that writes a file, and in which numbering. ValueError if it is no file of ours."""
    pid, namespace, _ = name.split("-")
    return int(pid), int(namespace)


def is_over(name: str, namespace: int) -> bool:
    """Whether the process that writes a file has ended; never for one whose number means nothing here."""
    pid, its_namespace = find_writer(name)
    if its_namespace != namespace:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def make_mailbox(path: str) -> int | None:
    """The directory, that only its owner may enter, and its lock. The sampler makes it, and keeps the lock while it lives."""
    try:
        os.mkdir(f"{path}{UNFINISHED_SUFFIX}", 0o700)
        lock = os.open(f"{path}{UNFINISHED_SUFFIX}", os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.utime(f"{path}{UNFINISHED_SUFFIX}", _NEVER)
        os.rename(f"{path}{UNFINISHED_SUFFIX}", path)
    except OSError:
        return None
    return lock


def has_word(path: str) -> bool:
    """Whether a process has left word there, at the price of one glance."""
    try:
        return os.stat(path).st_mtime_ns > 0
    except OSError:
        return False


def remove_leftovers(path: str) -> None:
    """Throw away, beside this mailbox, those whose sampler was killed together with its tracker: their locks are free."""
    parent = os.path.dirname(path)
    names = os.listdir(parent) if parent in _PARENTS else []
    for name in names:
        if name.startswith(_PREFIX) and not name.endswith(UNFINISHED_SUFFIX):
            try:
                lock = os.open(f"{parent}/{name}", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except OSError:
                continue  # somebody else's
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # What is ours nobody can have swapped for something else.
                if os.fstat(lock).st_uid == os.geteuid():
                    remove_mailbox(f"{parent}/{name}")
            except OSError:
                pass  # in use
            finally:
                os.close(lock)


def remove_mailbox(path: str) -> None:
    """Throw a directory away, with the files that were made here and nothing else."""
    try:
        for name in os.listdir(path):
            if name.endswith(_SUFFIXES):
                os.unlink(f"{path}/{name}")
        os.rmdir(path)
    except OSError:
        pass  # somebody was quicker

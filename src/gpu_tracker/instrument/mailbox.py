"""The directory in which processes of the job leave files for the sampler."""

from __future__ import annotations

import fcntl
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAILBOX_VARIABLE = "GPU_TRACKER_MAILBOX"
REGIONS_SUFFIX = ".regions"
CALLS_SUFFIX = ".calls"
METRICS_SUFFIX = ".metrics"
METRICS_BYTES = 4_000_000  # then a new file is begun
FRAMEWORKS_SUFFIX = ".frameworks"
UNFINISHED_SUFFIX = ".new"
_SUFFIXES = (REGIONS_SUFFIX, CALLS_SUFFIX, METRICS_SUFFIX, FRAMEWORKS_SUFFIX, UNFINISHED_SUFFIX)

_PREFIX = "gpu-tracker-"
_NEVER = (0, 0)  # the modification time of an unused mailbox
_PARENTS = ("/dev/shm", "/tmp", "/var/tmp")  # noqa: S108 - a private directory is created there


def choose_mailbox(environment: Mapping[str, str]) -> str | None:
    """A new path in a writable directory; None if there is none."""
    for parent in (*_PARENTS, environment.get("TMPDIR") or ""):
        if os.access(parent, os.W_OK | os.X_OK):
            return f"{parent}/{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
    return None


def put_inside(mailbox: str, outer: str | None) -> str:
    """The value of the variable: a mailbox, followed by those of the trackers around it."""
    return mailbox if outer is None else f"{mailbox}{os.pathsep}{outer}"


def find_innermost(mailboxes: str) -> str:
    """The mailbox that a process writes to."""
    return mailboxes.partition(os.pathsep)[0]


def name_file(mailbox: str, suffix: str) -> str:
    """A new file, named after the process that writes it and its pid namespace."""
    return f"{mailbox}/{os.getpid()}-{find_namespace()}-{os.urandom(4).hex()}{suffix}"


def find_namespace() -> int:
    """The pid namespace of this process; 0 on systems without them."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def find_writer(name: str) -> tuple[int, int]:
    """The pid and pid namespace of the writer of a file. ValueError if the name is not ours."""
    pid, namespace, _ = name.split("-")
    return int(pid), int(namespace)


def make_mailbox(path: str) -> int | None:
    """Create the private directory; returns its lock, which the sampler holds until it ends."""
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
    """Whether a process has written there; costs one system call."""
    try:
        return os.stat(path).st_mtime_ns > 0
    except OSError:
        return False


def remove_leftovers(path: str) -> None:
    """Remove mailboxes next to this one whose sampler was killed with its tracker: their locks are free."""
    parent = os.path.dirname(path)
    names = os.listdir(parent) if parent in _PARENTS else []
    for name in names:
        if name.startswith(_PREFIX) and not name.endswith(UNFINISHED_SUFFIX):
            try:
                lock = os.open(f"{parent}/{name}", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except OSError:
                continue  # another user's
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Only the owner can have replaced it.
                if os.fstat(lock).st_uid == os.geteuid():
                    remove_mailbox(f"{parent}/{name}")
            except OSError:
                pass  # in use
            finally:
                os.close(lock)


def remove_mailbox(path: str) -> None:
    """Remove a mailbox; only files that were created here are deleted."""
    try:
        for name in os.listdir(path):
            if name.endswith(_SUFFIXES):
                os.unlink(f"{path}/{name}")
        os.rmdir(path)
    except OSError:
        pass  # already removed, or not empty

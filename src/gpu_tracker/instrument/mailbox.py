"""The directory in which processes of the job leave files for the sampler.

The mailboxes of a user are in one private directory, so that a process can find those of the trackers around it.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time

from ..core.system import fcntl, posix, resource
from .mishaps import is_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAILBOX_VARIABLE = "GPU_TRACKER_MAILBOX"
REGIONS_SUFFIX = ".regions"
CALLS_SUFFIX = ".calls"
METRICS_SUFFIX = ".metrics"
METRICS_BYTES = 4_000_000  # then a new file is begun
FRAMEWORKS_SUFFIX = ".frameworks"
UNFOLLOWED_SUFFIX = ".unfollowed"
LOST_SUFFIX = ".lost"  # how many rows of metrics could not be written is its time: a size may be limited
UNFINISHED_SUFFIX = ".new"
_SUFFIXES = (
    REGIONS_SUFFIX,
    CALLS_SUFFIX,
    METRICS_SUFFIX,
    FRAMEWORKS_SUFFIX,
    UNFOLLOWED_SUFFIX,
    LOST_SUFFIX,
    UNFINISHED_SUFFIX,
)

_PREFIX = "gpu-tracker-"
_NEVER = (0, 0)  # the modification time of an unused mailbox
_PARENTS = ("/dev/shm", "/tmp", "/var/tmp")  # noqa: S108 - a private directory is created there
_OWN_PARENT = "TMPDIR"
if sys.platform == "win32":
    _PARENTS, _OWN_PARENT = (), "TEMP"
_LAST_PARENT = "C:/Windows/Temp"
_ATTEMPTS = 20
_LEAST_FREE_FILES = 100  # a file system that counts them may run out of them before it is full
_ATTACHED_SUFFIX = ".attached"


def list_places(environment: Mapping[str, str]) -> list[str]:
    """The directories in which the mailboxes of this user may be, the usual one first."""
    parents = dict.fromkeys((*_PARENTS, environment.get(_OWN_PARENT) or (*_PARENTS, _LAST_PARENT)[0]))
    return [f"{parent}/{_PREFIX}{posix.geteuid()}" for parent in parents]


def choose_mailbox(environment: Mapping[str, str], attached_pid: int = 0) -> str | None:
    """A new path in a writable directory; None if there is none. It may be for a process that runs already."""
    for place in list_places(environment):
        if _is_usable(place):
            writer = f"{attached_pid or os.getpid()}-{find_namespace()}"
            begin = f"{time.monotonic_ns():016x}{os.urandom(4).hex()}"
            kind = _ATTACHED_SUFFIX if attached_pid else ""
            return f"{place}/{writer}-{begin}{_identify_around(place)}{kind}"
    return None


def is_attached(mailbox: str) -> bool:
    """Whether its tracker only looks on: a process reports to the trackers around it first."""
    return mailbox.endswith(_ATTACHED_SUFFIX)


def is_gone(mailbox: str) -> bool:
    """Whether a mailbox that is not found was removed, rather than hidden by another root or mount of this process."""
    try:
        return _identify_around(os.path.dirname(mailbox)) in os.path.basename(mailbox)
    except OSError as error:
        if not is_ours(error):
            raise
        return False


def _identify_around(place: str) -> str:
    """Which directory a place is in."""
    status = posix.stat(os.path.dirname(place))
    return f".{status.st_dev:x}_{status.st_ino:x}"


def _is_usable(place: str) -> bool:
    """Whether mailboxes can be made there. Other trackers may create and remove it at any moment."""
    try:
        if sys.platform != "win32":
            room = os.statvfs(os.path.dirname(place))
            if room.f_files and room.f_favail < _LEAST_FREE_FILES:
                return False
        status = os.lstat(place)
    except OSError:
        return _can_make(f"{place}-{os.urandom(4).hex()}")
    return _is_private(status) and (os.access(place, os.W_OK | os.X_OK) or not os.path.lexists(place))


def _can_make(path: str) -> bool:
    """Whether a directory can be created; tried, because rights do not tell whether there is room for one."""
    try:
        os.mkdir(path, 0o700)
        os.rmdir(path)
    except OSError:
        return False
    return True


def is_private(place: str) -> bool:
    """Whether a directory is ours alone: another user may have taken its name."""
    try:
        return _is_private(os.lstat(place))
    except OSError as error:
        if not is_ours(error):
            raise
        return False


def _is_private(status: os.stat_result) -> bool:
    if sys.platform == "win32":
        return stat.S_ISDIR(status.st_mode)  # the place around it is the user's own
    is_of_user = stat.S_ISDIR(status.st_mode) and status.st_uid == posix.geteuid()
    return is_of_user and not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def put_inside(mailbox: str, outer: str | None) -> str:
    """The value of the variable: a mailbox, followed by those of the trackers around it."""
    return mailbox if outer is None else f"{mailbox}{os.pathsep}{outer}"


def find_innermost(mailboxes: str) -> str:
    """The mailbox that a process writes to."""
    return mailboxes.partition(os.pathsep)[0]


def name_file(mailbox: str, suffix: str, pid: int = 0) -> str:
    """A new file, named after the process that writes it, or that it is about, and its pid namespace."""
    return f"{mailbox}/{pid or posix.getpid()}-{find_namespace()}-{posix.urandom(4).hex()}{suffix}"


def check_size(n_bytes: int) -> None:
    """OSError if this process may not write a file of that size: trying to could kill it (SIGXFSZ)."""
    most_bytes, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if 0 <= most_bytes < n_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def find_namespace() -> int:
    """The pid namespace of this process; 0 on systems without them."""
    try:
        return 0 if sys.platform == "win32" else posix.stat("/proc/self/ns/pid").st_ino
    except OSError as error:
        if not is_ours(error):
            raise
        return 0


def find_writer(name: str) -> tuple[int, int]:
    """The pid and pid namespace of the writer of a file. ValueError if the name is not ours."""
    pid, namespace, _ = name.split("-")
    return int(pid), int(namespace)


def make_mailbox(path: str) -> int | None:
    """Create the private directory; returns its lock, which the sampler holds until it ends."""
    try:
        _make_directory(f"{path}{UNFINISHED_SUFFIX}")
        lock = hold_mailbox(f"{path}{UNFINISHED_SUFFIX}")
        os.utime(f"{path}{UNFINISHED_SUFFIX}", _NEVER)
        os.rename(f"{path}{UNFINISHED_SUFFIX}", path)
    except OSError:
        return None
    return lock


def hold_mailbox(path: str) -> int:
    """Lock it against removal by others. The tracker holds it too, so that a killed sampler does not cost what is there."""
    if sys.platform == "win32":
        return posix.hold_name(_name_lock(path))
    lock = posix.open(path, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW)
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def is_alive(path: str) -> bool:
    """Whether the sampler or the tracker of a mailbox still runs, and so holds its lock."""
    if sys.platform == "win32":
        return posix.is_name_held(_name_lock(path))
    try:
        lock = posix.open(path, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW)
    except OSError as error:
        if not is_ours(error):
            raise
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if not is_ours(error):
            raise
        return True
    finally:
        os.close(lock)
    return False


def _name_lock(path: str) -> str:
    """What stands for the lock of a mailbox where directories have none."""
    return os.path.basename(path.removesuffix(UNFINISHED_SUFFIX))


def _make_directory(path: str) -> None:
    """Create a directory, and the place around it. Another tracker may remove that as long as it is empty."""
    place = os.path.dirname(path)
    for attempt in range(_ATTEMPTS):
        try:
            os.mkdir(path, 0o700)
            break
        except FileNotFoundError:
            if not _is_place(place) or attempt == _ATTEMPTS - 1:
                raise
        try:
            os.mkdir(place, 0o700)
        except FileExistsError:
            pass  # by another tracker
    if _is_place(place) and not is_private(place):
        os.rmdir(path)
        raise PermissionError(place)


def _is_place(path: str) -> bool:
    return os.path.basename(path) == f"{_PREFIX}{posix.geteuid()}"


def has_word(path: str) -> bool:
    """Whether a process has written there; costs one system call."""
    try:
        return os.stat(path).st_mtime_ns > 0
    except OSError:
        return False


def remove_leftovers(path: str) -> None:
    """Remove mailboxes next to this one whose sampler and tracker were killed: their locks are free."""
    place = os.path.dirname(path)
    try:
        names = os.listdir(place) if _is_place(place) else []
    except OSError:
        return  # it was empty, and is removed
    for name in names:
        mailbox = f"{place}/{name}"
        if not name.endswith(UNFINISHED_SUFFIX) and not os.path.islink(mailbox) and not is_alive(mailbox):
            remove_mailbox(mailbox)


def remove_mailbox(path: str) -> None:
    """Remove a mailbox, and the place around it if it was the last; only files that were created here are deleted."""
    try:
        for name in os.listdir(path):
            if name.endswith(_SUFFIXES):
                os.unlink(f"{path}/{name}")
        os.rmdir(path)
        place = os.path.dirname(path)
        if _is_place(place):
            os.rmdir(place)
    except OSError:
        pass  # already removed, or not empty

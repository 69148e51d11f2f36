"""What this process reports to its tracker: its regions, its metrics, its framework memory.

They are written to files in a mailbox that is named in the environment, so this works in every process of the job,
however it was started. A process that is older than its tracker searches for it now and then. Without a tracker there is no mailbox,
and nothing is written.
"""

from __future__ import annotations

import atexit
import mmap
import os
import sys
from _json import encode_basestring_ascii  # what json is made of, without importing that
from _thread import RLock

from ..core.notices import is_new, warn_once
from ..core.system import fcntl, monotonic_ns, posix
from . import high_water, suspension
from .locks import replace_if_lost
from .mailbox import (
    LOST_SUFFIX,
    MAILBOX_VARIABLE,
    METRICS_BYTES,
    METRICS_SUFFIX,
    UNFOLLOWED_SUFFIX,
    check_size,
    find_innermost,
    is_gone,
    name_file,
    put_inside,
)
from .mishaps import is_ours
from .search import Search
from .shared_file import FIRST_BEYOND_STANDARD, identify
from .stack import MOST_SLOW, SLOW_NS, SLOW_PAUSE, RegionStack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .frameworks import FrameworkWatch

_FIRST_DESCRIPTOR = 512
# Notes of forked processes, by their numbers; two that share a place count once.
_N_NOTES = 512
_OF_REGIONS, _OF_METRICS = 0, _N_NOTES
# More may not fit into a line of the recording.
_MOST_ROW_BYTES = METRICS_BYTES
# Modules whose GPU memory is read.
_FRAMEWORKS = ("torch", "jax", "tensorflow")

# As the json module writes and reads them.
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

# Not more often than this, so that it costs less than a thousandth of the time.
_SEARCH_EVERY_NS = 20_000_000

mailboxes: str | None = os.environ.get(MAILBOX_VARIABLE) or None
"""Our tracker's, then those of the trackers around it."""
given_up: str | None = None
"""The same, if there was no room for regions; there may be for metrics."""
stack: RegionStack | None = None
_outer_stacks: dict[str, RegionStack] = {}
"""The regions of trackers around ours; those that are open there go on."""
_metrics: MetricsWriter | None = None
_lost: tuple[str, int] | None = None
"""The file that says how many rows of metrics could not be written, and that number."""
_watch: FrameworkWatch | None = None
_opening = RLock()
_n_slow_searches = 0
"""In a row."""
search_due_ns = 0
"""When to search for trackers again."""
_search = Search()
_board: memoryview | None = None
"""Memory without a file that this process shares with those that it forks, and those with theirs: there they note that they cannot reach the
mailbox any more, having changed their user or root. Whoever ends as usual, and can reach it, passes that on."""
_opened: set[str] = set()
"""The mailboxes of trackers that run in this process: it knows better than any search."""
_closed: set[str] = set()


def search() -> None:
    """Find out which trackers there are around this process, which may be older than they are."""
    global search_due_ns, _n_slow_searches
    began_ns = monotonic_ns()
    search_due_ns = began_ns + _SEARCH_EVERY_NS
    if _opened:
        return
    has_changed = _search.has_changed()
    took_ns = monotonic_ns() - began_ns
    _n_slow_searches = _n_slow_searches + 1 if took_ns > SLOW_NS else 0
    if _n_slow_searches >= MOST_SLOW:
        search_due_ns = began_ns + SLOW_PAUSE * took_ns
    if not has_changed:
        return
    lock = replace_if_lost(_opening)
    if not lock.acquire(False):
        _search.forget()  # another thread is at it, and may wait for this one
        return
    try:
        try:
            found = _search.find()
        except OSError as error:
            _search.forget()  # it has changed again, or too many files are open
            if not is_ours(error):
                raise
            return
        _closed.intersection_update(found)
        found = [path for path in found if path not in _closed]
        known = mailboxes.split(os.pathsep) if mailboxes else []
        found += [path for path in known if path not in found and path not in _closed and _is_there(path)]
        if found != known:
            _turn_to(os.pathsep.join(found) or None)
    finally:
        lock.release()


def _is_there(mailbox: str) -> bool:
    """Whether its tracker may still run: another user cannot tell."""
    try:
        posix.stat(mailbox)
    except OSError as error:
        if not is_ours(error):
            raise
        # One that another root hides is still there: that it cannot be reached is said when it is used.
        return isinstance(error, PermissionError) or not is_gone(mailbox)
    return True


def _turn_to(names: str | None) -> None:
    """Report to these trackers from now on. Regions that are open for a tracker around go on when it takes over again."""
    global mailboxes, given_up, stack
    if stack is not None and names is not None and names.endswith(f"{os.pathsep}{mailboxes}"):
        _outer_stacks[str(mailboxes)], stack = stack, None
    _flush()
    _forget()
    mailboxes, given_up = names, None
    if names is None:
        _outer_stacks.clear()
        os.environ.pop(MAILBOX_VARIABLE, None)
    else:
        stack = _outer_stacks.pop(names, None)
        os.environ[MAILBOX_VARIABLE] = names


def open_mailbox(mailbox: str) -> None:
    """Begin a tracker in this process: it and its children report there from now on."""
    with replace_if_lost(_opening):
        names = put_inside(mailbox, _list_names())
        _turn_to(names)
        _opened.add(mailbox)
        high_water.note_start(mailbox)
        _watch_frameworks(names, was_running_before=True)


def close_mailbox(mailbox: str) -> None:
    """End that tracker. If it is the innermost, the one around it takes over again; else only its own regions end."""
    global mailboxes
    with replace_if_lost(_opening):
        before = _list_names()
        names = _without(mailbox, before)
        if before is None or find_innermost(before) == mailbox:
            _turn_to(names)
        elif names is not None:
            os.environ[MAILBOX_VARIABLE] = names
            mailboxes = mailboxes and names
            _close_outer(mailbox)
        _opened.discard(mailbox)
        _closed.add(mailbox)
        if names is None:
            high_water.forget_starts()


def find_own_tracker() -> str | None:
    """The mailbox of the innermost tracker, if that runs in this process."""
    names = mailboxes or given_up
    mailbox = None if names is None else find_innermost(names)
    return mailbox if mailbox in _opened else None


def is_own_tracker(mailbox: str) -> bool:
    """Whether the tracker with this mailbox runs in this process."""
    return mailbox in _opened


def _list_names() -> str | None:
    """All mailboxes, also if ours could not be written to."""
    return mailboxes or os.environ.get(MAILBOX_VARIABLE) or None


def _without(mailbox: str, names: str | None) -> str | None:
    return os.pathsep.join(name for name in (names or "").split(os.pathsep) if name != mailbox) or None


def _close_outer(mailbox: str) -> None:
    """End a tracker around ours: its regions are complete, and those of others around remain."""
    for names, outer_stack in list(_outer_stacks.items()):
        del _outer_stacks[names]
        if find_innermost(names) == mailbox:
            outer_stack.close()
        else:
            _outer_stacks[str(_without(mailbox, names))] = outer_stack


def _forget() -> None:
    """Begin without regions and metrics."""
    global stack, _metrics, _lost, _watch
    stack, _metrics, _lost, _watch = None, None, None, None
    suspension.forget()


def open_stack() -> RegionStack | None:
    """The regions of this process; None without a tracker."""
    global stack, mailboxes, given_up
    with replace_if_lost(_opening):
        if stack is None and mailboxes is not None:
            try:
                stack = RegionStack(mailboxes)
            except (OSError, ValueError, MemoryError) as error:
                if not is_ours(error):
                    raise
                given_up, mailboxes = mailboxes, None  # the tracker has ended, or the disk is full
                _say_unfollowed(given_up)
            else:
                _watch_frameworks(mailboxes)
        return stack


def open_metrics() -> MetricsWriter | None:
    """The writer of this process's metrics; None without a tracker."""
    global _metrics
    names = mailboxes or given_up
    if _metrics is None and names is not None:
        if sys.is_finalizing():
            _count_lost(find_innermost(names))
            return None
        try:
            _metrics = MetricsWriter(find_innermost(names))
        except (OSError, ImportError, MemoryError, SystemError) as error:
            if isinstance(error, OSError) and not is_ours(error):
                raise  # no signal handler raises one of the others
            _count_lost(find_innermost(names))
            return None
        _watch_frameworks(names)
    return _metrics


def _count_lost(mailbox: str) -> None:
    """Count a row of metrics for which there is no room. No descriptor is needed for that: there may be none."""
    global _lost
    path, count = _lost or (name_file(mailbox, LOST_SUFFIX), 0)
    _lost = path, count + 1
    try:
        if not count:
            posix.mknod(path, 0o600)
        posix.utime(path, (0, count + 1))
    except OSError as error:
        if not is_ours(error):
            raise
        note_for_others(is_of_metrics=True)
        if given_up is None:
            _say_unreachable("Metrics", mailbox, error)


def _say_unfollowed(names: str) -> None:
    """Leave a file without content, for which there may be room, and no descriptor is needed: it says that regions are missing."""
    mailbox = find_innermost(names)
    try:
        posix.mknod(name_file(mailbox, UNFOLLOWED_SUFFIX), 0o600)
    except OSError as error:
        if not is_ours(error):
            raise
        note_for_others()
        _say_unreachable("Regions and metrics", mailbox, error)


def note_for_others(*, is_of_metrics: bool = False) -> None:
    """Note for the processes around this one that its regions or metrics are missing."""
    if _board is not None:
        pid = posix.getpid()
        _board[(_OF_METRICS if is_of_metrics else _OF_REGIONS) + pid % _N_NOTES] = pid


def _pass_on_notes() -> None:
    """Say for forked processes what they could not say themselves."""
    if _board is None or mailboxes is None:
        return
    for kind, suffix in ((_OF_REGIONS, UNFOLLOWED_SUFFIX), (_OF_METRICS, LOST_SUFFIX)):
        for place in range(kind, kind + _N_NOTES):
            pid = _board[place]
            if pid:
                path = name_file(find_innermost(mailboxes), suffix, pid)
                try:
                    posix.mknod(path, 0o600)
                    posix.utime(path, (0, 1))  # one row at least
                    _board[place] = 0
                except OSError as error:  # it is our own note, or the tracker has ended
                    if not is_ours(error):
                        raise


def _say_unreachable(lost: str, mailbox: str, error: OSError) -> None:
    """Tell the user what the tracker cannot know: this process is another user's, has another root, or there is no room."""
    has_ended = isinstance(error, FileNotFoundError) and is_gone(mailbox)
    text = f"{lost} of process {posix.getpid()} are not recorded: {error.strerror}: {mailbox}"
    if not has_ended and not warn_once(text) and is_new(text):
        try:
            sys.stderr.write(f"gpu_tracker: {text}\n")
        except (OSError, ValueError, AttributeError) as mishap:  # there is none
            if not is_ours(mishap):
                raise


class MetricsWriter:
    """Writes the job's metrics for the sampler."""

    def __init__(self, mailbox: str) -> None:
        self._mailbox = mailbox
        self._identity: tuple[int, int] | None = None
        self._fd = self._open()
        self._n_bytes = 0
        self._lock = RLock()

    def add(self, step: float | None, values: dict[str, float]) -> None:
        """Write one row immediately, so that a kill loses nothing."""
        line = f"{_encode(monotonic_ns(), step, values)}\n".encode()
        lock = replace_if_lost(self._lock)
        # A finalizer that the garbage collector runs amid a region must not wait for who may wait for that region.
        if not lock.acquire(stack is None or not stack.is_busy()):
            _count_lost(self._mailbox)
            return
        try:
            try:
                if self._n_bytes >= METRICS_BYTES or not self._is_ours():
                    self._let_go()
                    self._fd, self._n_bytes = self._open(), 0
                if len(line) > _MOST_ROW_BYTES:
                    raise OSError
                check_size(self._n_bytes + len(line))
                if posix.write(self._fd, line) < len(line):
                    posix.ftruncate(self._fd, self._n_bytes)
                    raise OSError
                self._n_bytes += len(line)
            except OSError as error:
                if not is_ours(error):
                    raise
                _count_lost(self._mailbox)  # a full disk must not disturb the job
        finally:
            lock.release()

    def close(self) -> None:
        """No more rows."""
        with replace_if_lost(self._lock):
            self._let_go()

    def _is_ours(self) -> bool:
        """Whether the descriptor is still that of our file: a program may close all, and use the numbers for its own."""
        return self._fd >= 0 and identify(self._fd) == self._identity

    def _let_go(self) -> None:
        """Close the file, unless the program has done so, or a signal handler has raised here before."""
        is_still_ours = self._is_ours()
        fd, self._fd = self._fd, -1
        if is_still_ours:
            posix.close(fd)

    def _open(self) -> int:
        """A new file. The sampler removes files that it has read, so that metrics do not fill the memory."""
        path = name_file(self._mailbox, METRICS_SUFFIX)
        fd = _move_away(
            posix.open(path, posix.O_CREAT | posix.O_EXCL | posix.O_APPEND | posix.O_WRONLY, 0o600)
        )
        self._identity = identify(fd)
        return fd


def _encode(at_ns: int, step: float | None, values: dict[str, float]) -> str:
    """A row as JSON, without importing that: what is imported in the middle of a program could lose a time limit."""
    pairs = ",".join(
        f"{encode_basestring_ascii(name)}:{_encode_number(value)}" for name, value in values.items()
    )
    return f"[{at_ns},{'null' if step is None else _encode_number(step)},{{{pairs}}}]"


def _encode_number(number: float) -> str:
    text = repr(number)
    return _NOT_FINITE.get(text, text)


def _watch_frameworks(
    names: str, *, was_running_before: bool = False, is_being_imported: bool = False
) -> None:
    """Start watching, if a framework is loaded."""
    global _watch
    if (
        _watch is None
        and not sys.is_finalizing()
        and (is_being_imported or any(name in sys.modules for name in _FRAMEWORKS))
    ):
        from .frameworks import FrameworkWatch, is_worth_watching

        if is_being_imported or is_worth_watching(sys.modules):
            _watch = FrameworkWatch(find_innermost(names), was_running_before=was_running_before)
            _watch.start()


class _ImportNotice:
    """An import finder that finds nothing, but notices when a framework is imported."""

    def find_spec(self, name: str, *_: object) -> None:
        """Always None: the regular finders follow."""
        if name in _FRAMEWORKS:
            sys.meta_path.remove(self)
            if mailboxes is not None:
                _watch_frameworks(mailboxes, is_being_imported=True)


def expect_frameworks() -> None:
    """Watch frameworks once one is imported, in a program that does not import gpu_tracker."""
    if mailboxes is not None:
        sys.meta_path.insert(0, _ImportNotice())


def _prepare_fork() -> None:
    global _board
    if _board is None and mailboxes is not None:
        try:
            _board = memoryview(mmap.mmap(-1, 4 * 2 * _N_NOTES)).cast("I")
        except (OSError, ValueError) as error:
            if not is_ours(error):
                raise


def _forget_after_fork() -> None:
    """A forked child begins with no regions, metrics or high-water mark."""
    global _opening, search_due_ns
    for parents in (stack, *_outer_stacks.values()):
        if parents is not None:
            try:
                parents.let_go()
            except BufferError:
                pass  # forked by a finalizer, in the middle of something of ours
    _outer_stacks.clear()
    _forget()
    _opening, search_due_ns = RLock(), 0
    _opened.clear()
    high_water.forget_after_fork()


def _flush(*, is_last: bool = True) -> None:
    """Write everything that is pending, and close what is not used any more."""
    _pass_on_notes()
    if mailboxes is not None:
        _watch_frameworks(mailboxes)
    if stack is not None:
        stack.settle(is_last=is_last)
    for written in (_metrics if is_last else None, _watch):
        if written is not None:
            written.close()


def _move_away(fd: int) -> int:
    """Move a descriptor to a large number: a job that closes all descriptors reuses the small ones, the standard ones first."""
    if sys.platform == "win32":
        return fd
    for least in (_FIRST_DESCRIPTOR, FIRST_BEYOND_STANDARD):
        try:
            moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, least)
        except OSError as error:
            if not is_ours(error):
                raise
            continue  # above the limit
        posix.close(fd)
        return moved
    return fd


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_prepare_fork, after_in_child=_forget_after_fork)
# Other functions are called after it, and may still use regions.
atexit.register(_flush, is_last=False)

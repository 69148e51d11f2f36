"""The recordings of a directory and of its jobs, read anew only if they have changed; and which of them a name means."""

from __future__ import annotations

import os
import stat
import time
from heapq import nlargest
from threading import Lock
from urllib.parse import quote_from_bytes, unquote_to_bytes

from ...core.moments import Pace
from ...core.values import NamedTuple
from ...recording.naming import JOB_PREFIX, SUFFIX
from ..listing import list_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...analysis.runs import ListedRun

# More would neither be read by anybody nor fit into memory for certain.
MOST_RUNS = 10_000
# The newest come first, so nobody waits for the rest.
_READING_SECONDS = 0.4
# Of a core, for looking again and again.
_SHARE, _SHORTEST_SECONDS = 0.004, 2.0
_SILENCE_SECONDS = 10.0


class Found(NamedTuple):
    """A file that may be a recording."""

    name: str
    """Below the directory: `x.jsonl`, or `job-4711/x.jsonl`."""
    path: str
    """Where it really is."""
    identity: tuple[int, int, int, int]
    """Another one if it was changed, as is the next."""
    modified_at: float


class Listing(NamedTuple):
    """What is in the directory."""

    runs: tuple[ListedRun, ...] = ()
    """Newest first; their paths are names in the directory."""
    n_files: int = 0
    n_unread: int = 0
    """How many are still to be read; the next look goes on."""
    problem: str = ""


class RunDirectory:
    """What is known of a directory of recordings."""

    def __init__(self, directory: str, most_runs: int = MOST_RUNS) -> None:
        self.directory = directory
        self._most_runs = most_runs
        self._known: dict[str, tuple[Found, ListedRun]] = {}
        self._listing = Listing()
        self._pace = Pace(_SHARE, _SHORTEST_SECONDS)
        self._lock = Lock()

    def find(self, key: str) -> Found | None:
        """The recording of that key; None if there is none in the directory."""
        name = parse_key(key)
        job, _, file = name.rpartition("/")
        is_outside = "/" in job or (name != file and not job.startswith(JOB_PREFIX))
        if is_outside or "\0" in name or not file.endswith(SUFFIX):
            return None
        return self._examine(job, file, os.path.realpath(self.directory))

    def look(self) -> Listing:
        """Everything that could be read in a short time; the same again if somebody has just looked."""
        with self._lock:
            if self._listing.n_unread or self._pace.is_due(time.monotonic()):
                before = time.thread_time()
                self._listing = self._look()
                self._pace.pay(time.monotonic(), time.thread_time() - before)
            return self._listing

    def _look(self) -> Listing:
        try:
            files = list(self._scan())
        except OSError as error:
            return Listing(problem=f"Cannot read {self.directory}: {error.strerror}.")
        newest = nlargest(self._most_runs, files, key=lambda found: (found.modified_at, found.name))
        for name in self._known.keys() - {found.name for found in newest}:
            del self._known[name]
        runs = tuple(self._read_some(newest))
        return Listing(runs, len(files), len(newest) - len(runs))

    def _read_some(self, newest: Iterable[Found]) -> Iterator[ListedRun]:
        """Those that are known, and new ones for a short time, but at least one: every look comes nearer to the end."""
        now, until = time.time(), 0.0
        for found in newest:
            if found.name not in self._known:
                if not until:  # only now: looking again at thousands that are known takes its time, too
                    until = time.monotonic() + _READING_SECONDS
                elif time.monotonic() >= until:
                    continue
            yield self._read(found, now)

    def _read(self, found: Found, now: float) -> ListedRun:
        before, known = self._known.get(found.name, (None, None))
        # A job that is silent may have ended without a word.
        if (
            known is None
            or before != found
            or (known.ending == "running" and now - found.modified_at > _SILENCE_SECONDS)
        ):
            known = list_file(found.path)._replace(path=found.name)
            self._known[found.name] = (found, known)
        return known

    def _scan(self) -> Iterator[Found]:
        root = os.path.realpath(self.directory)
        with os.scandir(root) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX) and (found := self._examine("", entry.name, root)):
                    yield found
                elif entry.name.startswith(JOB_PREFIX) and entry.is_dir(follow_symlinks=False):
                    yield from self._scan_job(entry.name, root)

    def _scan_job(self, job: str, root: str) -> Iterator[Found]:
        try:
            names = os.listdir(os.path.join(root, job))
        except OSError:  # another user's, or gone
            return
        for name in names:
            if name.endswith(SUFFIX) and (found := self._examine(job, name, root)):
                yield found

    def _examine(self, job: str, file: str, root: str) -> Found | None:
        """A regular file in the directory, also by a link; what a link leads to elsewhere is nobody's business."""
        folder = os.path.join(root, job) if job else root
        path = os.path.join(folder, file)
        try:
            if job and stat.S_ISLNK(os.lstat(folder).st_mode):
                return None
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                path = os.path.realpath(path)
                if os.path.dirname(path) != folder:
                    return None
                status = os.lstat(path)
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        return Found(f"{job}/{file}" if job else file, path, identity, status.st_mtime)


def make_key(name: str) -> str:
    """A file name as an address can hold it; names need not be text."""
    return quote_from_bytes(os.fsencode(name))


def parse_key(key: str) -> str:
    """The file name."""
    return os.fsdecode(unquote_to_bytes(key))

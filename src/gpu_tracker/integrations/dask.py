"""Workers of Dask: a recording of each, with a region for every kind of task. Importing this imports Dask's `distributed`.

`with track_cluster(client) as job:` tracks all workers of a cluster, also those that come later; `TrackWorkers` is the plugin of one
worker, and `GPU_TRACKER_RECORD=DIRECTORY dask worker --preload gpu_tracker.integrations.dask` does without a client.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from weakref import WeakKeyDictionary

from dask.utils import key_split
from distributed import WorkerPlugin

from ..api.regions import region
from ..api.tracker import Tracker
from ..core.errors import TrackerError, UsageError
from ..core.notices import warn_once
from .dask_envoy import make_envoy
from .nodes import Job, Place, read_part, remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NAME = "gpu_tracker"
_LAUNCHER_VARIABLE = "GPU_TRACKER_DASK"  # by which a recording knows where it is from
# States of a task that runs; whether one goes on that nobody needs any more is not known to its worker, either.
_RUNNING = ("executing", "long-running", "cancelled", "resumed")

_tracked: set[str] = set()
"""The plugins that track this process: workers that are threads of one process are tracked once by each."""


class _TaskRegion(region):
    """Entered where a worker is told what it does; the task itself runs in another thread."""

    __slots__ = ()
    is_run_by_others = True


class _Tasks:
    """The tasks of a worker that run. One of its plugins makes their regions; there may be several."""

    def __init__(self) -> None:
        self.plugins: list[TrackWorkers] = []
        self.regions: dict[Any, _TaskRegion] = {}


_of_workers: WeakKeyDictionary[Any, _Tasks] = WeakKeyDictionary()


class TrackWorkers(WorkerPlugin):
    """Tracks each worker, and makes a region of all tasks with the same key prefix, as in Dask's own dashboard.

    With one thread per worker, memory peaks are those of the tasks themselves. With several, tasks overlap: the peak is that of the worker while one
    of them ran. CPU time is that of the worker meanwhile, with what it took to send and receive data. Options are those of `Tracker`.
    """

    name = _NAME

    def __init__(self, record: str | os.PathLike[str] | Place | None = None, **options: Any) -> None:
        self._record = record if record is None or isinstance(record, Place) else os.path.abspath(record)
        self._options = options
        self._tracker: Tracker | None = None
        self._tasks = _Tasks()
        self._has_one_thread = False

    def setup(self, worker: Any) -> None:
        """The worker has started. No failure of ours keeps it from working."""
        self._has_one_thread = worker.state.nthreads == 1
        self._tasks = _of_workers.setdefault(worker, self._tasks)
        self._tasks.plugins.append(self)
        if self.name in _tracked:
            return
        os.environ[_LAUNCHER_VARIABLE] = "1"
        record, is_shared = self._record.choose() if isinstance(self._record, Place) else (self._record, True)
        labels = {"worker": worker.name, **self._options.get("labels", {})}
        try:
            self._tracker = Tracker(record=record, **{**self._options, "labels": labels})
            self._tracker.start()
        except TrackerError as error:
            self._tracker = None
            warn_once(f"This worker is not tracked: {error}")
            return
        _tracked.add(self.name)
        path = self._tracker.recording_path
        if path is not None:
            worker.log_event(self.name, {"host": worker.ip, "path": path, "is_shared": is_shared})

    def teardown(self, worker: Any) -> None:
        """It ends in good order; one that is killed does not get here."""
        self._tasks.plugins.remove(self)
        if self._tracker is not None:
            _tracked.discard(self.name)
            if not _tracked:
                os.environ.pop(_LAUNCHER_VARIABLE, None)
            self._tracker.stop()
            self._tracker = None

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """A task has another state: it begins to run, or has ended."""
        tasks = self._tasks
        if tasks.plugins[0] is not self:
            return
        if finish == "executing":
            if key not in tasks.regions:
                call = _TaskRegion(key_split(key), exact_peak=self._has_one_thread, parallel=True)
                tasks.regions[key] = call.__enter__()
        elif start in _RUNNING and finish not in _RUNNING:
            call_or_none = tasks.regions.pop(key, None)
            if call_or_none is not None:
                call_or_none.__exit__(None, None, None)


async def dask_setup(worker: Any) -> None:
    """What `--preload` calls. GPU_TRACKER_RECORD names the directory."""
    await worker.plugin_add(TrackWorkers(), name=_NAME)


class track_cluster(Job):  # noqa: N801 - used like a function
    """Tracks all workers of a client's cluster in a `with` block. Options are those of `Tracker`.

    Each worker has a recording in the directory `record`, if all machines have that; else in a directory of its own, from where it is brought here
    while it is written. A worker that is killed leaves its recording; the one that takes its place has another. One without this package works untracked.
    """

    def __init__(self, client: Any, record: str | os.PathLike[str] | None = None, **options: Any) -> None:
        if client.asynchronous:
            raise UsageError(
                "An asynchronous client is not supported.", "Use Client(...) without asynchronous=True."
            )
        super().__init__(record)
        self._client = client
        self._name = f"{_NAME}{self.place.token}"  # several may track one cluster
        self._envoy = make_envoy(self._name, self.place.directory, self.place.token, options)

    def _begin(self) -> None:
        try:
            self._client.register_plugin(self._envoy, name=self._name)
        except BaseException:
            with suppress(Exception):  # whatever has failed, workers that come later must start
                self._client.unregister_worker_plugin(self._name)
            raise
        self._look()

    def _look(self) -> None:
        for _, event in self._client.get_events(self._name):
            if missing := event.get("missing"):
                warn_once(f"A worker on {event['host']} is not tracked: {missing}. Install gput there.")
                continue
            host, path = event["host"], event["path"]
            self._add(host, path, None if event["is_shared"] else partial(self._read, host, path))

    def _end(self) -> None:
        self._client.unregister_worker_plugin(self._name)
        self._look()
        self._bring()
        for host, path in self._origins:
            self._run_on(host, remove, os.path.dirname(path))

    def _read(self, host: str, path: str, offset: int) -> bytes:
        (part,) = self._run_on(host, read_part, path, offset)
        return bytes(part)

    def _run_on(self, host: str, function: Any, *arguments: Any) -> list[Any]:
        """Have this done by a worker on that machine, if there is one."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        some = [address for address, worker in workers.items() if worker["host"] == host][:1]
        return list(self._client.run(function, *arguments, workers=some).values()) if some else []

"""Nodes of Ray: a recording of each, and what its tasks used, by name. Importing this imports Ray.

`with watch_nodes() as job:` tracks all nodes of the cluster to which the program is connected, also those that come later.
`runtime_env={"worker_process_setup_hook": setup_worker}` makes each task a region, with its exact memory peak.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from functools import partial
from threading import Event, Thread

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ..api.recordings import load
from ..api.regions import region
from ..api.tracker import Tracker
from ..core.notices import warn_once
from ..core.system import posix
from .nodes import Job, Place, read_part, remove
from .titles import PREFIX, Titles, sum_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .titles import Use

_SECONDS, _READ_SECONDS = 30.0, 10.0


class NodeTracker:
    """What runs on each node, as an actor: its parent is the node's raylet, whose tree is everything that Ray does there."""

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        self._record, self._is_shared = place.choose()
        raylet = os.getppid()
        self._tracker = Tracker(process_id=raylet, record=self._record, **options)
        self._tracker.start()
        self._is_over = Event()
        watch = Titles(raylet).watch
        self._thread = Thread(target=watch, args=(self._is_over,), name="gpu_tracker", daemon=True)
        self._thread.start()

    def find(self) -> tuple[str, str | None, bool]:
        """The machine, the recording there, and whether the job has its directory."""
        return posix.uname().nodename, self._tracker.recording_path, self._is_shared

    def read(self, offset: int) -> bytes:
        """A part of the recording."""
        return read_part(f"{self._tracker.recording_path}", offset)

    def stop(self) -> None:
        """The job is over."""
        self._is_over.set()
        self._thread.join()
        self._tracker.stop()

    def clean(self) -> None:
        """The recording is where the job is."""
        if not self._is_shared:
            remove(self._record)


class watch_nodes(Job):  # noqa: N801 - used like a function
    """Tracks all nodes of a Ray cluster in a `with` block. Options are those of `Tracker`.

    Each node has a recording in the directory `record`, if all machines have that; else in a directory of its own, from where it is brought here
    while it is written. A node that is lost leaves its recording up to then.
    """

    def __init__(self, record: str | os.PathLike[str] | None = None, **options: Any) -> None:
        super().__init__(record)
        self._options = options
        self._watchers: dict[str, Any] = {}
        self._awaited: dict[Any, Any] = {}  # those that have not yet said where they record

    @property
    def tasks(self) -> tuple[Use, ...]:
        """What each kind of task used on all nodes, as sampled from the names of processes."""
        metrics = (load(path).metrics for path in self.recordings)
        return sum_up({one.name: (one.last or 0.0, one.maximum or 0.0) for one in some} for some in metrics)

    def _begin(self) -> None:
        self._look(_SECONDS)

    def _look(self, seconds: float = 0) -> None:
        """Start a watcher on every node that has none; it takes no CPU from tasks."""
        make = ray.remote(num_cpus=0)(NodeTracker)
        for node in ray.nodes():
            key = node["NodeID"]
            if node["Alive"] and key not in self._watchers:
                there = make.options(scheduling_strategy=NodeAffinitySchedulingStrategy(key, soft=False))
                self._watchers[key] = watcher = there.remote(self.place, self._options)
                self._awaited[watcher.find.remote()] = watcher
        self._take(seconds)

    def _take(self, seconds: float) -> None:
        """Add the recordings of those that have begun by then; the others will be later."""
        for reference in _wait(list(self._awaited), seconds):
            watcher = self._awaited.pop(reference)
            try:
                host, path, is_shared = ray.get(reference)
            except ray.exceptions.RayError as error:
                warn_once(f"A node is not tracked: {type(error).__name__}: {error}")
                continue
            if path is not None:
                self._add(host, path, None if is_shared else partial(_read, watcher))

    def _end(self) -> None:
        """Nodes that are gone never answer."""
        watchers = self._watchers.values()
        _wait([one.stop.remote() for one in watchers], _SECONDS)
        self._take(0)
        self._bring()
        _wait([one.clean.remote() for one in watchers], _SECONDS)
        for watcher in watchers:
            ray.kill(watcher)


def setup_worker() -> None:
    """For `worker_process_setup_hook`: makes each call of a task or an actor's method a region of its name."""
    worker: Any = ray._private.worker  # noqa: SLF001 - no public hook is called around each task
    change: Callable[[str, str], Any] | None = getattr(worker, "_changeproctitle", None)
    if change is None:
        warn_once("This version of Ray does not say when a task begins: there are no regions of its tasks.")
        return

    @contextmanager
    def change_in_region(title: str, next_title: str) -> Iterator[None]:
        name = title.removeprefix(PREFIX)
        is_ours = name.partition(".")[0] == NodeTracker.__name__
        with (
            change(title, next_title),
            nullcontext() if is_ours else region(name, exact_peak=True, parallel=True),
        ):
            yield

    worker._changeproctitle = change_in_region  # noqa: SLF001


def _read(watcher: Any, offset: int) -> bytes:
    return bytes(ray.get(watcher.read.remote(offset), timeout=_READ_SECONDS))


def _wait(references: list[Any], seconds: float) -> list[Any]:
    """Those that are known by then, also by having failed."""
    return ray.wait(references, num_returns=len(references), timeout=seconds)[0] if references else []

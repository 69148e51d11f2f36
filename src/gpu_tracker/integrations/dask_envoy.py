"""What is sent to workers of Dask that may not have this package: a plugin that needs nothing but Dask until it has arrived."""

from __future__ import annotations

from distributed import WorkerPlugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def make_envoy(name: str, directory: str, token: str, options: dict[str, Any]) -> WorkerPlugin:
    """The plugin that becomes `TrackWorkers` where it can. Its class has no name to import it by, so it is sent itself."""

    class Envoy(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            try:
                from .dask import TrackWorkers
                from .nodes import Place
            except ImportError as error:
                worker.log_event(name, {"host": worker.ip, "missing": str(error)})
                return
            own = TrackWorkers(Place(directory, token), **options)
            own.name = name
            self.teardown, self.transition = own.teardown, own.transition
            own.setup(worker)

    envoy = Envoy()
    envoy.name = name
    return envoy

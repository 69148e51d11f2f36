"""Engines to which this process is connected and whose workers it has not started: they are not below it, so their work is not measured with it.

Only what already runs is asked; nothing is imported. Some of this is not public API, so any error only means that nothing is known.
"""

from __future__ import annotations

from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DASK, RAY = "Dask", "Ray"
_RAY_DRIVER = 0  # neither a worker, nor one of its helpers


def find_engines(modules: Mapping[str, Any]) -> tuple[str, ...]:
    """Their names."""
    found = []
    for name, is_elsewhere in ((DASK, _is_dask_elsewhere), (RAY, _is_ray_elsewhere)):
        # Half imported, changed in a new version, or shutting down: then it is unknown.
        with suppress(Exception):
            if is_elsewhere(modules):
                found.append(name)
    return tuple(found)


def _is_dask_elsewhere(modules: Mapping[str, Any]) -> bool:
    """Whether there is a client, but neither a cluster of this machine nor workers in this process, which may be one itself."""
    if "distributed.client" not in modules or modules["distributed.worker"].Worker._instances:  # noqa: SLF001
        return False
    local = modules["distributed"].LocalCluster
    clusters = modules["distributed.deploy.spec"].SpecCluster._instances  # noqa: SLF001
    has_clients = bool(modules["distributed.client"].Client._instances)  # noqa: SLF001 - also those that are closed by now
    return has_clients and not any(isinstance(one, local) for one in clusters)


def _is_ray_elsewhere(modules: Mapping[str, Any]) -> bool:
    """Whether this is a driver of a Ray that runs already, maybe through a proxy."""
    if "ray._private.worker" not in modules:
        return False
    if "ray.util.client" in modules and modules["ray.util.client"].ray.is_connected():
        return True
    worker = modules["ray._private.worker"].global_worker
    return worker.mode == _RAY_DRIVER and worker.connected and "raylet" not in worker.node.all_processes

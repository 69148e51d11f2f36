"""To which engines a process is connected whose workers are elsewhere. Real ones are asked in tests/clusters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpu_tracker.instrument.engines import find_engines


class LocalCluster:
    """Of this machine."""


class OtherCluster:
    """Of others."""


def load_dask(
    clients: tuple[object, ...] = (), clusters: tuple[object, ...] = (), workers: tuple[object, ...] = ()
) -> dict[str, Any]:
    """What is loaded in a process with these."""
    return {
        "distributed": SimpleNamespace(LocalCluster=LocalCluster),
        "distributed.client": SimpleNamespace(Client=SimpleNamespace(_instances=clients)),
        "distributed.worker": SimpleNamespace(Worker=SimpleNamespace(_instances=workers)),
        "distributed.deploy.spec": SimpleNamespace(SpecCluster=SimpleNamespace(_instances=clusters)),
    }


def load_ray(
    *, mode: int | None = 0, started: tuple[str, ...] = (), has_proxy: bool = False
) -> dict[str, Any]:
    """What is loaded in a driver; without a mode, in a process that has not connected."""
    node = SimpleNamespace(all_processes=dict.fromkeys(started))
    worker = SimpleNamespace(mode=mode, connected=mode is not None, node=node)
    return {
        "ray._private.worker": SimpleNamespace(global_worker=worker),
        "ray.util.client": SimpleNamespace(ray=SimpleNamespace(is_connected=lambda: has_proxy)),
    }


@pytest.mark.parametrize(
    ("modules", "engines"),
    [
        ({}, ()),
        (load_dask(), ()),
        (load_dask(clients=(1,)), ("Dask",)),
        (load_dask(clients=(1,), clusters=(OtherCluster(),)), ("Dask",)),
        (load_dask(clients=(1,), clusters=(LocalCluster(),)), ()),
        (load_dask(clients=(1,), workers=(1,)), ()),
        (load_ray(mode=None), ()),
        (load_ray(), ("Ray",)),
        (load_ray(started=("raylet",)), ()),
        (load_ray(mode=1), ()),
        (load_ray(mode=None, has_proxy=True), ("Ray",)),
        ({**load_dask(clients=(1,)), **load_ray()}, ("Dask", "Ray")),
        ({"distributed.client": None, "ray._private.worker": None}, ()),
    ],
)
def test_whose_workers_are_elsewhere(modules: dict[str, Any], engines: tuple[str, ...]) -> None:
    """A client of a cluster, a driver of nodes that run already; not the workers, and nobody who has started them here."""
    assert find_engines(modules) == engines

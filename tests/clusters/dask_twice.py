"""A client of Dask with two trackers of one cluster, of which the first ends before the second; tells the recordings of both."""

import json
import sys
from typing import Any

from distributed import Client

from gpu_tracker.integrations.dask import track_cluster


def both(number: int) -> int:
    """Runs while there are two trackers."""
    return number


def later(number: int) -> int:
    """Runs after the first has ended."""
    return number


def main() -> None:
    """The file of a scheduler, the number of its workers, and the directories for the recordings of each tracker."""
    scheduler, n_workers, first_directory, second_directory = sys.argv[1:]
    told: dict[str, Any] = {}
    with Client(scheduler_file=scheduler) as client:
        client.wait_for_workers(int(n_workers))
        first, second = (track_cluster(client, one) for one in (first_directory, second_directory))
        with second:
            with first:
                told["both"] = client.gather(client.map(both, range(8), pure=False))
            told["later"] = client.gather(client.map(later, range(8), pure=False))
        told["left"] = [
            name for names in client.run(_list_plugins).values() for name in names if "gpu_tracker" in name
        ]
    told["first"], told["second"] = first.recordings, second.recordings
    print(json.dumps(told))


def _list_plugins(dask_worker: Any) -> list[str]:
    return list(dask_worker.plugins)


if __name__ == "__main__":
    main()

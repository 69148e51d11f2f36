"""Make the report of resource-tracker, without what it asks the network for: report_resource_tracker.py FILE REPORT."""

from __future__ import annotations

import importlib
import sys

SERVER = {"os": "Linux", "vcpus": 8, "memory_mib": 64000, "gpu_names": [], "gpu_count": 0}
ADVISED = {"vendor_id": "none", "api_reference": "none", "display_name": "none", "min_price_ondemand": 0.1}


def main(path: str, made: str) -> None:
    package = importlib.import_module("resource_tracker")
    tracker = package.ResourceTracker(interval=0.1, discover_server=False, discover_cloud=False)
    for name in ("process", "system"):
        setattr(tracker, f"{name}_tracker_filepath", f"{path}.{name}")
    # What it would ask the network for.
    tracker._server_info, tracker._cloud_info = SERVER, {}  # noqa: SLF001
    tracker.recommend_server = lambda **_: ADVISED
    tracker.start_time, tracker.stop_time = 0.0, 1.0
    tracker.report().save(made)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""List the modules of other packages that a tracker imports into the user's process."""

import importlib
import json
import sys

before = set(sys.modules)
tracker = importlib.import_module("gpu_tracker").Tracker(disable_logs=True)
tracker.start()
tracker.stop()
brought = {
    name.partition(".")[0]
    for name, module in tuple(sys.modules.items())
    if name not in before and "site-packages" in (getattr(module, "__file__", None) or "")
}
print(json.dumps({"third_party": sorted(brought - {"gpu_tracker"})}))

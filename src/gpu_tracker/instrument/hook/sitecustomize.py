"""Found by every Python process of a job under `gpu-tracker run --frameworks`, before its own program begins.

It has frameworks watched as soon as one is imported, and steps aside for the module of this name that it stands in front
of. The Python that reads this is the job's, of whatever version, and nothing here may keep it from its work.
"""

import os
import sys


def _expect_frameworks() -> None:
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.append(os.path.dirname(package))
    try:
        from gpu_tracker.instrument.outbox import expect_frameworks

        expect_frameworks()
    except Exception:  # noqa: BLE001, S110 - too old a Python, most likely: then they are not asked
        pass
    finally:
        sys.path.remove(os.path.dirname(package))


def _step_aside() -> None:
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if place != here]
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


_expect_frameworks()
_step_aside()

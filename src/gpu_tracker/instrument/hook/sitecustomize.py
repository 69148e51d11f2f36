"""Imported by every Python process of a job under `gpu-tracker run --frameworks`, before its program begins.

It watches frameworks once one is imported, and then runs the `sitecustomize` that it shadows. It runs in the job's
Python, of any version, and must never disturb it.
"""

import os
import sys


def _expect_frameworks() -> None:
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.append(os.path.dirname(package))
    try:
        from gpu_tracker.instrument.outbox import expect_frameworks

        expect_frameworks()
    except Exception:  # noqa: BLE001, S110 - most likely the Python is too old: frameworks are not read
        pass
    finally:
        sys.path.remove(os.path.dirname(package))


def _step_aside() -> None:
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if path != here]
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


_expect_frameworks()
_step_aside()

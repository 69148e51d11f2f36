"""CPU seconds of one reading of 8 simulated GPUs with 200 processes each, and the driver's part of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from nvml_simulator import Simulator, build

_N_GPUS, _N_PROCESSES, _N_READINGS = 8, 200, 50
_INSIDE = "--inside"


def main() -> None:
    """Simulate the GPUs, then read them in a process that uses this driver."""
    if _INSIDE in sys.argv:
        _read()
        return
    pids = [_start_sleeper() for _ in range(_N_PROCESSES)]
    try:
        with tempfile.TemporaryDirectory() as folder, Simulator(build(Path(folder))) as hardware:
            for gpu in range(_N_GPUS):
                hardware.add_device()
                for pid in pids:
                    hardware.set_process(gpu, pid, 10**8, sm_percent=1)
            subprocess.run(
                [sys.executable, __file__, _INSIDE],
                env={**os.environ, **hardware.environment()},
                check=True,
            )
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _start_sleeper() -> int:
    pid = os.fork()
    if pid == 0:
        signal.pause()
    return pid


class _Timed:
    """The driver's library, with a stopwatch around every call."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Callable[..., int]:
        function = getattr(self._library, name)

        def call(*arguments: object) -> int:
            began = time.process_time()
            code: int = function(*arguments)
            self.seconds += time.process_time() - began
            return code

        return call


def _read() -> None:
    import pynvml  # type: ignore[import-untyped]

    from gpu_tracker.sources.gpu import nvml

    pynvml.nvmlInit()
    driver = pynvml.nvmlLib = _Timed(pynvml.nvmlLib)
    pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - it caches functions without a stopwatch
    source = nvml.connect(time.monotonic)
    source.read(None)
    driver.seconds, spent = 0.0, time.process_time()
    for _ in range(_N_READINGS):
        readings = source.read(None)
    spent = time.process_time() - spent
    assert len(readings.processes) == _N_GPUS * _N_PROCESSES
    print(json.dumps({"seconds": spent / _N_READINGS, "driver_seconds": driver.seconds / _N_READINGS}))


if __name__ == "__main__":
    main()

"""What runs on Windows to be measured: `windows_workload.py NAME [ARGUMENT]`. Each tells the truth about itself, as JSON on the last line."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

MB = 1_000_000
CHILD = Path(__file__).with_name("windows_child.py")


def main(name: str, *arguments: str) -> None:
    """Run the one of that name."""
    WORKLOADS[name](*arguments)


def tell(**truth: object) -> None:
    """The truth, as one line."""
    print(json.dumps(truth), flush=True)


def read_peak_bytes() -> int:
    """The largest working set of this process, as the system itself tells."""
    counters = (ctypes.c_size_t * 9)()
    kernel32 = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    kernel32.K32GetProcessMemoryInfo(ctypes.c_void_p(-1), counters, ctypes.sizeof(counters))
    return counters[1]


def burn(seconds: float) -> None:
    """Use as much CPU time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def spike(megabytes: str) -> None:
    """Hold much memory for a moment, long before the end."""
    time.sleep(0.5)
    content = bytearray(int(megabytes) * MB)
    del content
    time.sleep(1.0)
    tell(peak_bytes=read_peak_bytes(), cpu_seconds=time.process_time())


def busy(seconds: str) -> None:
    """Use CPU time, then wait, so that the last reading has it all."""
    burn(float(seconds))
    tell(cpu_seconds=time.process_time())
    time.sleep(1.0)


def exits(code: str) -> None:
    """End with that code."""
    os._exit(int(code))


def exits_late(code: str) -> None:
    """The same after a while."""
    time.sleep(2.0)
    os._exit(int(code))


def children(count: str, seconds: str) -> None:
    """Start short-lived processes, one after the other."""
    used = []
    for _ in range(int(count)):
        told = subprocess.run(
            [sys.executable, "-I", "-S", str(CHILD), seconds], stdout=subprocess.PIPE, check=True
        )
        used.append(float(told.stdout))
    tell(cpu_seconds=time.process_time(), children_seconds=sum(used), n_children=len(used))
    time.sleep(0.5)


def orphan(megabytes: str) -> None:
    """Start a process that starts another and ends; that one holds memory."""
    subprocess.run([sys.executable, __file__, "leaves_a_child", megabytes], check=True)
    time.sleep(3.0)
    tell(cpu_seconds=time.process_time())


def leaves_a_child(megabytes: str) -> None:
    """Start a process, and end before it."""
    subprocess.Popen([sys.executable, __file__, "holds", megabytes], stdout=subprocess.DEVNULL)


def holds(megabytes: str) -> None:
    """Hold memory for a while."""
    content = bytearray(int(megabytes) * MB)
    time.sleep(1.5)
    del content


def holds_on_gpu(told: str, megabytes: str) -> None:
    """Have the driver say that this process holds so much on a device, for a while."""
    Path(told).write_text(f"{os.getpid()} {int(megabytes) * MB}")
    time.sleep(3.0)


def waits(seconds: str) -> None:
    """Say who it is, and wait."""
    tell(pid=os.getpid())
    time.sleep(float(seconds))


def counts_interrupts(seconds: str) -> None:
    """Count the console's events of that time."""
    received: list[int] = []
    for number in (signal.SIGINT, signal.SIGBREAK):  # type: ignore[attr-defined, unused-ignore]
        signal.signal(number, lambda number, _: received.append(number))
    tell(pid=os.getpid())
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        time.sleep(0.05)
    tell(received=received)


def tracks_itself(recording: str) -> None:
    """A program with a tracker of its own, that never ends by itself."""
    import gpu_tracker as gput

    gput.Tracker(sleep_time=0.1, record=recording, disable_logs=True).start()
    with gput.region("endless"):
        gput.log({"loss": 0.5})
        tell(pid=os.getpid())
        time.sleep(60.0)


def work_in_region(number: int) -> float:
    """A worker's part."""
    import gpu_tracker as gput

    began = time.process_time()
    with gput.region("work"):
        burn(0.3)
        gput.log({"number": number})
    return time.process_time() - began


def workers(count: str) -> None:
    """Regions and metrics in processes that were started anew."""
    import gpu_tracker as gput

    with gput.region("all"), multiprocessing.get_context("spawn").Pool(int(count)) as pool:
        used = pool.map(work_in_region, range(2 * int(count)))
    tell(work_seconds=sum(used), calls=len(used))


WORKLOADS: dict[str, Callable[..., None]] = {
    each.__name__: each
    for each in (
        *(spike, busy, exits, exits_late, children, orphan, leaves_a_child, holds, holds_on_gpu, waits),
        *(counts_interrupts, tracks_itself, workers),
    )
}

if __name__ == "__main__":
    main(*sys.argv[1:])

"""Load and summarize a recording with one region line per ten samples: load_recording.py FILE SAMPLES.

The file is written first if it does not exist. Loading happens in a new process, to measure its memory.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time

from gpu_tracker.core.model import (
    Allocation,
    End,
    Header,
    Parts,
    Peaks,
    RamPeak,
    RegionTotals,
    Sample,
    Spread,
    Totals,
    add_parts,
)
from gpu_tracker.recording.encode import to_json
from gpu_tracker.recording.schema import encode_end, encode_header, encode_known, encode_sample

GB = 10**9
N_TEMPLATES = 1000
N_REGIONS = 1000  # the most a process can have
AT, CPU = '"at":0.0,', '"cpu":[0.0,0.25,0.0],'
PEAKS = Peaks(ram=Parts(RamPeak(2 * GB, GB, GB), RamPeak(), RamPeak(2 * GB, GB, GB)))


def write(path: str, n_samples: int) -> None:
    """Every hundredth sample has a new peak; regions repeat."""
    allocation = Allocation(8, 8.0, "machine", 64 * GB, 64 * GB, "machine")
    header = Header(
        1, "0", ("job",), 1, "host", "2026-01-01T00:00:00.000+00:00", 0.1, allocation, "procfs", 8.0
    )
    templates = [_sample_line(number) for number in range(N_TEMPLATES)]
    with open(f"{path}.tmp", "w", encoding="ascii") as file:
        file.write(to_json({"header": encode_header(header)}) + "\n")
        for number in range(n_samples):
            used = f'"at":{number / 10},', f'"cpu":[{number * 1.5},0.25,{number * 2.5}],'
            file.write(templates[number % N_TEMPLATES].replace(AT, used[0]).replace(CPU, used[1]))
            if number % 10 == 0:
                file.write(to_json({"region": encode_known(_region(number // 10))}) + "\n")
        totals = Totals(n_samples / 10, add_parts(1.0, 1.0), 1.0, n_samples, peaks=PEAKS)
        file.write(to_json({"end": encode_end(End("exited", 0, totals, 1.0, GB))}) + "\n")
    os.replace(f"{path}.tmp", path)


def _sample_line(number: int) -> str:
    noise = number * 7919 % 1000 * 10**6
    main, others = Spread(GB, GB + noise / 2, GB + noise), Spread(0, noise / 3, noise)
    peaks = PEAKS._replace(system_ram_bytes=8 * GB + number) if number % 100 == 0 else Peaks()
    sample = Sample(
        at_seconds=0.0,
        readings=1,
        late_seconds=0.001,
        cpu_seconds=add_parts(0.0, 0.25),
        system_cpu_seconds=0.0,
        ram_bytes=Parts(main, others, main),
        system_ram_bytes=8 * GB + noise,
        threads=9,
        processes=2,
        peaks=peaks,
    )
    return to_json({"sample": encode_sample(sample, Peaks())}) + "\n"


def _region(number: int) -> RegionTotals:
    path = ("epoch", f"step {number % N_REGIONS}")
    return RegionTotals(100, path, number, 0, number * 0.1, 0.05, 0.2, 0.01)


def main(path: str, n_samples: int) -> None:
    if not os.path.exists(path):
        write(path, n_samples)
    os.execv(sys.executable, [sys.executable, __file__, path])


def load(path: str) -> None:
    import gpu_tracker

    began = time.perf_counter()
    summary = gpu_tracker.load(path).summary
    seconds = time.perf_counter() - began
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak_bytes, "readings": summary.readings}))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(sys.argv[1], int(sys.argv[2]))
    else:
        load(sys.argv[1])

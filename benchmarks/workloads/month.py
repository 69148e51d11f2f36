"""Write the recording of a job of thirty days, with lines spaced as the sampler does: month.py FILE."""

from __future__ import annotations

import json
import os
import sys

from gpu_tracker.core.model import (
    Allocation,
    End,
    Header,
    Parts,
    Peaks,
    RamPeak,
    Sample,
    Spread,
    Totals,
    add_parts,
)
from gpu_tracker.recording.writer import Writer

SECONDS = 30 * 86400
LINES = 10_000
GB = 10**9


def main(path: str) -> None:
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    writer = Writer(fd)
    allocation = Allocation(8, 8.0, "machine", 64 * GB, 64 * GB, "machine")
    writer.write_header(
        Header(1, "0", ("job",), 1, "host", "2026-01-01T00:00:00.000+00:00", 1.0, allocation, "procfs", 8.0)
    )
    at, n_lines, peaks = 0.0, 0, Peaks()
    while at < SECONDS:
        at += max(1.0, at / LINES)
        n_lines += 1
        noise = n_lines * 7919 % 1000 * 10**6
        ram = Spread(GB, GB + noise // 2, GB + noise)
        main = RamPeak(max(GB + noise, peaks.ram.main.total_bytes), GB, 0)
        peaks = peaks._replace(ram=peaks.ram._replace(main=main))
        writer.write_sample(
            Sample(
                at_seconds=at,
                readings=5,
                late_seconds=0.001,
                cpu_seconds=add_parts(at, 0.0),
                system_cpu_seconds=at,
                ram_bytes=Parts(ram, Spread(0, 0, 0), ram),
                system_ram_bytes=8 * GB,
                threads=9,
                processes=1,
                peaks=peaks,
            )
        )
    writer.write_end(
        End("exited", 0, Totals(at, add_parts(at, 0.0), at, n_lines * 5, peaks=peaks), 1.0, 9 * 10**6)
    )
    os.close(fd)
    print(json.dumps({"bytes": os.path.getsize(path), "lines": n_lines}))


if __name__ == "__main__":
    main(sys.argv[1])

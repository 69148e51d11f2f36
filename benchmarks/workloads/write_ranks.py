"""Write the recordings of the ranks of a job: write_ranks.py DIRECTORY RANKS INTERVALS. Prints their size.

Each has what a real one has: the identity, notes, regions that repeat, a process, a peak that grows at first, and the end.
"""

from __future__ import annotations

import json
import os
import sys

from gpu_tracker.core.model import (
    Allocation,
    End,
    Event,
    Header,
    Identity,
    Parts,
    PeakMoment,
    PeakProcess,
    Peaks,
    ProcessTotals,
    RamPeak,
    RegionTotals,
    Sample,
    Spread,
    Stalls,
    Totals,
    TreeCounters,
    add_parts,
)
from gpu_tracker.recording.encode import to_json
from gpu_tracker.recording.schema import (
    encode_end,
    encode_event,
    encode_header,
    encode_known,
    encode_sample,
)

MB = 10**6
RANKS_PER_NODE = 8
N_GROWING = 5
N_TEMPLATES = 500
N_BETWEEN_REGIONS = 60
REGIONS = (("epoch",), ("epoch", "compute"), ("epoch", "reduce"))
NOTE = "No GPU found; `gpu-tracker doctor` shows where it looked."
AT, CPU = '"at":0.0,', '"cpu":[0.0,0.25,0.0],'


def main(directory: str, n_ranks: int, n_intervals: int) -> None:
    folder = os.path.join(directory, "job-4711")
    os.makedirs(folder)
    templates = [make_line(number) for number in range(min(N_TEMPLATES, n_intervals))]
    n_bytes = 0
    for rank in range(n_ranks):
        path = os.path.join(folder, f"s0-n{rank // RANKS_PER_NODE}-r{rank}.jsonl")
        with open(path, "w", encoding="ascii") as file:
            file.writelines(make_head(rank, n_ranks))
            for number in range(n_intervals):
                cpu = f'"cpu":[{number + rank / 1000:.6f},0.25,{number * 1.5}],'
                line = templates[number % N_TEMPLATES] if number > N_GROWING else make_line(number)
                file.write(line.replace(AT, f'"at":{number + 0.000123:.6f},').replace(CPU, cpu))
                if number % N_BETWEEN_REGIONS == 0:
                    file.writelines(make_regions(rank, number))
            file.writelines(make_tail(rank, n_intervals))
        n_bytes += os.path.getsize(path)
    print(json.dumps({"bytes": n_bytes}))


def make_head(rank: int, n_ranks: int) -> list[str]:
    """Who it is."""
    node = f"n{rank // RANKS_PER_NODE}"
    identity = Identity(
        boot_id=node,
        node=node,
        job="4711",
        step="0",
        rank=rank,
        ranks=n_ranks,
        nodes=-(-n_ranks // RANKS_PER_NODE),
        local_rank=rank % RANKS_PER_NODE,
        scheduler="pbs",  # which is not asked for the job's state
        launcher="openmpi",
    )
    header = Header(
        1,
        "0",
        ("python", "train.py"),
        1000 + rank,
        node,
        f"2026-01-01T00:00:00.{rank % 1000:03}+00:00",
        1.0,
        Allocation(64, 8.0, "cpuset", 256_000 * MB, 32_000 * MB, "job"),
        "procfs",
        8.0,
        identity=identity,
    )
    return [
        to_json({"header": encode_header(header)}) + "\n",
        to_json({"event": encode_event(Event(0.0, "note", NOTE))}) + "\n",
    ]


def make_line(number: int) -> str:
    """A sample; the first ones have new peaks, as while a program begins."""
    noise = number * 7919 % 1000 * MB // 10
    held = Spread(1000 * MB, 1000 * MB + noise // 2, 1000 * MB + noise)
    peaks = make_peaks(number) if number <= N_GROWING else Peaks()
    sample = Sample(
        at_seconds=0.0,
        readings=1,
        late_seconds=0.001,
        cpu_seconds=add_parts(0.0, 0.25),
        system_cpu_seconds=0.0,
        ram_bytes=Parts(held, Spread(0, 0, 0), held),
        system_ram_bytes=8000 * MB + noise,
        threads=9,
        processes=1,
        peaks=peaks,
        counters=TreeCounters(10 * number, number, 2 * number, 70 * number, 0.01 * number),
        stalls=Stalls(*(round(0.01 * number * place, 6) for place in range(1, 6))),
    )
    line = to_json({"sample": encode_sample(sample, Peaks())}) + "\n"
    moment = PeakMoment("ram", number + 0.5, 1200 * MB, 1, (PeakProcess(1000, "python", 1200 * MB),), ())
    return (to_json({"peak": encode_known(moment)}) + "\n" if number <= N_GROWING else "") + line


def make_peaks(number: int) -> Peaks:
    """They have been reached until then."""
    peak = RamPeak(1100 * MB + number * MB, 1000 * MB, 100 * MB)
    return Peaks(ram=Parts(peak, RamPeak(), peak), system_ram_bytes=9000 * MB + number, processes=1)


def make_regions(rank: int, number: int) -> list[str]:
    """How often, and how long so far."""
    return [
        to_json(
            {
                "region": encode_known(
                    RegionTotals(1000 + rank, path, number + 1, 0, 0.9 * number + rank / 1000, 0.0, 0.01, 0.2)
                )
            }
        )
        + "\n"
        for path in REGIONS
    ]


def make_tail(rank: int, n_intervals: int) -> list[str]:
    """What is known at the end only."""
    process = ProcessTotals(1000 + rank, 1, "python", 0.0, float(n_intervals), n_intervals, 1100 * MB)
    totals = Totals(
        float(n_intervals),
        add_parts(n_intervals + rank / 1000, 0.25),
        1.5 * n_intervals,
        n_intervals,
        peaks=make_peaks(N_GROWING),
        counters=TreeCounters(10 * n_intervals, 1, 2, 70, 0.5),
    )
    return [
        to_json({"process": encode_known(process)}) + "\n",
        to_json({"end": encode_end(End("exited", 0, totals, 0.5, 12 * MB))}) + "\n",
    ]


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))

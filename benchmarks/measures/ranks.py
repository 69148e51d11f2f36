"""A job of many ranks: what `combine` takes for their recordings, and what tracking them costs."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from benchmarks import watch
from benchmarks.bench import Bench, Rounds
from benchmarks.jobs import (
    RunFailedError,
    finish,
    measure_command,
    run_inside,
    script,
    start,
    time_command,
    workload,
)
from benchmarks.rows import Goal, Row

if TYPE_CHECKING:
    from benchmarks.jobs import Running
    from benchmarks.venvs import Installed

NAME = "ranks"

# Ranks and intervals of each, the CPU seconds and the megabytes that are enough, and whether it takes too long to be quick.
_JOBS = (
    (1_000, 80, 1.0, 50.0, False),
    (10_000, 20, 15.0, None, False),
    (1_000, 1_000, None, None, True),
    (1_000, 10_000, 60.0, 300.0, True),
)
# Ten times the ranks, or the intervals: how many times the CPU.
_GROWTH = (
    ("ten times the ranks", (1_000, 20), (10_000, 20)),
    ("ten times the intervals", (1_000, 1_000), (1_000, 10_000)),
)
_LINEAR, _NEARLY = 10.0, 1.25
_N_RANKS = 8
_N_SLEEPERS = 64
_SETTLING_SECONDS, _SECONDS = 3.0, 20.0
_APPEARANCE_SECONDS = 20.0
_MOST_MEGABYTES, _MOST_PERCENT = 10.0, 0.25
_MOST_SIDE_CAR_MEGABYTES, _MOST_SIDE_CAR_PERCENT = 12.0, 1.0
_MOST_TIMES_PYTHON = 1.5


def measure(bench: Bench) -> list[Row]:
    """Of the ranks' recordings first, then of ranks that run."""
    return [*_measure_combine(bench), *_measure_running(bench), *_measure_start(bench)]


def _measure_combine(bench: Bench) -> list[Row]:
    """CPU seconds and memory of `gpu-tracker combine`."""
    jobs = [job[:4] for job in _JOBS if not (job[4] and bench.is_quick)]
    seconds = {
        (ranks, intervals): Row(
            f"`combine`, {ranks} ranks x {intervals} intervals",
            "CPU s",
            None if most is None else Goal(high=most),
            2,
        )
        for ranks, intervals, most, _ in jobs
    }
    memory = {
        (ranks, intervals): Row(
            f"`combine`, {ranks} ranks x {intervals} intervals, peak memory", "MB", Goal(high=most), 0
        )
        for ranks, intervals, _, most in jobs
        if most is not None
    }
    sizes = [*seconds, (1_000, 20)]
    taken: dict[tuple[int, int], list[float]] = {size: [] for size in sizes}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            bench.say(f"{NAME}: {size[0]} x {size[1]}")
            run_inside(bench.ours, "write_ranks", folder, *size)
            for _ in range(1 if bench.is_quick or size == max(sizes) else 3):
                program = os.path.join(bench.ours.bin, "gpu-tracker")
                used = measure_command(bench.ours, [program, "combine", folder])
                taken[size].append(used.cpu_seconds)
                for rows, value in ((seconds, used.cpu_seconds), (memory, used.peak_bytes / 1e6)):
                    if size in rows:
                        rows[size].add(bench.ours.name, value)
    growth = []
    for what, less, more in _GROWTH:
        if taken.get(less) and taken.get(more):
            row = Row(f"`combine`, {what}", "times the CPU", Goal(high=_LINEAR * _NEARLY), 1)
            row.add(bench.ours.name, statistics.median(taken[more]) / statistics.median(taken[less]))
            growth.append(row)
    return [*seconds.values(), *memory.values(), *growth]


def _measure_running(bench: Bench) -> list[Row]:
    """Memory as PSS: what ranks on a machine share is shared out among them."""
    rank_memory = Row(f"tracking a rank, {_N_RANKS} of them", "MB PSS", Goal(high=_MOST_MEGABYTES))
    rank_cpu = Row(f"tracking a rank, {_N_RANKS} of them", "% of a core", Goal(high=_MOST_PERCENT), 2)
    car_memory = Row(f"`attach` to {_N_SLEEPERS} processes", "MB PSS", Goal(high=_MOST_SIDE_CAR_MEGABYTES))
    car_cpu = Row(f"`attach` to {_N_SLEEPERS} processes", "% of a core", Goal(high=_MOST_SIDE_CAR_PERCENT), 2)
    for tools in bench.rounds(NAME, Rounds(2, 0), Rounds(1, 0)):
        for tool in tools:
            megabytes, percent = _run_ranks(tool)
            rank_memory.add(tool.name, megabytes)
            rank_cpu.add(tool.name, percent)
            megabytes, percent = _attach(tool)
            car_memory.add(tool.name, megabytes)
            car_cpu.add(tool.name, percent)
    return [rank_memory, rank_cpu, car_memory, car_cpu]


def _run_ranks(tool: Installed) -> tuple[float, float]:
    """Of each, its wrapper and its sampler together."""
    job = workload("idle", _SETTLING_SECONDS + _SECONDS + 5.0)
    program = os.path.join(tool.bin, "gpu-tracker")
    tracked = " ".join([program, "run", "--record", "runs", "--", *job])
    ranks = f"for RANK in $(seq 0 {_N_RANKS - 1}); do RANK=$RANK WORLD_SIZE={_N_RANKS} TORCHELASTIC_RUN_ID=bench {tracked} & done; wait"
    with start(tool, ["sh", "-c", ranks], output=subprocess.DEVNULL) as running:
        _wait_until_there(running, "idle", _N_RANKS)
        time.sleep(_SETTLING_SECONDS)
        found = watch.find_processes(running.tag, script("idle")).tracker - {running.process.pid}
        percent = _watch(found)
        megabytes = sum(map(watch.pss_bytes, found)) / 1e6
        running.process.wait()
    return megabytes / _N_RANKS, percent / _N_RANKS


def _attach(tool: Installed) -> tuple[float, float]:
    """One sampler for all of them, and the command that waits for it."""
    job = workload("sleepers", _SETTLING_SECONDS + _SECONDS + 5.0)
    with start(tool, job) as running:
        _wait_until_there(running, "sleepers", _N_SLEEPERS + 1)
        program = os.path.join(tool.bin, "gpu-tracker")
        command = [program, "attach", str(running.process.pid), "--record", "runs"]
        with start(tool, command, output=subprocess.DEVNULL) as attached:
            time.sleep(_SETTLING_SECONDS)
            found = frozenset(watch.find_tagged(attached.tag))
            percent = _watch(found)
            megabytes = sum(map(watch.pss_bytes, found)) / 1e6
            finish(running)
            attached.process.wait()
    return megabytes, percent


def _watch(pids: frozenset[int]) -> float:
    """Percent of a core of these processes from now on."""
    before, began = watch.cpu_seconds(pids), time.monotonic()
    time.sleep(_SECONDS)
    return 100 * (watch.cpu_seconds(pids) - before) / (time.monotonic() - began)


def _wait_until_there(running: Running, name: str, count: int) -> None:
    deadline = time.monotonic() + _APPEARANCE_SECONDS
    while len(watch.find_processes(running.tag, script(name)).job) < count:
        if time.monotonic() > deadline or running.process.poll() is not None:
            raise RunFailedError(f"{name} did not start under {running.process.args!r}")
        time.sleep(0.05)


def _measure_start(bench: Bench) -> list[Row]:
    """Where there is an MPI launcher: eight ranks that do nothing, beside as many interpreters that do nothing."""
    launcher = shutil.which("mpiexec.mpich") or shutil.which("mpiexec.hydra")
    if launcher is None:
        bench.say(f"{NAME}: the start of ranks is left out: there is no MPICH")
        return []
    row = Row(
        f"starting {_N_RANKS} ranks by MPICH, tracked `true` / `python -c pass`",
        "times as long",
        Goal(high=_MOST_TIMES_PYTHON),
        2,
    )
    ranks = [launcher, "-n", str(_N_RANKS)]
    for tools in bench.rounds(NAME, Rounds(7, 0), Rounds(3, 0)):
        for tool in tools:
            program = os.path.join(tool.bin, "gpu-tracker")
            tracked = time_command(tool, [*ranks, program, "run", "--record", "runs", "--", "true"])
            row.add(tool.name, tracked / time_command(tool, [*ranks, sys.executable, "-c", "pass"]))
    return [row]

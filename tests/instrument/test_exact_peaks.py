"""Regions with `exact_peak`: the memory of single calls, and what their resets must not affect."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api.test_regions import Told, run
from gpu_tracker.core.model import RecordingData
from gpu_tracker.recording.reader import load

MB = 10**6
# What a process of these tests holds besides its blocks is less than this.
IDLE_BYTES = 60 * MB

# A spike prints what was resident. Without a sampler, nothing is sampled meanwhile.
DEFINITIONS = """
import contextlib, signal, subprocess
MB = 10**6
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * mmap.PAGESIZE
def spike(megabytes):
    block = touch(megabytes * MB)
    held = resident()
    block.close()
    return held
@contextlib.contextmanager
def without_readings(tracker):
    time.sleep(0.1)
    os.kill(tracker._session._sampler.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(tracker._session._sampler.pid, signal.SIGCONT)
"""


def run_spikes(tmp_path: Path, body: str, definitions: str = "", prefix: tuple[str, ...] = ()) -> Told:
    """Run a program that has spikes."""
    return run(tmp_path, body, DEFINITIONS + definitions, prefix)


def load_run(tmp_path: Path) -> RecordingData:
    """Its recording."""
    return load(str(tmp_path / "run.jsonl"))


def check_exact(regions: list[dict[str, Any]], held_bytes: int) -> None:
    """The region of one process has exactly this peak."""
    (region,) = regions
    check_peak(region["peak_ram_bytes"], region["peak_ram_basis"], held_bytes)


def check_peak(peak_bytes: int | None, basis: str, held_bytes: int) -> None:
    """It is exact, and equal to what the workload printed."""
    assert basis == "exact"
    assert peak_bytes == pytest.approx(held_bytes, rel=0.02)


def test_a_peak_is_that_of_the_call_however_large_the_process_was_before(tmp_path: Path) -> None:
    """As a block, a function and a coroutine; a region that does nothing gets nothing from its neighbours."""
    job = run_spikes(
        tmp_path,
        """
spike(400)
with region("block", exact_peak=True): truth["block"] = spike(150)
with tracker.region("idle", exact_peak=True): time.sleep(0.01)
truth["function"] = function()
truth["coroutine"] = asyncio.run(coroutine())
for size in (50, 120, 80):
    with region("several", exact_peak=True): truth[size] = spike(size)
""",
        """
@region("function", exact_peak=True)
def function(): return spike(100)
@region("coroutine", exact_peak=True)
async def coroutine(): return spike(200)
""",
    )

    for name in ("block", "function", "coroutine"):
        check_exact(job[name], job.truth[name])
    check_exact(job["several"], job.truth["120"])
    (idle,) = job["idle"]
    assert (idle["peak_ram_basis"], idle["calls"]) == ("exact", 1)
    assert idle["entry_ram_bytes"] <= idle["peak_ram_bytes"] < IDLE_BYTES


def test_regions_inside_do_not_lower_those_around(tmp_path: Path) -> None:
    """A spike before, in or after an inner region is in the outer one, and recursion is one region."""
    job = run_spikes(
        tmp_path,
        """
spike(400)
for name, sizes in {"before": (200, 100, 50), "inside": (50, 200, 100), "after": (50, 100, 200)}.items():
    with region(name, exact_peak=True):
        spike(sizes[0])
        with region("inner", exact_peak=True): truth[name] = spike(sizes[1])
        spike(sizes[2])
    truth["largest"] = max(truth.get("largest", 0), truth[name])
recurse([50, 200, 100])
""",
        """
@region("again", exact_peak=True)
def recurse(sizes):
    spike(sizes[0])
    if sizes[1:]: recurse(sizes[1:])
""",
    )

    for name in ("before", "inside", "after"):
        check_exact(job[name], job.truth["largest"])
        check_exact(job[f"{name}/inner"], job.truth[name])
    check_exact(job["again"], job.truth["largest"])
    assert job["again"][0]["calls"] == 3


def test_an_ordinary_region_around_stays_right(tmp_path: Path) -> None:
    """Exact if it would be without resets; else at least the inner region's peak, sampled."""
    job = run_spikes(
        tmp_path,
        """
with region("hidden"): spike(50)
with region("largest"):
    truth["largest"] = spike(300)
    with region("inner", exact_peak=True): spike(100)
with region("hidden"): spike(200)
with region("smaller"):
    with region("inner", exact_peak=True): truth["smaller"] = spike(100)
time.sleep(0.01)
with region("hidden"): spike(80)
with region("mixed", exact_peak=True): spike(80)
with region("mixed"): spike(200)
""",
    )

    check_exact(job["largest"], job.truth["largest"])
    (smaller,), (hidden,), (mixed,) = job["smaller"], job["hidden"], job["mixed"]
    assert smaller["peak_ram_basis"] == "sampled"
    assert smaller["peak_ram_bytes"] == pytest.approx(job.truth["smaller"], rel=0.02)
    # Below a high-water mark that did not move, their size is unknown.
    assert hidden["peak_ram_bytes"] < 200 * MB or hidden["peak_ram_basis"] == "sampled"
    assert mixed["peak_ram_basis"] == "sampled"


def test_a_call_below_a_mark_that_was_raised_elsewhere_makes_the_peak_a_lower_bound(tmp_path: Path) -> None:
    """Outside, in another region or in another thread; not before the region runs again, and not after it has raised the mark itself."""
    job = run_spikes(
        tmp_path,
        """
with without_readings(tracker):
    with region("once"): truth["once"] = spike(60)
    with region("outside"): spike(80)
    with region("again"): spike(90)
    spike(120)
    with region("outside"): truth["outside"] = spike(100)
    with region("again"): spike(100)
    with region("beside"): spike(140)
    with region("thread"):
        thread = threading.Thread(target=spike, args=(180,)); thread.start(); thread.join()
    with region("beside"): truth["beside"] = spike(160)
    with region("again"): truth["again"] = spike(220)
""",
    )

    for name in ("outside", "beside"):
        (region,) = job[name]
        assert region["peak_ram_basis"] == "sampled"
        assert region["peak_ram_bytes"] <= job.truth[name] * 1.02
    for name in ("once", "again"):
        check_exact(job[name], job.truth[name])


def test_what_a_worker_did_after_its_last_reading_is_not_known(tmp_path: Path) -> None:
    """It has ended without a word, after a call that was too soon after the last reading."""
    job = run_spikes(
        tmp_path,
        """
with without_readings(tracker):
    worker = os.fork()
    if not worker:
        with region("early"): early = spike(60)
        with region("late"):
            spike(80)
            stack._RAM_CREDIT_NS, stack._RAM_EVERY_NS = 0, 10**15
        with region("late"): spike(90)
        print(json.dumps(early), file=open(os.environ["TOLD"], "w"), flush=True)
        os._exit(0)
    os.waitpid(worker, 0)
truth["early"] = json.load(open(os.environ["TOLD"]))
""",
        f"from gpu_tracker.instrument import stack\nos.environ['TOLD'] = {str(tmp_path / 'told')!r}",
    )

    check_exact(job["early"], job.truth["early"])
    (late,) = job["late"]
    assert late["peak_ram_basis"] == "sampled"


def test_threads_and_coroutines_reset_under_each_other(tmp_path: Path) -> None:
    """A region that was open when another began keeps its peak; the other does not get it."""
    job = run_spikes(
        tmp_path,
        """
spike(400)
def work():
    with region("thread", exact_peak=True):
        truth["thread"] = spike(200)
        reached.set(); passed.wait()
reached, passed = threading.Event(), threading.Event()
thread = threading.Thread(target=work); thread.start(); reached.wait()
with region("beside the thread", exact_peak=True): truth["beside the thread"] = spike(100)
passed.set(); thread.join()
asyncio.run(main())
""",
        """
@region("task", exact_peak=True)
async def task():
    truth["task"] = spike(150)
    await asyncio.sleep(0.02)
@region("beside the task", exact_peak=True)
async def later():
    truth["beside the task"] = spike(60)
async def main():
    await asyncio.gather(task(), later())
""",
    )

    for name in ("thread", "beside the thread", "task", "beside the task"):
        check_exact(job[name], job.truth[name])


def test_a_signal_handler_may_reset(tmp_path: Path) -> None:
    """At any time during another region, even while it is entered or left."""
    job = run_spikes(
        tmp_path,
        """
def handle(number, frame):
    with region("handler", exact_peak=True): pass
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
with region("spike", exact_peak=True):
    truth["spike"] = spike(150)
    for _ in range(10_000):
        with region("loop", exact_peak=True): pass
signal.setitimer(signal.ITIMER_REAL, 0)
""",
    )

    check_exact(job["spike"], job.truth["spike"])
    assert job["spike/loop"][0]["calls"] == 10_000


def test_an_exception_ends_the_call_with_its_peak(tmp_path: Path) -> None:
    """And is not swallowed."""
    job = run_spikes(
        tmp_path,
        """
spike(400)
try:
    with region("raises", exact_peak=True):
        truth["held"] = spike(150); raise KeyError
except KeyError: truth["raised"] = True
""",
    )

    assert job.truth["raised"]
    check_exact(job["raises"], job.truth["held"])


@pytest.mark.parametrize("before", [0, 400])
def test_a_spike_before_a_reset_is_in_the_peak_of_the_job(tmp_path: Path, before: int) -> None:
    """Of a few milliseconds, between two readings; but not what the process held before it was tracked."""
    job = run_spikes(
        tmp_path,
        """
with without_readings(tracker):
    with region("first", exact_peak=True): pass
    truth["held"] = spike(300)
    with region("second", exact_peak=True): pass
""",
        f"if {before}: spike({before})",
    )
    recording = load_run(tmp_path)
    peaks = recording.totals.peaks

    for peak in (peaks.ram.main, peaks.ram.combined):
        check_peak(peak.total_bytes, peak.basis, job.truth["held"])
    (process,) = recording.processes
    assert process.peak_ram_bytes == pytest.approx(job.truth["held"], rel=0.02)


def test_a_spike_inside_the_first_region_is_in_the_peak_of_the_job(tmp_path: Path) -> None:
    """Even if the process was larger before the start, and is not read before the end."""
    job = run_spikes(
        tmp_path,
        """
with without_readings(tracker):
    with region("first", exact_peak=True): pass
    truth["held"] = spike(200)
""",
        "spike(400)",
    )
    main = load_run(tmp_path).totals.peaks.ram.main

    check_peak(main.total_bytes, main.basis, job.truth["held"])


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_worker_that_was_never_read_leaves_its_spike(tmp_path: Path, end: str) -> None:
    """Forked, spiked, reset and ended between two readings; its parent's size does not count."""
    job = run_spikes(
        tmp_path,
        f"""
with without_readings(tracker):
    worker = os.fork()
    if not worker:
        held = spike(300)
        with region("worker", exact_peak=True): inside = spike(150)
        open({str(tmp_path / "held")!r}, "w").write(json.dumps([held, inside]))
        {end}
    os.waitpid(worker, 0)
""",
        "spike(400)",
    )
    held, inside = json.loads((tmp_path / "held").read_text())
    peaks = load_run(tmp_path).totals.peaks

    check_exact(job["worker"], inside)
    assert peaks.ram.descendants.total_bytes == pytest.approx(held, rel=0.02)
    assert peaks.ram.combined.total_bytes >= peaks.ram.descendants.total_bytes
    assert peaks.ram.main.total_bytes < 200 * MB


def test_a_child_does_not_get_the_high_water_mark_that_it_was_started_with(tmp_path: Path) -> None:
    """The kernel reports at least its parent's at that time; without a sampler that is all that is known."""
    job = run_spikes(
        tmp_path,
        """
with gput.Tracker(disable_logs=True) as inner:
    os.kill(inner._session._sampler.pid, signal.SIGKILL)
    spike(400)
    subprocess.run([sys.executable, "-c", ""])
    with region("after", exact_peak=True): pass
truth["descendants"] = inner._recording.totals.peaks.ram.descendants.total_bytes
""",
    )

    assert job.truth["descendants"] < IDLE_BYTES


def test_an_outer_tracker_knows_what_was_reset_inside(tmp_path: Path) -> None:
    """The inner one has the regions; both have the spikes, each since its own start."""
    job = run_spikes(
        tmp_path,
        """
with without_readings(tracker):
    truth["outer"] = spike(300)
    with gput.Tracker(disable_logs=True) as inner:
        with region("inside", exact_peak=True): truth["inner"] = spike(150)
    truth["inner peak"] = inner._recording.totals.peaks.ram.main.total_bytes
""",
    )
    main = load_run(tmp_path).totals.peaks.ram.main

    assert job.truth["inner peak"] == pytest.approx(job.truth["inner"], rel=0.02)
    check_peak(main.total_bytes, main.basis, job.truth["outer"])


def test_a_command_keeps_its_peak(tmp_path: Path, command_line: str) -> None:
    """Even one that spikes, resets and ends before a reading, under a command line."""
    code = f"""
import json, mmap, os, sys, time
import gpu_tracker as gput
from gpu_tracker import region
def touch(n_bytes):
    return mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
{DEFINITIONS}
time.sleep(1.2)
held = spike(300)
with region("part", exact_peak=True): inside = spike(100)
print(json.dumps([held, inside]))
"""
    inner, outer = tmp_path / "inner.jsonl", tmp_path / "outer.jsonl"
    tracked = [command_line, "run", "--record", str(inner), "--", sys.executable, "-c", code]
    done = subprocess.run(
        [command_line, "run", "--record", str(outer), "--", *tracked], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    held, inside = json.loads(done.stdout.splitlines()[0])
    recording, around = load(str(inner)), load(str(outer))

    (part,) = recording.regions
    check_peak(part.peak_ram_bytes, part.peak_ram_basis, inside)
    peaks = recording.totals.peaks
    for peak in (peaks.ram.main, peaks.ram.combined):
        check_peak(peak.total_bytes, peak.basis, held)
    assert max(process.peak_ram_bytes for process in recording.processes) == pytest.approx(held, rel=0.02)
    assert around.totals.peaks.ram.descendants.total_bytes >= held * 0.98


READ_ONLY_PROC = 'mount --bind /proc /proc && mount -o remount,ro,bind /proc && exec "$@"'


@pytest.mark.parametrize("reason", ["read-only", "missing"])
def test_without_resets_a_region_is_like_any_other(tmp_path: Path, reason: str) -> None:
    """Exact if the high-water mark rose, else sampled."""
    prefix: tuple[str, ...] = ()
    definitions = ""
    if reason == "missing":
        definitions = "import gpu_tracker.instrument.high_water\ngpu_tracker.instrument.high_water._CLEAR_PATH = '/proc/self/missing'"
    elif os.geteuid() == 0 and shutil.which("unshare"):
        prefix = ("unshare", "--mount", "sh", "-c", READ_ONLY_PROC, "sh")
    else:
        pytest.skip("a mount namespace needs root and unshare")
    job = run_spikes(
        tmp_path,
        """
with region("rises", exact_peak=True): truth["rises"] = spike(200)
with region("does not rise", exact_peak=True): spike(100)
""",
        definitions,
        prefix,
    )

    check_exact(job["rises"], job.truth["rises"])
    (region,) = job["does not rise"]
    assert (region["calls"], region["peak_ram_basis"]) == (1, "sampled")

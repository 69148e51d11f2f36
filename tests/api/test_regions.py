"""Regions and metrics, against what the workload knows of itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from math import nan
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput

# A program that does as it is told inside a tracker, and tells what it knows.
PROGRAM = """
import asyncio, json, mmap, multiprocessing, os, sys, threading, time
import gpu_tracker as gput
from gpu_tracker import region
truth = {{}}
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def touch(n_bytes):
    return mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
{definitions}
if __name__ == "__main__":
    with gput.Tracker(sleep_time=0.2, disable_logs=True, record={record!r}) as tracker:
        before = time.process_time()
        {body}
        truth["cpu"] = time.process_time() - before
    regions = [region._asdict() for region in tracker._recording.regions]
    calls = [call._asdict() for call in tracker._recording.calls]
    print(json.dumps(dict(truth=truth, regions=regions, calls=calls, pid=os.getpid())))
"""


class Told(dict[str, Any]):
    """The regions of a run by their paths; those of several processes in a list."""

    truth: dict[str, Any]
    pid: int
    calls: list[dict[str, Any]]


def run(tmp_path: Path, body: str, definitions: str = "", prefix: tuple[str, ...] = ()) -> Told:
    """Run a program; its regions by path, each a list with one entry per process."""
    script = tmp_path / "program.py"
    record = str(tmp_path / "run.jsonl")
    indented = body.strip().replace("\n", "\n        ")
    script.write_text(PROGRAM.format(body=indented, definitions=definitions, record=record))
    command = [*prefix, sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    output = json.loads(done.stdout)
    told = Told()
    told.truth, told.pid, told.calls = output["truth"], output["pid"], output["calls"]
    for region in output["regions"]:
        told.setdefault("/".join(region["path"]), []).append(region)
    return told


def test_a_region_tells_its_calls_and_its_time(tmp_path: Path) -> None:
    """Calls, wall time and CPU time of a loop, and what is left of the region around it."""
    told = run(
        tmp_path,
        """
with region("epoch"):
    for _ in range(5):
        with region("wait"): time.sleep(0.05)
        with region("work"): burn(0.05)
    burn(0.1)
""",
    )
    (epoch,), (wait,), (work,) = told["epoch"], told["epoch/wait"], told["epoch/work"]

    assert (epoch["calls"], wait["calls"], work["calls"]) == (1, 5, 5)
    assert wait["wall_seconds"] >= 0.25
    assert wait["cpu_seconds"] < 0.02
    assert work["cpu_seconds"] == pytest.approx(0.25, rel=0.1)
    assert epoch["own_cpu_seconds"] == pytest.approx(0.1, rel=0.15)
    assert epoch["wall_seconds"] >= wait["wall_seconds"] + work["wall_seconds"]
    assert 0.05 <= wait["shortest_seconds"] <= wait["wall_seconds"] / 5 <= wait["longest_seconds"]
    assert sum(region["own_cpu_seconds"] for (region,) in told.values()) <= told.truth["cpu"] * 1.001


def test_functions_that_are_called_at_exit_have_regions(tmp_path: Path, command_line: str) -> None:
    """Also one that was registered before anything of ours, which is called last; metrics, too."""
    program = """
import atexit, gpu_tracker as gput
@atexit.register
def save():
    gput.log(step=2, saved=1.0)
    for _ in range(3):
        with gput.region("save"): sum(range(1_000_000))
gput.log(step=1, saved=0.0)
with gput.region("work"): pass
"""
    record = tmp_path / "run.jsonl"
    subprocess.run(
        [command_line, "run", "--disable-logs", "--record", record, "--", sys.executable, "-c", program],
        check=True,
        capture_output=True,
    )
    report = gput.load(record).report
    regions = {region.path[0]: region for region in report.regions}
    (metric,) = report.metrics

    assert {name: (region.calls, region.open_calls) for name, region in regions.items()} == {
        "save": (3, 0),
        "work": (1, 0),
    }
    assert regions["save"].wall_seconds <= report.summary.seconds
    assert (metric.logged, metric.last) == (2, 1.0)


def test_single_calls_have_their_times(tmp_path: Path) -> None:
    """Between the workload's own readings of the clock; open ones and those in which a worker was killed too."""
    told = run(
        tmp_path,
        """
truth["before"], truth["inside"] = [], []
for _ in range(5):
    truth["before"].append(time.monotonic())
    with region("step"):
        truth["inside"].append(time.monotonic())
        time.sleep(0.01)
worker = os.fork()
if not worker:
    for _ in range(3):
        with region("task"): pass
    with region("killed"): os.kill(os.getpid(), 9)
os.waitpid(worker, 0)
truth["worker"] = worker
kept_open = region("open")
kept_open.__enter__()
""",
    )
    steps = [call for call in told.calls if call["path"] == ["step"]]
    starts = [call["start_seconds"] - steps[0]["start_seconds"] for call in steps]
    before, inside = told.truth["before"], told.truth["inside"]
    others = [
        (call["path"], call["pid"], call["number"], call["end_seconds"] is None)
        for call in told.calls
        if call["path"] != ["step"]
    ]

    assert [call["number"] for call in steps] == [1, 2, 3, 4, 5]
    assert all(call["end_seconds"] - call["start_seconds"] >= 0.01 for call in steps)
    assert {call["thread"] for call in steps} == {told.pid}
    for start, earliest, latest in zip(starts, before, inside, strict=True):
        assert earliest - inside[0] <= start <= latest - before[0]
    worker = told.truth["worker"]
    assert sorted(others) == [
        (["killed"], worker, 0, True),
        (["open"], told.pid, 0, True),
        *((["task"], worker, number, False) for number in (1, 2, 3)),
    ]


def test_the_calls_of_a_busy_region_are_bounded(tmp_path: Path) -> None:
    """The recording stays small, and knows the longest call and the one with the most memory."""
    told = run(
        tmp_path,
        """
for number in range(30_000):
    if number == 23_456: time.sleep(0.02)  # so that memory is read again
    with region("step"):
        if number == 12_345: time.sleep(2)
        if number == 23_456: touch(80_000_000).close(); time.sleep(0.02)
""",
    )
    (step,) = told["step"]
    longest = max(told.calls, key=lambda call: call["end_seconds"] - call["start_seconds"])
    largest = max(told.calls, key=lambda call: call["peak_ram_bytes"] or 0)

    assert step["calls"] == 30_000
    assert 128 <= len(told.calls) <= 160
    assert longest["number"] == 12_346
    assert (largest["number"], largest["peak_ram_basis"]) == (23_457, "exact")
    assert largest["peak_ram_bytes"] >= 80_000_000
    assert os.path.getsize(tmp_path / "run.jsonl") < 200_000


def test_the_report_names_the_call_that_peaked(tmp_path: Path, command_line: str) -> None:
    """Also where the process's high-water mark is older, so that only the sampler can see the peak."""
    told = run(
        tmp_path,
        """
touch(300_000_000).close()
for number in range(10):
    with region("step"):
        if number == 6:
            held = touch(150_000_000); time.sleep(1); held.close()
""",
    )
    del told
    output = subprocess.check_output([command_line, "report", str(tmp_path / "run.jsonl"), "-f", "json"])
    (step,) = json.loads(output)["regions"]
    call = step["peak_ram_call"]

    assert step["peak_ram_bytes"] > 150_000_000
    assert call["number"] == 7
    assert call["end_seconds"] - call["start_seconds"] >= 1


def test_a_sampler_that_fails_leaves_the_regions(tmp_path: Path) -> None:
    """By an error of its own, here a message that it does not know; and nothing else is left."""
    told = run(
        tmp_path,
        """
with region("before"): pass
sampler = tracker._session._sampler
sampler.send("nonsense")
while not sampler.has_ended(): pass
truth["mailbox"] = os.environ["GPU_TRACKER_MAILBOX"]
with region("after"): pass
""",
    )

    assert [part["calls"] for part in (told["before"][0], told["after"][0])] == [1, 1]
    assert not os.path.exists(told.truth["mailbox"])


def test_names_beyond_the_limits_are_said(tmp_path: Path) -> None:
    """Two long ones stay two regions, in every process; what is too much is counted."""
    told = run(
        tmp_path,
        """
truth["long"] = ["batch " + 200 * "x" + end for end in "ab"]
for number in range(2):
    pid = number and os.fork()
    if number == 0 or pid == 0:
        for name in truth["long"]:
            with region(name): pass
    if number and not pid: os._exit(0)
os.wait()
for step in range(1500):
    with region(f"step {step}"): pass
""",
    )
    from gpu_tracker.recording.reader import load
    from gpu_tracker.reports.build import build

    long = {name: parts for name, parts in told.items() if name.startswith("batch")}
    notes = [note for note in build(load(str(tmp_path / "run.jsonl"))).notes if "region" in note]

    assert [[part["calls"] for part in parts] for parts in long.values()] == [[1, 1], [1, 1]]
    assert len(told) == 1000
    assert notes == [
        "Names of regions: 2 too long, shortened to the beginning and a digest; 502 too many, not recorded: "
        "a process can have 1000 regions, 100 of them inside each other, so do not put a changing value into a name."
    ]


def test_recursion_is_counted_once(tmp_path: Path) -> None:
    """Three calls, one inside the other: their time is that of the outermost."""
    told = run(
        tmp_path,
        "work(3)",
        """
@region("work")
def work(depth):
    burn(0.1)
    if depth > 1: work(depth - 1)
""",
    )
    (work,) = told["work"]

    assert list(told) == ["work"]
    assert work["calls"] == 3
    assert work["cpu_seconds"] == pytest.approx(0.3, rel=0.1)
    assert work["own_cpu_seconds"] == pytest.approx(0.3, rel=0.1)
    assert work["wall_seconds"] == pytest.approx(work["own_wall_seconds"], rel=0.01)


def test_threads_overlap_and_share(tmp_path: Path) -> None:
    """Each has its own wall time; the CPU of both together is never more than the process used."""
    told = run(
        tmp_path,
        """
def work():
    with region("thread"):
        time.sleep(0.3); burn(0.1)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    )
    (thread,) = told["thread"]

    assert thread["calls"] == 3
    assert thread["wall_seconds"] >= 0.9
    assert 0.25 <= thread["cpu_seconds"] <= told.truth["cpu"] * 1.001


def test_coroutines_do_not_nest_in_each_other(tmp_path: Path) -> None:
    """Two tasks at once are two calls side by side, inside the region that started them."""
    told = run(
        tmp_path,
        """
async def main():
    with region("all"):
        await asyncio.gather(task(), task())
asyncio.run(main())
""",
        """
@region("task")
async def task():
    await asyncio.sleep(0.2)
""",
    )

    assert sorted(told) == ["all", "all/task"]
    (task,), (everything,) = told["all/task"], told["all"]
    assert (task["calls"], everything["calls"]) == (2, 1)
    assert task["wall_seconds"] >= 0.4
    assert everything["wall_seconds"] < 0.4


def test_a_generator_may_be_left_in_the_middle(tmp_path: Path) -> None:
    """Regions are closed in any order, each once."""
    told = run(
        tmp_path,
        """
numbers = count()
next(numbers)
with region("other"): burn(0.05)
numbers.close()
with region("after"): burn(0.05)
""",
        """
def count():
    with region("generator"):
        yield 1
        yield 2
""",
    )

    assert sorted(told) == ["after", "generator", "other"]
    assert all(region["calls"] == 1 and region["open_calls"] == 0 for (region,) in told.values())


def test_an_exception_ends_a_region(tmp_path: Path) -> None:
    """And is not swallowed."""
    told = run(
        tmp_path,
        """
try:
    with region("outer"):
        with region("inner"): raise KeyError
except KeyError: truth["raised"] = True
with region("next"): pass
""",
    )

    assert told.truth["raised"]
    assert sorted(told) == ["next", "outer", "outer/inner"]
    assert all(region["open_calls"] == 0 for (region,) in told.values())


def test_a_region_that_was_never_left_is_reported_as_such(tmp_path: Path) -> None:
    """With the calls that were."""
    told = run(tmp_path, 'region("open").__enter__(); time.sleep(0.3)')
    (region,) = told["open"]

    assert (region["calls"], region["open_calls"], region["shortest_seconds"]) == (0, 1, None)
    assert region["wall_seconds"] >= 0.3


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_have_regions_of_their_own(tmp_path: Path, method: str) -> None:
    """They find the tracker through the environment; a fork is inside the region that it was forked in."""
    told = run(
        tmp_path,
        f"""
with region("epoch"):
    context = multiprocessing.get_context({method!r})
    workers = [context.Process(target=load) for _ in range(2)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
""",
        """
def load():
    with region("load"): burn(0.1)
    for step in range(50):
        gput.log(step=step, loaded=5)
        with region("tick"): pass
""",
    )
    loads = told["epoch/load" if method == "fork" else "load"]

    assert len({load["pid"] for load in loads}) == 2
    assert told.pid not in {load["pid"] for load in loads}
    assert [load["cpu_seconds"] for load in loads] == pytest.approx([0.1, 0.1], rel=0.15)
    if method == "fork":  # what is inside of a region is never more than the region
        around = {epoch["pid"]: epoch for epoch in told["epoch"]}
        assert [around[load["pid"]]["cpu_seconds"] >= load["cpu_seconds"] for load in loads] == [True, True]
        assert [around[load["pid"]]["own_cpu_seconds"] for load in loads] == [0, 0]
    # They end without any farewell, and still nothing is lost.
    assert [tick["calls"] for tick in told["epoch/tick" if method == "fork" else "tick"]] == [50, 50]
    assert len(gput.load(tmp_path / "run.jsonl").metric_rows) == 100


def test_the_idle_region_is_not_blamed(tmp_path: Path) -> None:
    """One takes 300 MB and gives them back, the next does nothing."""
    told = run(
        tmp_path,
        """
with region("big"):
    block = touch(300_000_000); time.sleep(0.02); block.close()
with region("idle"): time.sleep(0.3)
""",
    )
    (big,), (idle,) = told["big"], told["idle"]

    assert big["peak_ram_bytes"] >= 300_000_000
    assert big["peak_ram_basis"] == "exact"
    assert idle["peak_ram_bytes"] < 100_000_000
    assert big["exit_ram_bytes"] < 100_000_000


def test_a_spike_in_a_call_that_was_not_read_is_never_missing_from_an_exact_peak(tmp_path: Path) -> None:
    """After so many calls that memory is read now and then; the region has an exact peak from its first calls."""
    told = run(
        tmp_path,
        """
for number in range(300):
    with region("part"):
        block = touch(200_000_000 if number == 280 else 10_000_000)
        time.sleep(0.001); block.close()
""",
    )
    (part,) = told["part"]

    assert part["peak_ram_basis"] == "sampled" or part["peak_ram_bytes"] >= 200_000_000


def test_a_quick_spike_is_not_blamed_on_who_comes_next(tmp_path: Path) -> None:
    """Also where memory has been read so often that it is not read at every call any more."""
    told = run(
        tmp_path,
        """
for _ in range(300):
    with region("loop"): pass
for megabytes in range(8, 40):
    time.sleep(0.006)
    with region("spike"):
        block = touch(megabytes * 1_000_000); block.close()
    with region("idle"): time.sleep(0.006)
""",
    )
    (idle,) = told["idle"]

    assert idle["peak_ram_bytes"] < idle["exit_ram_bytes"] + 6_000_000
    assert idle["calls"] == 32


def test_a_killed_worker_has_lost_nothing(tmp_path: Path) -> None:
    """What it had counted is on its board, and the region it died in is open."""
    told = run(
        tmp_path,
        """
pid = os.fork()
if pid == 0:
    for _ in range(3):
        with region("done"): time.sleep(0.02)
    region("last").__enter__(); time.sleep(60)
time.sleep(0.6)
os.kill(pid, 9); os.waitpid(pid, 0)
""",
    )

    assert told["done"][0]["calls"] == 3
    assert told["last"][0]["open_calls"] == 1


def test_numbers_are_on_the_same_time_axis(tmp_path: Path) -> None:
    """Any numbers, also those that JSON has no word for, in the order they came."""
    run(
        tmp_path,
        """
for step in range(3):
    gput.log(step=step, loss=1 / (step + 1))
    time.sleep(0.1)
gput.log(accuracy=float("nan"), loss=float("inf"))
for step in range(5000): gput.log(many=step)
""",
    )
    from gpu_tracker.recording.reader import load

    rows = load(str(tmp_path / "run.jsonl")).metrics
    losses = [row for row in rows if "loss" in row.values]

    assert [row.step for row in losses] == [0, 1, 2, None]
    assert [row.values["loss"] for row in losses] == [1, 0.5, pytest.approx(1 / 3), float("inf")]
    assert losses[3].values["accuracy"] != losses[3].values["accuracy"]
    assert losses[1].at_seconds - losses[0].at_seconds >= 0.1
    assert [row.values["many"] for row in rows if "many" in row.values] == list(range(5000))


def test_a_command_has_regions_too(tmp_path: Path, command_line: str) -> None:
    """The job finds the tracker through its environment, and nothing is left afterwards."""
    recording = tmp_path / "run.jsonl"
    code = "import gpu_tracker as g, time\nwith g.region('part'): time.sleep(0.1)\ng.log(loss=2)"
    with subprocess.Popen(
        [command_line, "run", "--record", str(recording), "--", sys.executable, "-c", code],
        stderr=subprocess.DEVNULL,
    ) as job:
        assert job.wait(60) == 0
    from gpu_tracker.recording.reader import load

    loaded = load(str(recording))
    assert [(region.path, region.calls) for region in loaded.regions] == [(("part",), 1)]
    assert [row.values for row in loaded.metrics] == [{"loss": 2.0}]
    assert loaded.processes[0].cpu_seconds > 0
    assert not list(Path("/dev/shm").glob(f"gpu-tracker-*/{job.pid}-*"))


def test_trackers_inside_each_other(tmp_path: Path) -> None:
    """The innermost has the regions; the one around it takes over again."""
    told = run(
        tmp_path,
        """
for _ in range(3):
    with region("around"): burn(0.02)
with region("before"): pass
with region("both"):
    burn(0.1)
    with gput.Tracker(disable_logs=True): burn(0.1)
    burn(0.1)
with gput.Tracker(disable_logs=True) as inner:
    with region("inside"): pass
truth["inner"] = ["/".join(region.path) for region in inner._recording.regions]
with region("after"): pass
for _ in range(2):
    with region("around"): burn(0.02)
""",
    )
    (around,) = told["around"]

    assert told.truth["inner"] == ["inside"]
    assert sorted(told) == ["after", "around", "before", "both"]
    (both,) = told["both"]
    assert (both["calls"], both["open_calls"]) == (1, 0)
    assert both["cpu_seconds"] == pytest.approx(0.3, abs=0.05)
    assert around["calls"] == 5
    assert around["cpu_seconds"] == pytest.approx(0.1, rel=0.2)


def test_a_tracker_begins_outside_of_regions_that_are_older(tmp_path: Path) -> None:
    """Of a tracker around it, or of one that has ended while they were open; the one around goes on inside of its own."""
    told = run(
        tmp_path,
        """
def list_paths(tracker): return sorted("/".join(region.path) for region in tracker._recording.regions)
with region("both"):
    with gput.Tracker(disable_logs=True) as first:
        region("left").__enter__()
    with gput.Tracker(disable_logs=True) as second:
        with region("inside"): pass
        if not (child := os.fork()):
            with region("forked"): pass
            os._exit(0)
        os.waitpid(child, 0)
    with region("after"): pass
truth["first"], truth["second"] = list_paths(first), list_paths(second)
""",
    )

    assert told.truth["first"] == ["left"]
    assert told.truth["second"] == ["forked", "inside"]
    assert sorted(told) == ["both", "both/after"]


def test_a_call_left_open_by_a_tracker_that_has_ended_takes_no_time(tmp_path: Path) -> None:
    """What comes after a region inside of it is of the region around it."""
    told = run(
        tmp_path,
        """
with region("around"):
    with gput.Tracker(disable_logs=True):
        region("left").__enter__()
    for _ in range(5):
        with region("inside"): burn(0.02)
        burn(0.04)
""",
    )
    (around,), (inside,) = told["around"], told["around/inside"]

    assert around["own_cpu_seconds"] == pytest.approx(0.2, abs=0.05)
    assert around["cpu_seconds"] == pytest.approx(0.3, abs=0.05)
    assert inside["cpu_seconds"] == pytest.approx(0.1, abs=0.02)


def test_coroutines_of_several_trackers_have_their_own_time(tmp_path: Path) -> None:
    """A tracker that begins and ends while a region of another one waits and goes on, again and again, changes nothing of it."""
    told = run(
        tmp_path,
        """
async def work():
    with region("task"):
        for _ in range(10):
            burn(0.02)
            await asyncio.sleep(0)
async def track():
    with gput.Tracker(disable_logs=True) as tracker:
        await work()
    return tracker
async def main():
    with region("around"):
        older = asyncio.create_task(work())
        await asyncio.sleep(0)
        return await asyncio.gather(track(), track(), older)
first, last, _ = asyncio.run(main())
truth["tasks"] = [
    [region.path[-1], region.calls, region.cpu_seconds, region.cpu_basis]
    for one in (first, last) for region in one._recording.regions
]
""",
    )
    figures = ("calls", "open_calls", "cpu_seconds", "cpu_basis")

    assert {path: [[row[name] for name in figures] for row in rows] for path, rows in told.items()} == {
        "around": [[1, 0, pytest.approx(0.6, abs=0.06), "exact"]],
        "around/task": [[1, 0, pytest.approx(0.2, abs=0.03), "exact"]],
    }
    assert told.truth["tasks"] == [["task", 1, pytest.approx(0.2, abs=0.03), "exact"]] * 2


def test_a_process_that_goes_on_as_another_program_keeps_what_it_did(tmp_path: Path) -> None:
    """The same number, the same region, two programs."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, gpu_tracker as gput\n"
        "with gput.region('part'): pass\n"
        "with gput.region(sys.argv[1]): pass\n"
        "if sys.argv[1] == 'first': os.execv(sys.executable, [sys.executable, __file__, 'second'])\n"
    )
    job = f"import gpu_tracker as g, subprocess, sys\nwith g.Tracker(record='{tmp_path}/x.jsonl', disable_logs=True):"
    subprocess.check_call(
        [sys.executable, "-c", f"{job} subprocess.check_call([sys.executable, '{program}', 'first'])"]
    )
    regions = {region.path[0]: region for region in gput.load(tmp_path / "x.jsonl").region_totals}

    assert {name: region.calls for name, region in regions.items()} == {"part": 2, "first": 1, "second": 1}
    assert len({region.pid for region in regions.values()}) == 1


def test_a_region_ends_when_its_process_goes_on_as_another_program(tmp_path: Path) -> None:
    """It was never left, and what the next program does is not inside of it."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, time, gpu_tracker as gput\n"
        "spinning = 'import time\\nwhile time.process_time() < 2: pass'\n"
        "with gput.region(f'stage {len(sys.argv)}'):\n"
        "    while time.process_time() < 0.5 * len(sys.argv): pass\n"
        "    more = [*sys.argv, 'again'] if len(sys.argv) < 2 else ['-c', spinning]\n"
        "    os.execv(sys.executable, [sys.executable, *more])\n"
    )
    with gput.Tracker(record=str(tmp_path / "x.jsonl"), disable_logs=True, sleep_time=0.05):
        subprocess.check_call([sys.executable, str(program)])
    first, second = sorted(gput.load(tmp_path / "x.jsonl").region_totals, key=lambda region: region.path)

    assert [(region.calls, region.open_calls) for region in (first, second)] == [(0, 1)] * 2
    assert 0 < first.cpu_seconds < 0.6
    assert 0 < second.cpu_seconds < 0.6


def test_every_step_of_a_generator_is_a_call(tmp_path: Path) -> None:
    """What is done with its items is not its work; sending, throwing, returning and closing are as without us."""
    told = run(
        tmp_path,
        """
steps = load(3)
for _ in range(3):
    next(steps)
    burn(0.1)
truth["sent"] = steps.send("hello")
truth["thrown"] = steps.throw(ValueError("no"))
try:
    next(steps)
except StopIteration as end:
    truth["returned"] = end.value
left = load(3)
next(left)
left.close()
truth["closed"] = closed
""",
        """
closed = []
@region("load")
def load(n):
    try:
        for item in range(n):
            burn(0.02)
            given = yield item
        try:
            given = yield given
        except ValueError as error:
            yield str(error)
        return "done"
    finally:
        closed.append(n)
""",
    )
    (load,) = told["load"]

    assert told.truth["sent"] == "hello"
    assert (told.truth["thrown"], told.truth["returned"], told.truth["closed"]) == ("no", "done", [3, 3])
    assert load["calls"] == 3 + 1 + 1 + 1 + 1 + 1
    assert load["cpu_seconds"] == pytest.approx(0.08, rel=0.3)


def test_what_makes_no_sense_does_not_end_a_training(tmp_path: Path) -> None:
    """Names that are none, numbers that are none: said once; a missing name is said where it is written."""
    code = """
import gpu_tracker as gput
with gput.Tracker(record="x.jsonl", disable_logs=True):
    for _ in range(2):
        gput.log(step="first", loss="0.7", accuracy=0.5, lr=None, large=10**400)
    with gput.region(7): pass
    with gput.region("\\ud800\\n"): pass
    with gput.region(""): pass
    try:
        @gput.region
        def forward(): pass
    except TypeError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=200, check=True
    )
    recording = gput.load(tmp_path / "x.jsonl")

    assert done.stdout == 'A region needs a name: @gput.region("name").\n'
    assert done.stderr.splitlines() == [
        "gput.log: loss is ignored: str is not a number.",
        "gput.log: lr is ignored: NoneType is not a number.",
        "gput.log: large is ignored: the int is too large for a float.",
        "gput.log: step is ignored: str is not a number.",
    ]
    assert [(row.step, row.values) for row in recording.metric_rows] == [(None, {"accuracy": 0.5})] * 2
    assert [region.path[0] for region in recording.regions] == ["7", "\\ud800\n", ""]


@pytest.mark.parametrize(
    ("package", "value", "number"),
    [
        ("torch", "torch.ones(1, requires_grad=True).sum()", 1.0),
        ("numpy", "numpy.array([1.0])", 1.0),
        ("numpy", "numpy.ma.masked", nan),
        ("numpy", "numpy.ma.array([1.0], mask=[False])", 1.0),
    ],
)
def test_a_value_that_warns_when_it_is_converted_is_logged_silently(
    tmp_path: Path, package: str, value: str, number: float
) -> None:
    """Also where the user has made warnings errors: they would end the training."""
    pytest.importorskip(package)
    code = (
        f"import {package}, warnings, gpu_tracker as gput\n"
        "with gput.Tracker(record='x.jsonl', disable_logs=True):\n"
        "    warnings.simplefilter('error')\n"
        f"    gput.log(loss={value})\n"
        f"    gput.step(loss={value})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    recording = gput.load(tmp_path / "x.jsonl")

    assert (done.returncode, done.stderr) == (0, "")
    assert [row.values["loss"] for row in recording.metric_rows] == pytest.approx([number] * 2, nan_ok=True)


def test_a_dictionary_is_logged_by_its_names(tmp_path: Path) -> None:
    """Beside values by keyword, which win; its step counts as one. What is no dictionary is ignored, with a warning."""
    code = (
        "import gpu_tracker as gput\n"
        "with gput.Tracker(record='x.jsonl', disable_logs=True):\n"
        "    gput.log({'loss': 1.0, 2: 3.0}, step=4, loss=2.0)\n"
        "    gput.log({'a/b c': 1.0, 'step': 5})\n"
        "    gput.log(0.5)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    rows = gput.load(tmp_path / "x.jsonl").metric_rows

    said = "gput.log: float is ignored: use gput.log(loss=0.5) or gput.log({'loss': 0.5}).\n"
    assert (done.returncode, done.stderr) == (0, said)
    assert [(row.step, row.values) for row in rows[:2]] == [
        (4, {"loss": 2.0, "2": 3.0}),
        (5, {"a/b c": 1.0}),
    ]


@pytest.mark.parametrize("bad", ["10**400", "'nan'", "None", "[7, 8]"])
def test_what_is_no_number_is_not_hidden_by_an_earlier_number(tmp_path: Path, bad: str) -> None:
    """The last value is not known then, and no limit on it is kept."""
    code = (
        "import gpu_tracker as gput\n"
        "with gput.Tracker(record='x.jsonl', disable_logs=True):\n"
        "    gput.log(loss=0.5)\n"
        f"    gput.log(loss={bad}, other={bad})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    rows = [row.values for row in gput.load(tmp_path / "x.jsonl").metric_rows]
    compare = [sys.executable, "-m", "gpu_tracker", "compare", "x.jsonl", "--fail-if", "metrics.loss > 1"]
    compared = subprocess.run(compare, capture_output=True, text=True, cwd=tmp_path)

    assert "gput.log: loss is logged as nan: " in done.stderr
    assert "gput.log: other is ignored: " in done.stderr
    assert [list(row) for row in rows] == [["loss"], ["loss"]]
    assert rows[1]["loss"] != rows[1]["loss"]
    assert compared.returncode == 1, compared.stderr


def test_a_value_whose_conversion_warns_where_warnings_are_errors_is_ignored(
    tmp_path: Path,
) -> None:
    """It is said, and nothing is raised into the job."""
    code = (
        "import warnings, gpu_tracker as gput\n"
        "class Own(float): pass\n"
        "class Number:\n"
        "    def __float__(self): return Own(1)  # of which Python warns\n"
        "with gput.Tracker(record='x.jsonl', disable_logs=True):\n"
        "    warnings.simplefilter('error')\n"
        "    gput.log(a=Number(), b=2.0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "gput.log: a is ignored: Number is not a number.\n")
    assert [row.values for row in gput.load(tmp_path / "x.jsonl").metric_rows] == [{"b": 2.0}]


def test_without_a_tracker_nothing_happens() -> None:
    """No file, no error, and the function is the same."""
    code = (
        "import glob, os, gpu_tracker as g\n"
        "mine = lambda: glob.glob(f'/dev/shm/gpu-tracker-*/*{os.getpid()}-*')\n"
        "@g.region('f')\ndef f(x):\n    'Doubles.'\n    return 2 * x\n"
        "with g.region('a'): g.log(loss=1)\n"
        "print(f(4), f.__name__, f.__doc__, mine())"
    )

    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "8 f Doubles. []\n"


def test_many_workers_leave_nothing_behind_while_the_job_runs(tmp_path: Path) -> None:
    """Their calls and numbers are kept, their files are not; who was killed inside is not inside for ever."""
    told = run(
        tmp_path,
        """
for number in range(40):
    pid = os.fork()
    if not pid:
        gput.log(step=number, loss=1.0)
        with region("load"):
            pass
        if number == 7:
            region("killed").__enter__()
            time.sleep(0.5)
            os.kill(os.getpid(), 9)
        os._exit(0)
    os.waitpid(pid, 0)
time.sleep(1.0)
(place,) = [os.environ["GPU_TRACKER_MAILBOX"]]
truth["files"] = len(os.listdir(place))
""",
    )

    assert told.truth["files"] == 0
    assert sum(load["calls"] for load in told["load"]) == 40
    assert len({load["pid"] for load in told["load"]}) == 40
    (killed,) = told["killed"]
    assert (killed["calls"], killed["open_calls"]) == (0, 1)
    assert len(gput.load(tmp_path / "run.jsonl").metric_rows) == 40


def test_what_is_logged_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    """What the sampler has read is thrown away; nothing is lost on the way."""
    told = run(
        tmp_path,
        """
place = os.environ["GPU_TRACKER_MAILBOX"]
for step in range(250_000):
    gput.log(step=step, loss=0.123456789)
time.sleep(1.5)
truth["files"] = len(os.listdir(place))
truth["bytes"] = sum(os.path.getsize(f"{place}/{name}") for name in os.listdir(place))
""",
    )
    metrics = gput.load(tmp_path / "run.jsonl").metric_rows

    assert told.truth["bytes"] <= 8_000_000
    assert told.truth["files"] <= 2
    assert [row.step for row in metrics] == list(range(250_000))


def test_the_call_that_peaked_says_so_in_its_own_row(tmp_path: Path) -> None:
    """Also if only the sampler saw its memory."""
    told = run(
        tmp_path,
        """
for number in range(1, 301):
    with region("call"):
        memory = touch(200 << 20) if number == 172 else None
        time.sleep(0.8 if number == 172 else 0.002)
        if memory is not None: memory.close()
""",
    )

    (region,) = told["call"]
    largest = max(told.calls, key=lambda call: call["peak_ram_bytes"] or 0)
    assert largest["number"] == 172
    assert largest["peak_ram_bytes"] == region["peak_ram_bytes"] > 200 << 20


def test_names_that_are_no_text_stay_different(tmp_path: Path) -> None:
    """As names of files may be."""
    told = run(
        tmp_path,
        """
for name in (b"part_\\xff", b"part_\\xfe", b"part_?"):
    with region(os.fsdecode(name)): pass
""",
    )

    assert sorted(told) == ["part_?", "part_\\udcfe", "part_\\udcff"]
    assert {region["calls"] for (region,) in told.values()} == {1}


def test_metrics_for_which_there_is_no_room_are_counted(tmp_path: Path) -> None:
    """What is there is whole, and a note says how many are not."""
    run(
        tmp_path,
        """
import resource
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))
for number in range(100): gput.log(loss=number)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
""",
    )
    recording = gput.load(tmp_path / "run.jsonl")

    (loss,) = recording.metrics
    assert loss.maximum == loss.logged - 1 < 99
    assert (
        f"Metrics of {100 - loss.logged} calls of log could not be recorded: there was no room for them."
        in recording.notes
    )


def test_secrets_in_the_names_of_regions_and_metrics_are_masked(tmp_path: Path) -> None:
    """They may quote an address or a command. Names that are equal then are one region, with all calls."""
    told = run(
        tmp_path,
        """
for secret in ("abcdef1", "abcdef2"):
    with region(f"GET https://me:{secret}@host/x"), region("parse"): pass
    gput.log(**{f"curl --token {secret}": 1.0, "loss": 0.5})
""",
    )

    (get,) = told["GET https://me:***@host/x"]
    assert get["calls"] == 2
    assert told["GET https://me:***@host/x/parse"][0]["calls"] == 2
    written = (tmp_path / "run.jsonl").read_text()
    assert "abcdef" not in written
    assert "curl --token ***" in written


@pytest.mark.skipif(
    subprocess.run(["unshare", "-T", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs time namespaces",
)
@pytest.mark.parametrize(
    "shift", ["50000", f"-{min(500, int(time.monotonic()) // 2)}"], ids=["ahead", "back"]
)
def test_an_open_call_in_another_time_namespace_is_within_the_run(
    tmp_path: Path, command_line: str, shift: str
) -> None:
    """The clock of the job is another one than ours."""
    code = "import gpu_tracker as g, os, time; g.region('c').__enter__(); time.sleep(1.2); os._exit(0)"
    subprocess.run(
        [command_line, "run", "--record", "x.jsonl", "--", "unshare", "-T", "--monotonic", shift, sys.executable, "-c", code],
        cwd=tmp_path, capture_output=True, timeout=200, check=True,
    )  # fmt: skip
    recording = gput.load(tmp_path / "x.jsonl")
    (region,), (call,) = recording.regions, recording.calls
    whole = recording.report.summary.seconds

    assert region.open_calls == 1
    assert 0 <= region.wall_seconds <= whole
    assert 0 <= call.start_seconds <= whole

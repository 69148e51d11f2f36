"""Regions that are left in another order, place or number than they were entered: never an error, and true figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from api.test_regions import Told, run

INTERRUPTING = Path(__file__).parents[1] / "end_to_end/workloads/interrupting.py"
ENDS = "nothing = (None, None, None)"


def check(told: Told, **cpu_seconds: float) -> None:
    """Each region has been entered and left once, with this CPU time."""
    assert {path.replace("/", "_") for path in told} == set(cpu_seconds)
    for path, (region,) in told.items():
        assert (region["calls"], region["open_calls"]) == (1, 0)
        assert region["cpu_seconds"] == pytest.approx(cpu_seconds[path.replace("/", "_")], abs=0.02)


def test_generators_side_by_side(tmp_path: Path) -> None:
    """Under zip() the first ends while the second is open; neither is inside the other."""
    told = run(
        tmp_path,
        """
truth["pairs"] = list(zip(rows("short", 3), rows("long", 5)))
""",
        """
def rows(name, n):
    with region(name):
        for row in range(n):
            with region("step"): pass
            yield row
""",
    )

    assert told.truth["pairs"] == [[0, 0], [1, 1], [2, 2]]
    assert sorted(told) == ["long", "long/step", "short", "short/step"]
    assert {path: region["calls"] for path, (region,) in told.items()} == {
        "short": 1, "short/step": 3, "long": 1, "long/step": 3
    }  # fmt: skip


def test_closed_in_the_order_of_opening(tmp_path: Path) -> None:
    """What is done after a region was left is not its time."""
    told = run(
        tmp_path,
        """
first, second, third = region("first"), region("second"), region("third")
for one in (first, second, third):
    one.__enter__(); burn(0.1)
time.sleep(0.5)
for one in (first, second, third):
    one.__exit__(*nothing); burn(0.1)
with region("after"): pass
""",
        ENDS,
    )

    check(told, first=0.3, first_second=0.3, first_second_third=0.3, after=0.0)
    (first,), (second,) = told["first"], told["first/second"]
    assert first["own_cpu_seconds"] == pytest.approx(0.1, abs=0.02)
    assert first["own_wall_seconds"] < first["wall_seconds"] / 2
    assert second["own_wall_seconds"] < second["wall_seconds"] / 2


def test_left_twice_or_without_having_been_entered(tmp_path: Path) -> None:
    """Nothing happens."""
    told = run(
        tmp_path,
        """
never = region("never")
truth["swallows"] = bool(never.__exit__(*nothing))
with region("around"):
    twice = region("twice")
    with twice: burn(0.1)
    twice.__exit__(*nothing)
    burn(0.1)
""",
        ENDS,
    )

    assert told.truth["swallows"] is False
    check(told, around=0.2, around_twice=0.1)


def test_left_in_another_thread(tmp_path: Path) -> None:
    """With the CPU time of the thread that was inside; its next region is not inside."""
    told = run(
        tmp_path,
        """
moved = region("moved")
moved.__enter__()
burn(0.2)
thread = threading.Thread(target=moved.__exit__, args=nothing)
thread.start(); thread.join()
burn(0.2)
with region("next"): burn(0.1)
""",
        ENDS,
    )

    check(told, moved=0.2, next=0.1)


def test_a_task_outlives_the_region_it_was_created_in(tmp_path: Path) -> None:
    """Its own region is inside by name; the time after the end of the other is not the other's."""
    told = run(
        tmp_path,
        "asyncio.run(main())",
        """
async def work():
    with region("task"):
        await asyncio.sleep(0.05); burn(0.2)
    with region("afterwards"): burn(0.1)
async def main():
    with region("created"):
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
    await task
""",
    )

    check(told, created=0.0, created_task=0.2, afterwards=0.1)


def test_a_fork_between_entry_and_exit(tmp_path: Path) -> None:
    """The child leaves what its parent entered: that is the parent's call alone."""
    told = run(
        tmp_path,
        """
with region("around"):
    pid = os.fork()
    if not pid:
        with region("inner"): burn(0.1)
if not pid: os._exit(0)
truth["status"] = os.waitpid(pid, 0)[1]
""",
    )

    assert told.truth["status"] == 0
    assert {region["pid"]: region["calls"] for region in told["around"]}.pop(told.pid) == 1
    assert sum(region["calls"] for region in told["around"]) == 1
    (inner,) = told["around/inner"]
    assert (inner["calls"], inner["pid"] == told.pid) == (1, False)


def test_a_generator_that_the_garbage_collector_ends(tmp_path: Path) -> None:
    """At any moment, even while another region is being entered."""
    told = run(
        tmp_path,
        """
import gc
gc.set_threshold(1)
for _ in range(2000):
    rows = count(); next(rows)
    cycle = [rows]; cycle.append(cycle); del rows, cycle
    with region("loop"): pass
gc.collect()
""",
        """
def count():
    with region("generator"):
        yield 1
""",
    )

    assert {path: (region["calls"], region["open_calls"]) for path, (region,) in told.items()} == {
        "generator": (2000, 0), "loop": (2000, 0)
    }  # fmt: skip


def test_regions_that_are_left_when_the_interpreter_ends(tmp_path: Path) -> None:
    """Without a word, and what is open is reported as open."""
    told = run(
        tmp_path,
        """
pid = os.fork()
if not pid:
    keep = count(); next(keep)
    sys.keep = keep
    threading.Thread(target=wait, daemon=True).start()
    is_inside.wait()
    sys.exit(0)
truth["status"] = os.waitpid(pid, 0)[1]
""",
        """
def count():
    with region("generator"):
        yield 1
is_inside = threading.Event()
def wait():
    with region("daemon"):
        is_inside.set()
        time.sleep(10)
""",
    )

    assert told.truth["status"] == 0
    assert told["daemon"][0]["open_calls"] == 1
    assert told["generator"][0]["calls"] + told["generator"][0]["open_calls"] == 1


LAST_OBJECTS = """
import os
import gpu_tracker as gput
from gpu_tracker import region
def tell(what, write=os.write):
    write(1, f"{what} ".encode())
@region("function")
def work(tell=tell): tell("function")
class Lazy:
    def __del__(self, gput=gput, tell=tell):
        with gput.region("lazy"): tell("lazy")
class Imported:
    def __del__(self, region=region, tell=tell):
        with region("imported"): tell("imported")
class Known:
    known = region("known")
    def __del__(self, tell=tell):
        with self.known: tell("known")
class Decorated:
    def __del__(self, work=work): work()
os.last = [Lazy(), Imported(), Known(), Decorated()]  # of a module that Python clears after gpu_tracker
"""


def test_objects_that_are_deleted_last_may_use_regions(command_line: str) -> None:
    """When the names of gpu_tracker's modules are gone, with and without a tracker."""
    program = [sys.executable, "-c", LAST_OBJECTS]
    for command in (program, [command_line, "run", "--no-record", "--", *program]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert set(done.stdout.split()) == {"lazy", "imported", "known", "function"}
        assert "Exception" not in done.stderr


def test_a_recursive_region_whose_outermost_call_ends_first(tmp_path: Path) -> None:
    """The calls inside go on counting."""
    told = run(
        tmp_path,
        """
outermost, inside = region("again"), region("again")
outermost.__enter__(); burn(0.1)
inside.__enter__(); burn(0.1)
outermost.__exit__(*nothing); burn(0.1)
inside.__exit__(*nothing)
""",
        ENDS,
    )
    (again,) = told["again"]

    assert (again["calls"], again["open_calls"]) == (2, 0)
    assert again["cpu_seconds"] == pytest.approx(0.3, abs=0.02)
    assert again["own_cpu_seconds"] == pytest.approx(0.3, abs=0.02)
    assert again["wall_seconds"] == pytest.approx(again["own_wall_seconds"], rel=0.01)


def test_at_the_limit_of_recursion_the_error_is_the_programs(tmp_path: Path) -> None:
    """Not one deeper inside, in our code."""
    told = run(
        tmp_path,
        """
def dive(depth):
    global deepest
    with region("deep"):
        deepest = depth
        dive(depth + 1)
try: dive(0)
except RecursionError as error: truth["where"] = error.__traceback__.tb_next.tb_frame.f_code.co_name
truth["deepest"] = deepest
with region("after"): pass
""",
    )

    assert told.truth["where"] == "dive"
    assert told["deep"][0]["calls"] > told.truth["deepest"] * 0.9
    assert told["after"][0]["calls"] == 1


TIME_LIMIT = """
import signal
class Limit(Exception): pass
def limit(kind):
    def handler(*_):
        truth["raised"] += 1
        raise kind("over")
    return handler
@region("called")
def call(): sum(range(200))
def stay():
    with region("with"): sum(range(200))
def spread():
    with region("wide", parallel=True): sum(range(200))
def measure():
    with region("exact", exact_peak=True): sum(range(200))
def log():
    gput.log(loss=1.0)
class Number:
    def __float__(self): return float(sum(range(20)))
def log_others():
    gput.log(step=1, whole=1, own=Number(), true=True)
def call_after():
    with region("after"): pass
def repeat(work, before):
    while truth["raised"] == before: work()
def loop(work, kind):
    signal.signal(signal.SIGALRM, limit(kind))
    for n in range(60):
        before = truth["raised"]
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.00001 * n)
            repeat(work, before)  # called: in the `try` itself, Python 3.13.0 lets errors pass that are raised where a `while` goes back
            truth["lost"].append(kind.__name__)
        except kind:
            truth["reached"] += 1
"""


def test_what_a_signal_handler_raises_reaches_the_program(tmp_path: Path) -> None:
    """A time limit that runs out while a region is entered or left, or a metric is written: never lost."""
    told = run(
        tmp_path,
        """
truth.update(raised=0, reached=0, lost=[])
for kind in (TimeoutError, Limit, KeyError):
    for work in (call, log, log_others, stay, spread, measure): loop(work, kind)
with region("after"): pass
other = threading.Thread(target=call_after)
other.start()
other.join()
""",
        TIME_LIMIT,
    )

    assert told.truth["lost"] == []
    assert told.truth["reached"] == told.truth["raised"] == 1080
    assert told["called"][0]["calls"] > 0
    if sys.version_info >= (3, 11):  # before, a decorated function may stay open as a `with` block may
        assert told["called"][0]["open_calls"] == 0
    afterwards = [region["calls"] for path, (region,) in told.items() if path.split("/")[-1] == "after"]
    assert sum(afterwards) == 2  # one of them may be inside a region that has stayed open
    # Python itself begins no `__exit__` if a handler raises in that moment.
    assert sum(region["open_calls"] for (region,) in told.values()) <= told.truth["raised"] / 20


@pytest.mark.parametrize("kind", ["TimeoutError", "RuntimeError", "KeyboardInterrupt", "LimitError"])
def test_an_interruption_at_any_line_reaches_the_program(
    tmp_path: Path, command_line: str, kind: str
) -> None:
    """Also where the tracker is searched for and the files are opened, which take a moment of a run."""
    command: list[str | Path] = [
        command_line,
        "run",
        "--disable-logs",
        "--record",
        tmp_path,
        "--",
        sys.executable,
        INTERRUPTING,
        kind,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    told = json.loads(done.stdout)

    assert told["lost"] == []
    assert min(told["reached"]) > 100


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("guard", ["sys.addaudithook(audit)", "os.open = os.write = os.stat = refuse"])
def test_a_program_that_guards_its_files_goes_on(tmp_path: Path, guard: str, is_known: bool) -> None:
    """An audit hook or a fake that refuses to open ours is not the program's failure."""
    told = run(
        tmp_path,
        f"""
originals = os.open, os.write, os.stat
if {is_known}:
    with region("before"): gput.log(loss=1.0)
is_guarded = True
{guard}
with region("guarded"): gput.log(loss=1.0)
is_guarded = False
os.open, os.write, os.stat = originals
truth["went on"] = True
""",
        """
is_guarded = False
def refuse(*_, **options): raise PermissionError
def audit(event, _):
    if is_guarded and event == "open": refuse()
""",
    )

    assert told.truth["went on"]
    assert ("guarded" in told) == (is_known or guard.startswith("os"))


def test_our_own_mishaps_stay_ours(tmp_path: Path) -> None:
    """At the limit of descriptors and of recursion: the program goes on."""
    told = run(
        tmp_path,
        """
import resource
with region("before"): gput.log(loss=1.0)
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
with region("no descriptor", exact_peak=True): gput.log(loss=1.0)
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
def dive():
    with region("deep"): gput.log(loss=1.0); dive()
try: dive()
except RecursionError: truth["ended"] = True
with region("after"): pass
""",
    )

    assert told.truth["ended"]
    assert {path for path in told if "/" not in path} >= {"deep", "after"}
    assert told["deep"][0]["open_calls"] == 0


def test_left_after_its_tracker_has_stopped(tmp_path: Path) -> None:
    """It is not around what later trackers see."""
    script = tmp_path / "program.py"
    script.write_text("""
import gpu_tracker as gput
tracker = gput.Tracker(disable_logs=True)
tracker.start()
@gput.region("decorated")
def stop():
    tracker.stop()
with gput.region("around"):
    stop()
with gput.region("between"): pass
with gput.Tracker(disable_logs=True) as later:
    with gput.region("fresh"): pass
print(*(region.path for region in later._recording.regions))
""")

    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.stderr) == ("('fresh',)\n", "")


INTERLEAVED = """
import threading
import gpu_tracker as gput
first, second, third = (gput.Tracker(disable_logs=True) for _ in range(3))
def work(name):
    with gput.region(name): pass
    gput.log(**{name: 1.0})
first.start(); work("one")
second.start(); work("two")
third.start(); work("three")
def stop(): second.stop(); first.stop()
THREAD
for _ in range(5): work("alone")
third.stop()
for tracker in (first, second, third):
    recording = tracker._recording
    print({region.path[0]: region.calls for region in recording.regions}, {row.name: row.logged for row in recording.metric_totals})
"""


@pytest.mark.parametrize("stopping", ["stop()", "t = threading.Thread(target=stop); t.start(); t.join()"])
def test_trackers_that_stop_in_the_order_of_their_start(tmp_path: Path, stopping: str) -> None:
    """The one that still runs goes on taking regions and metrics."""
    script = tmp_path / "program.py"
    script.write_text(INTERLEAVED.replace("THREAD", stopping))

    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)

    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "{'one': 1} {'one': 1}",
        "{'two': 1} {'two': 1}",
        "{'three': 1, 'alone': 5} {'three': 1, 'alone': 5}",
    ]


def test_a_task_that_waits_when_its_loop_stops(tmp_path: Path) -> None:
    """What the thread does afterwards is not the task's; a loop inside a region goes on being inside."""
    told = run(
        tmp_path,
        """
loop = asyncio.new_event_loop()
with region("around"):
    task = loop.run_until_complete(main())
    burn(0.1)
burn(0.3)
with region("then"): burn(0.1)
task.cancel()
loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
""",
        """
async def wait(event):
    with region("wait"): await event.wait()
async def main():
    task = asyncio.create_task(wait(asyncio.Event()))
    await asyncio.sleep(0.01)
    return task
""",
    )

    (around,), (wait,), (then,) = told["around"], told["around/wait"], told["then"]
    assert around["own_cpu_seconds"] == pytest.approx(0.1, abs=0.03)
    assert wait["cpu_seconds"] < 0.03
    assert then["cpu_seconds"] == pytest.approx(0.1, abs=0.03)


def test_a_decorated_function_stays_what_it_was(tmp_path: Path) -> None:
    """A generator that `types.coroutine` has made awaitable can be awaited, as one call; a generator function is one."""
    told = run(
        tmp_path,
        """
asyncio.run(main())
truth["generator"] = inspect.isgeneratorfunction(count)
truth["async"] = inspect.isasyncgenfunction(acount)
truth["items"] = list(count())
""",
        """
import inspect, types
@region("awaited")
@types.coroutine
def pause():
    yield
    return 7
@region("counted")
def count():
    yield 1
    yield 2
@region("acounted")
async def acount(): yield 1
async def main(): truth["made"] = await pause()
""",
    )

    assert told.truth["made"] == 7
    assert told.truth["generator"] is told.truth["async"] is True
    assert told.truth["items"] == [1, 2]
    assert told["awaited"][0]["calls"] == 1
    assert told["counted"][0]["calls"] == 3

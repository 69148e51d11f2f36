"""Regions in code that is suspended: generators, coroutines of any event loop, tasks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from api.test_regions import Told, run

TELLS = hasattr(sys, "monitoring")
"""Whether Python tells when code is suspended."""


def check(region: dict[str, Any], cpu_seconds: float) -> None:
    """Exact where Python tells when code is suspended, else labelled."""
    if TELLS:
        assert region["own_cpu_seconds"] == pytest.approx(cpu_seconds, abs=0.03)
    assert region["cpu_basis"] == ("exact" if TELLS else "shared")


GENERATORS = """
def rows():
    with region("rows"):
        for _ in range(3):
            burn(0.05)
            yield
def table():
    with region("table"):
        burn(0.05)
        with region("cell"):
            burn(0.05)
            yield
            burn(0.05)
def retry():
    with region("retry"):
        try:
            yield
        except ValueError:
            burn(0.1)
        yield
"""


def test_a_generator_has_nothing_of_what_its_consumer_does(tmp_path: Path) -> None:
    """Also where two take turns; an error that is thrown into one lets it go on."""
    told = run(
        tmp_path,
        """
for _ in zip(rows(), rows()): burn(0.1)
trying = retry()
next(trying); burn(0.2)
trying.throw(ValueError); burn(0.2)
trying.close()
""",
        GENERATORS,
    )

    check(told["rows"][0], 0.3)
    check(told["retry"][0], 0.1)
    assert (told["rows"][0]["calls"], told["retry"][0]["calls"]) == (2, 1)


def test_a_generator_goes_on_after_a_region_of_its_consumer(tmp_path: Path) -> None:
    """What it does between them is its own, whether or not anybody tells when it runs."""
    told = run(
        tmp_path,
        """
for _ in rows():
    with region("use"): burn(0.1)
""",
        GENERATORS,
    )

    check(told["rows"][0], 0.15)
    assert told["rows"][0]["own_cpu_seconds"] == pytest.approx(0.15, abs=0.03)
    assert told["use"][0]["own_cpu_seconds"] == pytest.approx(0.3, abs=0.03)
    assert told["use"][0]["cpu_basis"] == "exact"


def test_what_a_consumer_has_of_its_own_is_in_doubt_if_nobody_tells(tmp_path: Path) -> None:
    """In the call that resumes a generator, or one inside that; so is that of a call around one that a generator outlives."""
    told = run(
        tmp_path,
        """
with region("beside"): burn(0.02)
earlier = rows(); next(earlier)
with region("use"):
    burn(0.02)
    with region("part"): next(earlier)
earlier.close()
with region("run"):
    with region("epoch"): inside = rows(); next(inside)
    burn(0.02)
    inside.close()
""",
        """
def rows():
    with region("rows"):
        while True:
            burn(0.1)
            yield
""",
    )

    in_doubt = {path for path in told if told[path][0]["own_cpu_basis"] == "shared"}
    assert in_doubt == (set() if TELLS else {"use", "use/part", "run"})
    for path, own_seconds in {"beside": 0.02, "use": 0.02, "use/part": 0.0, "run": 0.02}.items():
        if path not in in_doubt:
            assert told[path][0]["own_cpu_seconds"] == pytest.approx(own_seconds, abs=0.02)
    assert told["use"][0]["cpu_basis"] == "exact"


def test_what_a_generator_lost_to_another_is_in_doubt(tmp_path: Path) -> None:
    """However little it has got itself."""
    told = run(
        tmp_path,
        "for _ in zip(steps('one'), steps('other')): pass",
        """
def steps(name):
    with region(name):
        yield
        burn(0.05)
        yield
""",
    )

    for name in ("one", "other"):
        check(told[name][0], 0.05)


def test_a_generator_goes_on_elsewhere_than_it_began(tmp_path: Path) -> None:
    """When it ends there, that region has its time again."""
    told = run(
        tmp_path,
        """
begun = table()
next(begun); burn(0.2)
with region("elsewhere"):
    list(begun)
    burn(0.2)
""",
        GENERATORS,
    )

    check(told["table"][0], 0.05)
    check(told["table/cell"][0], 0.1)
    if TELLS:
        assert told["elsewhere"][0]["own_cpu_seconds"] == pytest.approx(0.2, abs=0.03)


def test_a_coroutine_of_another_event_loop_has_its_own_time(tmp_path: Path) -> None:
    """One that nobody knows."""
    told = run(
        tmp_path,
        """
waiting = [work("first"), work("second")]
for one in waiting: one.send(None); burn(0.1)
for one in waiting:
    try: one.send(None)
    except StopIteration: burn(0.1)
""",
        """
class Pause:
    def __await__(self): yield
async def work(name):
    with region(name):
        burn(0.05)
        await Pause()
        burn(0.05)
""",
    )

    check(told["first"][0], 0.1)
    if TELLS:
        check(told["second"][0], 0.1)


def test_where_other_tools_listen_it_is_labelled(tmp_path: Path) -> None:
    """There is room for few; ours is given back with the tracker."""
    definitions = f"""{GENERATORS}
def list_tools(): return [sys.monitoring.get_tool(n) for n in range(6)] if hasattr(sys, "monitoring") else []
"""
    told = run(
        tmp_path,
        """
taken = [n for n in (3, 4) if hasattr(sys, "monitoring")]
for n in taken: sys.monitoring.use_tool_id(n, "other")
for _ in rows(): burn(0.1)
for n in taken: sys.monitoring.free_tool_id(n)
with gput.Tracker(disable_logs=True):
    for _ in table(): truth["during"] = list_tools()
truth["after"] = list_tools()
""",
        definitions,
    )

    assert told["rows"][0]["cpu_basis"] == "shared"
    assert ("gpu-tracker" in told.truth["during"]) == TELLS
    assert "gpu-tracker" not in told.truth["after"]


def test_a_task_factory(tmp_path: Path) -> None:
    """An eager one runs the begin of a task inside its creator, which then goes on with its own time."""
    told = run(
        tmp_path,
        "asyncio.run(main())",
        """
async def wait(event):
    with region("wait"):
        burn(0.05)
        await event.wait()
async def main():
    plain = lambda loop, coroutine, **options: asyncio.Task(coroutine, loop=loop, **options)
    asyncio.get_running_loop().set_task_factory(getattr(asyncio, "eager_task_factory", plain))
    event = asyncio.Event()
    with region("create"):
        task = asyncio.create_task(wait(event))
        burn(0.1)
        await asyncio.sleep(0.01)
    burn(0.1)
    event.set()
    await task
""",
    )

    check(told["create"][0], 0.1)
    check(told["create/wait"][0], 0.05)


def test_recursion_through_tasks_counts_once(tmp_path: Path) -> None:
    """A region whose tasks are in the same region; what another task does meanwhile is not its."""
    told = run(
        tmp_path,
        """
before = time.monotonic()
asyncio.run(main())
truth["seconds"] = time.monotonic() - before
""",
        """
@region("visit")
async def visit(depth):
    burn(0.02)
    if depth: await asyncio.gather(visit(depth - 1), visit(depth - 1))
    await asyncio.sleep(0.01)
async def other():
    for _ in range(5):
        burn(0.02)
        await asyncio.sleep(0.001)
async def main(): await asyncio.gather(visit(3), other())
""",
    )
    (visit,) = told["visit"]

    assert visit["calls"] == 15
    assert visit["wall_seconds"] <= told.truth["seconds"]
    assert visit["cpu_seconds"] == pytest.approx(15 * 0.02, abs=0.04)
    assert visit["own_cpu_seconds"] == pytest.approx(15 * 0.02, abs=0.04)
    assert visit["cpu_basis"] == "exact"


TIMED = """
class timed:
    def __init__(self, *names): self.names = names
    def __enter__(self): self.before = time.thread_time()
    def __exit__(self, *_):
        for name in self.names: truth[name] = truth.get(name, 0) + time.thread_time() - self.before
"""

ASKED = f"""
{TIMED}
def decode():
    with region("decode"):
        for n in range(8):
            with timed("decode"): burn(0.01)
            yield n
async def receive():
    with region("receive"):
        for n in range(8):
            with timed("receive"): burn(0.01)
            await asyncio.sleep(0)
            yield n
def parse():
    with region("parse"):
        yield
        for n in range(8):
            with timed("parse"):
                burn(0.005)
                with region("line"), timed("line"): burn(0.01)
                burn(0.005)
            yield n
"""


def check_asked(told: Told, *paths: str, slack_seconds: float = 0.01) -> None:
    """Regions whose own code is never suspended have what their thread used in them, whoever it was for; so have others where it is told."""
    for path in paths:
        (found,) = told[path]
        assert found["cpu_seconds"] == pytest.approx(
            told.truth[path.rpartition("/")[2]], abs=slack_seconds
        ), path
        assert found["cpu_basis"] == "exact", path


def check_generators(told: Told, *paths: str) -> None:
    """Exact where Python tells when they are suspended."""
    if TELLS:
        check_asked(told, *paths)
    else:
        assert {region["cpu_basis"] for path in paths for region in told[path]} == {"shared"}


def test_what_a_generator_does_is_inside_of_who_asks_it(tmp_path: Path) -> None:
    """Each time in another call of the region; also if it had begun before all of them."""
    told = run(
        tmp_path,
        """
for number, name in enumerate(("load", "late")):
    steps = decode() if name == "load" else parse()
    if name == "late": next(steps)
    for _ in range(8):
        with region(name), timed(name):
            next(steps)
            burn(0.002)
        burn(0.002)
    steps.close()
""",
        ASKED,
    )

    check_asked(told, "load", "late")
    check_generators(told, "load/decode", "parse")
    assert told["load"][0]["own_cpu_seconds"] == pytest.approx(0.016 if TELLS else 0.096, abs=0.02)
    if TELLS:
        check_asked(told, "parse/line")


def test_waiting_for_data_has_what_the_loader_does(tmp_path: Path) -> None:
    """Whose regions are inside of the first wait, and go on in every other one."""
    told = run(
        tmp_path,
        """
for _ in gput.watch(decode()):
    with timed("step"): burn(0.004)
truth["data_wait"] = truth["decode"]
""",
        ASKED,
    )

    check_asked(told, "epoch/data_wait", "epoch/step")
    check_generators(told, "epoch/data_wait/decode")


def test_a_decorated_generator_has_what_it_asks_others_for(tmp_path: Path) -> None:
    """With `for`, with `yield from`, and in async ones."""
    told = run(
        tmp_path,
        """
for _ in loop(): pass
for _ in delegate(): pass
asyncio.run(listen())
truth.update(loop=truth["decode"] / 2 + 0.016, delegate=truth["decode"] / 2, filter=truth["receive"] + 0.016)
truth["decode"] /= 2
""",
        f"""{ASKED}
@region("loop")
def loop():
    for n in decode():
        burn(0.002)
        yield n
@region("delegate")
def delegate(): yield from decode()
@region("filter")
async def choose():
    async for n in receive():
        burn(0.002)
        yield n
async def listen():
    async for _ in choose(): pass
""",
    )

    check_asked(told, "loop", "delegate", "filter")
    check_generators(told, "loop/decode", "delegate/decode", "filter/receive")


def test_code_that_had_begun_before_is_inside_of_who_lets_it_go_on(tmp_path: Path) -> None:
    """A coroutine that is sent to, a task of a loop that runs now, and a generator that another one asks in a thread."""
    told = run(
        tmp_path,
        """
sent = work()
sent.send(None)
for _ in range(4):
    with region("send"), timed("send"): sent.send(None)
loop = asyncio.new_event_loop()
task = loop.create_task(serve())
with region("run"), timed("run"): loop.run_until_complete(task)
steps = decode()
next(steps)
def ask():
    for _ in range(4):
        with region("ask"), timed("ask"): next(steps)
thread = threading.Thread(target=ask)
thread.start(); thread.join()
""",
        f"""{ASKED}
class Pause:
    def __await__(self): yield
@region("work")
async def work():
    for _ in range(6):
        with timed("work"): burn(0.01)
        await Pause()
async def serve():
    for _ in range(5):
        with region("serve"), timed("serve"): burn(0.01)
        burn(0.01)
        await asyncio.sleep(0)
""",
    )

    check_asked(told, "send", "work", "run", "serve", "ask")
    check_generators(told, "decode")


def test_who_closes_a_generator_has_what_that_takes(tmp_path: Path) -> None:
    """Also what the generator does after its region; and a region that asks itself counts once."""
    told = run(
        tmp_path,
        """
steps = clean()
next(steps)
with region("close"), timed("close"):
    steps.close()
    burn(0.02)
burn(0.1)
steps = decode()
next(steps)
for _ in range(4):
    with region("decode"): next(steps)
steps.close()
""",
        f"""{ASKED}
def clean():
    try:
        with region("clean"):
            try: yield
            finally:
                with timed("clean"): burn(0.05)
    finally: burn(0.05)
""",
    )

    check_asked(told, "close")
    check_generators(told, "clean", "decode")


def test_what_suspensions_take_is_labelled_and_told(tmp_path: Path) -> None:
    """Steps that take less than following them, also of who asks for them; where nobody follows them, they take nothing."""
    told = run(
        tmp_path,
        """
for _ in count(20_000): pass
with region("around"): asyncio.run(wait(5_000))
with region("few"):
    asyncio.run(wait(5))
    burn(0.1)
steps = count(5_000)
next(steps)
with region("rest"):
    for _ in steps: pass
""",
        """
def count(n):
    with region("count"):
        yield from range(n)
@region("wait")
async def wait(n):
    for _ in range(n): await asyncio.sleep(0)
""",
    )
    bases = {path: region["cpu_basis"] for path, (region,) in told.items()}
    switches = {path: region["switches"] for path, (region,) in told.items()}

    assert bases["count"] == bases["around"] == bases["around/wait"] == "shared"
    assert bases["few"] == bases["few/wait"] == "exact"
    assert switches["around/wait"] >= 5_000
    assert switches["few/wait"] < 50
    assert switches["count"] == (25_000 if TELLS else 0)
    assert bases["rest"] == ("shared" if TELLS else "exact")


def test_who_lets_a_generator_go_on_has_what_it_used_when_it_is_killed(tmp_path: Path) -> None:
    """In the last step, which nobody has counted, and in which the process ends."""
    told = run(
        tmp_path,
        """
done, tell = os.pipe()
child = os.fork()
if child == 0:
    steps = endless(tell)
    next(steps)
    with region("ask"): next(steps)
os.read(done, 1)
time.sleep(1.5)
os.kill(child, 9)
os.waitpid(child, 0)
""",
        """
def endless(tell):
    with region("endless"):
        yield
        burn(1.0)
        os.write(tell, b"x")
        time.sleep(60)
""",
    )
    (ask,) = told["ask"]

    assert ask["cpu_seconds"] == pytest.approx(1.0, abs=0.1)
    assert ask["cpu_basis"] == "sampled"


def test_code_goes_on_by_an_exception_or_in_another_thread(tmp_path: Path) -> None:
    """What it delegates to handles the exception; it enters a region there. What helpers do while all is suspended may be nobody's."""
    told = run(
        tmp_path,
        """
thrown = passed_on("thrown")
next(thrown); thrown.throw(KeyError); thrown.close()
moved = steps("moved")
for _ in range(2):
    thread = threading.Thread(target=next, args=(moved,)); thread.start(); thread.join()
moved.close()
held = steps("held")
next(held)
burn_in_pool(0.3)
next(held)
held.close()
""",
        """
import concurrent.futures
pool = concurrent.futures.ThreadPoolExecutor(1)
pool.submit(int).result()
def burn_in_pool(seconds):
    pool.submit(burn, seconds).result()
def catch():
    try:
        yield
    except KeyError:
        burn(0.05)
def passed_on(name):
    with region(name):
        burn(0.05)
        yield from catch()
        burn(0.05)
        yield
def steps(name):
    with region(name):
        for _ in range(3):
            burn(0.05)
            with region("inside"): burn(0.05)
            yield
""",
    )
    (held,) = told["held"]

    check(told["thrown"][0], 0.15)
    check(told["moved"][0], 0.1)
    if TELLS:
        assert told["moved"][0]["cpu_seconds"] == pytest.approx(0.2, abs=0.03)
        assert told["moved/inside"][0]["calls"] == 2
    assert held["cpu_basis"] == "shared"


OLDER_CONTEXT = f"""
{TIMED}
import contextvars
older = contextvars.copy_context()
def work():
    with region("inner"), timed("inner"): burn(0.05)
    burn(0.05)
def stop():
    work()
    loop.stop()
@region("parallel", parallel=True)
def run_beside():
    older.run(work)
"""


def test_code_in_another_context_is_labelled_in_who_runs_it(tmp_path: Path) -> None:
    """One that was copied before, also inside others; and callbacks of a loop that were scheduled before. What follows them is not lost."""
    told = run(
        tmp_path,
        """
with region("run"), timed("run"):
    burn(0.05)
    older.run(work)
    burn(0.2)
with region("nested"):
    nested = contextvars.copy_context()
    with region("part"), timed("part"):
        contextvars.copy_context().run(older.run, lambda: nested.run(work))
loop = asyncio.new_event_loop()
loop.call_soon(stop)
with region("loop"), timed("loop"): loop.run_forever()
loop.close()
run_beside()
with region("after"), timed("after"): burn(0.05)
""",
        OLDER_CONTEXT,
    )

    for name in ("run", "nested/part", "loop", "parallel"):
        assert told[name][0]["cpu_basis"] == "shared"
    assert told["run"][0]["cpu_seconds"] >= 0.28
    inner = [*told["inner"], *told["nested/inner"]]
    assert sum(region["cpu_seconds"] for region in inner) == pytest.approx(told.truth["inner"], abs=0.02)
    (after,) = told["after"]
    assert (after["cpu_basis"], after["cpu_seconds"]) == (
        "exact",
        pytest.approx(told.truth["after"], abs=0.02),
    )


def test_calls_that_outlive_their_callbacks_stand_beside_each_other(tmp_path: Path) -> None:
    """Each callback has a context of its own, and does not know what earlier ones have left open."""
    told = run(
        tmp_path,
        """
loop = asyncio.new_event_loop()
calls = []
def begin():
    calls.append(region("request"))
    calls[-1].__enter__()
def end():
    calls.pop(0).__exit__(None, None, None)
for step in (*[begin] * 8, *[end] * 8, loop.stop): loop.call_soon(step, context=contextvars.Context())
with region("loop"): loop.run_forever()
loop.close()
""",
        "import contextvars",
    )

    (request,) = told["request"]
    assert (request["calls"], request["open_calls"]) == (8, 0)
    assert "request/request" not in told
    assert "loop/request" not in told


@pytest.mark.parametrize("order", ["before", "after"])
def test_what_a_thread_does_in_the_context_of_a_region_beside_its_own_is_labelled(
    tmp_path: Path, order: str
) -> None:
    """It may be the region's: `asyncio.to_thread` copies the context, while a thread of a pool goes on with something else."""
    told = run(
        tmp_path,
        """
asyncio.run(main())
""",
        f"""
{TIMED}
def work():
    if {order == "before"}: burn(0.1)
    with region("inner"), timed("inner"): burn(0.05)
    if {order == "after"}: burn(0.1)
def short():
    with region("inner"), timed("inner"): burn(0.05)
async def main():
    with region("all"): await asyncio.to_thread(work)
    with region("exact"): await asyncio.to_thread(short)
""",
    )

    (doubted,), (exact,) = told["all"], told["exact"]
    assert doubted["cpu_basis"] == "shared"
    assert (exact["cpu_basis"], exact["cpu_seconds"]) == ("exact", pytest.approx(0.05, abs=0.02))
    inner = [*told["all/inner"], *told["exact/inner"]]
    assert [region["cpu_basis"] for region in inner] == ["exact", "exact"]
    assert sum(region["cpu_seconds"] for region in inner) == pytest.approx(told.truth["inner"], abs=0.02)


def test_loops_of_several_tasks_have_each_their_own_time(tmp_path: Path) -> None:
    """They take turns in the middle of their steps."""
    told = run(
        tmp_path,
        """
asyncio.run(main())
""",
        f"""
{TIMED}
import gpu_tracker as gput
async def train(name, seconds):
    for _ in gput.watch(range(4), name=name):
        with timed(name): burn(seconds)
        await asyncio.sleep(0)
        with timed(name): burn(seconds)
async def main(): await asyncio.gather(train("short", 0.01), train("long", 0.04))
""",
    )

    for name in ("short", "long"):
        (step,) = told[f"{name}/step"]
        assert step["cpu_basis"] == "exact"
        assert step["cpu_seconds"] == pytest.approx(told.truth[name], abs=0.02)


@pytest.mark.parametrize("send", ["context.run(running.send, None)", "running.send(None)"])
def test_loops_in_code_that_nobody_follows_are_labelled(tmp_path: Path, send: str) -> None:
    """Coroutines that a scheduler of the program's own sends on, in contexts of their own or in its own."""
    told = run(
        tmp_path,
        f"""
contexts = [(contextvars.copy_context(), train(name)) for name in ("short", "long")]
for _ in range(4):
    for context, running in contexts: {send}
for _, running in contexts: running.close()
""",
        """
import contextvars, types
import gpu_tracker as gput
@types.coroutine
def wait(): yield
async def train(name):
    for _ in gput.watch(range(4), name=name):
        burn(0.01)
        await wait()
        burn(0.03)
""",
    )

    steps = [region for path in told if path.endswith("/step") for region in told[path]]
    assert steps
    assert {step["cpu_basis"] for step in steps} == {"shared"}


def test_tasks_of_trio_stand_in_the_region_that_started_them(tmp_path: Path) -> None:
    """As those of asyncio: what they and their threads do is not taken for the rest of it."""
    told = run(
        tmp_path,
        """
trio.run(main)
""",
        f"""
{TIMED}
import trio
async def child(name, seconds):
    with region(name):
        for _ in range(3):
            with timed(name): burn(seconds)
            await trio.sleep(0)
async def main():
    with region("all"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child, "short", 0.02)
            nursery.start_soon(child, "long", 0.06)
    with region("after"), timed("after"): burn(0.05)
""",
    )

    for path, name in (("all/short", "short"), ("all/long", "long"), ("after", "after")):
        (task,) = told[path]
        check(task, told.truth[name])


def test_what_a_thread_does_in_the_context_of_a_suspended_region_is_labelled(tmp_path: Path) -> None:
    """It may have been begun by the generator, or by its consumer, who has the generator's context."""
    told = run(
        tmp_path,
        """
with region("all"), timed("all"):
    going = rows()
    next(going)
    context = contextvars.copy_context()
    other = threading.Thread(target=context.run, args=(work,))
    other.start(); other.join()
    going.close()
""",
        f"""
{TIMED}
import contextvars, threading
def rows():
    with region("rows"):
        yield
def work():
    burn(0.05)
    with region("inner"), timed("inner"): burn(0.05)
""",
    )

    inner = [region for path in told if path.endswith("inner") for region in told[path]]
    assert sum(region["cpu_seconds"] for region in inner) == pytest.approx(told.truth["inner"], abs=0.02)
    (rows,) = told["all/rows"]
    assert rows["cpu_basis"] == "shared"


OWN_CLASS = f"""
{TIMED}
import asyncio
class Stopwatch:
    def __init__(self, name): self.name = name
    def __enter__(self):
        self.region = region(self.name)
        self.region.__enter__()
    def __exit__(self, *raised): self.region.__exit__(*raised)
def rows():
    with Stopwatch("rows"):
        for _ in range(4):
            with timed("rows"): burn(0.02)
            yield
async def read():
    with Stopwatch("read"):
        for _ in range(4):
            with timed("read"): burn(0.02)
            yield
            await asyncio.sleep(0)
async def begin(name):
    begun = region(name)
    begun.__enter__()
    return begun
async def wait():
    begun = await begin("wait")
    for _ in range(4):
        with timed("wait"): burn(0.02)
        await asyncio.sleep(0)
    begun.__exit__(None, None, None)
async def consume():
    async for _ in read(): burn(0.05)
async def beside():
    for _ in range(4):
        burn(0.05)
        await asyncio.sleep(0)
async def both(): await asyncio.gather(wait(), beside())
"""


@pytest.mark.parametrize(
    ("use", "name"),
    [
        ("for _ in rows(): burn(0.05)", "rows"),
        ("asyncio.run(consume())", "read"),
        ("asyncio.run(both())", "wait"),
    ],
)
def test_a_region_may_be_begun_by_a_function_of_the_code_that_is_suspended(
    tmp_path: Path, use: str, name: str
) -> None:
    """As by context managers of the program's own, which have ended when that is suspended."""
    told = run(tmp_path, use, OWN_CLASS)

    (found,) = told[name]
    if name == "wait":  # asyncio tells by itself
        assert (found["cpu_basis"], found["cpu_seconds"]) == (
            "exact",
            pytest.approx(told.truth[name], abs=0.02),
        )
    else:
        check(found, told.truth[name])


def test_a_region_that_is_opened_in_one_cell_is_open_in_the_next(tmp_path: Path) -> None:
    """Cells are run by a coroutine of the kernel, which is suspended between them."""
    told = run(
        tmp_path,
        """
asyncio.run(run_cells("opened = region('cells')\\nopened.__enter__()", "burn(0.1)", "opened.__exit__(None, None, None)"))
""",
        """
import asyncio
async def run_cells(*cells):
    for cell in cells:
        exec(compile(cell, "<cell>", "exec"), globals())
        await asyncio.sleep(0)
""",
    )

    (cells,) = told["cells"]
    assert cells["cpu_seconds"] == pytest.approx(0.1, abs=0.02)

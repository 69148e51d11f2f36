"""Regions in code that is suspended: generators, coroutines of any event loop, tasks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from api.test_regions import run

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

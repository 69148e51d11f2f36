"""Greenlets take turns in one thread: each region has the CPU time of its own code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from api.test_regions import run

TURNS = """
import greenlet
def work(name, seconds):
    with region(name):
        for _ in range(4):
            burn(seconds)
            main.switch()
def take_turns():
    workers = [greenlet.greenlet(work) for _ in range(2)]
    for worker, told in zip(workers, (("light", 0.01), ("heavy", 0.05))): worker.switch(*told)
    for _ in range(4):
        for worker in workers: worker.switch()
main = greenlet.getcurrent()
"""


def test_each_greenlet_has_its_own_time(tmp_path: Path) -> None:
    """What others do while it is switched out is not its own, nor that of the main greenlet."""
    told = run(tmp_path, 'with region("around"): take_turns()', TURNS)

    cpu_seconds = {path: (region["cpu_seconds"], region["cpu_basis"]) for path, (region,) in told.items()}
    assert cpu_seconds == {
        "around": (pytest.approx(0, abs=0.01), "exact"),
        "light": (pytest.approx(0.04, abs=0.01), "exact"),
        "heavy": (pytest.approx(0.2, abs=0.02), "exact"),
    }


def test_a_greenlet_goes_on_in_the_middle_of_a_generator(tmp_path: Path) -> None:
    """Which is inside of who has asked it, wherever others are meanwhile."""
    told = run(
        tmp_path,
        """
steps = read()
next(steps)
for _ in range(4):
    with region("load"):
        next(steps)
        burn(0.01)
steps.close()
""",
        """
import greenlet
def read():
    with region("read"):
        yield
        while True:
            burn(0.01)
            other.switch()
            burn(0.01)
            yield
def work():
    with region("work"):
        while True:
            burn(0.02)
            main.switch()
main = greenlet.getcurrent()
other = greenlet.greenlet(work)
""",
    )

    cpu_seconds = {path: region["cpu_seconds"] for path, (region,) in told.items()}
    assert cpu_seconds["work"] == pytest.approx(0.08, abs=0.01)
    assert cpu_seconds["load"] == pytest.approx(0.12, abs=0.01)
    assert told["load"][0]["cpu_basis"] == told["work"][0]["cpu_basis"] == "exact"
    if hasattr(sys, "monitoring"):
        assert cpu_seconds["read"] == pytest.approx(0.08, abs=0.01)
        assert told["read"][0]["cpu_basis"] == "exact"


@pytest.mark.parametrize("turn", ["other.switch()", "pass"])
def test_a_greenlet_goes_on_beside_a_suspended_generator(tmp_path: Path, turn: str) -> None:
    """What its consumer does after a switch is not the generator's."""
    told = run(
        tmp_path,
        f"""
for _ in read():
    {turn}
    burn(0.05)
""",
        """
import greenlet
def read():
    with region("read"):
        for _ in range(4):
            burn(0.02)
            yield
def work():
    while True: main.switch()
main = greenlet.getcurrent()
other = greenlet.greenlet(work)
other.switch()
""",
    )

    (read,) = told["read"]
    if hasattr(sys, "monitoring"):
        assert read["cpu_seconds"] == pytest.approx(0.08, abs=0.02)
    assert read["cpu_basis"] == ("exact" if hasattr(sys, "monitoring") else "shared")


def test_whatever_else_listens_to_switches_goes_on_listening(tmp_path: Path) -> None:
    """Also with a tracker inside another, and alone after the last one has ended."""
    told = run(
        tmp_path,
        """
heard = []
listen = lambda event, ends: heard.append(event)
greenlet.settrace(listen)
with region("before"): take_turns()
with gput.Tracker(disable_logs=True):
    with region("inside"): take_turns()
with region("after"): take_turns()
truth["heard"] = len(heard)
outbox.close_mailbox(outbox.mailboxes)
for _ in range(4): greenlet.greenlet(lambda: None).switch()
truth["is_alone"] = greenlet.gettrace() is listen
""",
        f"from gpu_tracker.instrument import outbox\n{TURNS}",
    )

    assert told.truth["heard"] == 3 * 20
    assert told.truth["is_alone"]
    assert {"before", "after", "light", "heavy"} == set(told)
    assert told["heavy"][0]["cpu_seconds"] == pytest.approx(0.4, abs=0.04)

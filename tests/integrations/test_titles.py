"""What real processes use while they have one name after another."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread

import pytest
from typing_extensions import Self

import gpu_tracker as gput
from gpu_tracker.integrations.titles import IDLE, Titles, Use, find_user, sum_up

WORK = Path(__file__).parent / "title_work.py"


class Worker:
    """A process that goes from task to task when it is told to."""

    def __init__(self, *tasks: str) -> None:
        self.process = subprocess.Popen(
            [tasks[0].partition("=")[0], "-I", str(WORK), *tasks],
            executable=sys.executable,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self) -> tuple[float, int]:
        """Its CPU time at the end of a task, and its peak so far."""
        assert self.process.stdout is not None
        _, seconds, peak = self.process.stdout.readline().split()
        return float(seconds), int(peak)

    def go_on(self) -> None:
        """To the next task, or the end."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            self.process.kill()


def take_cpu(titles: Titles) -> dict[str, float]:
    """CPU time by name."""
    return {
        name.removesuffix(" cpu_seconds"): value
        for name, value in titles.take().items()
        if name.endswith("cpu_seconds")
    }


def test_each_name_has_its_own_cpu_time() -> None:
    """Also if one process has several, and is idle in between."""
    titles = Titles(os.getpid())
    titles.look()
    with Worker(f"{IDLE}=0,1", "ray::burn=0.4,1", f"{IDLE}=0,1", "ray::rest=0.1,1") as worker:
        used = []
        for _ in range(4):
            used.append(worker.read()[0])
            titles.look()
            worker.go_on()
    cpu = take_cpu(titles)

    assert set(cpu) == {IDLE, "ray::burn", "ray::rest"}
    # The clock of a process goes on at `exec`, and the kernel tells it in steps of a hundredth of a second. A task lasts until the process
    # is seen to be idle.
    assert cpu[IDLE] == pytest.approx(used[0], abs=0.03)
    assert cpu["ray::burn"] == pytest.approx(used[2] - used[0], abs=0.03)
    assert cpu["ray::rest"] == pytest.approx(used[3] - used[2], abs=0.03)


def test_a_peak_is_that_of_the_high_water_mark_if_it_rises() -> None:
    """Although the memory is gone when the process is looked at."""
    titles = Titles(os.getpid())
    titles.look()
    with Worker("ray::task=0,1") as worker:
        worker.read()
        titles.look()
    with Worker(f"{IDLE}=0,1", "ray::large=0,150") as worker:
        worker.read()
        titles.look()
        before = titles.take()
        worker.go_on()
        _, peak = worker.read()
        titles.look()

    assert before["ray::task ram_bytes"] < 60_000_000
    assert titles.take()["ray::large ram_bytes"] == pytest.approx(peak, rel=0.02)


def test_what_was_used_before_the_first_look_is_nobodys() -> None:
    """It was another time's."""
    with Worker("ray::burn=0.2,1") as worker:
        worker.read()
        titles = Titles(os.getpid())
        titles.look()

    assert take_cpu(titles)["ray::burn"] == 0


def test_processes_of_other_names_and_parents_do_not_count() -> None:
    """Only children that say what they do."""
    titles = Titles(os.getpid())
    strangers = Titles(1)
    with Worker("python=0.1,1") as worker, Worker("ray::task=0.1,1") as other:
        worker.read()
        other.read()
        titles.look()
        strangers.look()

    assert set(take_cpu(titles)) == {"ray::task"}
    assert strangers.take() == {}


def test_they_are_logged_until_the_end(tmp_path: Path) -> None:
    """As metrics, from which they are added up again."""
    is_over = Event()
    with gput.Tracker(record=tmp_path / "run.jsonl", sleep_time=0.1):
        thread = Thread(target=Titles(os.getpid()).watch, args=(is_over,))
        thread.start()
        time.sleep(0.3)  # it has looked for the first time
        with Worker("ray::burn=0.3,1") as worker:
            seconds, _ = worker.read()
            is_over.set()
            thread.join()
    metrics = {
        one.name: (one.last or 0.0, one.maximum or 0.0) for one in gput.load(tmp_path / "run.jsonl").metrics
    }
    (use,) = (one for one in sum_up([metrics]) if one.name == "burn")
    (start,) = (one for one in sum_up([metrics]) if one.name == "IDLE")

    assert use.cpu_seconds + start.cpu_seconds == pytest.approx(seconds, abs=0.03)
    assert use.peak_ram_bytes > 5_000_000


@pytest.mark.parametrize(
    ("before", "now", "user"),
    [
        (IDLE, "ray::task", "ray::task"),
        ("ray::task", IDLE, "ray::task"),
        ("ray::one", "ray::other", "ray::other"),
        ("ray::Actor.method", "ray::Actor", "ray::Actor.method"),
        ("ray::Actor", "ray::Actor.method", "ray::Actor.method"),
        ("ray::Actors", "ray::Actor", "ray::Actor"),
        (IDLE, IDLE, IDLE),
        ("python", IDLE, IDLE),
    ],
)
def test_who_has_used_what_was_used_between_two_looks(before: str, now: str, user: str) -> None:
    """Whoever worked."""
    assert find_user(before, now) == user


def test_nodes_are_added_up() -> None:
    """CPU time together, the largest peak; the user's own metrics are left alone."""
    one = {"ray::a cpu_seconds": (1.0, 1.0), "ray::a ram_bytes": (5.0, 9.0), "loss": (1.0, 2.0)}
    other = {
        "ray::a cpu_seconds": (2.0, 2.0),
        "ray::a ram_bytes": (7.0, 7.0),
        "ray::b c cpu_seconds": (4.0, 4.0),
    }

    assert sum_up([one, other]) == (Use("b c", 4.0, 0), Use("a", 3.0, 9))

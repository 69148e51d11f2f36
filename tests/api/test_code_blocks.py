"""`SubTracker` and `sub_track`: regions under the existing tool's names, and its sub-tracking file."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import gpu_tracker as gput
from api.test_region_suspension import check
from api.test_regions import run
from gpu_tracker.api import code_blocks
from gpu_tracker.core.errors import KindError, UsageError
from gpu_tracker.core.sub_tracking import BEGIN, END
from gpu_tracker.recording.sub_tracking import read_events


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default file is in the current directory, and begun once per process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(code_blocks, "_files", {})


def rows(path: str | Path) -> list[tuple[int, str, int]]:
    """Whose, which and where, without the time."""
    return [event[:3] for event in read_events(str(path))]


def both(name: str, pid: int | None = None) -> list[tuple[int, str, int]]:
    """The rows of a call."""
    return [(pid or os.getpid(), name, BEGIN), (pid or os.getpid(), name, END)]


def test_a_code_block_is_a_region(tmp_path: Path) -> None:
    """With its calls and its time, also of a decorated function, and nested as regions are."""
    told = run(
        tmp_path,
        """
for number in range(3):
    with gput.SubTracker("block"), region("inside"): burn(0.03)
    truth[str(number)] = double(number)
""",
        """
@gput.sub_track("function")
def double(number):
    burn(0.03)
    return number * 2
""",
    )

    assert set(told) == {"block", "block/inside", "function"}
    assert [region["calls"] for (region,) in told.values()] == [3, 3, 3]
    assert [region["cpu_seconds"] for (region,) in told.values()] == [pytest.approx(0.09, abs=0.02)] * 3
    assert [told.truth[number] for number in "012"] == [0, 2, 4]


@pytest.mark.parametrize("suffix", [".csv", ".sqlite"])
def test_the_file_has_a_row_for_each_begin_and_end(suffix: str) -> None:
    """With the time of the clock, in the order in which they happened, with or without a tracker."""
    before = time.time()
    for _ in range(2):
        with gput.SubTracker("my-code-block", sub_tracking_file=f"x{suffix}") as block:
            pass
    with gput.SubTracker("other", None, f"x{suffix}", False):
        pass
    after = time.time()
    times = [event.timestamp for event in read_events(f"x{suffix}")]

    assert rows(f"x{suffix}") == [*both("my-code-block"), *both("my-code-block"), *both("other")]
    assert [before, *times, after] == sorted([before, *times, after])
    assert (block.code_block_name, block.sub_tracking_file) == ("my-code-block", f"x{suffix}")
    assert block.process_id == os.getpid()


def test_without_names_they_have_those_of_the_existing_tool() -> None:
    """The file and the line, or the function; the process ID for the file."""
    place = os.path.relpath(__file__)
    with gput.SubTracker() as block:
        line = sys._getframe().f_lineno - 1
    with gput.SubTracker(code_block_attribute="part") as part:
        pass

    @gput.sub_track()
    def function() -> None:
        pass

    @gput.sub_track(code_block_attribute="named")
    def other() -> None:
        pass

    function()
    other()

    assert block.code_block_name == f"{place}:{line}"
    assert part.code_block_name == f"{place}:part"
    assert block.sub_tracking_file == f"{os.getpid()}.csv"
    names = [block.code_block_name, part.code_block_name, f"{place}:function", f"{place}:named"]
    assert rows(f"{os.getpid()}.csv") == [row for name in names for row in both(name)]


def test_a_file_of_another_run_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """The program goes on; one warning says what to do, however often the block runs."""
    Path("old.csv").write_text("precious")
    with caplog.at_level(logging.WARNING, "gpu_tracker"):
        for _ in range(3):
            with gput.SubTracker("a", sub_tracking_file="old.csv"):
                pass

    assert Path("old.csv").read_text() == "precious"
    (message,) = caplog.messages
    assert "old.csv: it already exists; set overwrite=True to replace it" in message


def test_a_file_of_another_run_can_be_replaced() -> None:
    """Once: later blocks are added."""
    Path("old.csv").write_text("not needed")
    for name in ("a", "b"):
        with gput.SubTracker(name, sub_tracking_file=Path("old.csv"), overwrite=True):
            pass

    assert rows("old.csv") == [*both("a"), *both("b")]


def test_a_wrong_name_is_refused_where_it_is_given() -> None:
    """Before the program does anything."""
    for make in (gput.SubTracker, gput.sub_track):
        with pytest.raises(UsageError, match=r'Invalid file name: "x\.txt"'):
            make(sub_tracking_file="x.txt")
        with pytest.raises(KindError, match="sub_tracking_file of 5 is invalid"):
            make(sub_tracking_file=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs parentheses"):

        @gput.sub_track  # type: ignore[arg-type]
        def function() -> None:
            pass


def test_what_cannot_be_written_never_ends_the_program(caplog: pytest.LogCaptureFixture) -> None:
    """A directory that is not there costs the file, and is said once."""
    with caplog.at_level(logging.WARNING, "gpu_tracker"):
        for _ in range(2):
            with gput.SubTracker("a", sub_tracking_file="none/x.csv"):
                pass

    (message,) = caplog.messages
    assert message.endswith("none/x.csv: No such file or directory. The report still has them.")


def test_a_directory_that_is_gone_never_ends_the_program(tmp_path: Path) -> None:
    """Its name is needed for the default names."""
    program = (
        "import os, sys, gpu_tracker as gput\n"
        "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
        "with gput.SubTracker() as block: pass\n"
        "@gput.sub_track()\n"
        "def function(): return 5\n"
        "print(function(), block.code_block_name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )

    assert (done.returncode, done.stdout) == (0, "5 <string>:3\n"), done.stderr
    assert "No such file or directory" in done.stderr


def test_where_nothing_can_be_loaded_the_program_goes_on(tmp_path: Path) -> None:
    """Without a free descriptor, a stand-in does nothing."""
    program = (
        "import resource, gpu_tracker as gput\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "with gput.SubTracker(code_block_name='a', sub_tracking_file='x.csv', overwrite=True) as block: pass\n"
        "with gput.SubTracker('b', None, 'x.csv', True): pass\n"
        "@gput.sub_track('c', sub_tracking_file='x.csv')\n"
        "def function(): return 5\n"
        "print(function(), block.code_block_name, block.sub_tracking_file)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )

    assert (done.returncode, done.stdout) == (0, "5 a None\n"), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_rows_wait_for_a_database_that_is_locked() -> None:
    """They are written with the next one."""
    with gput.SubTracker("first", sub_tracking_file="x.sqlite"):
        pass
    with closing(sqlite3.connect("x.sqlite", isolation_level=None)) as reader:
        reader.execute("BEGIN EXCLUSIVE")
        with gput.SubTracker("second", sub_tracking_file="x.sqlite"):
            pass
        reader.execute("ROLLBACK")
    with gput.SubTracker("third", sub_tracking_file="x.sqlite"):
        pass

    assert rows("x.sqlite") == [*both("first"), *both("second"), *both("third")]


def test_rows_that_wait_are_written_at_the_end(tmp_path: Path) -> None:
    """Of the program, if no block comes after them; what cannot be written even then is counted."""
    program = """
import os, sys, gpu_tracker as gput
def use(name):
    with gput.SubTracker(name, sub_tracking_file="x.csv"): pass
use("first")
os.rename("x.csv", "y.csv")
use("second")
if sys.argv[1] == "back": os.rename("y.csv", "x.csv")
"""
    for way in ("back", "lost"):
        directory = tmp_path / way
        directory.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", program, way], capture_output=True, text=True, cwd=directory, timeout=60
        )
        assert done.returncode == 0, done.stderr
        if way == "back":
            assert [name for _, name, _ in rows(directory / "x.csv")] == ["first"] * 2 + ["second"] * 2
            assert done.stderr == ""
        else:
            assert "2 rows are lost: No such file or directory" in done.stderr


def test_rows_do_not_wait_without_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk costs the file, not the program's memory."""
    monkeypatch.setattr(code_blocks, "_MOST_HELD", 6)
    with gput.SubTracker("first", sub_tracking_file="x.csv"):
        pass
    Path("x.csv").unlink()
    with caplog.at_level(logging.WARNING, "gpu_tracker"):
        for _ in range(10):
            with gput.SubTracker("a", sub_tracking_file="x.csv"):
                pass

    assert len(caplog.messages) == 1
    (file,) = code_blocks._files.values()
    assert file._held == []


def test_forked_workers_add_to_the_same_file(tmp_path: Path) -> None:
    """Each row is whole, and has the process that was in the block; the default file is each process's own."""
    with gput.SubTracker("begun", sub_tracking_file="x.csv"):
        pass
    workers = []
    for _ in range(3):
        pid = os.fork()
        if not pid:
            for _ in range(100):
                with gput.SubTracker("work", sub_tracking_file="x.csv"):
                    pass
            with gput.SubTracker("own"):
                pass
            os._exit(0)
        workers.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in workers] == [0, 0, 0]
    found = rows("x.csv")

    assert all(found.count((pid, "work", END)) == 100 for pid in workers)
    assert len(found) == 2 + 3 * 200
    assert all(rows(f"{pid}.csv") == both("own", pid) for pid in workers)


def test_what_the_block_raises_passes() -> None:
    """And the end is written."""
    with pytest.raises(ZeroDivisionError), gput.SubTracker("a", sub_tracking_file="x.csv"):
        _ = 1 / 0

    @gput.sub_track("b", sub_tracking_file="x.csv")
    def fail() -> None:
        raise KeyError(5)

    with pytest.raises(KeyError):
        fail()

    assert rows("x.csv") == [*both("a"), *both("b")]


def test_what_a_signal_handler_raises_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time limit of the program is not taken for a failure of ours."""

    def interrupt(*_: object) -> None:
        raise TimeoutError("too long")

    def write(path: str, events: object) -> None:
        os.kill(os.getpid(), signal.SIGALRM)
        time.sleep(1)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with gput.SubTracker("a", sub_tracking_file="x.csv"):
            pass
        monkeypatch.setattr(code_blocks, "append_events", write)
        with pytest.raises(TimeoutError, match="too long"), gput.SubTracker("a", sub_tracking_file="x.csv"):
            pass
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_decorated_function_stays_what_it_is() -> None:
    """Coroutines, generators, async generators and methods; a call lasts until its end."""

    @gput.sub_track("coroutine", sub_tracking_file="x.csv")
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return number * 2

    @gput.sub_track("generator", sub_tracking_file="x.csv")
    def count(most: int) -> Iterator[int]:
        yield from range(most)

    @gput.sub_track("async generator", sub_tracking_file="x.csv")
    async def count_slowly(most: int) -> AsyncIterator[int]:
        for number in range(most):
            await asyncio.sleep(0)
            yield number

    class Model:
        @gput.sub_track("class method", sub_tracking_file="x.csv")
        @classmethod
        def build(cls) -> Model:
            return cls()

        @gput.sub_track("static method", sub_tracking_file="x.csv")
        @staticmethod
        def name() -> str:
            return "model"

        @gput.sub_track("method", sub_tracking_file="x.csv")
        def fit(self) -> Model:
            return self

    async def collect() -> list[int]:
        return [number async for number in count_slowly(3)]

    model = Model.build()
    assert (asyncio.run(double(4)), list(count(3)), asyncio.run(collect())) == (8, [0, 1, 2], [0, 1, 2])
    assert (Model.name(), model.fit()) == ("model", model)
    names = ["class method", "coroutine", "generator", "async generator", "static method", "method"]
    assert rows("x.csv") == [row for name in names for row in both(name)]


def test_a_block_in_a_generator_has_nothing_of_what_its_consumer_does(tmp_path: Path) -> None:
    """As with a region: the code that is suspended is the one with the block."""
    told = run(
        tmp_path,
        "for _ in numbers(): burn(0.1)",
        """
def numbers():
    with gput.SubTracker("numbers"):
        for _ in range(3):
            burn(0.05)
            yield
""",
    )

    (numbers,) = told["numbers"]
    check(numbers, 0.15)


def test_threads_that_enter_their_first_block_together_lose_no_row(tmp_path: Path) -> None:
    """The file is begun once, whoever comes first."""
    for number in range(10):
        path, gate = tmp_path / f"{number}.csv", threading.Barrier(8)

        def enter(path: Path = path, gate: threading.Barrier = gate) -> None:
            gate.wait()
            for _ in range(3):
                with gput.SubTracker("block", sub_tracking_file=path):
                    pass

        threads = [threading.Thread(target=enter) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [event.position for event in read_events(str(path))].count(BEGIN) == 24
        assert len(read_events(str(path))) == 48

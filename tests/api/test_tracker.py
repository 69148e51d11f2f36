"""The paper's surface: names, defaults, texts, states."""

from __future__ import annotations

import inspect
import json
import logging
import os
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput
from gpu_tracker.api.session import Session
from gpu_tracker.core.errors import UsageError
from gpu_tracker.instrument.mailbox import MAILBOX_VARIABLE
from gpu_tracker.recording.reader import load
from patience import wait_until


def quiet(**options: Any) -> gput.Tracker:
    """A tracker that does not say that there is no GPU here."""
    return gput.Tracker(disable_logs=True, **options)


def test_an_interrupt_while_it_starts_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither descriptors nor files, and regions go to nobody; also in the last moment."""
    before = len(os.listdir("/proc/self/fd"))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "begin", interrupt)
    tracker = quiet(record=str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        tracker.start()

    assert len(os.listdir("/proc/self/fd")) == before
    assert list(tmp_path.iterdir()) == []
    assert MAILBOX_VARIABLE not in os.environ


def test_the_constructor_is_the_papers() -> None:
    """Order and defaults; ours come by keyword only."""
    parameters = inspect.signature(gput.Tracker).parameters
    positional = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]

    assert positional == [
        "sleep_time",
        "ram_unit",
        "gpu_ram_unit",
        "time_unit",
        "n_expected_cores",
        "gpu_uuids",
        "disable_logs",
        "process_id",
        "n_join_attempts",
        "join_timeout",
    ]
    assert [parameters[name].default for name in positional] == [
        1.0,
        "gigabytes",
        "gigabytes",
        "hours",
        None,
        None,
        False,
        None,
        5,
        10.0,
    ]


def test_the_papers_classes_are_where_the_paper_has_them() -> None:
    """`gpu_tracker.tracker.MaxRAM` and the others, also to import from there."""
    for name in (
        "ComputeTime",
        "CPUUtilization",
        "GPUUtilization",
        "MaxGPURAM",
        "MaxRAM",
        "ProcessingUnitPercentages",
        "ResourceUsage",
        "RSSValues",
        "Tracker",
    ):
        assert getattr(gput.tracker, name).__name__ == name
        assert getattr(import_module("gpu_tracker.tracker"), name) is getattr(gput.tracker, name)
    with pytest.raises(AttributeError):
        _ = gput.nonsense


def test_states_and_misuse_have_the_papers_words() -> None:
    """Starting twice, stopping too early or twice."""
    tracker = quiet()
    assert (tracker.state.value, tracker.resource_usage, repr(tracker)) == (0, None, "State: NEW")
    with pytest.raises(RuntimeError, match=r"^Cannot stop tracking when tracking has not started yet\.$"):
        tracker.stop()
    with pytest.raises(RuntimeError, match="before tracking starts"):
        str(tracker)
    tracker.start()
    assert tracker.state.name == "STARTED"
    with pytest.raises(RuntimeError, match=r"^Cannot start tracking when tracking has already started\.$"):
        tracker.start()
    tracker.stop()
    assert tracker.state.name == "STOPPED"
    with pytest.raises(RuntimeError, match=r"^Cannot stop tracking when tracking has already stopped\.$"):
        tracker.stop()


def test_a_tracker_can_be_started_again() -> None:
    """With fresh figures."""
    tracker = quiet(time_unit="seconds", ram_unit="megabytes")
    with tracker:
        block = bytearray(150_000_000)
        time.sleep(0.2)
    first = tracker.resource_usage
    del block
    with tracker:
        pass
    second = tracker.resource_usage

    assert first is not None
    assert second is not None
    assert second.compute_time.time < 0.2 <= first.compute_time.time
    assert second.max_ram.main.total_rss < first.max_ram.main.total_rss - 100


def test_the_three_views_agree() -> None:
    """Text, dictionary and classes."""
    with quiet(time_unit="seconds", n_expected_cores=3) as tracker:
        time.sleep(0.05)
    usage = tracker.resource_usage

    assert usage is not None
    assert json.loads(json.dumps(tracker.to_json()))["compute_time"]["time"] == usage.compute_time.time
    assert f"   Time: {round(usage.compute_time.time, 3)}" in str(tracker).splitlines()
    assert "   Number of expected cores: 3" in str(tracker).splitlines()


def test_an_exception_in_the_block_passes_and_the_figures_stay() -> None:
    """The paper's example."""
    tracker = quiet()
    with pytest.raises(RuntimeError, match="AN ERROR"), tracker:
        raise RuntimeError("AN ERROR")

    assert tracker.resource_usage is not None
    assert tracker.resource_usage.max_gpu_ram.main == 0.0


def test_the_figures_are_live() -> None:
    """While tracking, also from another thread."""
    seen: list[Any] = []
    with quiet(time_unit="seconds", sleep_time=10) as tracker:
        for _ in range(2):
            thread = threading.Thread(target=lambda: seen.append(tracker.resource_usage))
            thread.start()
            thread.join()
            time.sleep(0.05)

    assert 0 < seen[0].compute_time.time < seen[1].compute_time.time
    assert seen[1].max_ram.main.total_rss > 0


def test_a_foreign_process_can_be_tracked() -> None:
    """By its number; one that does not exist is refused."""
    child = subprocess.Popen(
        [sys.executable, "-c", "x = bytearray(200_000_000); input()"], stdin=subprocess.PIPE
    )
    with quiet(process_id=child.pid, ram_unit="megabytes", sleep_time=0.05) as tracker:
        wait_until(
            lambda: tracker.to_json()["max_ram"]["main"]["total_rss"] >= 200, "its memory was measured"
        )
    child.communicate(b"\n")

    with pytest.raises(ValueError, match=f"There is no process with the ID {child.pid}"):
        gput.Tracker(process_id=child.pid)
    with pytest.raises(ValueError, match="too large"):
        gput.Tracker(process_id=2**70)


def test_a_thread_is_no_process() -> None:
    """It has a number that looks like that of a process, which is named."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        with pytest.raises(ValueError, match=f"{thread.native_id} is a thread of process {os.getpid()}"):
            gput.Tracker(process_id=thread.native_id)
    finally:
        over.set()
        thread.join()


def test_what_has_taken_the_name_of_a_recording_is_left_alone(tmp_path: Path) -> None:
    """It is not named as the recording either."""
    path = tmp_path / "x.jsonl"
    with quiet(record=path) as tracker:
        path.rename(tmp_path / "kept.jsonl")
        os.mkfifo(path)

    assert path.is_fifo()
    assert tracker.recording_path is None
    assert gput.load(tmp_path / "kept.jsonl").report.ending == "stopped"


def test_a_recording_is_written_if_asked_for(tmp_path: Path) -> None:
    """To a file, or into a directory."""
    with quiet(record=tmp_path / "one.jsonl") as tracker:
        pass
    with quiet(record=tmp_path) as other:
        pass

    assert tracker.recording_path == str(tmp_path / "one.jsonl")
    for path in (tracker.recording_path, other.recording_path):
        assert path is not None
        assert load(path).end is not None


def test_what_is_missing_is_said_once_by_our_own_logger(caplog: pytest.LogCaptureFixture) -> None:
    """And not at all if the user does not want to hear it."""
    with quiet() as tracker:
        pass
    assert not caplog.records
    assert tracker.notes == tuple(dict.fromkeys(tracker.notes))

    code = "import gpu_tracker\nfor _ in range(3):\n    with gpu_tracker.Tracker(): pass\n"
    said = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, check=True).stderr
    assert len(said.splitlines()) == len(tracker.notes)
    assert not logging.getLogger().handlers or logging.getLogger("gpu_tracker").handlers == []


def test_track_decorates_functions() -> None:
    """With and without options; the function's result and errors pass."""
    trackers: list[gput.Tracker] = []

    @gput.track(disable_logs=True, time_unit="seconds", then=trackers.append)
    def half(number: int) -> float:
        """Half of it."""
        return number / 2 if number else number / 0

    assert half(4) == 2
    with pytest.raises(ZeroDivisionError):
        half(0)
    assert half.__doc__ == "Half of it."
    assert [tracker.state for tracker in trackers] == [gput.Tracker.State.STOPPED] * 2
    with pytest.raises(ValueError):
        gput.track(sleep_time=0)(half)


def test_track_without_options_prints_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """The shortest way."""

    @gput.track
    def nothing() -> None:
        """Do nothing."""

    nothing()

    assert capsys.readouterr().out.startswith("Max RAM:\n   Unit: gigabytes\n")


def run(code: str) -> str:
    """The output of a program of its own."""
    return subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_it_works_inside_daemonic_workers(method: str, tmp_path: Path) -> None:
    """Whatever the start method, and without a guard around the main part of the module it is in."""
    (tmp_path / "worker.py").write_text(
        "import gpu_tracker, time\n"
        "def work(_):\n"
        "    with gpu_tracker.Tracker(time_unit='seconds', disable_logs=True) as tracker: time.sleep(0.02)\n"
        "    return tracker.resource_usage.compute_time.time\n"
    )
    output = run(
        f"import multiprocessing, sys; sys.path.insert(0, {str(tmp_path)!r}); import worker\n"
        f"with multiprocessing.get_context({method!r}).Pool(2) as pool: print(min(pool.map(worker.work, range(4))))"
    )

    assert float(output) >= 0.02


def test_a_relative_place_for_the_recording_is_that_of_the_constructor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the program moves about."""
    monkeypatch.chdir(tmp_path)
    tracker = quiet(record="here.jsonl")
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
    with tracker:
        pass

    assert (tmp_path / "here.jsonl").exists()


def test_nobody_who_waits_for_all_children_waits_for_the_sampler() -> None:
    """It is not a child of the program."""
    output = run(
        "import os, gpu_tracker\n"
        "with gpu_tracker.Tracker(disable_logs=True):\n"
        "    try: print(os.wait())\n"
        "    except ChildProcessError: print('nobody')\n"
    )

    assert output == "nobody\n"


def test_every_call_in_the_same_second_gets_a_recording(tmp_path: Path) -> None:
    """Decorated functions in a loop, and trackers inside trackers."""

    @gput.track(record=tmp_path, disable_logs=True, then=lambda _: None)
    def call(depth: int) -> None:
        if depth:
            call(depth - 1)

    for _ in range(3):
        call(1)

    assert len([load(path) for path in tmp_path.iterdir()]) == 6


def test_a_start_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    """So that the next attempt is not refused for what the first has left."""
    (tmp_path / "run.jsonl").write_text("somebody else's")
    tracker = quiet(record=tmp_path / "run.jsonl", tracking_file=tmp_path / "x.csv")
    with pytest.raises(UsageError, match="already exists"):
        tracker.start()
    left = [path.name for path in tmp_path.iterdir()]
    (tmp_path / "run.jsonl").unlink()
    with tracker:
        pass

    assert left == ["run.jsonl"]
    assert tracker.recording_path == str(tmp_path / "run.jsonl")
    assert (tmp_path / "x.csv").stat().st_size > 0


def test_a_tracking_file_is_replaced_only_if_asked_for(tmp_path: Path) -> None:
    """At the start, not before; a tracker that starts again replaces its own."""
    path = tmp_path / "x.csv"
    path.write_text("precious")
    with pytest.raises(UsageError, match="already exists"):
        quiet(tracking_file=path)
    tracker = quiet(tracking_file=path, overwrite=True)
    kept = path.read_text()
    rows = []
    for _ in range(2):
        with tracker:
            time.sleep(0.1)
        rows.append(path.read_text().splitlines())

    assert kept == "precious"
    assert [lines[0].split(",")[0] for lines in rows] == ["ram_unit", "ram_unit"]
    assert rows[0][3:] != rows[1][3:]
    assert list(tmp_path.iterdir()) == [path]


def test_a_start_that_fails_gives_the_old_tracking_file_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless somebody has put another there meanwhile; then both are kept, and that is said."""
    path = tmp_path / "x.csv"
    path.write_text("precious")
    said: list[str] = []

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def replace_and_interrupt(*_: object) -> None:
        other = tmp_path / "other"
        other.write_text("of somebody else")
        other.replace(path)
        raise KeyboardInterrupt

    monkeypatch.setattr(gput.Tracker, "_warn", lambda _tracker, text: said.append(text))
    monkeypatch.setattr(Session, "wait_until_ready", interrupt)
    with pytest.raises(KeyboardInterrupt):
        gput.Tracker(tracking_file=path, overwrite=True).start()
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]

    monkeypatch.setattr(Session, "wait_until_ready", replace_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        gput.Tracker(tracking_file=path, overwrite=True).start()
    (aside,) = set(tmp_path.iterdir()) - {path}
    assert (path.read_text(), aside.read_text()) == ("of somebody else", "precious")
    assert said == [f"{path} was replaced by another program. The old one is {aside}."]


def test_what_the_existing_tool_takes_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A brand is a vendor; its temporary file is not needed, and none is made."""
    monkeypatch.chdir(tmp_path)
    with quiet(gpu_brand="amd", resource_usage_file="usage.pkl") as tracker:
        pass

    assert tracker._settings.gpu_vendors == ("amd",)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="is not a valid GPU brand"):
        quiet(gpu_brand="NVIDIA")
    with pytest.raises(TypeError, match="resource_usage_file of 5 is invalid"):
        quiet(resource_usage_file=5)
    with pytest.raises(UsageError, match="gpu-tracker 5 has resource_usage_file in this place"):
        gput.Tracker(1.0, "gigabytes", "gigabytes", "hours", None, None, True, None, "usage.pkl")  # type: ignore[arg-type]


def test_interruptions_leave_no_descriptors_open() -> None:
    """Wherever a signal handler raises, while a tracker starts or stops: a program with time limits runs for long."""
    program = """
import os, random, signal
import gpu_tracker as gput

class TimeIsUp(Exception):
    pass

def interrupt(*_):
    raise TimeIsUp

signal.signal(signal.SIGALRM, interrupt)
random = random.Random(1)
with gput.Tracker(disable_logs=True):  # loads everything that stays open
    pass
before, interrupted = len(os.listdir("/proc/self/fd")), 0
for _ in range(40):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.2 * random.random())
        with gput.Tracker(disable_logs=True):
            pass
    except TimeIsUp:
        interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
print(interrupted > 5, len(os.listdir("/proc/self/fd")) - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)

    assert (done.stdout, done.stderr) == ("True 0\n", "")

"""A run while it is recorded: `follow()`, `samples()` and `on_sample`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import gpu_tracker as gput
from gpu_tracker.analysis.findings.finding import CERTAIN, SERIOUS, Finding
from gpu_tracker.api import following
from gpu_tracker.core import notices
from gpu_tracker.recording.follow import follow_path
from gpu_tracker.reports.choices import NO_CHOICES
from patience import wait_until
from recorded import make_plain

JOB = """
import time
import gpu_tracker as gput
for step in range(4):
    with gput.region("step"):
        time.sleep(0.1)
    gput.log(loss=1 / (step + 1), step=step)
print("logged", flush=True)
input()
"""


def start_job(path: Path) -> subprocess.Popen[str]:
    """A job that is recorded, and has logged something."""
    command = [sys.executable, "-m", "gpu_tracker", "run", "--record", str(path), "--st", "0.05", "--"]
    job = subprocess.Popen(
        [*command, sys.executable, "-c", JOB],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert job.stdout is not None
    assert job.stdout.readline() == "logged\n"
    return job


def test_another_process_sees_what_is_recorded_while_it_is(tmp_path: Path) -> None:
    """Samples, calls, metrics and the end come as they are written, each once, and equal those of the finished recording."""
    path = tmp_path / "run.jsonl"
    job = start_job(path)
    found: list[gput.News] = []
    for news in gput.follow(path, every=0.05):
        found.append(news)
        if sum(len(some.metrics) for some in found) == 4 and job.poll() is None:
            job.communicate("")
    whole = gput.load(path)

    assert [news.end is not None for news in found] == [False] * (len(found) - 1) + [True]
    assert len(found) > 1
    assert [sample for news in found for sample in news.samples] == list(whole.samples)
    assert [row for news in found for row in news.metrics] == list(whole.metric_rows)
    assert [call for news in found for call in news.calls] == list(whole.calls)
    assert [row.values["loss"] for row in whole.metric_rows] == [1, 1 / 2, 1 / 3, 1 / 4]


def test_following_ends_when_the_writer_is_gone(tmp_path: Path) -> None:
    """A file without an end that nobody writes to is no reason to wait for ever."""
    path = tmp_path / "run.jsonl"
    job = start_job(path)
    os.kill(job.pid, signal.SIGKILL)
    job.communicate()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if not line.startswith(b'{"end"')))
    os.utime(path, (0, 0))

    assert sum(len(news.samples) for news in gput.follow(path)) == len(gput.load(path).samples)


def test_there_is_nothing_to_follow_where_no_recording_is(tmp_path: Path) -> None:
    """One sentence says so."""
    with pytest.raises(gput.RecordingError, match="Cannot read"):
        next(gput.follow(tmp_path / "none.jsonl"))


@pytest.mark.parametrize("every", [0, -1, float("nan"), float("inf"), "often"])
def test_a_wait_that_is_none_is_refused(every: float) -> None:
    """In the callback's options, and in `follow`."""
    with pytest.raises(gput.UsageError, match="every must be"):
        gput.Tracker(on_sample=print, every=every)
    with pytest.raises(gput.UsageError, match="every must be"):
        next(gput.follow("run.jsonl", every=every))


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_callback_hears_what_is_used_while_it_is(tmp_path: Path, is_recorded: bool) -> None:
    """From a file, or without one; in another thread; until the end, and not after it."""
    heard: list[gput.Interval] = []
    threads = set()

    def hear(interval: gput.Interval) -> None:
        heard.append(interval)
        threads.add(threading.current_thread())

    record = tmp_path if is_recorded else None
    with gput.Tracker(sleep_time=0.02, record=record, on_sample=hear):
        wait_until(lambda: len(heard) >= 5, "five intervals were told")
        began, busy_until = time.monotonic(), time.process_time() + 0.5
        while time.process_time() < busy_until:
            pass
        busy_cores = 0.5 / (time.monotonic() - began)  # fewer than one if others need them
    n_heard = len(heard)
    time.sleep(0.1)

    assert len(heard) == n_heard
    assert threads.isdisjoint({threading.current_thread()})
    assert [one.end_seconds for one in heard] == sorted({one.end_seconds for one in heard})
    assert any(one.cpu_cores is not None and one.cpu_cores > 0.2 * busy_cores for one in heard)
    assert all(one.ram_bytes for one in heard)


def test_a_callback_that_raises_is_not_called_again(caplog: pytest.LogCaptureFixture) -> None:
    """One sentence says so, and the program goes on."""
    calls = []

    def fail(interval: gput.Interval) -> None:
        calls.append(interval)
        raise ZeroDivisionError("oops")

    with gput.Tracker(sleep_time=0.02, on_sample=fail):
        wait_until(lambda: calls, "it was called")
        time.sleep(0.2)

    assert len(calls) == 1
    assert "it raised ZeroDivisionError: oops" in caplog.text


def test_a_callback_that_never_returns_does_not_keep_the_program() -> None:
    """It is left behind in its thread."""
    has_begun, may_end = threading.Event(), threading.Event()

    def hang(_: gput.Interval) -> None:
        has_begun.set()
        may_end.wait()

    with gput.Tracker(sleep_time=0.02, on_sample=hang) as tracker:
        assert has_begun.wait(30)
    assert tracker.report is not None
    may_end.set()


def test_a_slow_callback_is_not_measured(tmp_path: Path) -> None:
    """Nothing is recorded while the program waits for it at the end."""
    with gput.Tracker(sleep_time=0.02, record=tmp_path / "run.jsonl", on_sample=lambda _: time.sleep(0.3)):
        time.sleep(0.2)
    times = [sample.at_seconds for sample in gput.load(tmp_path / "run.jsonl").samples]

    assert times == sorted(times)


def test_the_callback_is_called_as_often_as_asked() -> None:
    """Not for every sample, with the newest."""
    heard: list[gput.Interval] = []
    with gput.Tracker(sleep_time=0.01, on_sample=heard.append, every=0.3):
        wait_until(lambda: len(heard) >= 2, "it was told twice")

    assert heard[1].end_seconds - heard[0].end_seconds > 0.2


def test_a_finding_is_told_once_while_the_job_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the user's own thresholds."""
    rules = tmp_path / "rules.ini"
    rules.write_text("[nan-then-burned]\nleast_seconds = 0.01\n")
    monkeypatch.setenv("GPU_TRACKER_RULES", str(rules))
    heard: list[gput.Finding] = []
    with gput.Tracker(sleep_time=0.01, gpu="none", on_finding=heard.append, every=0.05):
        gput.log(loss=0.5)
        gput.log(loss=float("nan"))
        wait_until(lambda: [one for one in heard if one.rule == "nan-then-burned"], "it was told")
        time.sleep(0.3)

    rules_told = [one.rule for one in heard]
    assert rules_told.count("nan-then-burned") == 1
    assert len(set(rules_told)) == len(rules_told)


def test_samples_come_until_the_tracker_stops() -> None:
    """In a thread of the user's own; before the start there are none."""
    tracker = gput.Tracker(sleep_time=0.02)
    assert list(tracker.samples()) == []
    tracker.start()
    heard: list[gput.Interval] = []
    thread = threading.Thread(target=lambda: heard.extend(tracker.samples()))
    thread.start()
    wait_until(lambda: len(heard) >= 3, "three came")
    tracker.stop()
    thread.join(30)

    assert not thread.is_alive()
    assert [one.end_seconds for one in heard] == sorted({one.end_seconds for one in heard})


@pytest.mark.parametrize("is_recorded", [True, False])
def test_no_interval_is_missing(tmp_path: Path, is_recorded: bool) -> None:
    """However late they are taken: those that are written at the end come too. They are of one run.

    The last reading may be of the moment in which the sampler had not heard of the end yet.
    """
    tracker = gput.Tracker(
        sleep_time=0.02, gpu="none", record=tmp_path / "run.jsonl" if is_recorded else None
    )
    begin_seconds = time.monotonic()
    tracker.start()
    samples = tracker.samples()
    first = next(samples)
    tracker.stop()
    most_seconds = time.monotonic() - begin_seconds
    seconds = 0.0 if tracker.report is None else tracker.report.summary.seconds
    if not is_recorded:
        tracker.start()  # another run
    heard = [first, *samples]
    if not is_recorded:
        tracker.stop()

    assert [one.start_seconds for one in heard] == [0.0, *(one.end_seconds for one in heard[:-1])]
    assert all(one.end_seconds > one.start_seconds and one.cpu_cores is not None for one in heard)
    assert seconds - 1e-3 <= heard[-1].end_seconds <= most_seconds
    if is_recorded:
        whole = gput.load(tmp_path / "run.jsonl")
        at_start, *ends = (sample.at_seconds for sample in whole.samples)
        assert at_start == 0.0
        # The last sample may be of the same instant as the one before: that is no interval.
        assert [one.end_seconds for one in heard] == list(dict.fromkeys(ends))


def test_following_ends_when_the_file_is_deleted(tmp_path: Path) -> None:
    """What was in it has been told; nothing will come any more."""
    path = tmp_path / "run.jsonl"
    job = start_job(path)
    following = gput.follow(path, every=0.05)
    assert next(following).header is not None
    path.unlink()

    assert all(news.header is None for news in following)
    job.communicate("")


def test_a_picture_is_for_notebooks_only(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere one sentence says so, and the run is tracked as without it."""
    monkeypatch.setattr(notices, "_said", set())
    for _ in range(2):
        with gput.Tracker(live=True) as tracker:
            pass

    assert tracker.report is not None
    assert tracker.report.ending == "stopped"
    assert caplog.text.count("live=True draws in the output of a notebook's cell") == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "gpu-tracker-monitor"]


def test_a_tracker_shows_itself_while_it_runs_and_afterwards() -> None:
    """As HTML with a picture; before it starts there is nothing to show."""
    tracker = gput.Tracker(sleep_time=0.02)
    assert tracker._repr_html_() is None
    with tracker:
        wait_until(lambda: "still running" in (tracker._repr_html_() or ""), "there is a sample")

    assert "finished" in (tracker._repr_html_() or "")
    assert "<img " in (tracker._repr_html_() or "")


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_callback_that_wants_to_exit_is_one_that_raises(
    error: type[BaseException], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is in a thread, where nothing can exit; it is said, and no traceback is printed."""
    calls = []

    def fail(interval: gput.Interval) -> None:
        calls.append(interval)
        raise error

    with gput.Tracker(sleep_time=0.02, on_sample=fail):
        wait_until(lambda: calls, "it was called")

    assert f"`on_sample` is not called any more: it raised {error.__name__}." in caplog.text
    assert "Traceback" not in capfd.readouterr().err


def test_an_error_is_one_clean_line(caplog: pytest.LogCaptureFixture) -> None:
    """However long its text is, and whatever is in it."""

    def fail(_: gput.Interval) -> None:
        raise ValueError("x\n\x1b[31m" * 100_000)

    with gput.Tracker(sleep_time=0.02, gpu="none", on_sample=fail):
        wait_until(lambda: "on_sample" in caplog.text, "it was said")

    (said,) = [record.message for record in caplog.records if "on_sample" in record.message]
    assert "it raised ValueError: x??[31mx??[31m" in said
    assert len(said) < 300
    assert said.isprintable()


def test_an_error_that_cannot_be_shown_is_named(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its own text raises; that is no reason for a traceback."""

    class SilentError(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

        __repr__ = __str__

    def fail(_: gput.Interval) -> None:
        raise SilentError

    with gput.Tracker(sleep_time=0.02, gpu="none", on_sample=fail):
        wait_until(lambda: "on_sample" in caplog.text, "it was said")

    assert "it raised SilentError." in caplog.text
    assert "Traceback" not in capfd.readouterr().err


FORKING = """
import os, sys, time
import gpu_tracker as gput
me, here = os.getpid(), [os.getpid()]

def hear(found):
    os.write(1, f"{os.getpid() == me}\\n".encode())
    if len(here) == 1:
        here.append(os.fork())
        if here[-1] == 0 and sys.argv[2] == "raise":
            raise ValueError
        if here[-1] == 0 and sys.argv[2].startswith("exit"):
            sys.exit({"exit": None, "exit 3": 3, "exit text": "farewell"}[sys.argv[2]])

with gput.Tracker(sleep_time=0.02, gpu="none", every=0.02, **{sys.argv[1]: hear}):
    for loss in (1.0, float("nan")):
        gput.log(loss=loss)
    while len(here) == 1:
        time.sleep(0.01)
    print("child", os.waitstatus_to_exitcode(os.waitpid(here[1], 0)[1]), flush=True)
"""


@pytest.mark.parametrize(
    ("ending", "code"), [("return", 0), ("raise", 0), ("exit", 0), ("exit 3", 3), ("exit text", 1)]
)
@pytest.mark.parametrize("option", ["on_sample", "on_finding"])
def test_a_child_that_a_callback_forks_ends_with_it(
    tmp_path: Path, option: str, ending: str, code: int
) -> None:
    """It tells nobody anything, and leaves the tracking to its parent, which gets the exit code that it chose."""
    rules = tmp_path / "rules.ini"
    rules.write_text("[nan-then-burned]\nleast_seconds = 0.01\n")
    done = subprocess.run(
        [sys.executable, "-c", FORKING, option, ending],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "GPU_TRACKER_RULES": str(rules)},
    )

    assert f"child {code}\n" in done.stdout
    assert ("farewell\n" in done.stderr) == (ending == "exit text")
    assert "False" not in done.stdout
    assert done.returncode == 0
    assert "any more" not in done.stderr
    assert "Traceback" not in done.stderr


def test_of_several_findings_a_forked_child_hears_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are for its parent."""
    heard: list[gput.Finding] = []
    found = tuple(Finding(rule, SERIOUS, CERTAIN, "") for rule in ("one", "other"))
    monkeypatch.setattr(following, "choose_new", lambda _found, _told: found)

    def fork(finding: gput.Finding) -> None:
        heard.append(finding)
        monkeypatch.setattr(os, "getpid", lambda: -1)

    following.tell_findings(follow_path(str(make_plain(tmp_path / "x.jsonl"))), fork, NO_CHOICES)()

    assert heard == [found[0]]


@pytest.mark.parametrize("option", ["on_sample", "on_finding"])
def test_what_cannot_be_called_is_refused_at_once(option: str) -> None:
    """Not in a thread, later."""
    with pytest.raises(gput.UsageError, match=rf"^{option} must be a function, not int\.$"):
        gput.Tracker(**{option: 3})  # type: ignore[arg-type]


def test_a_callback_may_stop_the_tracker(caplog: pytest.LogCaptureFixture) -> None:
    """The block around it ends without an error, and has the report up to there."""
    calls = []

    def stop(interval: gput.Interval) -> None:
        calls.append(interval)
        tracker.stop()

    with gput.Tracker(sleep_time=0.02, gpu="none", on_sample=stop) as tracker:
        wait_until(lambda: tracker.state is gput.Tracker.State.STOPPED, "it was stopped")

    assert len(calls) == 1
    assert tracker.report is not None
    assert tracker.report.ending == "stopped"
    assert "on_sample" not in caplog.text
    with pytest.raises(RuntimeError, match="already stopped"):
        tracker.stop()


def test_a_callback_that_stops_the_tracker_meets_the_end_of_the_block(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever comes first: neither waits for the other, and nothing is raised."""
    has_begun, may_go_on = threading.Event(), threading.Event()

    def stop(_: gput.Interval) -> None:
        has_begun.set()
        may_go_on.wait()
        tracker.stop()

    began = time.monotonic()
    for _ in range(5):
        has_begun.clear()
        may_go_on.clear()
        with gput.Tracker(sleep_time=0.02, gpu="none", on_sample=stop) as tracker:
            has_begun.wait()
            may_go_on.set()
        assert tracker.report is not None

    assert "StateError" not in caplog.text
    assert time.monotonic() - began < 60

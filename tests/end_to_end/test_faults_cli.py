"""The command line under attack: the job runs, is signalled, is killed and ends as if nobody watched.

Where it matters the same job is run untracked too, and nobody outside may be able to tell the difference.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from end_to_end.cgroup import memory_limit
from end_to_end.fault_workloads.telling import hold
from end_to_end.faults import (
    COMMAND,
    MEGABYTE,
    Outcome,
    Scene,
    as_nobody,
    check_ends_once,
    check_idle,
    check_plausible,
    check_said_once,
    cpu_seconds,
    fill,
    lines_of,
    needs_root,
    nobodys_python,
    public_directory,
    small_disk,
    tracker,
    wait_for_state,
    wait_until_attached,
    workload,
)
from gpu_tracker.recording.reader import load
from gpu_tracker.sources import job_processes
from marked import WITNESS_NAME, read_state
from patience import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")

QUIET = ("run", "--no-record", "--st", "0.1", "--")
RECORDED = ("run", "--record", "run.jsonl", "--st", "0.1", "--")


def sh(script: str) -> list[str]:
    """A job in a line."""
    return ["sh", "-c", script]


def start_job(scene: Scene, options: Sequence[str], job: Sequence[str]) -> tuple[subprocess.Popen[str], int]:
    """Start a tracked workload that says `ready`, and find its pid."""
    wrapper = scene.start(tracker(*options, *job), stdin=subprocess.PIPE, preexec_fn=os.setpgrp)
    line = scene.read_line(wrapper)
    assert line.startswith("ready"), (line, wrapper.stderr and wrapper.stderr.read())
    (pid,) = children_of(wrapper.pid)
    return wrapper, pid


def children_of(pid: int) -> list[int]:
    """The children of a process whose main thread starts them all."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def check_summary(text: str, cpu: float) -> None:
    """A summary for people with plausible figures in it."""
    found = re.search(r"([\d.]+) s of CPU time", text)
    assert found, text
    assert cpu * 0.9 - 0.01 <= float(found[1]) <= cpu * 1.2 + 0.1, text
    assert re.search(r"^  time  ", text, re.MULTILINE), text
    assert re.search(r"^  RAM  ", text, re.MULTILINE), text
    check_said_once(text)


def check_refused(outcome: Outcome, marker: Path, code: int = 2) -> None:
    """Nothing ran, and one sentence says why."""
    assert outcome.returncode == code, outcome.stderr
    assert outcome.stdout == ""
    assert len(outcome.stderr.splitlines()) == 1, outcome.stderr
    assert outcome.stderr.startswith("gpu-tracker: ")
    assert not marker.exists()


# ---- Exit codes.


@pytest.mark.parametrize(
    "script", ["exit 0", "exit 1", "exit 3", "exit 255", "kill -TERM $$", "kill -KILL $$"]
)
@pytest.mark.parametrize("mode", ["run", "-e"])
def test_the_exit_code_is_the_jobs(scene: Scene, mode: str, script: str) -> None:
    """The command line ends as the job: with its code, or by the same signal."""
    bare = scene.run(sh(script))
    arguments = [*QUIET, *sh(script)] if mode == "run" else ["-e", f"sh -c '{script}'"]
    outcome = scene.run_tracked(*arguments)
    assert outcome.returncode == bare.returncode
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("mode", ["run", "-e"])
@pytest.mark.parametrize(
    ("command", "code"), [("no-such-command", 127), ("./not-executable", 126), ("/", 126)]
)
def test_a_command_that_cannot_run_gives_the_shells_code(
    scene: Scene, mode: str, command: str, code: int
) -> None:
    """A command that is not there gives 127, one that may not run 126: one sentence, no recording."""
    (scene.directory / "not-executable").write_text("#!/bin/sh\n")
    arguments = ["run", "--", command] if mode == "run" else ["-e", command, "--record", "gpu-tracker-runs"]
    outcome = scene.run_tracked(*arguments)
    check_refused(outcome, scene.directory / "marker", code)
    assert command in outcome.stderr
    assert not list(scene.directory.glob("**/*.jsonl"))


@pytest.mark.parametrize("options", [QUIET, RECORDED])
def test_a_file_size_limit_is_named(scene: Scene, options: Sequence[str]) -> None:
    """It is no full disk; and nobody misses a recording that was not wanted."""
    outcome = scene.run(sh(f"ulimit -f 1; {shlex.join(tracker(*options, 'sleep', '0.3'))}; true"))
    assert outcome.stderr.count("the file size limit (ulimit -f) is reached") == 1, outcome.stderr
    assert ("recording" in outcome.stderr) == (options is RECORDED)


# ---- Signals.

FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTSTP", "SIGCONT")
# What batch systems and supervisors send besides: nobody lists all that a job may have a handler for.
UNCOMMON = ("SIGALRM", "SIGXCPU", "SIGWINCH", "SIGURG", "SIGPWR", "SIGRTMIN")
# What a fault of its own would raise in a process; `timeout -s ABRT` asks a job for its stack.
FAULTS = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")
# What Python ignores.
IGNORED = ("SIGPIPE", "SIGXFSZ")


@pytest.mark.parametrize("name", [*FORWARDED, *UNCOMMON, *FAULTS, *IGNORED])
def test_a_signal_for_the_wrapper_reaches_the_job_once(scene: Scene, name: str) -> None:
    """Whoever signals the wrapper means the job: it gets the signal once, goes on, and is reported."""
    wrapper, _ = start_job(scene, QUIET, workload("signals", name))
    wrapper.send_signal(signal.Signals[name])
    assert scene.read_line(wrapper) == name
    time.sleep(0.1)
    outcome = scene.finish(wrapper, "")
    assert outcome.stdout == "bye\n"
    assert outcome.returncode == 5
    check_summary(outcome.stderr, 0.0)


def test_several_signals_come_through_in_their_order(scene: Scene) -> None:
    """A job that is told to save, to save again and to end gets it so."""
    wrapper, _ = start_job(scene, QUIET, workload("signals", "SIGUSR1", "SIGUSR2", "SIGTERM"))
    for name in ("SIGUSR1", "SIGUSR2", "SIGUSR1", "SIGTERM"):
        wrapper.send_signal(signal.Signals[name])
        assert scene.read_line(wrapper) == name
    assert scene.finish(wrapper, "").stdout == "bye\n"


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGABRT]
)
def test_a_signal_that_ends_the_job_is_reported(scene: Scene, number: signal.Signals) -> None:
    """A job that dies of a forwarded signal gives 128 and its number, a summary and a complete recording."""
    wrapper, _ = start_job(scene, RECORDED, sh("ulimit -c 0; echo ready; exec sleep 30"))
    wrapper.send_signal(number)
    outcome = scene.finish(wrapper)
    assert outcome.returncode == -number
    assert f"killed by {number.name} ({number.value})" in outcome.stderr
    check_ends_once(scene.directory / "run.jsonl")
    assert scene.report(scene.directory / "run.jsonl")["exit_code"] == -number


# Who sends two signals: in between, it wants a core all the time, as it does on a crowded machine.
SENDER = """
import os, signal, sys, time
wrapper = int(sys.argv[1])
os.kill(wrapper, signal.SIGTERM)
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until: pass
if len(sys.argv) > 3: os.killpg(wrapper, signal.SIGTERM)
"""


def send_signals(wrapper: int, busy_seconds: float, *then: str) -> None:
    """From a process without other threads: those of this one wait for each other."""
    subprocess.run([sys.executable, "-c", SENDER, str(wrapper), str(busy_seconds), *then], check=True)


@pytest.mark.parametrize("name", [*FORWARDED, *UNCOMMON, *FAULTS, *IGNORED])
@pytest.mark.parametrize("mode", ["run", "-e"])
def test_a_signal_for_the_whole_group_reaches_the_job_once(scene: Scene, mode: str, name: str) -> None:
    """The job has it as a member of the group; forwarded besides, it would come twice."""
    job = workload("signals", name)
    command = tracker(*QUIET, *job) if mode == "run" else tracker("--disable-logs", "-e", shlex.join(job))
    wrapper = scene.start(command, stdin=subprocess.PIPE, preexec_fn=os.setpgrp)
    assert scene.read_line(wrapper) == "ready"
    for _ in range(3):
        os.killpg(wrapper.pid, signal.Signals[name])
        assert scene.read_line(wrapper) == name
        time.sleep(0.05)
    time.sleep(0.6)  # a sender without a core is given half a second to come to all members
    wrapper.send_signal(signal.Signals[name])  # and after that, one for the wrapper alone is still forwarded
    assert scene.read_line(wrapper) == name
    outcome = scene.finish(wrapper, "")
    assert outcome.stdout.splitlines()[0] == "bye"
    assert outcome.returncode == 5
    assert "lost sys.stderr" not in outcome.stderr


@pytest.mark.repeats(few=10, soak=300)
def test_timeout_and_schedulers_reach_the_job_once(scene: Scene, repeats: int) -> None:
    """`timeout` signals its child and then the group, a scheduler each process by its number: that is one signal."""
    wrapper, job = start_job(scene, QUIET, workload("signals", "SIGTERM", "SIGUSR1", "SIGCONT"))
    (witness,) = (pid for pid, name in scene.processes().items() if name == WITNESS_NAME)
    for _ in range(repeats):
        os.kill(wrapper.pid, signal.SIGTERM)
        os.killpg(wrapper.pid, signal.SIGTERM)
        assert scene.read_line(wrapper) == "SIGTERM"
        time.sleep(0.05)
        for pid in (wrapper.pid, job, witness):
            os.kill(pid, signal.SIGUSR1)
        assert scene.read_line(wrapper) == "SIGUSR1"
        time.sleep(0.05)
    assert scene.finish(wrapper, "").stdout == "bye\n"


def test_a_sender_that_waits_for_a_core_between_two_signals_reaches_the_job_once(scene: Scene) -> None:
    """As `timeout` may on a crowded machine; one that goes on to do other things only delays the signal."""
    wrapper, _ = start_job(scene, QUIET, workload("signals", "SIGTERM", "SIGCONT"))
    send_signals(wrapper.pid, 0.2, "for the group, too")
    assert scene.read_line(wrapper) == "SIGTERM"
    time.sleep(0.1)
    send_signals(wrapper.pid, 1)
    assert scene.read_line(wrapper) == "SIGTERM"
    assert scene.finish(wrapper, "").stdout == "bye\n"


@pytest.mark.serial
def test_signals_in_quick_succession_are_neither_merged_nor_multiplied(scene: Scene) -> None:
    """Each is forwarded when the next one comes, not after a wait in which the kernel would merge them."""
    wrapper, _ = start_job(scene, QUIET, workload("signals", "SIGUSR1"))
    for _ in range(20):
        wrapper.send_signal(signal.SIGUSR1)
        time.sleep(0.005)
    time.sleep(0.1)
    assert scene.finish(wrapper, "").stdout.splitlines() == ["SIGUSR1"] * 20 + ["bye"]


@pytest.mark.serial
@pytest.mark.parametrize("first", ["wrapper", "group"])
def test_signals_for_the_wrapper_and_for_its_group_in_turn_are_all_told_apart(
    scene: Scene, first: str
) -> None:
    """Ten milliseconds between them are two signals, as a job without a wrapper has them."""
    wrapper, _ = start_job(scene, QUIET, workload("signals", "SIGUSR1"))
    sends = [os.kill, os.killpg] if first == "wrapper" else [os.killpg, os.kill]
    for send in sends * 8:
        send(wrapper.pid, signal.SIGUSR1)
        time.sleep(0.01)
    time.sleep(0.1)
    assert scene.finish(wrapper, "").stdout.splitlines() == ["SIGUSR1"] * 16 + ["bye"]


@pytest.mark.parametrize("sends", ["pg", "gp", "ppg", "ggp"])
def test_signals_that_queue_are_all_passed_on(scene: Scene, sends: str) -> None:
    """Of the real-time signals the kernel merges none: however fast they come, each is one."""
    number = signal.SIGRTMIN + 3
    wrapper, _ = start_job(scene, QUIET, workload("queued_signals", number))
    for _ in range(10):
        for to in sends:
            {"p": os.kill, "g": os.killpg}[to](wrapper.pid, number)
        time.sleep(0.02)
    time.sleep(0.3)
    assert scene.finish(wrapper, "").stdout == f"{10 * len(sends)}\n"


@pytest.mark.serial
def test_different_signals_do_not_wait_for_each_other(scene: Scene) -> None:
    """A request to end is not kept back by requests to save, and none of them is merged with another meanwhile."""
    names = ("SIGUSR1", "SIGUSR2", "SIGALRM", "SIGTERM", "SIGCONT")
    wrapper, _ = start_job(scene, QUIET, workload("signals", *names))
    for _ in range(20):
        for name in names:
            wrapper.send_signal(signal.Signals[name])
        time.sleep(0.01)
    time.sleep(0.1)
    *got, last = scene.finish(wrapper, "").stdout.splitlines()
    assert last == "bye"
    assert Counter(got) == dict.fromkeys(names, 20)


@pytest.mark.parametrize("is_for_the_group", [False, True])
def test_a_job_in_a_session_of_its_own_can_still_be_ended(scene: Scene, is_for_the_group: bool) -> None:
    """`timeout` would reach it by its number, which is ours now: once, and not never."""
    wrapper, _ = start_job(scene, QUIET, ["setsid", *workload("signals", "SIGTERM")])
    (os.killpg if is_for_the_group else os.kill)(wrapper.pid, signal.SIGTERM)
    assert scene.read_line(wrapper) == "SIGTERM"
    time.sleep(0.1)
    assert scene.finish(wrapper, "").stdout == "bye\n"


def test_without_its_witness_a_signal_for_the_wrapper_is_forwarded(scene: Scene) -> None:
    """Somebody may kill it: better twice than never."""
    wrapper, _ = start_job(scene, QUIET, workload("signals", "SIGTERM"))
    (witness,) = (pid for pid, name in scene.processes().items() if name == WITNESS_NAME)
    os.kill(witness, signal.SIGKILL)
    wrapper.terminate()
    assert scene.read_line(wrapper) == "SIGTERM"
    assert scene.finish(wrapper, "").stdout == "bye\n"


def test_a_witness_that_is_stopped_delays_a_signal_and_loses_none(scene: Scene) -> None:
    """It is asked for a second, then done without."""
    wrapper, _ = start_job(scene, QUIET, workload("signals", "SIGTERM"))
    (witness,) = (pid for pid, name in scene.processes().items() if name == WITNESS_NAME)
    os.kill(witness, signal.SIGSTOP)
    wrapper.terminate()
    assert scene.read_line(wrapper) == "SIGTERM"
    outcome = scene.finish(wrapper, "")
    os.kill(witness, signal.SIGCONT)
    assert (outcome.returncode, outcome.stdout) == (5, "bye\n")


def test_a_signal_for_the_whole_group_ends_both_and_is_reported(scene: Scene) -> None:
    """When the whole process group is told to end, the job ends of it and is reported."""
    wrapper, _ = start_job(scene, QUIET, sh("echo ready; exec sleep 30"))
    os.killpg(wrapper.pid, signal.SIGTERM)
    outcome = scene.finish(wrapper)
    assert outcome.returncode == -signal.SIGTERM
    check_summary(outcome.stderr, 0.0)


@pytest.mark.repeats(few=12, soak=300)
@pytest.mark.parametrize("is_for_the_group", [False, True])
def test_an_interrupt_while_we_start_ends_everything_without_a_word(
    scene: Scene, is_for_the_group: bool, repeats: int
) -> None:
    """Whenever it comes: no job goes on, no traceback is printed, and only a job that ran leaves a recording."""
    for number in range(repeats):
        wrapper = scene.start(
            tracker("run", "--record", f"{number}.jsonl", "--", "sleep", "60"), preexec_fn=os.setpgrp
        )
        wait_until(lambda: children_of(wrapper.pid), "our first line has run")  # noqa: B023
        time.sleep(number % 12 / 250)
        (os.killpg if is_for_the_group else os.kill)(wrapper.pid, signal.SIGINT)
        outcome = scene.finish(wrapper)
        assert outcome.returncode == -signal.SIGINT
        assert not outcome.stderr or outcome.stderr.startswith("sleep 60: killed by SIGINT (2)"), outcome
        assert (scene.directory / f"{number}.jsonl").exists() == bool(outcome.stderr)


def _lead_a_group_that_blocks() -> None:
    os.setpgrp()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_signal_for_the_group_at_the_jobs_first_moment_reaches_it_once(scene: Scene, moment: str) -> None:
    """The job gets it from us if it was not yet there, and else from whoever sent it."""
    command = workload("signal_at_fork", moment, *QUIET, *workload("count_pending"))
    wrapper = scene.start(command, preexec_fn=_lead_a_group_that_blocks)
    assert scene.finish(wrapper).stdout == "1\n"


def test_a_job_that_ignores_sigterm_runs_on(scene: Scene) -> None:
    """Neither the wrapper nor the job ends of a SIGTERM that the job ignores."""
    wrapper, job = start_job(scene, QUIET, workload("signals", "-SIGTERM"))
    wrapper.terminate()
    time.sleep(0.3)
    assert wrapper.poll() is None
    assert read_state(job) is not None
    outcome = scene.finish(wrapper, "")
    assert (outcome.returncode, outcome.stdout) == (5, "bye\n")
    check_summary(outcome.stderr, 0.0)


def test_nohup_holds_for_wrapper_and_job(scene: Scene) -> None:
    """Under nohup a hangup ends nobody, and the job ignores it as it would without us."""
    command = ["nohup", *tracker(*QUIET), *workload("signals", "SIGUSR1")]
    wrapper = scene.start(command, stdin=subprocess.PIPE)
    assert scene.read_line(wrapper) == "ready"
    (job,) = children_of(wrapper.pid)
    ignored = next(line for line in Path(f"/proc/{job}/status").read_text().splitlines() if "SigIgn" in line)
    assert int(ignored.split()[1], 16) & (1 << (signal.SIGHUP - 1))
    wrapper.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    outcome = scene.finish(wrapper, "")
    assert (outcome.returncode, outcome.stdout) == (5, "bye\n")


@pytest.mark.parametrize(("ignore", "name"), [("nohup", "SIGHUP"), ("trap '' INT", "SIGINT")])
@pytest.mark.parametrize("is_for_the_group", [False, True])
def test_what_we_inherited_as_ignored_reaches_a_job_that_handles_it(
    scene: Scene, ignore: str, name: str, is_for_the_group: bool
) -> None:
    """A shell starts its background jobs so; one that saves its state on Ctrl-C gets it as often as without us."""
    words = shlex.join(tracker(*QUIET, *workload("signals", name)))
    script = f"exec nohup {words}" if ignore == "nohup" else f"{ignore}; exec {words}"
    wrapper = scene.start(sh(script), stdin=subprocess.PIPE, preexec_fn=os.setpgrp)
    assert scene.read_line(wrapper) == "ready"
    for _ in range(2):
        (os.killpg if is_for_the_group else os.kill)(wrapper.pid, signal.Signals[name])
        assert scene.read_line(wrapper) == name
        time.sleep(0.05)
    assert scene.finish(wrapper, "").stdout == "bye\n"


@pytest.mark.parametrize("mode", ["run", "-e"])
@pytest.mark.parametrize("trap", ["trap '' PIPE XFSZ", "trap '' PIPE", "trap '' XFSZ", ":"])
def test_what_a_shell_ignores_of_what_python_ignores_the_job_ignores_too(
    scene: Scene, mode: str, trap: str
) -> None:
    """Python hides what it inherited of SIGPIPE and SIGXFSZ; nothing else may change either."""
    job = ["grep", "SigIgn", "/proc/self/status"]
    words = tracker(*QUIET, *job) if mode == "run" else tracker("--disable-logs", "-e", shlex.join(job))
    # The last command might take the shell's place.
    bare = scene.run(sh(f"{trap}; {shlex.join(job)}; true"))
    tracked = scene.run(sh(f"{trap}; {shlex.join(words)}; true"))
    assert tracked.stdout.splitlines()[0] == bare.stdout.strip()


def test_what_another_python_ignores_for_itself_the_job_does_not(scene: Scene) -> None:
    """It starts its children with the default: what it ignores is not what they inherit."""
    outcome = scene.run_tracked(*QUIET, "grep", "SigIgn", "/proc/self/status")
    assert int(outcome.stdout.split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_a_suspended_wrapper_suspends_the_job_and_both_continue(scene: Scene) -> None:
    """SIGTSTP for the wrapper stops both, SIGCONT continues both, and nobody spins meanwhile."""
    wrapper, job = start_job(scene, QUIET, workload("signals", "SIGCONT"))
    wrapper.send_signal(signal.SIGTSTP)
    wait_for_state(job, "T")
    wait_for_state(wrapper.pid, "T")
    check_idle(scene.wait_for_sampler(), 0.5)
    wrapper.send_signal(signal.SIGCONT)
    assert scene.read_line(wrapper) == "SIGCONT"
    outcome = scene.finish(wrapper, "")
    assert (outcome.returncode, outcome.stdout) == (5, "bye\n")


def test_a_job_paused_and_continued_by_its_pid_is_waited_for(scene: Scene) -> None:
    """When somebody stops and continues the job itself, the wrapper does not stay behind stopped."""
    wrapper, job = start_job(scene, QUIET, workload("signals", "SIGUSR1"))
    os.kill(job, signal.SIGSTOP)
    wait_for_state(job, "T")
    time.sleep(0.2)
    os.kill(job, signal.SIGCONT)
    wait_until(lambda: read_state(job) != "T", "the job goes on")
    outcome = scene.finish(wrapper, "")
    assert (outcome.returncode, outcome.stdout) == (5, "bye\n")
    check_summary(outcome.stderr, 0.0)


@pytest.mark.parametrize("order", ["paused first", "told first"])
def test_a_job_that_does_not_stop_when_told_leaves_the_wrapper_running(scene: Scene, order: str) -> None:
    """A stop that the job did not take, and one that was meant for the job alone, never make one of both."""
    wrapper, job = start_job(scene, QUIET, workload("signals", "SIGTSTP"))

    def pause() -> None:
        os.kill(job, signal.SIGSTOP)
        wait_for_state(job, "T")
        time.sleep(0.1)
        os.kill(job, signal.SIGCONT)
        wait_until(lambda: read_state(job) != "T", "the job goes on")

    if order == "paused first":
        pause()
    wrapper.send_signal(signal.SIGTSTP)
    assert scene.read_line(wrapper) == "SIGTSTP"
    if order == "told first":
        pause()
    outcome = scene.finish(wrapper, "")
    assert (outcome.returncode, outcome.stdout) == (5, "bye\n")


# ---- Kills.


def test_killing_the_wrapper_kills_the_job(scene: Scene) -> None:
    """Who kills the wrapper means the job: it dies, the sampler ends, the recording can be read."""
    wrapper, job = start_job(scene, RECORDED, workload("busy", 0.3, 20))
    wrapper.kill()
    assert scene.finish(wrapper).returncode == -signal.SIGKILL
    wait_until(lambda: read_state(job) is None, "the job is dead", seconds=2)
    scene.wait_until_alone()
    report = scene.report(scene.directory / "run.jsonl")
    assert report["ending"] in ("tracker killed", "killed")
    assert report["summary"]["cpu"]["combined"]["seconds"] == pytest.approx(0.3, abs=0.15)
    assert report["summary"]["ram"]["combined"]["total_bytes"] > 20 * MEGABYTE
    check_ends_once(scene.directory / "run.jsonl")


def test_a_killed_job_is_reported(scene: Scene) -> None:
    """A job that somebody kills is followed by the wrapper, with a complete summary."""
    wrapper, job = start_job(scene, RECORDED, workload("busy", 0.3, 20))
    os.kill(job, signal.SIGKILL)
    outcome = scene.finish(wrapper)
    assert outcome.returncode == -signal.SIGKILL
    assert "killed by SIGKILL (9)" in outcome.stderr
    assert "[killed-why]" in outcome.stderr
    check_summary(outcome.stderr, 0.3)
    assert scene.report(scene.directory / "run.jsonl")["exit_code"] == -9


@pytest.mark.parametrize("options", [QUIET, RECORDED])
def test_a_killed_sampler_costs_only_its_own_figures(scene: Scene, options: Sequence[str]) -> None:
    """Without its sampler the job goes on, its code is right, and the summary has its time and CPU."""
    wrapper, _ = start_job(scene, options, workload("busy", 0.3, 20, 6))
    time.sleep(0.2)
    os.kill(scene.wait_for_sampler(), signal.SIGKILL)
    time.sleep(0.2)
    outcome = scene.finish(wrapper, "")
    assert outcome.returncode == 6
    check_summary(outcome.stderr, 0.3)
    assert "exit code 6, but its sampler was lost" in outcome.stderr
    assert outcome.stderr.count("The sampler was lost") == 1
    # No driver's library can have crashed where there is no GPU.
    assert "Someone killed it, or the system did for want of memory." in outcome.stderr
    assert not re.search(r"RAM .*exact", outcome.stderr)


@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_killed_sampler_loses_neither_regions_nor_metrics_nor_peaks(
    scene: Scene, is_recorded: bool
) -> None:
    """What the job's processes have left, and what the kernel tells their parent, is complete; the file gets its end."""
    options = (
        ("run", "--record", "run.jsonl", "--") if is_recorded else ("run", "-f", "json", "--no-record", "--")
    )
    wrapper, _ = start_job(scene, options, workload("regions"))
    assert wrapper.stdin is not None
    truth = {}
    for number in range(6):
        if number == 3:
            os.kill(scene.wait_for_sampler(), signal.SIGKILL)
            wait_until(lambda: not scene.samplers(), "the sampler is dead")
        wrapper.stdin.write("\n")
        wrapper.stdin.flush()
        truth = json.loads(scene.read_line(wrapper))
        time.sleep(0.2)
    outcome = scene.finish(wrapper, "")
    assert outcome.returncode == 0, outcome.stderr
    if is_recorded:
        check_ends_once(scene.directory / "run.jsonl")
        listed = scene.run_tracked("ls", "run.jsonl").stdout
        assert "its sampler was lost" in listed, listed
        report = scene.report(scene.directory / "run.jsonl")
    else:
        report = json.loads(outcome.stderr)
    assert (report["ending"], report["exit_code"]) == ("sampler lost", 0)
    (region,) = report["regions"]
    assert region["calls"] == truth["calls"] == 6
    (metric,) = report["metrics"]
    assert (metric["name"], metric["logged"]) == ("loss", 6)
    ram = report["summary"]["ram"]
    assert ram["main"]["total_bytes"] == pytest.approx(truth["peak_bytes"], rel=0.01)
    assert ram["combined"]["basis"] == "sampled"
    notes = [note for note in report["notes"] if "The sampler was lost" in note]
    assert len(notes) == 1
    assert re.search(r"nothing was measured from [\d.]+ s to [\d.]+ s", notes[0])


def test_a_hanging_sampler_delays_the_result_by_seconds_at_most(scene: Scene) -> None:
    """A sampler that does not answer is given up: the job's code and its time and CPU come all the same."""
    wrapper, _ = start_job(scene, QUIET, workload("busy", 0.3, 20, 6))
    sampler = scene.wait_for_sampler()
    hold(sampler)
    outcome = scene.finish(wrapper, "")
    os.waitpid(sampler, 0)
    assert outcome.returncode == 6
    check_summary(outcome.stderr, 0.3)
    assert "The sampler did not answer and was killed." in outcome.stderr


def test_a_sampler_that_somebody_stopped_is_continued_at_the_end(scene: Scene) -> None:
    """It has the last figures, and says from when to when it measured nothing."""
    wrapper, _ = start_job(scene, QUIET, workload("busy", 0.3, 20, 6))
    os.kill(scene.wait_for_sampler(), signal.SIGSTOP)
    time.sleep(2.5)
    outcome = scene.finish(wrapper, "")
    assert outcome.returncode == 6
    check_summary(outcome.stderr, 0.3)
    assert "lost" not in outcome.stderr
    assert re.search(
        r"Nothing was measured from [\d.]+ s to [\d.]+ s: the sampler did not run", outcome.stderr
    )


@pytest.mark.parametrize("seconds", [1, 4])
def test_a_limit_on_a_run_that_was_mostly_not_measured_cannot_be_checked(scene: Scene, seconds: int) -> None:
    """Its peak may have been in that time, even if the sampler was stopped for a moment only."""
    options = ["run", "--no-record", "--st", "0.1", "--fail-if", "peak_ram > 1TB", "--"]
    wrapper, _ = start_job(scene, options, workload("busy", 0, 20))
    os.kill(scene.wait_for_sampler(), signal.SIGSTOP)
    time.sleep(seconds)
    outcome = scene.finish(wrapper, "")
    assert outcome.returncode == 2
    assert re.search(r"used at least [\d.]+ MB, not measured all the time", outcome.stderr)


def test_killed_all_at_once_they_leave_a_readable_recording(scene: Scene) -> None:
    """After kill -9 of wrapper, job and sampler at once the recording loads and says so."""
    wrapper, _ = start_job(scene, RECORDED, workload("busy", 0.3, 20))
    time.sleep(0.3)
    for pid in sorted(scene.processes(), key=lambda pid: pid != scene.samplers()[0]):
        os.kill(pid, signal.SIGKILL)
    scene.finish(wrapper)
    text = scene.run_tracked("report", "run.jsonl")
    assert text.returncode == 0, text.stderr
    assert ": cut off; figures up to the last sample\n" in text.stdout
    check_summary(text.stdout, 0.3)


@pytest.mark.repeats(few=15, soak=300)
def test_a_job_of_a_few_milliseconds_has_no_exact_peak_that_is_not_its_own(
    scene: Scene, repeats: int
) -> None:
    """What was read while it started or ended is a sample; its parent knows only of peaks above its own."""
    script = (
        "import resource; b'x' * 40_000_000; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    for job in (["true"], [sys.executable, "-S", "-E", "-c", script]):
        for _ in range(repeats):
            outcome = scene.run_tracked("run", "--no-record", "-f", "json", "-o", "x.json", "--", *job)
            assert outcome.returncode == 0, outcome.stderr
            ram = json.loads((scene.directory / "x.json").read_text())["summary"]["ram"]["main"]
            if job == ["true"]:
                assert ram["basis"] != "exact", ram
            else:
                assert ram["basis"] == "exact", ram
                assert ram["total_bytes"] == pytest.approx(int(outcome.stdout), rel=0.02)


@needs_root
def test_a_job_killed_in_a_group_that_it_entered_itself_is_told_so(scene: Scene) -> None:
    """As a batch script does that starts each of its steps in a group of its own."""
    with memory_limit(150 * MEGABYTE) as prefix:
        job = sh(f"sleep 1; exec {shlex.join(workload('busy', 0.1, 400))}")
        outcome = scene.run_tracked(*QUIET, *prefix, *job)
        assert outcome.returncode == -signal.SIGKILL, outcome.stderr
        limit = 150 * MEGABYTE // 4096 * 4096 / 1e6
        assert f"memory limit of {limit:.0f} MB was reached" in outcome.stderr
        assert "killed it for its memory: " in " ".join(outcome.stderr.split())
        check_said_once(outcome.stderr)
        scene.wait_until_alone()


@pytest.mark.parametrize(("mode", "inside"), [("run", ""), ("run", "step"), ("-e", "")])
@needs_root
def test_a_job_killed_for_its_memory_is_told_so(scene: Scene, mode: str, inside: str) -> None:
    """A job killed at its memory limit, or that of the group around its own, is followed by us, with a summary, and a note on it."""
    with memory_limit(150 * MEGABYTE, inside) as prefix:
        job = workload("busy", 0.1, 400)
        arguments = [*QUIET, *job] if mode == "run" else ["-e", " ".join(job)]
        outcome = scene.run([*prefix, *tracker(*arguments)])
        assert outcome.returncode == -signal.SIGKILL, outcome.stderr
        limit = 150 * MEGABYTE // 4096 * 4096 / 1e6
        assert f"memory limit of {limit:.0f} MB was reached" in outcome.stderr
        check_said_once(outcome.stderr)
        scene.wait_until_alone()
    if mode == "run":
        peak = re.search(r"RAM +peak ([\d.]+) MB of", outcome.stderr)
        assert peak
        assert 80 < float(peak[1]) < 151, outcome.stderr


# ---- Streams.

NOISE = "import os, sys; sys.stdout.buffer.write(bytes(range(256)) * 4000); os.write(2, b'err')"


def test_standard_output_is_the_jobs_byte_for_byte(scene: Scene) -> None:
    """What the job writes to standard output arrives as it is, and nothing else does."""
    job = [sys.executable, "-c", NOISE]
    with (scene.directory / "out").open("wb") as file:
        outcome = scene.run_tracked(*QUIET, *job, stdout=file)
    assert outcome.returncode == 0
    assert (scene.directory / "out").read_bytes() == bytes(range(256)) * 4000
    assert outcome.stderr.startswith("err")


def test_standard_input_is_the_jobs(scene: Scene) -> None:
    """What is written to our standard input arrives at the job, to its end."""
    text = "".join(f"line {number}\n" for number in range(20_000))
    wrapper = scene.start(tracker(*QUIET, "cat"), stdin=subprocess.PIPE)
    outcome = scene.finish(wrapper, text)
    assert outcome.stdout == text
    assert outcome.returncode == 0


@pytest.mark.parametrize("command", ["yes", "seq 3"])
@pytest.mark.parametrize("mode", ["run", "-e"])
def test_a_reader_that_goes_early_ends_the_job_as_ever(scene: Scene, mode: str, command: str) -> None:
    """In `job | head -1` the job ends of the broken pipe as it does untracked, and nobody complains."""
    tracked = (
        f"{COMMAND} {' '.join(QUIET)} {command}"
        if mode == "run"
        else f"{COMMAND} -e '{command}' --disable-logs"
    )
    script = "{} | head -1; echo ${{PIPESTATUS[*]}}"
    untracked = scene.run(["bash", "-c", script.format(command)])
    outcome = scene.run(["bash", "-c", script.format(tracked)])
    if command == "yes":
        assert outcome.stdout == untracked.stdout == "y\n141 0\n"
    else:
        assert outcome.stdout.splitlines()[0] == "1"
        assert outcome.stdout.splitlines()[1] in ("0 0", "141 0")
    assert "Traceback" not in outcome.stderr
    assert "BrokenPipe" not in outcome.stderr


def test_jobs_in_a_pipeline_are_each_tracked(scene: Scene) -> None:
    """Two tracked jobs in one pipeline work together as untracked ones do."""
    one = f"{COMMAND} {' '.join(QUIET)}"
    outcome = scene.run(
        ["bash", "-c", f"{one} seq 5 | {one} sort -r | tr '\\n' ' '; echo ${{PIPESTATUS[*]}}"]
    )
    assert outcome.stdout == "5 4 3 2 1 0 0 0\n"
    assert len(re.findall(r"exit code 0", outcome.stderr)) == 2


INHERITED = """
pwd; env | sort; umask; ulimit -a
cat /proc/$$/oom_score_adj
for fd in /proc/$$/fd/*; do echo "${fd##*/}"; done
set -- $(cat /proc/$$/stat); echo "group $5 session $6 terminal $7 nice ${19}"
"""
# Not in the shell, which blocks all signals for the moments in which it starts something.
STATUS = [
    "grep",
    "-E",
    "^(Sig(Blk|Ign|Cgt)|ShdPnd|NoNewPrivs|Seccomp|Cpus_allowed|Cap...):",
    "/proc/self/status",
]


def without_place(printed: str) -> str:
    """An environment without the one variable that lets the job's own processes tell of their regions."""
    lines = printed.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("GPU_TRACKER_MAILBOX=/dev/shm/gpu-tracker-"))


def test_the_job_inherits_what_it_would_untracked(scene: Scene) -> None:
    """Environment, limits, signals, descriptors, group and session of the job are as ever."""
    extra = os.open(os.devnull, os.O_RDONLY)
    try:
        for job in (sh(INHERITED), STATUS):
            env = {"STRANGE": "a b\nc=\udcff"}
            untracked = scene.run(job, pass_fds=(extra,), env=env)
            outcome = scene.run_tracked(*QUIET, *job, pass_fds=(extra,), env=env)
            assert without_place(outcome.stdout) == untracked.stdout
            assert len(outcome.stdout) > 100
    finally:
        os.close(extra)


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("mode", ["run", "-e"])
def test_closed_streams_do_not_keep_the_job_from_running(scene: Scene, mode: str, streams: str) -> None:
    """Without standard streams the job runs, finds them closed as it would untracked, and gives its code."""
    script = "for fd in /proc/$$/fd/[012]; do echo ${fd##*/}; done > %s; exit 3"
    scene.run(sh(f"sh -c '{script % 'untracked'}' {streams}"))
    (scene.directory / "job.sh").write_text(script % "tracked")
    tracked = f"{COMMAND} {' '.join(QUIET)} sh job.sh" if mode == "run" else f"{COMMAND} -e 'sh job.sh'"
    outcome = scene.run(sh(f"{tracked} {streams}; exit $?"))
    assert outcome.returncode == 3, outcome.stderr
    assert (scene.directory / "tracked").read_text() == (scene.directory / "untracked").read_text()
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("mode", ["run", "-e"])
def test_a_full_standard_error_loses_neither_code_nor_result(scene: Scene, mode: str) -> None:
    """When nothing can be said on standard error, the job's code and the result are right."""
    arguments = [*QUIET, *sh("echo hello; exit 3")] if mode == "run" else ["-e", "sh -c 'echo hello; exit 3'"]
    with open("/dev/full", "w", encoding="ascii") as full:
        outcome = scene.run_tracked(*arguments, stderr=full)
    assert outcome.returncode == 3
    assert outcome.stdout.startswith("hello\n")
    assert ("Max RAM" in outcome.stdout) == (mode == "-e")


def test_a_name_that_is_not_text_is_passed_as_it_is(scene: Scene) -> None:
    """Arguments that are no valid UTF-8 reach the job untouched, and its summary and recording are made."""
    job = sh('printf %s "$0" | od -An -tx1')
    outcome = scene.run(tracker(*RECORDED, *job, b"caf\xe9 \xff"))
    assert outcome.stdout.split() == ["63", "61", "66", "e9", "20", "ff"]
    assert outcome.returncode == 0
    assert "exit code 0" in outcome.stderr
    assert scene.run_tracked("report", "run.jsonl").returncode == 0


# ---- Children that stay.


def test_a_daemon_of_the_job_does_not_delay_the_end(scene: Scene) -> None:
    """A daemon that the job leaves running is not waited for, nor killed, nor watched any longer."""
    job = sh("setsid sleep 30 </dev/null >/dev/null 2>&1 & sleep 0.2; exit 4")
    assert scene.finish(scene.start(tracker(*QUIET, *job)), seconds=5).returncode == 4
    wait_until(
        lambda: Counter(scene.processes().values()) == {"sleep": 1}, "only the daemon is left", seconds=2
    )
    (daemon,) = scene.processes()
    os.kill(daemon, signal.SIGKILL)


def test_a_child_that_holds_the_output_is_not_waited_for_by_us(scene: Scene) -> None:
    """A child that keeps the job's output open delays its readers as ever, but not the wrapper."""
    wrapper = scene.start(tracker(*QUIET, *sh("sleep 30 & echo $!; exit 4")))
    child = int(scene.read_line(wrapper))
    assert wrapper.wait(timeout=15) == 4
    os.kill(child, signal.SIGKILL)


# ---- Refusals, before anything has run.

REFUSED = {
    "unwritable output": ["-o", "/proc/nowhere/result"],
    "output in a missing directory": ["-o", "missing/result"],
    "output that is a directory": ["-o", "."],
    "unknown format": ["-f", "xml"],
    "no interval": ["--st", "0"],
    "negative interval": ["--st", "-1"],
    "interval that is no number": ["--st", "abc"],
    "interval that is nan": ["--st", "nan"],
    "interval without end": ["--st", "inf"],
    "no cores": ["--nec", "0"],
    "half a core": ["--nec", "0.5"],
    "no GPU": ["--guuids", ""],
    "existing recording": ["--record", "exists.jsonl"],
    "overhead above one": ["--max-overhead", "2"],
    "unknown option": ["--no-such-option"],
}
PAPERS = {
    "RAM unit": ["--ru", "GB"],
    "GPU RAM unit": ["--gru", "GB"],
    "time unit": ["--tu", "fortnights"],
}


@pytest.mark.parametrize(
    ("mode", "case"), [*(("run", case) for case in REFUSED), *(("-e", case) for case in (*REFUSED, *PAPERS))]
)
def test_a_wrong_request_is_refused_before_the_job_starts(scene: Scene, mode: str, case: str) -> None:
    """What cannot be done is said in one sentence with code 2, and the job has not run."""
    (scene.directory / "exists.jsonl").write_text("somebody else's")
    options = {**REFUSED, **PAPERS}[case]
    job = "touch marker"
    arguments = ["run", *options, "--", *job.split()] if mode == "run" else ["-e", job, *options]
    outcome = scene.run_tracked(*arguments)
    check_refused(outcome, scene.directory / "marker")
    assert sorted(path.name for path in scene.directory.iterdir()) == ["exists.jsonl"]
    assert (scene.directory / "exists.jsonl").read_text() == "somebody else's"


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            ["run"],
            ["run", "--"],
            ["run", "--", ""],
            ["-e", ""],
            ["-e", "''"],
            ["-e", "'unclosed"],
            ["-o", "x"],
            ["attach"],
        ),
        *(["run", "--name", name, "--", "touch", "marker"] for name in ("", "x" * 201)),
        *(
            ["run", "--label", label, "--", "touch", "marker"]
            for label in ("=x", "x" * 201 + "=1", "x=" + "1" * 201)
        ),
    ],
)
def test_a_request_without_a_job_is_refused(scene: Scene, arguments: list[str]) -> None:
    """Without a command there is one sentence and code 2."""
    check_refused(scene.run_tracked(*arguments), scene.directory / "marker")


def test_an_unwritable_place_is_refused_to_an_ordinary_user(scene: Scene) -> None:
    """An ordinary user learns before the job starts that the result cannot be written there."""
    with public_directory() as directory:
        place = directory / "place"
        place.mkdir(mode=0o555)
        command = [
            nobodys_python(),
            "-m",
            "gpu_tracker",
            "run",
            "--no-record",
            "-o",
            "place/result",
            "--",
            "touch",
            "marker",
        ]
        outcome = scene.run(as_nobody(command), cwd=directory)
        check_refused(outcome, directory / "marker")


# ---- Recordings that cannot be made.

UNRECORDED = {
    "below a file": "file/run.jsonl",
    "in a file": "file",
    "nowhere": "/proc/nowhere",
    "a name that is too long": "x" * 300,
    "a path that is too long": "x/" * 3000,
}


@pytest.mark.parametrize("case", UNRECORDED)
@pytest.mark.parametrize("mode", ["run", "-e"])
def test_a_recording_that_cannot_be_made_costs_one_sentence(scene: Scene, mode: str, case: str) -> None:
    """The job is not refused for it."""
    (scene.directory / "file").write_text("somebody else's")
    options = ["--record", UNRECORDED[case]]
    arguments = ["run", *options, "--", "touch", "m"] if mode == "run" else ["-e", "touch m", *options]
    outcome = scene.run_tracked(*arguments)
    assert outcome.returncode == 0
    assert (scene.directory / "m").exists()
    assert outcome.stderr.count("The run is not recorded.") == 1
    assert "recording:" not in outcome.stderr
    assert (scene.directory / "file").read_text() == "somebody else's"


def test_an_ordinary_user_in_a_read_only_directory_runs_unrecorded(scene: Scene) -> None:
    """The default place is the current directory, where not everybody may write."""
    with public_directory() as directory:
        place = directory / "place"
        place.mkdir(mode=0o555)
        command = [nobodys_python(), "-m", "gpu_tracker", "run", "--", *sh("echo ran; exit 3")]
        outcome = scene.run(as_nobody(command), cwd=place)
        assert (outcome.returncode, outcome.stdout) == (3, "ran\n")
        assert outcome.stderr.count("Permission denied. The run is not recorded.") == 1


@needs_root
def test_a_disk_without_room_for_another_file_costs_one_sentence(scene: Scene) -> None:
    """The recording cannot even be created, or not even its first line fits."""
    with small_disk(scene.directory, 1 << 20) as disk:
        fill(disk)
        outcome = scene.run_tracked("run", "--record", disk / "runs", "--", *sh("echo ran; exit 3"))
        assert (outcome.returncode, outcome.stdout) == (3, "ran\n")
        assert outcome.stderr.count("No space left on device") == 1


@needs_root
def test_a_recording_without_a_single_line_is_none(scene: Scene) -> None:
    """The disk was full from the start: no empty file is left, and none is named."""
    with small_disk(scene.directory, 1 << 20) as disk:
        fill(disk)
        outcome = scene.run_tracked("run", "--record", disk / "run.jsonl", "--", *sh("exit 3"))
        assert outcome.returncode == 3
        assert "recording:" not in outcome.stderr
        assert not (disk / "run.jsonl").exists()


LOGGING = """
import gpu_tracker as gput, time
for number in range(3000):
    gput.log(x=number, y=0, z=0)
    if number % 30 == 0: time.sleep(0.01)
gput.log(x=-1)
"""


@needs_root
@pytest.mark.parametrize("n_bytes", [16 * 1024, 0])
@pytest.mark.parametrize(("limit", "code"), [("metrics.x < 0", 1), ("metrics.x < -9", 3)])
def test_metrics_are_counted_although_they_cannot_be_written(
    scene: Scene, n_bytes: int, limit: str, code: int
) -> None:
    """A limit on the last value is checked on a disk that gets full, or is full from the start; that it was full is no success."""
    with small_disk(scene.directory, 1 << 20) as disk:
        fill(disk, leave_bytes=n_bytes)
        options = ["-f", "json", "-o", "report.json", "--fail-if", limit]
        job = [sys.executable, "-c", LOGGING]
        outcome = scene.run_tracked(
            "run", "--st", "0.05", "--record", disk / "run.jsonl", *options, "--", *job
        )

    report = json.loads((scene.directory / "report.json").read_text())
    logged = {metric["name"]: metric for metric in report["metrics"]}
    assert len([note for note in report["notes"] if "No space left on device" in note]) == 1
    assert (logged["x"]["logged"], logged["x"]["last"], logged["x"]["maximum"]) == (3001, -1, 2999)
    assert outcome.returncode == code


@needs_root
def test_a_rank_that_prints_nothing_says_why_its_gate_ends_with_3(scene: Scene) -> None:
    """No report explains the exit code; the rank is one of several."""
    rank = {"SLURM_JOB_ID": "4717", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURMD_NODENAME": "n1"}
    with small_disk(scene.directory, 1 << 20) as disk:
        fill(disk, leave_bytes=0)
        outcome = scene.run_tracked(
            "run", "--record", disk / "run.jsonl", "--fail-if", "time > 1h", "--", "sleep", "0.3", env=rank
        )

    assert outcome.returncode == 3
    assert len(outcome.stderr.splitlines()) == 1
    assert "No space left on device" in outcome.stderr


LOGGING_MUCH = """
import gpu_tracker as gput, random
for number in range(250_000):
    gput.log(x=random.random(), y=random.random(), z=number)
"""


@pytest.mark.parametrize(("options", "n_notes"), [((), 1), (("--full-resolution",), 0)])
def test_metrics_of_which_some_are_not_kept_are_said(
    scene: Scene, options: tuple[str, ...], n_notes: int
) -> None:
    """The totals know all of them."""
    files = ("-f", "json", "-o", "report.json", "--record", "run.jsonl")
    outcome = scene.run_tracked("run", *files, *options, "--", sys.executable, "-c", LOGGING_MUCH)
    report = json.loads((scene.directory / "report.json").read_text())
    logged = {metric["name"]: metric for metric in report["metrics"]}

    assert outcome.returncode == 0
    assert len([note for note in report["notes"] if "logged so many numbers" in note]) == n_notes
    assert (logged["z"]["logged"], logged["z"]["last"]) == (250_000, 249_999)


# ---- Starting together.


@pytest.mark.timeout(200)
def test_64_runs_at_once_make_one_directory_and_64_recordings(scene: Scene) -> None:
    """Ranks, array tasks and `xargs -P` all start in the same moment."""
    script = f"seq 64 | xargs -P 64 -I{{}} {COMMAND} run --st 1 --record new/runs -- sh -c 'echo {{}}'"
    outcome = scene.run(sh(script), stderr=subprocess.DEVNULL)
    assert outcome.returncode == 0
    assert sorted(map(int, outcome.stdout.split())) == list(range(1, 65))
    recordings = list((scene.directory / "new/runs").iterdir())
    assert len(recordings) == 64
    for path in recordings:
        check_ends_once(path)


@needs_root
def test_equal_pids_in_one_second_get_a_recording_each(scene: Scene) -> None:
    """In containers every job has the same low pid; so have nodes of a cluster, now and then."""
    one = f"unshare -pf --mount-proc {COMMAND} run --record runs -- true"
    if scene.run(["unshare", "-pf", "--mount-proc", "true"]).returncode:
        pytest.skip("cannot make a pid namespace here")
    outcome = scene.run(sh(f"seq 12 | xargs -P 12 -I{{}} {one}"))
    assert outcome.returncode == 0, outcome.stderr
    assert "Traceback" not in outcome.stderr
    recordings = list((scene.directory / "runs").iterdir())
    assert len(recordings) == 12
    assert len({lines_of(path)[0]["header"]["pid"] for path in recordings}) < 12
    for path in recordings:
        check_ends_once(path)


SLOW_MKDIR = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>
int mkdir(const char *path, mode_t mode) {
    int (*real)(const char *, mode_t) = dlsym(RTLD_NEXT, "mkdir");
    usleep(20000);
    return real(path, mode);
}
"""


@needs_root
@pytest.mark.timeout(900)
@pytest.mark.repeats(few=1, soak=20)
def test_64_ranks_with_equal_pids_and_a_slow_file_system(scene: Scene, repeats: int) -> None:
    """All of a job's nodes make its directory at once, and each rank has the pid of another one."""
    source, library = scene.directory / "slow.c", scene.directory / "slow.so"
    source.write_text(SLOW_MKDIR)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    if scene.run(["unshare", "-pf", "--mount-proc", "true"]).returncode:
        pytest.skip("cannot make a pid namespace here")
    one = f"OMPI_COMM_WORLD_RANK={{}} LD_PRELOAD={library} unshare -pf --mount-proc {COMMAND} run --record runs -- true"
    for launch in range(repeats):
        environment = {"SLURM_JOB_ID": str(launch), "SLURM_STEP_ID": "0", "OMPI_COMM_WORLD_SIZE": "64"}
        outcome = scene.run(sh(f"seq 0 63 | xargs -P 64 -I{{}} sh -c '{one}'"), env=environment)
        assert (outcome.returncode, "Traceback" in outcome.stderr) == (0, False), outcome.stderr
        recordings = list((scene.directory / f"runs/job-{launch}").iterdir())
        ranks = [lines_of(path)[0]["header"]["identity"]["rank"] for path in recordings]
        assert sorted(ranks) == list(range(64))


# ---- Results.


@pytest.mark.parametrize("mode", ["run", "-e"])
def test_a_result_that_cannot_be_written_is_said_and_shown(scene: Scene, mode: str) -> None:
    """When the result's place turns out to be full, the result is shown instead and the job's code stands."""
    options = ["-o", "/dev/full"]
    arguments = (
        ["run", "--no-record", *options, "--", *sh("exit 3")]
        if mode == "run"
        else ["-e", "sh -c 'exit 3'", *options]
    )
    outcome = scene.run_tracked(*arguments)
    assert outcome.returncode == 3
    assert "No space left on device" in outcome.stderr
    assert ("exit code 3" if mode == "run" else "Max RAM") in outcome.stderr
    assert "Traceback" not in outcome.stderr


@needs_root
def test_a_disk_that_fills_up_leaves_the_old_result(scene: Scene) -> None:
    """A result that does not fit leaves the old one as it was, no fragment, and is shown instead."""
    with small_disk(scene.directory, 64 * 1024) as disk:
        (disk / "result").write_text("old")
        wrapper, _ = start_job(
            scene, ["run", "--no-record", "-o", str(disk / "result"), "--"], workload("busy", 0.1, 1)
        )
        fill(disk)
        outcome = scene.finish(wrapper, "")
        assert outcome.returncode == 0
        assert (disk / "result").read_text() == "old"
        assert sorted(path.name for path in disk.iterdir()) == ["filler", "result"]
        assert "exit code 0" in outcome.stderr


@needs_root
@pytest.mark.parametrize("suffix", ["csv", "sqlite"])
def test_a_tracking_file_goes_on_when_there_is_room_again(scene: Scene, suffix: str) -> None:
    """A full disk tears no row, costs none, and is said once."""
    with small_disk(scene.directory, 64 * 1024) as disk:
        path = disk / f"x.{suffix}"
        options = ["run", "--no-record", "--st", "0.05", "--tf", str(path), "--fail-if", "time > 1h", "--"]
        wrapper, _ = start_job(scene, options, workload("busy", 0.1, 1))
        filler = fill(disk)
        time.sleep(4.0)
        os.truncate(filler, 0)
        time.sleep(0.5)
        outcome = scene.finish(wrapper, "")
        assert outcome.returncode == 3  # the limit is kept, but not all that was asked for
        assert outcome.stderr.count("The tracking file could not be written for a while") == 1
        if suffix == "csv":
            rows = [line.split(",") for line in path.read_text().splitlines()[3:]]
        else:
            with contextlib.closing(sqlite3.connect(path)) as connection:
                rows = connection.execute("SELECT * FROM data").fetchall()
        assert {len(row) for row in rows} == {22}
        times = [float(row[-1]) for row in rows]
        assert max(after - before for before, after in itertools.pairwise(times)) < 2.0


@pytest.mark.parametrize("mode", ["run", "-e"])
def test_a_result_appears_whole(scene: Scene, mode: str) -> None:
    """A result replaces the old one in a single step when the job is over, and leaves no draft."""
    result = scene.directory / "result.json"
    result.write_text("old")
    options = ["-f", "json", "-o", "result.json"]
    script = "cat result.json; exit 3"
    arguments = (
        ["run", "--no-record", *options, "--", *sh(script)]
        if mode == "run"
        else ["-e", f"sh -c '{script}'", *options]
    )
    outcome = scene.run_tracked(*arguments)
    assert outcome.returncode == 3
    assert outcome.stdout.startswith("old")
    assert isinstance(json.loads(result.read_text()), dict)
    assert [path.name for path in scene.directory.iterdir()] == ["result.json"]


def test_a_result_through_a_link_goes_where_the_link_points(scene: Scene) -> None:
    """A link stays a link: its target gets the result, as with any redirection."""
    target, link = scene.directory / "target", scene.directory / "link"
    target.write_text("old")
    link.symlink_to("target")
    assert scene.run_tracked("run", "--no-record", "-o", "link", "--", "true").returncode == 0
    assert link.is_symlink()
    assert "exit code 0" in target.read_text()


def test_a_result_for_standard_output_joins_the_jobs_output(scene: Scene) -> None:
    """A file that is our own standard output, under whatever name, keeps what the job wrote there."""
    standard_output = (
        scene.directory / "stdout"
    )  # not /dev/stdout itself: who fails must not harm the machine
    standard_output.symlink_to("/proc/self/fd/1")
    output = scene.directory / "output"
    with output.open("w") as file:
        outcome = scene.run_tracked("run", "--no-record", "-o", "stdout", "--", "echo", "hello", stdout=file)
    assert outcome.returncode == 0, outcome.stderr
    assert standard_output.is_symlink()
    assert output.read_text().startswith("hello\n")
    assert "exit code 0" in output.read_text()


def test_a_result_for_a_named_pipe_reaches_its_reader(scene: Scene) -> None:
    """Who reads the result from a named pipe gets it, and nobody waits for ever."""
    os.mkfifo(scene.directory / "pipe")
    reader = scene.start(["cat", "pipe"])
    outcome = scene.run_tracked("run", "--no-record", "-o", "pipe", "--", *sh("sleep 0.2; exit 3"))
    assert outcome.returncode == 3
    assert "exit code 3" in scene.finish(reader).stdout


def test_a_killed_wrapper_leaves_no_draft(scene: Scene) -> None:
    """Even kill -9 leaves no half-made result, nor the draft of one."""
    wrapper, _ = start_job(scene, ["run", "--no-record", "-o", "result", "--"], workload("busy", 0.1, 1))
    wrapper.kill()
    scene.finish(wrapper)
    scene.wait_until_alone()
    assert not list(scene.directory.iterdir())


# ---- Recordings.


def test_a_report_is_what_the_run_printed(scene: Scene) -> None:
    """`gpu-tracker report` prints what the run itself printed, to the letter; only the run says where more is."""
    wrapper, _ = start_job(scene, RECORDED, workload("busy", 1.2, 30, 3))
    outcome = scene.finish(wrapper, "")
    *printed, charts, last = outcome.stderr.splitlines()
    assert last == f"  recording: {scene.directory / 'run.jsonl'}"
    assert charts.startswith(f"  charts: gpu-tracker report {scene.directory / 'run.jsonl'} -o report.")
    assert scene.run_tracked("report", "run.jsonl").stdout.splitlines() == printed


@pytest.mark.uncovered
def test_a_recording_cut_anywhere_can_be_read(scene: Scene) -> None:
    """Cut at any byte of its last 2 KB the recording gives a report; no sample that is whole is lost."""
    from gpu_tracker.recording.reader import load
    from gpu_tracker.reports.build import build
    from gpu_tracker.reports.contract import render

    wrapper, _ = start_job(scene, RECORDED, workload("busy", 0.5, 30))
    time.sleep(0.5)
    scene.finish(wrapper, "")
    content = (scene.directory / "run.jsonl").read_bytes()
    first = content.index(b"\n") + 1
    cut = scene.directory / "cut.jsonl"
    cut.write_bytes(content)
    for size in reversed(range(max(first, len(content) - 2048), len(content))):
        os.truncate(cut, size)
        report = build(load(str(cut)))
        whole = content[:size].count(b'{"sample"') - (not content[:size].endswith(b"\n"))
        assert report.summary.readings >= max(0, whole - 1)
        assert size % 16 or render(report, "text")
    for size in (first, len(content) - 100, len(content) - 2):
        cut.write_bytes(content[:size])
        outcome = scene.run_tracked("report", cut)
        assert outcome.returncode == 0, outcome.stderr
        assert "The recording was cut off at " in outcome.stdout


@pytest.mark.parametrize(
    "content", [None, b"", b"\0" * 4096, b"hello\n", b'{"header": {}}\n', b"[1]\n", b"\xff\xfe"]
)
def test_what_is_no_recording_is_said_in_one_sentence(scene: Scene, content: bytes | None) -> None:
    """A file that is missing, empty or something else gives one sentence and a code, never a traceback."""
    if content is not None:
        (scene.directory / "file.jsonl").write_bytes(content)
    check_refused(scene.run_tracked("report", "file.jsonl"), scene.directory / "marker", code=2)


def test_a_damaged_line_in_the_middle_is_left_out_and_said(scene: Scene) -> None:
    """A line spoilt by a bad disk costs that line only, and the report says which."""
    wrapper, _ = start_job(scene, RECORDED, workload("busy", 0.4, 30))
    scene.finish(wrapper, "")
    lines = (scene.directory / "run.jsonl").read_bytes().splitlines(keepends=True)
    lines[3] = b"\0" * 100 + b"\n"
    (scene.directory / "bad.jsonl").write_bytes(b"".join(lines))
    outcome = scene.run_tracked("report", "bad.jsonl")
    assert outcome.returncode == 0, outcome.stderr
    assert "Line 4" in outcome.stdout
    check_summary(outcome.stdout, 0.4)


@pytest.mark.parametrize("command", ["report", "attach"])
def test_a_report_for_a_full_disk_is_an_error_in_one_sentence(scene: Scene, command: str) -> None:
    """A result that cannot be written is an error with one sentence, not a traceback."""
    scene.run_tracked(*RECORDED, "true")
    what = "run.jsonl"
    if command == "attach":
        what = str(scene.start(["sleep", "0.5"]).pid)
    outcome = scene.run_tracked(
        command, what, "-o", "/dev/full", *(["--no-record"] if command == "attach" else [])
    )
    assert outcome.returncode == 3
    assert "No space left on device" in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_help_for_a_reader_that_goes_early_is_no_error(scene: Scene) -> None:
    """`gpu-tracker --help | head -1` ends quietly."""
    outcome = scene.run(["bash", "-c", f"{COMMAND} --help | head -1"])
    assert "Traceback" not in outcome.stderr
    assert "Broken" not in outcome.stderr


# ---- Attaching.


def test_attach_follows_a_process_to_its_end(scene: Scene) -> None:
    """An attached process is followed until it ends, then its figures are printed."""
    other = scene.start(workload("busy", 0.2, 20), stdin=subprocess.PIPE)
    scene.read_line(other)
    attached = scene.start(tracker("attach", other.pid, "--st", "0.1", "--record", "run.jsonl"))
    wait_until_attached(attached)
    sampler = scene.wait_for_sampler()
    time.sleep(0.3)
    check_idle(sampler, 0.5)
    scene.finish(other, "")
    outcome = scene.finish(attached)
    assert outcome.returncode == 0
    check_summary(outcome.stderr, 0.0)
    check_ends_once(scene.directory / "run.jsonl")


@pytest.mark.parametrize(("script", "code"), [("read x; exit 3", 3), ("read x; kill -9 $$", -9)])
def test_attach_records_how_the_process_ended(scene: Scene, script: str, code: int) -> None:
    """A run that failed passes no gate, whoever started it."""
    other = scene.start(sh(script), stdin=subprocess.PIPE)
    attached = scene.start(tracker("attach", other.pid, "--st", "0.1", "--record", "run.jsonl"))
    wait_until_attached(attached)
    assert other.stdin is not None
    other.stdin.close()  # its parent, which we are, reads its exit code only after the tracker
    outcome = scene.finish(attached)
    assert (outcome.returncode, other.wait()) == (0, code)
    report = scene.report(scene.directory / "run.jsonl")
    assert (report["ending"], report["exit_code"]) == ("ended", code)
    gate = scene.run_tracked("compare", "run.jsonl", "--fail-if", "time > 1h")
    assert gate.returncode == 2, gate.stderr


HARD_AT_THE_END = """
import signal, subprocess, sys, time
burn = "import sys, time; sys.stdin.readline()\\nwhile time.process_time() < 0.3: pass"
waits, path = sys.argv[1] == "waits", sys.argv[2]
if not waits:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel waits for it, at once
job = subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE,
                       preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_DFL))
print(job.pid, flush=True)
sys.stdin.readline()
job.stdin.close()
sys.stdin.readline()
"""


@pytest.mark.parametrize("parent", ["waits", "ignores"])
def test_attach_knows_all_that_was_used_or_says_that_it_does_not(scene: Scene, parent: str) -> None:
    """Until its parent waits for it, a process that has ended tells what it used in all; then nobody does."""
    starter = scene.start([sys.executable, "-c", HARD_AT_THE_END, parent, "x"], stdin=subprocess.PIPE)
    pid = scene.read_line(starter).strip()
    attached = scene.start(tracker("attach", pid, "--record", "run.jsonl"))
    wait_until_attached(attached)
    assert starter.stdin is not None
    starter.stdin.write("\n")
    starter.stdin.flush()
    outcome = scene.finish(attached)
    starter.stdin.close()
    assert starter.wait() == 0
    summary = scene.report(scene.directory / "run.jsonl")["summary"]
    # It had used less than a tenth of a second when it was attached to.
    is_known = summary["cpu"]["combined"]["seconds"] > 0.2
    assert is_known or summary["is_cpu_least"]
    assert is_known or parent == "ignores"
    assert summary["is_cpu_least"] == ("was gone before it could be read a last time" in outcome.stderr)
    gate = scene.run_tracked("compare", "run.jsonl", "--allow-failed", "--fail-if", "cpu_time > 1h")
    assert gate.returncode == (2 if summary["is_cpu_least"] else 0), gate.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_attach_ends_with_an_interrupt_and_leaves_the_process_alone(
    scene: Scene, number: signal.Signals
) -> None:
    """Interrupting is the normal way to end attach: figures, code 0, the process untouched."""
    other = scene.start(workload("busy", 0.2, 20), stdin=subprocess.PIPE)
    scene.read_line(other)
    attached = scene.start(tracker("attach", other.pid, "--st", "0.1", "--no-record"))
    wait_until_attached(attached)
    time.sleep(0.5)
    attached.send_signal(number)
    outcome = scene.finish(attached)
    assert outcome.returncode == 0, outcome.stderr
    check_summary(outcome.stderr, 0.0)
    assert outcome.stderr.splitlines()[0].endswith(": interrupted")
    assert scene.finish(other, "").returncode == 0


@pytest.mark.timed
def test_a_whole_job_is_followed_whoever_starts_its_processes(scene: Scene) -> None:
    """Those that came before, those that come later; not those of another job, and not the tracker itself."""
    job, other = {"SLURM_JOB_ID": "4711", "SLURMD_NODENAME": "n1"}, {"SLURM_JOB_ID": "4712"}
    command = [sys.executable, str(Path(__file__).parent / "workloads" / "resident.py")]
    strangers = scene.start([*command, "300", "4"], env=other)
    early = scene.start([*command, "100", "4", "0.5", "0.5"], env=job)
    attached = scene.start(tracker("attach", "--job", "--st", "0.1", "--record", "runs"), env=job)
    wait_until_attached(attached)
    late = scene.start([*command, "150", "1", "0.5", "0.5"], env=job)
    truths = [json.loads(scene.finish(one).stdout) for one in (early, late)]
    attached.send_signal(signal.SIGTERM)
    outcome = scene.finish(attached)
    scene.finish(strangers)
    report = scene.report(scene.directory / "runs" / "job-4711" / "n1.jsonl")
    ram, cpu = report["summary"]["ram"]["combined"], report["summary"]["cpu"]["combined"]
    held = sum(truth["held_bytes"] for truth in truths)
    (before, _), (after, _) = (truth["cpu"] for truth in truths)

    assert outcome.returncode == 0
    assert outcome.stderr.startswith("job 4711: ended, exit code not known")
    assert "main" not in outcome.stderr
    assert 0.97 * held < ram["total_bytes"] <= held
    assert 0.98 * (0.5 + after) < cpu["seconds"] < 1.02 * (before + after)
    assert report["ending"] == "ended"


@pytest.mark.timed
def test_what_a_whole_job_used_before_its_tracker_began_is_said_to_be_missing(scene: Scene) -> None:
    """CPU time is a lower bound then, and a limit on it that is not exceeded cannot be checked."""
    command = [sys.executable, str(Path(__file__).parent / "workloads" / "resident.py")]
    job = scene.start([*command, "1", "0", "0.5", "600"], env={"SLURM_JOB_ID": "4716"})
    wait_until(lambda: cpu_seconds(job.pid) >= 0.5, "the job has worked")
    attached = scene.start(tracker("attach", "--job", "4716", "--st", "0.1", "--record", "x.jsonl"))
    wait_until_attached(attached)
    attached.send_signal(signal.SIGTERM)
    outcome = scene.finish(attached)
    job.kill()
    scene.finish(job)
    checked = scene.run_tracked("compare", "x.jsonl", "--allow-failed", "--fail-if", "cpu_time > 0.4s")

    assert re.search(r"at least [\d.]+ m?s of CPU time", " ".join(outcome.stderr.split()))
    assert re.search(
        r"The job had run here for [\d.]+ s before its tracker began: the 0\.[5-9]\d s of CPU", outcome.stderr
    )
    assert (checked.returncode, "Not checked" in checked.stderr) == (2, True)


@pytest.mark.timed
def test_a_whole_job_ended_when_its_last_process_was_seen(scene: Scene) -> None:
    """From outside, another step is waited for, which is none of its time."""
    job = scene.start(["sleep", "600"], env={"SLURM_JOB_ID": "4713"})
    began = time.monotonic()
    attached = scene.start(tracker("attach", "--job", "4713", "--st", "0.1", "--record", "x.jsonl"))
    wait_until_attached(attached)
    time.sleep(0.5)
    job.kill()
    scene.finish(job)
    outcome = scene.finish(attached)
    waited_seconds = time.monotonic() - began
    recording = load(scene.directory / "x.jsonl")

    assert outcome.returncode == 0, outcome.stderr
    assert 0 < recording.totals.at_seconds <= waited_seconds - job_processes.PAUSE_SECONDS
    assert recording.samples[-1].at_seconds == pytest.approx(recording.totals.at_seconds)


def test_one_tracker_of_a_whole_job_is_enough_on_each_machine(scene: Scene) -> None:
    """Others that are started with it have nothing to do."""
    second = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_LOCALID": "1"}
    outcome = scene.run_tracked("attach", "--job", env=second)

    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
    assert not (scene.directory / "gpu-tracker-runs").exists()


def test_a_tracker_of_another_step_ends_at_once(scene: Scene) -> None:
    """The recording of the first is held by who writes it; once it is not, another may go on."""
    steps = [{"SLURM_JOB_ID": "4714", "SLURM_STEP_ID": step, "SLURMD_NODENAME": "n1"} for step in "01"]
    attach = ("attach", "--job", "--st", "0.1", "--record", "runs")
    first = scene.start(tracker(*attach), env=steps[0])
    recording = scene.directory / "runs" / "job-4714" / "n1.jsonl"
    wait_until(lambda: recording.exists() and recording.stat().st_size > 0, "the first records")
    second = scene.run_tracked(*attach, env=steps[1])
    elsewhere = scene.start(tracker(*attach[:-1], "others"), env=steps[1])
    wait_until_attached(elsewhere)
    for one in (first, elsewhere):
        one.send_signal(signal.SIGTERM)
        scene.finish(one)
    third = scene.start(tracker(*attach), env=steps[1])
    wait_until_attached(third)
    third.send_signal(signal.SIGTERM)
    scene.finish(third)

    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert sorted(path.name for path in scene.directory.rglob("*.jsonl")) == [
        "n1-2.jsonl",
        "n1.jsonl",
        "n1.jsonl",
    ]


def test_a_whole_job_must_be_named_or_be_ours(scene: Scene) -> None:
    """One sentence, and no recording."""
    for arguments, sentence in (
        (("--job",), "This command does not run in a Slurm job. Name one: gpu-tracker attach --job ID."),
        (("--job", "99999999"), "Job 99999999 has no process on this machine that you may see."),
        ((), "Name a process by its ID, or a job (--job)."),
        (("1", "--job"), "Name a process by its ID, or a job (--job)."),
    ):
        outcome = scene.run_tracked("attach", *arguments)
        assert (outcome.returncode, outcome.stderr) == (2, f"gpu-tracker: {sentence}\n")
    assert not (scene.directory / "gpu-tracker-runs").exists()


@pytest.mark.timed
@pytest.mark.parametrize("to_group", [False, True])
def test_signals_that_reach_the_job_are_recorded_at_once(scene: Scene, to_group: bool) -> None:
    """By whichever way, and also if everything is killed soon after; of a storm, the first ones. One that stops nothing is not."""
    script = "trap 'echo told' TERM; trap '' USR1 WINCH; echo ready; while :; do sleep 0.05; done"
    wrapper = scene.start(tracker("run", "--record", "run.jsonl", "--", *sh(script)), start_new_session=True)
    assert scene.read_line(wrapper) == "ready"
    send = (lambda number: os.killpg(wrapper.pid, number)) if to_group else wrapper.send_signal
    send(signal.SIGWINCH)
    send(signal.SIGTERM)
    assert scene.read_line(wrapper) == "told"
    recorded = scene.directory / "run.jsonl"
    wait_until(lambda: '"kind":"signal"' in recorded.read_text(), "it is in the recording")
    for _ in range(40):
        send(signal.SIGUSR1)
        time.sleep(0.03)
    os.killpg(wrapper.pid, signal.SIGKILL)
    scene.finish(wrapper)
    numbers = [
        event["text"]
        for event in (json.loads(line).get("event", {}) for line in recorded.read_text().splitlines())
        if event.get("kind") == "signal"
    ]
    notes = scene.report(recorded)["notes"]

    assert numbers[0] == "15"
    assert set(numbers) == {"15", "10"}
    assert len(numbers) <= 16
    assert sum("The job got SIGTERM (15) after " in note for note in notes) == 1
    assert sum("The job got SIGUSR1 (10) after " in note for note in notes) == 1


@pytest.mark.parametrize(
    ("variables", "is_said"),
    [
        ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0"}, True),
        ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_STEP_ID": "0"}, False),
        ({"SLURM_JOB_ID": "7"}, False),
        ({}, False),
    ],
)
def test_a_batch_script_is_told_how_to_hear_of_its_end(
    scene: Scene, variables: dict[str, str], is_said: bool
) -> None:
    """Once; in a step, and in an interactive shell, there is nothing to say."""
    outcome = scene.run_tracked("run", "--no-record", "--", "true", env=variables)
    quiet = scene.run_tracked("run", "--dl", "--no-record", "--", "true", env=variables)

    assert outcome.stderr.count("#SBATCH --signal=B:TERM@60") == is_said
    assert "#SBATCH" not in quiet.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_attach_goes_on_ignoring_what_it_was_told_to_ignore(scene: Scene, number: signal.Signals) -> None:
    """Under nohup or in the background of a script no interrupt and no hangup ends it; the end of the process does."""
    other = scene.start(workload("busy", 0.2, 20), stdin=subprocess.PIPE)
    scene.read_line(other)
    name = number.name.removeprefix("SIG")
    attach = tracker("attach", other.pid, "--st", "0.1", "--no-record")
    attached = scene.start(["sh", "-c", f"trap '' {name}; exec \"$@\"", "sh", *attach])
    wait_until_attached(attached)
    time.sleep(0.3)
    attached.send_signal(number)
    time.sleep(0.2)
    assert attached.poll() is None
    scene.finish(other, "")
    outcome = scene.finish(attached)
    assert outcome.returncode == 0, outcome.stderr
    check_summary(outcome.stderr, 0.0)


@pytest.mark.parametrize("pid", ["0", "-1", "abc", "4194305", "99999999999999999999"])
def test_attach_refuses_what_is_no_process(scene: Scene, pid: str) -> None:
    """What is no process is refused in one sentence."""
    check_refused(scene.run_tracked("attach", "--", pid), scene.directory / "marker")


def test_attach_refuses_a_process_that_has_gone(scene: Scene) -> None:
    """A process that has ended is refused in one sentence, and no recording is begun."""
    child = subprocess.Popen(["true"])
    child.wait()
    outcome = scene.run_tracked("attach", child.pid)
    check_refused(outcome, scene.directory / "marker")
    assert not list(scene.directory.iterdir())


@pytest.mark.parametrize("options", [["--no-record"], ["--record", "run.jsonl"]])
def test_attach_reports_what_it_has_when_its_sampler_is_lost(scene: Scene, options: list[str]) -> None:
    """When the sampler of an attached tracker is killed, what was measured up to then is printed."""
    other = scene.start(workload("busy", 0.2, 20), stdin=subprocess.PIPE)
    scene.read_line(other)
    attached = scene.start(tracker("attach", other.pid, "--st", "0.1", *options))
    wait_until_attached(attached)
    sampler = scene.wait_for_sampler()
    time.sleep(0.5)
    os.kill(sampler, signal.SIGKILL)
    outcome = scene.finish(attached)
    assert scene.finish(other, "").returncode == 0
    assert "sampler was lost" in outcome.stderr
    assert re.search(r"RAM +peak at least [\d.]+ MB of", outcome.stderr), outcome.stderr
    assert "Traceback" not in outcome.stderr


@needs_root
def test_attach_to_a_process_of_root_as_an_ordinary_user(scene: Scene) -> None:
    """An ordinary user gets time, CPU and RAM of a process of root, without a flood of complaints."""
    other = scene.start(workload("busy", 0.2, 20), stdin=subprocess.PIPE)
    scene.read_line(other)
    command = [nobodys_python(), "-m", "gpu_tracker", "attach", str(other.pid), "--no-record", "--st", "0.1"]
    with public_directory() as directory:
        attached = scene.start(as_nobody(command), cwd=directory)
        wait_until_attached(attached)
        time.sleep(0.5)
        scene.finish(other, "")
        outcome = scene.finish(attached)
    assert outcome.returncode == 0, outcome.stderr
    check_summary(outcome.stderr, 0.0)
    assert re.search(r"RAM +peak at least [\d.]+ MB of", outcome.stderr), outcome.stderr


# ---- Trackers among themselves.


def test_two_runs_in_one_directory_do_not_meet(scene: Scene) -> None:
    """Two runs at once in one directory make two recordings, each of its own job."""
    options = ["run", "--st", "0.1", "--"]
    first, _ = start_job(scene, options, workload("busy", 0.3, 5, 3))
    second, _ = start_job(scene, options, workload("busy", 0.1, 40, 4))
    assert (scene.finish(first, "").returncode, scene.finish(second, "").returncode) == (3, 4)
    reports = [scene.report(path) for path in (scene.directory / "gpu-tracker-runs").glob("*.jsonl")]
    assert sorted(report["exit_code"] for report in reports) == [3, 4]
    assert not list(scene.directory.glob("**/*.tmp"))


def test_a_run_in_a_run_counts_the_job_once(scene: Scene) -> None:
    """A run of a run passes codes and signals on, and the inner sampler counts for nobody."""
    inner = tracker("run", "--record", "inner.jsonl", "--st", "0.1", "--", *workload("signals", "SIGTERM"))
    wrapper = scene.start(
        tracker("run", "--record", "outer.jsonl", "--st", "0.1", "--", *inner), stdin=subprocess.PIPE
    )
    assert scene.read_line(wrapper) == "ready"
    time.sleep(0.3)
    wrapper.terminate()
    assert scene.read_line(wrapper) == "SIGTERM"
    outcome = scene.finish(wrapper, "")
    assert outcome.returncode == 5
    outer, inner_report = (scene.report(scene.directory / f"{name}.jsonl") for name in ("outer", "inner"))
    assert inner_report["summary"]["processes"] == 1
    assert outer["summary"]["processes"] == 2
    assert outer["exit_code"] == inner_report["exit_code"] == 5


def test_a_tracker_of_the_api_inside_a_run_works(scene: Scene) -> None:
    """A job that tracks itself can be tracked from outside too, and both have plausible figures."""
    outcome = scene.run_tracked(*RECORDED, *workload("endings", "exit", "with"))
    assert outcome.returncode == 3
    check_plausible(outcome.figures, 0.25)
    summary = scene.report(scene.directory / "run.jsonl")["summary"]
    assert summary["processes"] == 1
    assert summary["cpu"]["combined"]["seconds"] >= 0.25


# ---- Narrow places.


@pytest.mark.parametrize("option", ["--foreground", "--verbose"])
def test_timeout_reaches_the_job_as_without_us(scene: Scene, option: str) -> None:
    """In the foreground it signals its child alone, else the whole group."""
    command = ["timeout", option, "3", *tracker(*QUIET), *workload("signals", "SIGTERM")]
    wrapper = scene.start(command, stdin=subprocess.PIPE)
    assert scene.read_line(wrapper) == "ready"
    assert scene.read_line(wrapper) == "SIGTERM"
    time.sleep(0.2)
    assert scene.finish(wrapper, "").stdout == "bye\n"


def test_under_timeout_the_job_is_ended_and_reported(scene: Scene) -> None:
    """`timeout` around us ends the job in time and gives its own code, and the summary is there."""
    limited = scene.start(["timeout", "60", *tracker(*QUIET, *sh("echo ready; exec sleep 30"))])
    assert scene.read_line(limited) == "ready"
    limited.send_signal(signal.SIGALRM)  # what its own clock will send it when the time is over
    outcome = scene.finish(limited)
    assert outcome.returncode == 124
    assert "killed by SIGTERM (15)" in outcome.stderr
    check_summary(outcome.stderr, 0.0)


def test_a_deleted_directory_is_good_enough(scene: Scene) -> None:
    """A job can be tracked in a directory that is no more, though nothing can be kept there."""
    script = "mkdir gone; cd gone; rmdir ../gone; {}; exit $?"
    job = "sh -c 'echo hello; exit 3'"
    outcome = scene.run(sh(script.format(f"{COMMAND} {' '.join(QUIET)} {job}")))
    assert (outcome.returncode, outcome.stdout) == (3, "hello\n"), outcome.stderr
    outcome = scene.run(sh(script.format(f"{COMMAND} run --record runs -- {job}")))
    assert (outcome.returncode, outcome.stdout) == (3, "hello\n")
    assert outcome.stderr.count("The run is not recorded.") == 1
    outcome = scene.run(sh(script.format(f"{COMMAND} run -o result -- {job}")))
    check_refused(outcome, scene.directory / "marker")


@pytest.mark.parametrize(
    "locale", [[], ["LANG=C"], ["LC_ALL=C"], ["LC_CTYPE=C.UTF-8"], ["LANG=C", "LC_CTYPE=C"]]
)
def test_a_poor_environment_is_not_made_richer(scene: Scene, locale: list[str]) -> None:
    """A job that is started without a locale, as by cron, is not given one."""
    needed = [f"{name}={scene.environment()[name]}" for name in ("FAULT_MARK", "PYTHONPATH")]
    environment = ["env", "-i", *needed, *locale]
    untracked = scene.run([*environment, "/usr/bin/env"])
    outcome = scene.run([*environment, *tracker(*QUIET, "/usr/bin/env")])
    assert outcome.returncode == 0, outcome.stderr
    assert without_place(outcome.stdout) == untracked.stdout


@pytest.mark.parametrize("limit", ["-n 16", "-f 0", "-v 400000", "-t 5"])
def test_the_limits_of_a_shell_do_not_keep_the_job_from_running(scene: Scene, limit: str) -> None:
    """Under low limits for files, file sizes, memory or CPU a job that would run untracked runs tracked."""
    outcome = scene.run(sh(f"ulimit {limit}; exec {COMMAND} {' '.join(QUIET)} sh -c 'echo hello; exit 3'"))
    assert (outcome.returncode, outcome.stdout) == (3, "hello\n"), outcome.stderr
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("mode", ["run", "-e"])
def test_a_job_runs_even_if_no_process_can_be_started_for_it(mode: str) -> None:
    """It takes our place, untracked, and one sentence says so: no recording, and no trace of us in its environment."""
    python = nobodys_python()
    job = [
        python,
        "-I",
        "-S",
        "-c",
        "import os, sys; print('GPU_TRACKER_MAILBOX' in os.environ); sys.exit(5)",
    ]
    arguments = ["run", "--", *job] if mode == "run" else ["--record", "runs", "-e", shlex.join(job)]
    with public_directory() as directory, contextlib.closing(Scene(directory)) as scene:
        limited = ["prlimit", "--nproc=1:1", python, "-m", "gpu_tracker", *arguments]
        outcome = scene.run(as_nobody(limited))
        assert (outcome.returncode, outcome.stdout) == (5, "False\n")
        (sentence,) = outcome.stderr.splitlines()
        assert "The command runs untracked" in sentence
        assert not list(directory.rglob("*.jsonl"))


@pytest.mark.parametrize("descriptors", range(6, 16))
def test_a_job_runs_however_few_descriptors_there_are(scene: Scene, descriptors: int) -> None:
    """What is left of them is for starting the job; without a sampler one sentence says so."""
    shell = f"ulimit -n {descriptors}; exec {shlex.join(tracker(*QUIET, 'sh', '-c', 'echo ran; exit 3'))}"
    outcome = scene.run(["bash", "-c", shell])
    assert (outcome.returncode, outcome.stdout) == (3, "ran\n"), outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert outcome.stderr.count("could not be started") <= 1

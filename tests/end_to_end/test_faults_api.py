"""The Python API under attack: whatever dies, hangs or fills up, the job behaves as if it were not tracked.

Every workload is run with and without its tracker; what it writes and how it ends must be the same.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.fault_workloads.endings import CPU_SECONDS
from end_to_end.faults import (
    NOBODY,
    PACKAGE_PARENT,
    WORKLOADS,
    Outcome,
    Scene,
    as_nobody,
    check_ends_once,
    check_idle,
    check_plausible,
    check_report,
    check_said_once,
    cpu_seconds,
    fill,
    needs_root,
    nobodys_python,
    public_directory,
    small_disk,
    wait_for_state,
    workload,
)
from marked import read_state
from nvml_simulator import Code, Simulator
from patience import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")


def run_both(scene: Scene, name: str, *arguments: object, **options: float) -> Outcome:
    """Run a workload without and with its tracker: nobody outside can tell the difference."""
    untracked, tracked = scene.run_both(name, *arguments, **options)
    assert tracked.returncode == untracked.returncode, tracked.stderr
    assert tracked.stdout == untracked.stdout
    check_said_once(tracked.stderr, untracked.stderr)
    return tracked


# ---- The job ends.

WAYS = ("return", "exit", "_exit", "raise", "exec", "SIGINT", "SIGTERM", "SIGHUP", "SIGKILL", "SIGSEGV")
FINISHED = ("return", "exit", "raise", "SIGINT")


@pytest.mark.parametrize("style", ["with", "bare"])
@pytest.mark.parametrize("way", WAYS)
def test_a_job_ends_as_untracked_and_leaves_its_recording(scene: Scene, way: str, style: str) -> None:
    """However a job ends, with or without a stop(), it ends as ever and leaves a whole recording."""
    path = scene.directory / "run.jsonl"
    tracked = run_both(scene, "endings", way, style, path, seconds=5)  # the interpreter waits for nobody
    scene.wait_until_alone()
    check_ends_once(path)
    report = scene.report(path)
    is_stopped = way in FINISHED and style == "with"
    stopped = {"SIGINT": "interrupted", "exit": "raised", "raise": "raised"}.get(way, "stopped")
    assert report["ending"] == (stopped if is_stopped else "abandoned")
    check_report(report, CPU_SECONDS, slack=0.15)
    if is_stopped:
        check_plausible(tracked.figures, CPU_SECONDS, CPU_SECONDS)


@pytest.mark.parametrize(
    ("way", "style"), [("return", "bare"), ("raise", "with"), ("_exit", "with"), ("SIGKILL", "bare")]
)
def test_a_job_without_a_recording_ends_as_untracked(scene: Scene, way: str, style: str) -> None:
    """Where nobody asked for a recording the job ends as ever too, and nothing is left of the tracking."""
    run_both(scene, "endings", way, style)
    assert not list(scene.directory.iterdir())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_from_outside_ends_the_job_at_once(scene: Scene, number: signal.Signals) -> None:
    """A signal does to a tracked program what it does to any program, and the sampler follows it."""
    process = scene.start(workload("endings", "pause", "with", "run.jsonl"))
    assert scene.read_line(process) == "worked"
    sampler = scene.wait_for_sampler()
    check_idle(sampler, 0.5)
    process.send_signal(number)
    assert scene.finish(process).returncode == -number
    scene.wait_until_alone()
    check_report(scene.report(scene.directory / "run.jsonl"), CPU_SECONDS)


def test_an_ordinary_block_says_nothing_but_what_could_not_be_measured(scene: Scene) -> None:
    """A run without trouble leaves at most one sentence about the missing GPU on standard error."""
    outcome = run_both(scene, "endings", "return", "with")
    assert len(outcome.stderr.splitlines()) <= 1
    check_plausible(outcome.figures, CPU_SECONDS, CPU_SECONDS)


def test_killed_with_its_sampler_the_job_leaves_a_readable_recording(scene: Scene) -> None:
    """After kill -9 of the job and the sampler the recording loads and says that it was cut off."""
    path = scene.directory / "run.jsonl"
    process = scene.start(workload("endings", "pause", "with", path))
    scene.read_line(process)
    time.sleep(0.3)
    os.kill(scene.wait_for_sampler(), signal.SIGKILL)
    process.kill()
    assert scene.finish(process).returncode == -signal.SIGKILL
    report = scene.report(path)
    assert report["ending"] == "killed"
    assert any("The recording was cut off at " in note for note in report["notes"])
    check_report(report, CPU_SECONDS)


# ---- The sampler dies or hangs.


@pytest.mark.parametrize("recording", [None, "run.jsonl"])
@pytest.mark.parametrize("pipe_signal", ["ignored", "default"])
def test_a_lost_sampler_costs_only_its_own_figures(
    scene: Scene, pipe_signal: str, recording: str | None
) -> None:
    """Without its sampler the job goes on, stop() returns, time and CPU are right, and one note says so."""
    arguments = ["SIGKILL", pipe_signal, *filter(None, [recording])]
    outcome = scene.run_workload("lost_sampler", *arguments)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "still here\nafter the block\n"
    check_said_once(outcome.stderr)
    figures = outcome.figures
    assert figures["stop_seconds"] < 5
    assert abs(figures["seconds"] - figures["true_seconds"]) < 0.05 + 0.01 * figures["true_seconds"]
    check_plausible(figures, figures["true_cpu_seconds"])
    children = figures["true_children_seconds"]
    assert children * 0.9 <= figures["descendants_cpu_seconds"] <= children * 1.1 + 0.05
    assert len([note for note in figures["notes"] if "sampler was lost" in note]) == 1
    assert "sampler was lost" in outcome.stderr
    assert read_state(figures["sampler"]) is None
    if recording:
        check_ends_once(scene.directory / recording)
        assert scene.report(scene.directory / recording)["ending"] == "sampler lost"


def test_a_program_learns_of_a_lost_sampler_while_it_runs(scene: Scene) -> None:
    """Its live figures go on with what it knows itself; regions and metrics are complete."""
    process = scene.start(workload("regions", "tracked", "run.jsonl"), stdin=subprocess.PIPE)
    assert scene.read_line(process) == "ready"
    assert process.stdin is not None
    truth = {}
    for number in range(4):
        if number == 2:
            os.kill(scene.wait_for_sampler(), signal.SIGKILL)
            wait_until(lambda: not scene.samplers(), "the sampler is dead")
        process.stdin.write("\n")
        process.stdin.flush()
        truth = json.loads(scene.read_line(process))
    outcome = scene.finish(process, "")
    assert outcome.returncode == 0, outcome.stderr
    assert len(outcome.told) == 5
    for figures in outcome.told[2:]:
        assert len([note for note in figures["notes"] if "sampler was lost" in note]) == 1
    assert outcome.told[3]["seconds"] > outcome.told[2]["seconds"] > outcome.told[1]["seconds"]
    assert outcome.told[3]["main_ram_bytes"] == pytest.approx(truth["peak_bytes"], rel=0.01)
    report = scene.report(scene.directory / "run.jsonl")
    assert report["regions"][0]["calls"] == truth["calls"] == 4
    assert report["metrics"][0]["logged"] == 4
    assert report["summary"]["ram"]["main"]["basis"] == "exact"


def test_a_sampler_that_somebody_stopped_is_continued_by_stop(scene: Scene) -> None:
    """Nothing is lost."""
    outcome = scene.run_workload("lost_sampler", "SIGSTOP", "default", "run.jsonl")
    assert outcome.returncode == 0, outcome.stderr
    assert not any("lost" in note for note in outcome.figures["notes"])
    check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])
    assert scene.report(scene.directory / "run.jsonl")["ending"] == "stopped"


def test_a_lost_sampler_of_another_process_costs_nothing_that_was_measured(scene: Scene) -> None:
    """When the sampler of somebody else's process dies, what it had measured by then is not lost."""
    burner = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ntime.sleep(30)"
    other = scene.start([sys.executable, "-c", burner])
    process = scene.start(workload("stepper", 2, "", other.pid), stdin=subprocess.PIPE)
    scene.read_line(other)
    scene.read_line(process)
    time.sleep(0.3)
    os.kill(scene.wait_for_sampler(), signal.SIGKILL)
    outcome = scene.finish(process, "\n\n")
    other.kill()
    assert outcome.returncode == 0, outcome.stderr
    figures = outcome.figures
    assert 0.2 < figures["main_cpu_seconds"] < 0.65, figures
    assert figures["main_ram_bytes"] > 4_000_000
    assert len([note for note in figures["notes"] if "sampler was lost" in note]) == 1


def test_a_sampler_that_continues_after_being_stopped_is_not_lost(scene: Scene) -> None:
    """A sampler that was suspended for a while delivers complete figures once it is continued."""
    process = scene.start(workload("stepper", 2), stdin=subprocess.PIPE)
    scene.read_line(process)
    sampler = scene.wait_for_sampler()
    os.kill(sampler, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(sampler, signal.SIGCONT)
    outcome = scene.finish(process, "\n\n")
    assert outcome.returncode == 0
    assert not any("lost" in note for note in outcome.figures["notes"])
    check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])


def test_signals_for_the_job_do_not_end_the_sampler(scene: Scene) -> None:
    """Signals sent to everybody leave the sampler alone, so that it can write the job's last figures."""
    process = scene.start(workload("stepper", 2), stdin=subprocess.PIPE)
    scene.read_line(process)
    sampler = scene.wait_for_sampler()
    for number in (
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGTSTP,
        signal.SIGUSR1,
    ):
        os.kill(sampler, number)
    time.sleep(0.2)
    assert read_state(sampler) is not None
    outcome = scene.finish(process, "\n\n")
    assert not any("lost" in note for note in outcome.figures["notes"])
    check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])


def test_a_program_with_a_tracker_gets_each_signal_once(scene: Scene) -> None:
    """Sent to its whole group, to it alone, and to both."""
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")
    process = scene.start(workload("counted", *names), stdin=subprocess.PIPE, preexec_fn=os.setpgrp)
    assert scene.read_line(process) == "ready"
    assert process.stdin is not None
    for name in names * 3:
        os.killpg(process.pid, signal.Signals[name])
        process.stdin.write(f"{name}\n")
        process.stdin.flush()
        assert scene.read_line(process) == name
    outcome = scene.finish(process, "")
    assert outcome.stdout == f"{sorted((name, 3) for name in names)}\n"
    assert "lost sys.stderr" not in outcome.stderr


def test_a_sampler_that_cannot_start_costs_only_its_own_figures(scene: Scene) -> None:
    """Where no sampler can come up the job runs at once, gets its time and CPU, and hears of it once."""
    outcome = run_both(scene, "stillborn")
    figures = outcome.figures
    assert figures["start_seconds"] < 5
    assert figures["main_cpu_seconds"] == pytest.approx(0.2, abs=0.05)
    assert figures["seconds"] >= 0.2
    assert figures["notes"]
    assert "sampler" in outcome.stderr


def test_ctrl_c_during_stop_leaves_a_tracker_that_can_be_stopped(scene: Scene) -> None:
    """An interrupt while stop() waits for a slow sampler loses nothing: stopping again gives all figures."""
    outcome = run_workload_alone(scene, "interrupted", "stop")
    assert outcome.figures["is_interrupted"]
    assert outcome.stdout == "after the block\n"
    check_plausible(outcome.figures, 0.2)
    assert not any("lost" in note for note in outcome.figures["notes"])


def test_ctrl_c_during_start_leaves_no_sampler(scene: Scene) -> None:
    """An interrupt while start() waits for its sampler leaves no process behind in a program that goes on."""
    outcome = run_workload_alone(scene, "interrupted", "start")
    if not outcome.figures["is_interrupted"]:
        pytest.skip("the sampler was up before the interrupt came")
    assert outcome.told[0]["left"] == []
    check_plausible(outcome.figures, 0.2)


def run_workload_alone(scene: Scene, name: str, *arguments: object) -> Outcome:
    """Run a workload that makes no sense without a tracker."""
    outcome = scene.run_workload(name, *arguments)
    assert outcome.returncode == 0, outcome.stderr
    check_said_once(outcome.stderr)
    return outcome


# ---- Forks, pools, children.


@pytest.mark.parametrize("way", ["leaves", "exits", "raises"])
def test_a_forked_child_takes_no_part_in_the_tracking(scene: Scene, way: str) -> None:
    """A forked child may leave the block as it likes; its parent's figures stay whole."""
    outcome = run_both(scene, "forks", way)
    check_plausible(outcome.figures, 0.4, 0.3)
    assert not any("lost" in note for note in outcome.figures["notes"])


@pytest.mark.parametrize("way", ["outlives", "outlives-killed", "hookless", "hookless-killed"])
def test_a_child_that_outlives_its_parent_does_not_keep_the_sampler(scene: Scene, way: str) -> None:
    """A forked child that stays, even a C library's, keeps neither parent nor sampler from ending."""
    outcome = scene.run_workload("forks", way)
    assert outcome.returncode == (-signal.SIGKILL if way.endswith("killed") else 0), outcome.stderr
    child = outcome.told[0]["child"]
    wait_until(lambda: set(scene.processes()) <= {child}, "only the child is left", seconds=2)
    assert read_state(child) is not None
    os.kill(child, signal.SIGKILL)
    if not way.endswith("killed"):
        check_plausible(outcome.figures, 0.4, 0.3)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_in_the_block_works_as_ever(scene: Scene, method: str) -> None:
    """A process pool of any kind works inside a tracked block, and its work is counted."""
    outcome = run_both(scene, "pools", "outside", method)
    assert outcome.figures["descendants_cpu_seconds"] > 0.75
    assert outcome.figures["threads"] >= 3


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_tracker_works_in_a_daemonic_pool_worker(scene: Scene, method: str) -> None:
    """Each worker of a pool can track itself, although daemonic processes may have no children."""
    untracked, outcome = scene.run_both("pools", "inside", method)
    assert (outcome.returncode, outcome.stdout) == (0, untracked.stdout), outcome.stderr
    assert "True" in outcome.stdout  # the workers are daemonic indeed
    check_said_once(outcome.stderr, outcome.stderr[: len(outcome.stderr) // 2])  # once by each of the two
    assert len(outcome.told) == 4
    for figures in outcome.told:
        check_plausible(figures, figures["true_cpu_seconds"])


def test_a_script_without_a_main_guard_can_be_tracked(scene: Scene) -> None:
    """A script without a __main__ guard is tracked also where multiprocessing spawns."""
    check_plausible(run_both(scene, "unguarded").figures, 0.2)


@pytest.mark.parametrize("way", ["named", "wait", "handler", "threaded handler", "ignored"])
def test_a_job_sees_no_children_but_its_own(scene: Scene, way: str) -> None:
    """Code that waits for all children meets only its own, whatever it does with SIGCHLD."""
    outcome = run_both(scene, "children", way)
    check_plausible(outcome.told[-2], 0.2)
    assert outcome.figures["children"] == []


@pytest.mark.repeats(few=10, soak=50)
def test_trackers_in_threads_do_not_wait_for_each_other(scene: Scene, repeats: int) -> None:
    """Trackers that start and stop in several threads at the same moment never hang."""
    assert run_both(scene, "threads", repeats).stdout == "done\n"


@needs_root
def test_the_first_process_of_a_container_is_tracked_without_a_trace(scene: Scene) -> None:
    """As process 1 of a container, who inherits all orphans, the job is left with no zombie of ours."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "--pid", "--fork", "--mount-proc", "true"]).returncode:
        pytest.skip("cannot make a pid namespace here")
    command = [unshare, "--pid", "--fork", "--mount-proc", *workload("children", "named")]
    untracked = scene.run(command, env={"FAULT_UNTRACKED": "1"})
    outcome = scene.run(command)
    assert (outcome.returncode, outcome.stdout) == (0, untracked.stdout), outcome.stderr
    check_said_once(outcome.stderr)
    check_plausible(outcome.told[-2], 0.2)
    assert outcome.figures["children"] == []


# ---- Places and descriptors.


@pytest.mark.parametrize("where", ["inside-kept", "inside-deleted", "before-kept", "before-deleted"])
def test_a_change_of_directory_changes_nothing(scene: Scene, where: str) -> None:
    """A job may change its directory, even into one that is deleted, before or during the tracking."""
    outcome = run_both(scene, "places", where, "here.jsonl")
    check_plausible(outcome.figures, 0.2)
    # A relative name means what it meant when it was given.
    check_report(scene.report(scene.directory / "here.jsonl"), 0.2)


def test_a_read_only_directory_is_good_enough(scene: Scene) -> None:
    """Nothing is written where the job runs, so it may run where nothing can be written."""
    with public_directory() as directory:
        place = directory / "read-only"
        place.mkdir(mode=0o555)
        env = {"FAULT_FIGURES": str(directory / "told.jsonl")}
        command = [nobodys_python(), *workload("places", "nowhere")[1:]]
        outcome = scene.run(as_nobody(command), cwd=place, env=env)
        assert outcome.returncode == 0, outcome.stderr
        assert outcome.stdout == "worked\nafter the block\n"
        check_plausible(json.loads((directory / "told.jsonl").read_text()), 0.2)
        assert not list(place.iterdir())


def test_closed_standard_streams_stay_closed(scene: Scene) -> None:
    """In a job without standard streams no pipe of ours takes their numbers: writing there fails as ever."""
    untracked, outcome = scene.run_both("streams", "closed")
    assert outcome.returncode == untracked.returncode
    assert outcome.told[:2] == untracked.told[:2]
    check_plausible(outcome.figures, 0.2)


def test_descriptors_that_the_job_took_over_are_left_alone(scene: Scene) -> None:
    """When the job has closed our descriptors and reused their numbers, we leave them alone."""
    outcome = run_both(scene, "streams", "swept")
    assert outcome.figures["contents"] == ["mine"] * 8
    assert outcome.figures["files"] == ["open"] * 8


def test_the_sampler_holds_no_pipe_of_the_job_open(scene: Scene) -> None:
    """Who reads a pipe of the job's sees its end when the job closes it, not when the sampler ends."""
    outcome = run_both(scene, "streams", "piped")
    assert outcome.told[0]["read"] == ""
    check_plausible(outcome.figures, 0.2)


def test_a_job_without_free_descriptors_goes_on(scene: Scene) -> None:
    """When there is no descriptor left for a sampler, the job runs on and gets its time and CPU."""
    outcome = run_both(scene, "streams", "exhausted")
    assert outcome.told[0]["problem"] == ""
    assert outcome.figures["main_cpu_seconds"] == pytest.approx(0.2, abs=0.05)
    assert outcome.figures["notes"]


def test_a_low_limit_of_descriptors_is_enough(scene: Scene) -> None:
    """A dozen descriptors are enough to be tracked."""
    check_plausible(run_both(scene, "streams", "scarce").figures, 0.2)


def test_a_low_limit_of_descriptors_hides_no_process(scene: Scene) -> None:
    """The job's soft limit of open files does not bound the number of processes that are seen."""
    assert run_both(scene, "streams", "crowd").figures["threads"] >= 65


# ---- Other processes.


def test_a_process_that_is_not_there_is_refused(scene: Scene) -> None:
    """Tracking a process that does not exist is refused when the tracker is made, in one sentence."""
    child = subprocess.Popen(["true"])
    child.wait()
    outcome = scene.run_workload("stepper", 1, "", child.pid)
    assert outcome.returncode == 1
    assert (
        outcome.stderr.splitlines()[-1]
        == f"gpu_tracker.core.errors.UsageError: There is no process with the ID {child.pid}."
    )


def test_a_process_that_ends_meanwhile_keeps_its_figures(scene: Scene) -> None:
    """After its end a tracked process's figures stand still, the sampler rests, and nothing is repeated."""
    burner = "import sys, time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\nsys.stdin.read()"
    other = scene.start([sys.executable, "-c", burner], stdin=subprocess.PIPE)
    process = scene.start(workload("stepper", 3, "run.jsonl", other.pid), stdin=subprocess.PIPE)
    assert process.stdin is not None
    scene.read_line(process)
    scene.read_line(other)
    time.sleep(0.3)
    scene.finish(other, "")
    sampler = scene.wait_for_sampler()
    time.sleep(0.3)
    before = cpu_seconds(sampler)
    check_idle(sampler, 0.6)
    assert cpu_seconds(sampler) - before < 0.02
    process.stdin.write("\n")
    process.stdin.flush()
    scene.read_line(process)
    outcome = scene.finish(process, "\n\n")
    check_said_once(outcome.stderr)
    figures = outcome.figures
    assert figures["seconds"] < figures["true_seconds"] - 0.8
    assert 0.1 < figures["main_cpu_seconds"] < 0.65
    assert figures["main_ram_bytes"] > 4_000_000
    check_ends_once(scene.directory / "run.jsonl")


@needs_root
def test_root_can_track_an_ordinary_users_process(scene: Scene) -> None:
    """Root sees everything of anybody's process."""
    burner = "import time\nwhile True: time.process_time()"
    other = scene.start(as_nobody([nobodys_python(), "-c", burner]))
    wait_until(lambda: os.stat(f"/proc/{other.pid}").st_uid == NOBODY, "it belongs to nobody")
    outcome = scene.finish(
        scene.start(workload("stepper", 3, "", other.pid), stdin=subprocess.PIPE), "\n\n\n"
    )
    assert read_state(other.pid) == "R"
    other.kill()
    check_said_once(outcome.stderr)
    assert outcome.figures["main_cpu_seconds"] > 0.1
    assert outcome.figures["main_ram_bytes"] > 4_000_000


@needs_root
def test_an_ordinary_user_can_track_a_process_of_root(scene: Scene) -> None:
    """Of somebody else's process an ordinary user gets time, CPU and RAM, without a flood of complaints."""
    burner = "import time\nwhile True: time.process_time()"
    other = scene.start([sys.executable, "-c", burner])
    with public_directory() as directory:
        env = {"FAULT_FIGURES": str(directory / "told.jsonl")}
        command = [nobodys_python(), *workload("stepper", 3, "", other.pid)[1:]]
        process = scene.start(as_nobody(command), stdin=subprocess.PIPE, env=env)
        outcome = scene.finish(process, "\n\n\n")
        other.kill()
        assert outcome.returncode == 0, outcome.stderr
        check_said_once(outcome.stderr)
        figures = json.loads((directory / "told.jsonl").read_text())
    assert figures["main_cpu_seconds"] > 0.1
    assert figures["main_ram_bytes"] > 4_000_000


def test_a_suspended_job_does_not_make_the_sampler_spin(scene: Scene) -> None:
    """While the job is suspended its sampler rests too, and the suspended time counts as time."""
    process = scene.start(workload("stepper", 1), stdin=subprocess.PIPE)
    scene.read_line(process)
    sampler = scene.wait_for_sampler()
    process.send_signal(signal.SIGSTOP)
    wait_for_state(process.pid, "T")
    check_idle(sampler, 0.6)
    process.send_signal(signal.SIGCONT)
    outcome = scene.finish(process, "\n")
    check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"], 0.8)


# ---- Disks.


@needs_root
def test_a_full_disk_costs_no_figure(scene: Scene) -> None:
    """When the disk of the recording is full, the job and the figures are whole and one note says so."""
    with small_disk(scene.directory, 1 << 20) as disk:
        path = disk / "run.jsonl"
        process = scene.start(workload("stepper", 2, path), stdin=subprocess.PIPE)
        scene.read_line(process)
        fill(disk)
        time.sleep(0.5)
        check_idle(scene.wait_for_sampler(), 0.5)
        outcome = scene.finish(process, "\n\n")
        assert outcome.returncode == 0, outcome.stderr
        check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])
        notes = [note for note in outcome.figures["notes"] if "could not be written" in note]
        assert len(notes) == 1
        check_said_once(outcome.stderr)
        check_report(scene.report(path), outcome.figures["true_cpu_seconds"])


@needs_root
def test_a_disk_that_was_full_from_the_start_costs_no_figure(scene: Scene) -> None:
    """When not even the first line of the recording fits, the job runs and stop() has all figures."""
    with small_disk(scene.directory, 1 << 20) as disk:
        fill(disk)
        outcome = scene.finish(
            scene.start(workload("stepper", 2, disk / "run.jsonl"), stdin=subprocess.PIPE), "\n\n"
        )
        assert outcome.returncode == 0, outcome.stderr
        check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])
        assert len([note for note in outcome.figures["notes"] if "could not be written" in note]) == 1


@needs_root
@pytest.mark.parametrize("long_argument", [0, 20_000])
def test_a_disk_that_gets_room_again_gets_the_rest(scene: Scene, long_argument: int) -> None:
    """Lines torn by a full disk, even the first, do not spoil what is written once there is room again."""
    with small_disk(scene.directory, 1 << 20) as disk:
        filler = fill(disk, leave_bytes=4096 if long_argument else 0)
        path = disk / "run.jsonl"
        command = workload("stepper", 3, path, "")
        command[1:1] = ["-X", f"long={'x' * long_argument}"]
        process = scene.start(command, stdin=subprocess.PIPE)
        scene.read_line(process)
        time.sleep(0.3)
        os.truncate(filler, 0)
        outcome = scene.finish(process, "\n\n\n")
        assert outcome.returncode == 0, outcome.stderr
        check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])
        report = scene.report(path)
        assert report["ending"] == "stopped"
        check_report(report, outcome.figures["true_cpu_seconds"], slack=0.05)


def test_a_deleted_recording_is_said_and_costs_nothing_else(scene: Scene) -> None:
    """When somebody deletes the recording, the job and the figures are whole and one note says so."""
    process = scene.start(workload("stepper", 2, "run.jsonl"), stdin=subprocess.PIPE)
    scene.read_line(process)
    (scene.directory / "run.jsonl").unlink()
    outcome = scene.finish(process, "\n\n")
    assert outcome.returncode == 0, outcome.stderr
    check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])
    assert len([note for note in outcome.figures["notes"] if "deleted" in note]) == 1
    check_said_once(outcome.stderr)


def test_a_recording_deleted_and_a_sampler_lost_still_give_time_and_cpu(scene: Scene) -> None:
    """Even with the recording deleted and the sampler killed, stop() returns time and CPU."""
    process = scene.start(workload("stepper", 2, "run.jsonl"), stdin=subprocess.PIPE)
    scene.read_line(process)
    (scene.directory / "run.jsonl").unlink()
    os.kill(scene.wait_for_sampler(), signal.SIGKILL)
    outcome = scene.finish(process, "\n\n")
    assert outcome.returncode == 0, outcome.stderr
    figures = outcome.figures
    assert figures["main_cpu_seconds"] == pytest.approx(figures["true_cpu_seconds"], rel=0.1)
    assert figures["seconds"] >= figures["true_seconds"]
    assert any("lost" in note for note in figures["notes"])


@needs_root
def test_a_recording_that_becomes_read_only_costs_no_figure(scene: Scene) -> None:
    """When the kernel refuses further writes, what was recorded stays readable and one note says so."""
    path = scene.directory / "run.jsonl"
    process = scene.start(workload("stepper", 2, path), stdin=subprocess.PIPE)
    scene.read_line(process)
    chattr = shutil.which("chattr")
    if chattr is None or subprocess.run([chattr, "+i", path], capture_output=True).returncode:
        scene.finish(process, "\n\n")
        pytest.skip("cannot make a file immutable here")
    try:
        with contextlib.suppress(OSError), path.open("ab") as file:
            file.write(b"\n")
            pytest.skip("immutable files can be written here")
        outcome = scene.finish(process, "\n\n")
        assert outcome.returncode == 0, outcome.stderr
        check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])
        check_said_once(outcome.stderr)
        check_report(scene.report(path), outcome.figures["true_cpu_seconds"])
    finally:
        subprocess.run([chattr, "-i", path], check=True)


def test_permissions_taken_away_change_nothing(scene: Scene) -> None:
    """Taking away all permissions while the recording is being written loses not a line."""
    with public_directory() as directory:
        place = directory / "place"
        place.mkdir()
        place.chmod(0o777)
        path = place / "run.jsonl"
        env = {"FAULT_FIGURES": str(directory / "told.jsonl")}
        command = [nobodys_python(), *workload("stepper", 2, path)[1:]]
        process = scene.start(as_nobody(command), stdin=subprocess.PIPE, env=env)
        scene.read_line(process)
        path.chmod(0)
        place.chmod(0)
        outcome = scene.finish(process, "\n\n")
        assert outcome.returncode == 0, outcome.stderr
        figures = json.loads((directory / "told.jsonl").read_text())
        report = scene.report(path)
    check_plausible(figures, figures["true_cpu_seconds"])
    assert report["ending"] == "stopped"


def test_a_recording_that_cannot_be_made_costs_one_sentence(scene: Scene) -> None:
    """The program is not refused for it."""
    (scene.directory / "file").write_text("not a directory")
    process = scene.start(
        workload("stepper", 1, scene.directory / "file" / "run.jsonl"), stdin=subprocess.PIPE
    )
    outcome = scene.finish(process, "\n")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stderr.count("Not a directory. The run is not recorded.") == 1
    check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])


# ---- Manners.


def test_start_and_stop_in_the_wrong_order_are_refused_and_logging_is_left_alone(scene: Scene) -> None:
    """Wrong calls raise the paper's sentences; the root logger stays free for the user's settings."""
    outcome = run_workload_alone(scene, "manners")
    assert outcome.told[0] == {
        "errors": [
            "Cannot stop tracking when tracking has not started yet.",
            "Cannot start tracking when tracking has already started.",
            "Cannot stop tracking when tracking has already stopped.",
        ],
        "handlers": 0,
        "level": 30,
    }
    assert "mine: hello" in outcome.stderr
    check_plausible(outcome.figures, 0.2)


# ---- The driver fails. A simulated one: real hardware does not fail on request.

# All steps of a job take about one second on a quiet machine.
STEPS_SECONDS = 4.0


@pytest.fixture
def simulator(library: Path) -> Iterator[Simulator]:
    """Two GPUs."""
    with Simulator(library) as simulator:
        simulator.add_device()
        simulator.add_device()
        yield simulator


def start_on_gpu(scene: Scene, simulator: Simulator, steps: int, *arguments: object) -> subprocess.Popen[str]:
    """A job that uses 2 GB of the first GPU and 1 GB of the second, after its first step."""
    process = scene.start(
        workload("stepper", steps, *arguments), stdin=subprocess.PIPE, env=simulator.environment()
    )
    simulator.set_process(0, process.pid, 2 * 10**9, sm_percent=50)
    simulator.set_process(1, process.pid, 10**9, sm_percent=20)
    scene.read_line(process, STEPS_SECONDS)
    return process


def finish_on_gpu(scene: Scene, process: subprocess.Popen[str], steps: int) -> Outcome:
    """The other steps and the stop, which no driver delays."""
    return scene.finish(process, "\n" * steps, STEPS_SECONDS)


def check_gpu_failure(outcome: Outcome, sentences: int) -> None:
    """The job is well, so are its CPU and RAM; each failure is said in one sentence."""
    assert outcome.returncode == 0, outcome.stderr
    check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])
    assert len(outcome.figures["notes"]) == sentences, outcome.figures["notes"]
    check_said_once(outcome.stderr)


def test_a_healthy_driver_is_measured(scene: Scene, simulator: Simulator) -> None:
    """The scene for the failures below works: without one, both GPUs are measured and nothing is noted."""
    outcome = finish_on_gpu(scene, start_on_gpu(scene, simulator, 2), 2)
    check_gpu_failure(outcome, sentences=0)
    assert outcome.figures["combined_gpu_bytes"] == 3 * 10**9


def test_a_driver_that_fails_at_the_start_costs_one_sentence(scene: Scene, simulator: Simulator) -> None:
    """A driver that cannot be opened costs the GPU figures and one sentence, nothing else."""
    simulator.fail("nvmlInit*", Code.DRIVER_NOT_LOADED)
    outcome = finish_on_gpu(scene, start_on_gpu(scene, simulator, 2), 2)
    check_gpu_failure(outcome, sentences=1)


def test_a_driver_that_fails_in_the_middle_costs_what_comes_after(scene: Scene, simulator: Simulator) -> None:
    """A driver that fails during the run costs nothing that was measured before, and a sentence each."""
    process = start_on_gpu(scene, simulator, 3)
    simulator.fail("nvmlDevice*", Code.UNKNOWN)
    sampler = scene.wait_for_sampler()
    check_idle(sampler, 0.6)
    outcome = finish_on_gpu(scene, process, 3)
    assert outcome.returncode == 0, outcome.stderr
    check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])
    # For each GPU a sentence that says why and one that says when, not one for everything that could be read from it.
    assert 1 <= len(outcome.figures["notes"]) <= 4, outcome.figures["notes"]
    check_said_once(outcome.stderr)
    assert outcome.figures["combined_gpu_bytes"] == 3 * 10**9


def test_a_driver_that_hangs_delays_nothing(scene: Scene, simulator: Simulator) -> None:
    """While a call into the driver hangs for half a minute, CPU and RAM are sampled and stop() is quick."""
    process = start_on_gpu(scene, simulator, 3, "run.jsonl")
    simulator.delay("nvmlDeviceGetMemoryInfo*", 30_000)
    time.sleep(0.5)
    check_idle(scene.wait_for_sampler(), 0.5)
    outcome = finish_on_gpu(scene, process, 3)
    assert outcome.returncode == 0, outcome.stderr
    check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])
    samples = json.loads(b"[" + b",".join((scene.directory / "run.jsonl").read_bytes().splitlines()) + b"]")
    late = [line["sample"]["at"] for line in samples if "sample" in line]
    assert max(after - before for before, after in itertools.pairwise(late)) < 2


def test_a_driver_that_hangs_at_the_start_delays_nothing(scene: Scene, simulator: Simulator) -> None:
    """A driver that takes half a minute to open delays neither the start nor the stop of tracking."""
    simulator.delay("nvmlInit*", 30_000)
    outcome = finish_on_gpu(scene, start_on_gpu(scene, simulator, 2), 2)
    check_plausible(outcome.figures, outcome.figures["true_cpu_seconds"])


def test_a_lost_gpu_does_not_take_the_other_with_it(scene: Scene, simulator: Simulator) -> None:
    """When one of two GPUs falls off the bus, a sentence says so, one since when, and the other is measured on."""
    process = start_on_gpu(scene, simulator, 3)
    simulator.lose(0)
    time.sleep(0.5)
    simulator.set_process(1, process.pid, 5 * 10**9)
    time.sleep(0.5)
    outcome = finish_on_gpu(scene, process, 3)
    check_gpu_failure(outcome, sentences=2)
    assert outcome.figures["combined_gpu_bytes"] >= 5 * 10**9


# ---- The clock is set.

CLOCK_SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <stdlib.h>

static time_t offset(void) {
    return access(getenv("FAULT_CLOCK_STEPPED"), F_OK) == 0 ? -86400 : 0;
}

int clock_gettime(clockid_t id, struct timespec *value) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, value);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) value->tv_sec += offset();
    return result;
}

time_t time(time_t *value) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (value) *value = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict value, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    value->tv_sec = now.tv_sec;
    value->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


@pytest.fixture(scope="session")
def clock_shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that sets the wall clock of a process back by a day as soon as a file appears."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    directory = tmp_path_factory.mktemp("clock")
    (directory / "clock.c").write_text(CLOCK_SHIM)
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", "clock.so", "clock.c", "-ldl"]
    subprocess.run(command, cwd=directory, check=True)
    return directory / "clock.so"


def test_setting_the_clock_back_changes_no_figure(scene: Scene, clock_shim: Path) -> None:
    """When the wall clock of the job is set back by a day, its time and CPU stay right."""
    stepped = scene.directory / "stepped"
    env = {"LD_PRELOAD": str(clock_shim), "FAULT_CLOCK_STEPPED": str(stepped)}
    process = scene.start(workload("stepper", 2), stdin=subprocess.PIPE, env=env)
    scene.read_line(process)
    stepped.touch()
    outcome = scene.finish(process, "\n\n")
    assert outcome.returncode == 0, outcome.stderr
    figures = outcome.figures
    assert figures["seconds"] == pytest.approx(figures["true_seconds"], abs=0.05)
    check_plausible(figures, figures["true_cpu_seconds"])


def test_only_the_monotonic_clock_is_used_for_measuring() -> None:
    """No module reads the wall clock, which others set, but to date things, for times of files and of a driver."""
    wall = {"time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime", "ctime", "strftime"}
    found = set()
    for path in sorted((PACKAGE_PARENT / "gpu_tracker").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in wall and isinstance(node.value, ast.Name):
                if node.value.id in ("time", "datetime", "date"):
                    found.add((path.relative_to(PACKAGE_PARENT / "gpu_tracker").as_posix(), node.attr))
            elif isinstance(node, ast.ImportFrom) and node.module in ("time", "datetime"):
                found.update((path.name, alias.name) for alias in node.names if alias.name in wall)
    assert found <= {
        ("sampler/header.py", "time"),
        ("instrument/search.py", "time_ns"),
        ("recording/create.py", "strftime"),
        ("cli/ls.py", "time"),
        ("sampler/observer.py", "time"),
        ("sources/gpu/nvml.py", "time"),
        ("sources/processes.py", "time"),
        # When Windows began a process or a thread, it tells by the wall clock only.
        ("sources/windows.py", "time"),
        ("core/windows.py", "time_ns"),
        ("recording/follow.py", "time"),
        ("recording/liveness.py", "time"),
        ("recording/past.py", "time"),
        ("live/server/runs.py", "time"),
        ("sinks/running.py", "time"),
        ("api/feeding.py", "time"),
        ("code_blocks.py", "time"),
        ("core/moments.py", "localtime"),
        ("core/moments.py", "strftime"),
    }


def test_every_workload_is_used() -> None:
    """No workload lies about that nobody runs."""
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    names = {path.stem for path in WORKLOADS.glob("*.py")} - {"telling"}
    assert {name for name in names if f'"{name}"' not in tests} == set()

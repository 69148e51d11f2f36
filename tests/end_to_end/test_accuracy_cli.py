"""What `gpu-tracker run` and the paper's `gpu-tracker -e` say of a command, against what it says of itself."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from end_to_end.cgroup import memory_limit
from end_to_end.launch import track_command, track_workload, warm_memory

MB = 10**6
FRONTS = ("run", "-e")
PORTABLE = {"GPU_TRACKER_SOURCE": "portable"}
# What a process still uses when it has told the truth about itself.
AFTER_THE_TRUTH_SECONDS = 0.005
_BASH = shutil.which("bash")
WORKLOADS = Path(__file__).parent / "workloads"


# ---- CPU.


@pytest.mark.parametrize(
    ("front", "load"),
    [
        ("run", "steady 1"),
        ("-e", "steady 1"),
        ("run", "pulsed 4"),
        ("-e", "busy_threads 2 1"),
        ("run", "short_children 100 0.02"),
        ("-e", "workers 2 1 end"),
    ],
)
def test_mean_cpu_is_that_of_getrusage(front: str, load: str) -> None:
    """CPU time of a command and of the children it waited for is known to one percent, each in its place."""
    truth, figures = track_workload(front, *load.split())
    own, children = truth["cpu"]
    assert own == pytest.approx(figures.main.cpu_seconds, rel=0.01, abs=AFTER_THE_TRUTH_SECONDS)
    assert children == pytest.approx(figures.descendants.cpu_seconds, rel=0.01)
    assert own + children == pytest.approx(figures.combined.cpu_seconds, rel=0.01)
    for part in (figures.main, figures.descendants, figures.combined):
        assert part.mean_percent <= part.max_percent <= figures.n_cores * 100 * 1.02


@pytest.mark.parametrize("pause", ["sleep 0.7", "true"])
@pytest.mark.parametrize("front", FRONTS)
def test_a_process_that_is_killed_with_its_parent_counts_once(front: str, pause: str) -> None:
    """The shell has reaped its parent, and whoever adopts orphans the worker itself, in the middle of the job or at its end."""
    killing = shlex.join([sys.executable, str(WORKLOADS / "killing.py"), "0.6"])
    printed, figures = track_command(front, ["sh", "-c", f"exec 2>/dev/null; {killing}; {pause}"])

    used = float(printed.split()[0])
    # Less than twice: the parent has told nothing of its own start.
    assert used <= figures.descendants.cpu_seconds <= used + 0.4


@pytest.mark.repeats(few=3, soak=50)
def test_a_command_of_a_moment_has_not_used_more_than_it_lasted(repeats: int) -> None:
    """What its process did before it became the command is nobody's."""
    for _ in range(repeats):
        _, figures = track_command("run", ["true"])

        assert 0 < figures.main.cpu_seconds <= figures.seconds + 0.0002


# ---- Memory.


@pytest.mark.repeats(few=1, soak=10)
def test_short_spike_is_found_every_time(repeats: int) -> None:
    """400 MB held for 50 ms, given back right before the end, is in the peak, every time."""
    warm_memory()
    for front in FRONTS * repeats:
        truth, figures = track_workload(front, "resident", 400, 0.05, options=("--st", "1.0"))
        assert truth["peak_bytes"] == pytest.approx(figures.main.ram_bytes, rel=0.01)
        assert truth["peak_bytes"] == pytest.approx(figures.combined.ram_bytes, rel=0.01)
        assert figures.descendants.ram_bytes == 0


@pytest.mark.repeats(few=1, soak=10)
def test_spike_of_a_short_lived_child_is_found_every_time(repeats: int) -> None:
    """400 MB held for 50 ms by a child that is gone at once is in the peak of the whole."""
    warm_memory()
    for front in FRONTS * repeats:
        truth, figures = track_workload(front, "descendant", "child", 400, 0.05, 0)
        assert truth["descendant"]["peak_bytes"] == pytest.approx(figures.descendants.ram_bytes, rel=0.01)
        assert figures.combined.ram_bytes >= figures.descendants.ram_bytes
        assert figures.main.ram_bytes < 100 * MB


def test_programs_about_to_start_are_not_charged_with_the_memory_of_their_starter() -> None:
    """Between fork and exec a child is still its parent's image; small programs stay small all the same."""
    for front in FRONTS:
        truth, figures = track_workload(front, "starter", 500, 100)
        assert truth["peak_bytes"] == pytest.approx(figures.main.ram_bytes, rel=0.01)
        assert figures.descendants.ram_bytes < 50 * MB
        assert figures.combined.ram_bytes == pytest.approx(figures.main.ram_bytes, rel=0.05)


def test_machine_holds_what_the_job_holds_also_in_a_spike() -> None:
    """The system's peak is at least that of the job, however short it was."""
    warm_memory()
    for load in ("resident 400 0.05", "descendant child 400 0.05"):
        _, figures = track_workload("run", *load.split())
        assert figures.combined.ram_bytes <= figures.system_ram_bytes * 1.02
        assert figures.system_ram_bytes <= figures.capacity_bytes


@pytest.mark.serial
@pytest.mark.parametrize(
    ("front", "load"),
    [
        ("run", "forks inside 1 500 4 0 2"),
        ("-e", "forks inside 1 500 4 250 4"),
        ("run", "shared_block mmap 300 2"),
        ("-e", "shared_block shared_memory 300 2"),
    ],
)
def test_shared_memory_is_counted_once(front: str, load: str) -> None:
    """What a tree holds is the sum of its proportional sizes, within five percent, and so is its split."""
    warm_memory()
    truth, figures = track_workload(front, *load.split())
    pss = truth["pss_bytes"]
    assert pss == pytest.approx(figures.combined.ram_bytes, rel=0.05)
    assert truth["private_bytes"] == pytest.approx(figures.combined.private_bytes, abs=0.05 * pss)
    assert truth["descendants_private_bytes"] == pytest.approx(
        figures.descendants.private_bytes, abs=0.05 * pss
    )
    for part in (figures.main, figures.descendants, figures.combined):
        assert part.ram_bytes == pytest.approx(part.private_bytes + part.shared_bytes)
    assert figures.combined.ram_bytes >= max(figures.main.ram_bytes, figures.descendants.ram_bytes)
    assert figures.combined.ram_bytes <= figures.system_ram_bytes * 1.02


def test_spike_is_beside_what_others_hold() -> None:
    """A child's spike counts on top of what its parent holds meanwhile."""
    warm_memory()
    for front in FRONTS:
        truth, figures = track_workload(front, "beside", 300, 600, 0.35)
        held, held_by_child = truth["held_bytes"], truth["held_by_child_bytes"]
        assert held == pytest.approx(figures.main.ram_bytes, rel=0.01)
        assert held_by_child == pytest.approx(figures.descendants.ram_bytes, rel=0.01)
        assert held + held_by_child == pytest.approx(figures.combined.ram_bytes, rel=0.05)


def test_peaks_of_different_moments_are_not_added() -> None:
    """Memory that was given back before a child took its own was never held together with it."""
    truth, figures = track_workload("run", "in_turn", 600, 400, 0.7)
    assert truth["most_at_once_bytes"] == pytest.approx(figures.combined.ram_bytes, rel=0.05)


# ---- Descendants.


@pytest.mark.parametrize(
    ("kind", "front"),
    [("child", "run"), ("thread", "-e"), ("setsid", "run"), ("orphan", "run"), ("orphan", "-e")],
)
def test_every_descendant_counts(kind: str, front: str) -> None:
    """Wherever 300 MB and half a second of CPU are hidden, they are found."""
    truth, figures = track_workload(front, "descendant", kind, 300, 1, 0.5)
    descendant = truth["descendant"]
    cpu_seconds = truth["cpu"][1] + (sum(descendant["cpu"]) if kind == "orphan" else 0)
    assert descendant["peak_bytes"] == pytest.approx(figures.descendants.ram_bytes, rel=0.01)
    assert cpu_seconds == pytest.approx(figures.descendants.cpu_seconds, rel=0.01)
    assert figures.combined.ram_bytes >= figures.descendants.ram_bytes
    assert figures.main.ram_bytes < 100 * MB


@pytest.mark.parametrize(("front", "environment"), [("run", {}), ("-e", {}), ("run", PORTABLE)])
def test_what_a_shell_started_before_it_became_the_tracker_does_not_count(
    front: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """`sidecar & exec gpu-tracker ...` makes the sidecar a child of the tracker, who waits for it, but not of the job."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    sidecar = (
        "import sys, time; block = bytearray(b'x') * 200_000_000\n"
        "while time.process_time() < 0.3: pass\n"
        "open(sys.argv[1]).read()"
    )
    start = f'{shlex.join([sys.executable, "-c", sidecar, str(gate)])} & export SIDECAR=$!; exec "$@"'
    wait = f': > {shlex.quote(str(gate))}; while kill -0 "$SIDECAR"; do sleep 0.01; done 2> /dev/null'
    _, figures = track_command(
        front, ["sh", "-c", wait], prefix=("sh", "-c", start, "sh"), environment=environment
    )
    assert figures.combined.ram_bytes < 100 * MB
    assert figures.combined.cpu_seconds < 0.3


def test_threads_are_the_most_at_once() -> None:
    """The three maxima are each of their own moment."""
    truth, figures = track_workload("run", "crowd", 6, 2, 4)
    assert truth["main_threads"] == figures.main.threads
    assert truth["descendants_threads"] == figures.descendants.threads
    assert truth["combined_threads"] == figures.combined.threads


def test_pythons_own_helper_is_not_counted() -> None:
    """Of a spawned child and the resource tracker that comes with it, only the child is the job's."""
    truth, figures = track_workload("run", "spawned", 50, 1, 0.3)
    assert truth["has_helper"]
    assert figures.descendants.threads == 1
    assert truth["child_peak_bytes"] == pytest.approx(figures.descendants.ram_bytes, rel=0.01)
    assert truth["cpu"][1] == pytest.approx(figures.descendants.cpu_seconds, rel=0.01)


def test_trackers_inside_the_job_are_not_counted() -> None:
    """A command that tracks itself is not charged for its trackers, but for starting them."""
    n_trackers = 3
    _, figures = track_workload("run", "several_trackers", "nested", n_trackers)
    assert figures.descendants.threads == 0
    assert figures.descendants.ram_bytes == 0
    # The command itself waits for the interpreter that each sampler comes from, some ten milliseconds.
    assert figures.descendants.cpu_seconds < 0.03 * n_trackers


# ---- Time.


@pytest.mark.serial
@pytest.mark.skipif(_BASH is None, reason="needs a shell with a clock: bash is not installed")
@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize(("seconds", "n_times"), [(0.02, 4), (0.9, 2)])
def test_compute_time_is_that_of_the_command(seconds: float, n_times: int, front: str) -> None:
    """Time runs from the start of a command to its end, not to the last reading."""
    # How long the shell itself took to come up: the nanoseconds that it has run, and waited for a core.
    own_start = "read ran waited _ < /proc/$$/schedstat; echo $EPOCHREALTIME $((ran + waited))"
    script = f"{own_start}; sleep {seconds}; echo $EPOCHREALTIME"
    errors = []
    for _ in range(n_times):
        printed, figures = track_command(front, ["bash", "--norc", "-c", script])
        started, start_nanoseconds, ended = map(float, printed.split()[:3])
        assert figures.seconds > ended - started
        errors.append(abs(figures.seconds - (ended - started + start_nanoseconds / 1e9)))
    # The best of some: its end may be held up too, and nobody is left then to tell.
    assert min(errors) == pytest.approx(0, abs=0.005 + 0.001 * seconds)


# ---- What the job may use.


def test_expected_cores_are_those_the_command_may_run_on() -> None:
    """Pinned to one core, a busy loop uses all of what it has; the machine has what it always had."""
    core = min(os.sched_getaffinity(0))
    truth, figures = track_workload("-e", "steady", 1.5, prefix=("taskset", "-c", str(core)))
    assert figures.n_expected_cores == 1
    assert figures.n_cores == os.cpu_count()
    assert truth["cpu"][0] / figures.seconds * 100 == pytest.approx(
        figures.main.mean_hardware_percent, rel=0.01
    )


@pytest.mark.parametrize("front", FRONTS)
def test_capacity_is_the_memory_limit_of_the_job(front: str) -> None:
    """In a group of 700 MB there are 700 MB, whatever the machine has."""
    with memory_limit(700 * MB) as prefix:
        truth, figures = track_workload(front, "resident", 300, 1, prefix=prefix)
    assert figures.capacity_bytes == pytest.approx(700 * MB, rel=0.0001)
    assert truth["peak_bytes"] == pytest.approx(figures.main.ram_bytes, rel=0.01)
    assert figures.combined.ram_bytes <= figures.system_ram_bytes * 1.02
    assert figures.system_ram_bytes <= figures.capacity_bytes


# ---- Otherwise.


def test_portable_source_knows_the_cpu() -> None:
    """Also without the Linux source, CPU time is that of getrusage, within two percent."""
    truth, figures = track_workload("run", "short_children", 100, 0.02, environment=PORTABLE)
    own, children = truth["cpu"]
    assert own == pytest.approx(figures.main.cpu_seconds, rel=0.02, abs=AFTER_THE_TRUTH_SECONDS)
    assert children == pytest.approx(figures.descendants.cpu_seconds, rel=0.02)


@pytest.mark.parametrize("kind", ["child", "orphan"])
def test_portable_source_finds_memory_that_is_held(kind: str) -> None:
    """Also without the Linux source, 300 MB held for a second by a descendant are found."""
    truth, figures = track_workload("run", "descendant", kind, 300, 1, environment=PORTABLE)
    assert truth["descendant"]["peak_bytes"] == pytest.approx(figures.descendants.ram_bytes, rel=0.01)
    assert figures.combined.ram_bytes >= figures.descendants.ram_bytes


def test_reading_a_hundred_times_a_second_changes_nothing() -> None:
    """The shortest sleep time gives the same figures."""
    truth, figures = track_workload("run", "resident", 300, 0.2, 1, options=("--st", "0.01"))
    assert truth["cpu"][0] == pytest.approx(figures.main.cpu_seconds, rel=0.01)
    assert truth["peak_bytes"] == pytest.approx(figures.main.ram_bytes, rel=0.01)
    assert figures.main.max_percent <= figures.n_cores * 100 * 1.02

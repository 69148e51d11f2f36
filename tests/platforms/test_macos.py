"""macOS imitated on Linux: what XNU lacks is gone, what it does otherwise is imitated, in the command line, in `Tracker` and in the sampler.

There is no macOS here. What this shows is that ours keeps to what that system documents.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

import gpu_tracker as gput
from end_to_end.figures import Figures, read_paper_json, read_report_json
from end_to_end.launch import TESTS, run, workload
from end_to_end.workloads.stage import TRACKED
from end_to_end.workloads.truth import MB
from patience import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="imitates macOS with Linux's own means")

HERE = Path(__file__).parent
DARWIN, PORTABLE = "darwin", "portable"
# What the interpreter does after the truth was told, and before.
BETWEEN_METERS_SECONDS = 0.003
SIGNALS = [sys.executable, "-m", "end_to_end.fault_workloads.signals"]


@pytest.fixture(scope="module")
def macos(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The beginning of a command that runs on macOS."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("libsystem") / "libsystem.so"
    source = HERE / "libsystem.c"
    subprocess.run(["cc", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source], check=True)
    return (sys.executable, str(HERE / "as_macos.py"), str(library))


def track_command(
    macos: tuple[str, ...], directory: Path, source: str, name: str, *arguments: object
) -> tuple[dict[str, Any], Figures]:
    """The truth of a workload under `gpu-tracker run`, and the figures."""
    output = directory / "result.json"
    printed = run(
        [
            *(*macos, "gpu-tracker", "run", "--no-record", "--disable-logs", "--st", "0.1", "-f", "json"),
            *("-o", str(output), "--", *workload(name, *arguments)),
        ],
        GPU_TRACKER_SOURCE=source,
    )
    return json.loads(printed.splitlines()[0]), read_report_json(json.loads(output.read_text()))


def track_inside(
    macos: tuple[str, ...], source: str, name: str, *arguments: object
) -> tuple[dict[str, Any], Figures]:
    """The truth of a workload whose block is in a `Tracker`, and the figures."""
    words = [TRACKED, json.dumps({"sleep_time": 0.1}), *map(str, arguments)]
    truth = json.loads(run([*macos, f"end_to_end.workloads.{name}", *words], GPU_TRACKER_SOURCE=source))
    return truth, read_paper_json(truth["usage"])


@contextmanager
def running(
    macos: tuple[str, ...], *command: str, options: tuple[str, ...] = ("--no-record",), **environment: str
) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """`gpu-tracker run` of a command that has printed its first line, and what it prints."""
    with subprocess.Popen(
        [*macos, "gpu-tracker", "run", "--disable-logs", *options, "--", *command],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}", **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as wrapper:
        assert wrapper.stdout is not None
        assert wrapper.stdout.readline()
        yield wrapper, wrapper.stdout


@pytest.mark.parametrize("source", [DARWIN, PORTABLE])
@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -signal.SIGKILL)])
def test_the_command_line_ends_as_its_job_does(
    macos: tuple[str, ...], source: str, script: str, code: int
) -> None:
    """It waits for a SIGCHLD that this kernel drops unless somebody handles it."""
    done = subprocess.run(
        [*macos, "gpu-tracker", "run", "--no-record", "--", "sh", "-c", script],
        env={**os.environ, "GPU_TRACKER_SOURCE": source},
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (code, False), done.stderr


def test_the_system_s_own_source_is_chosen(macos: tuple[str, ...], tmp_path: Path) -> None:
    """Without being asked for."""
    done = subprocess.run(
        [*macos, "gpu-tracker", "run", "--record", str(tmp_path / "x.jsonl"), "--", "true"],
        env={name: value for name, value in os.environ.items() if name != "GPU_TRACKER_SOURCE"},
        timeout=60,
        capture_output=True,
    )
    assert done.returncode == 0
    assert gput.load(tmp_path / "x.jsonl").header.source == DARWIN


@pytest.mark.parametrize("source", [DARWIN, PORTABLE])
@pytest.mark.parametrize("load", ["steady 1", "short_children 40 0.03", "workers 3 0.3 end"])
def test_cpu_time_under_the_command_line(
    macos: tuple[str, ...], tmp_path: Path, source: str, load: str
) -> None:
    """It is that of getrusage within one percent, main and descendants apart: nothing is counted twice."""
    truth, figures = track_command(macos, tmp_path, source, *load.split())
    own, children = truth["cpu"]
    assert own == pytest.approx(figures.main.cpu_seconds, rel=0.01, abs=BETWEEN_METERS_SECONDS)
    assert children == pytest.approx(figures.descendants.cpu_seconds, rel=0.01, abs=BETWEEN_METERS_SECONDS)


@pytest.mark.parametrize("source", [DARWIN, PORTABLE])
@pytest.mark.parametrize("load", ["steady 1", "short_children 40 0.03"])
def test_cpu_time_inside(macos: tuple[str, ...], source: str, load: str) -> None:
    """A tracker starts and stops, and knows the same."""
    truth, figures = track_inside(macos, source, *load.split())
    own, children = truth["cpu"]
    assert own == pytest.approx(figures.main.cpu_seconds, rel=0.01, abs=BETWEEN_METERS_SECONDS)
    assert children == pytest.approx(figures.descendants.cpu_seconds, rel=0.01, abs=BETWEEN_METERS_SECONDS)


@pytest.mark.parametrize("who", ["main", "child"])
def test_a_spike_is_on_its_own_side(macos: tuple[str, ...], tmp_path: Path, who: str) -> None:
    """By the largest footprint that the kernel has kept, although no reading has met it."""
    truth, figures = track_command(macos, tmp_path, DARWIN, "spike", who, 300)
    part, other = figures.main, figures.descendants
    if who == "child":
        part, other = other, part
    assert truth["size_bytes"] <= part.ram_bytes <= truth["size_bytes"] + 30 * MB
    assert other.ram_bytes < 30 * MB
    assert figures.combined.ram_bytes >= truth["size_bytes"]


def test_a_spike_of_unknown_side_is_on_none(macos: tuple[str, ...], tmp_path: Path) -> None:
    """psutil has no marks: the peak is somebody's, and so of all together."""
    truth, figures = track_command(macos, tmp_path, PORTABLE, "spike", "main", 300)
    assert figures.descendants.ram_bytes < 30 * MB
    assert figures.combined.ram_bytes >= truth["size_bytes"]


@pytest.mark.parametrize("source", [DARWIN, PORTABLE])
@pytest.mark.parametrize("who", ["main", "child"])
def test_a_spike_inside_is_on_its_own_side(macos: tuple[str, ...], source: str, who: str) -> None:
    """A program knows its own peak, whatever others can read of it."""
    truth, figures = track_inside(macos, source, "spike", who, 300)
    part, other = figures.main, figures.descendants
    if who == "child":
        part, other = other, part
    assert truth["size_bytes"] <= part.ram_bytes <= truth["size_bytes"] + 60 * MB
    assert other.ram_bytes < 60 * MB


def test_signals_reach_the_job(macos: tuple[str, ...]) -> None:
    """Also those that nobody waits for there unless somebody handles them, and one that was to be ignored."""
    numbers = (signal.SIGWINCH, signal.SIGTERM, signal.SIGURG)
    names = [signal.Signals(number).name for number in numbers]
    with running(macos, *SIGNALS, *names) as (wrapper, printed):
        for number, name in zip(numbers, names, strict=True):
            wrapper.send_signal(number)
            assert printed.readline() == f"{name}\n"
        assert wrapper.stdin is not None
        wrapper.stdin.close()
        assert printed.readline() == "bye\n"
        assert wrapper.wait(60) == 5


def test_a_job_that_stops_goes_on(macos: tuple[str, ...]) -> None:
    """The wrapper is seen stopped as well, and wakes with it."""
    script = "echo $$; kill -TSTP $$; exit 3"
    with running(macos, "sh", "-c", script) as (wrapper, _):
        stat = Path(f"/proc/{wrapper.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "it is stopped too")
        os.kill(wrapper.pid, signal.SIGCONT)
        assert wrapper.wait(60) == 3


def test_the_sampler_sees_the_end_of_its_owner(macos: tuple[str, ...], tmp_path: Path) -> None:
    """The recording of a killed wrapper has an end."""
    path = tmp_path / "x.jsonl"
    with running(macos, *SIGNALS, "SIGTERM", options=("--record", str(path))) as (wrapper, _):
        wrapper.kill()
        wrapper.wait(60)
        wait_until(lambda: gput.load(path).is_complete, "the sampler has written its end")
        assert wrapper.stdin is not None
        wrapper.stdin.close()


def test_the_end_of_a_process_is_told(macos: tuple[str, ...]) -> None:
    """By kqueue, to whoever waits, in time or in vain; a child is still to be waited for then."""
    told = run([*macos, "platforms.ends"])
    assert json.loads(told) == {
        "readable_before": False,
        "awaited_before": False,
        "readable_after": True,
        "awaited_after": True,
        "has_ended_children": [False, True, False],
        "is_child": [True, True, False],
    }


def test_a_handler_of_the_program_learns_of_its_child(macos: tuple[str, ...]) -> None:
    """One that ended while a sampler was started, which its SIGCHLD handler does not hear of."""
    assert json.loads(run([*macos, "platforms.hidden_end"])) == {"heard": [True]}


def test_a_hang_up_is_seen(macos: tuple[str, ...]) -> None:
    """`poll` tells of it only those who ask for something; what is unread hides it no more than it is one."""
    assert json.loads(run([*macos, "platforms.hung_up"])) == [True, True, False]


def test_a_program_knows_what_it_holds(macos: tuple[str, ...]) -> None:
    """Regions, metrics and the process's own memory: all that happens in the job itself."""
    told = json.loads(run([*macos, "platforms.regions"]))
    assert told == {"regions": [["step", 3]], "metrics": 3, "knows_own_memory": True}


@pytest.mark.parametrize(
    "arguments",
    [
        ("doctor", "--json"),
        ("query", "--query-gpu=name"),
        ("watch", "--once"),
        ("ls", "."),
        ("dmon", "-c", "1"),
    ],
)
def test_other_commands_have_no_defect_there(macos: tuple[str, ...], arguments: tuple[str, ...]) -> None:
    """They say in a sentence what there is not."""
    done = subprocess.run([*macos, "gpu-tracker", *arguments], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr + done.stdout


def test_a_process_that_runs_already(macos: tuple[str, ...], tmp_path: Path) -> None:
    """It is attached to until it ends."""
    path = tmp_path / "x.jsonl"
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as job:
        with subprocess.Popen(
            [*macos, "gpu-tracker", "attach", str(job.pid), "--record", str(path), "--disable-logs"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as attached:
            wait_until(lambda: path.exists() and path.stat().st_size, "it is attached")
            assert job.stdin is not None
            job.stdin.close()
            assert attached.wait(60) == 0
    recording = gput.load(path)
    assert recording.is_complete
    assert [process.name for process in recording.processes] == ["cat"]


@pytest.mark.parametrize("source", [DARWIN, PORTABLE])
def test_what_a_shell_had_started_before_is_not_of_the_job(
    macos: tuple[str, ...], tmp_path: Path, source: str
) -> None:
    """It is a child of the wrapper, as the job is: `sidecar & exec gpu-tracker run`."""
    path = tmp_path / "x.jsonl"
    wrapper = shlex.join([*macos, "gpu-tracker", "run", "--record", str(path), "--"])
    reading, writing = os.pipe()  # the sidecar ends with the test
    done = subprocess.run(
        ["sh", "-c", f"cat <&{reading} >/dev/null 2>&1 & exec {wrapper} sh -c 'sleep 0.5; true'"],
        env={**os.environ, "GPU_TRACKER_SOURCE": source},
        pass_fds=(reading,),
        capture_output=True,
        timeout=60,
    )
    os.close(reading)
    os.close(writing)
    assert done.returncode == 0, done.stderr
    names = {process.name for process in gput.load(path).processes}
    assert "sleep" in names
    assert "cat" not in names

"""What is promised on Windows, measured there against what the workloads tell of themselves. `make test-wine` runs it under Wine.

These tests need nothing of the other tests: not their fixtures, which are made for Unix.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import gpu_tracker as gput

pytestmark = pytest.mark.skipif(
    sys.platform != "win32", reason="needs Windows, or Wine: `make test-wine` runs these tests"
)

WORKLOAD = Path(__file__).with_name("windows_workload.py")
MB = 1_000_000
INTERVAL_SECONDS = 0.1
COMMAND = (sys.executable, "-m", "gpu_tracker")
ACCESS_VIOLATION, ENDED_BY_CTRL_C = 0xC0000005, 0xC000013A
# Creation flag of a process that gets console events as a group of its own.
NEW_GROUP = 0x200


def load_system() -> Any:
    """Our own access to the system, which can be imported only there."""
    return import_module("gpu_tracker.sources.platform.windows")


def is_wine() -> bool:
    """Whether the system does not know what its ended processes have used."""
    return bool(load_system().is_wine())


def workload(name: str, *arguments: object) -> list[str]:
    """The command that runs it."""
    return [sys.executable, str(WORKLOAD), name, *map(str, arguments)]


def wait_for(condition: Callable[[], object], what: str, seconds: float = 20.0) -> Any:
    """Wait for something that comes soon unless something is broken."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds} s in vain until {what}")


def list_samplers() -> list[int]:
    """Every sampler on this machine."""
    windows = load_system()
    rows = [row for row in windows.read_table() if row.name.lower().startswith("python")]
    return [row.pid for row in rows if "gpu_tracker.sampler.child" in (windows.read_arguments(row.pid) or "")]


def list_left() -> list[str]:
    """What of ours is in the temporary directory."""
    folder = Path(tempfile.gettempdir())
    return [str(path) for name in folder.glob("gpu-tracker*") for path in (name, *name.rglob("*"))]


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    """No sampler outlives its test, and no file of ours stays in the temporary directory."""
    yield
    wait_for(lambda: not list_samplers(), "no sampler is left")
    deadline = time.monotonic() + 5
    while list_left() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list_left() == []


def run(
    *words: str, directory: Path, check: bool = True, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run gpu-tracker there."""
    done = subprocess.run(
        [*COMMAND, *words],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        **options,
    )
    assert not check or done.returncode == 0, done.stderr.decode("utf-8", "replace")
    assert b"Traceback" not in done.stderr, done.stderr.decode("utf-8", "replace")
    return done


def track(directory: Path, name: str, *arguments: object) -> tuple[dict[str, Any], gput.Recording]:
    """The truth of a workload under `gpu-tracker run`, and what was recorded."""
    recording = directory / "run.jsonl"
    options = ("--st", str(INTERVAL_SECONDS), "--record", str(recording), "--disable-logs")
    done = run("run", *options, "--", *workload(name, *arguments), directory=directory)
    return json.loads(done.stdout.splitlines()[-1]), gput.load(recording)


def start(directory: Path, *words: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a program whose output can be read."""
    return subprocess.Popen(
        words,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def read_line(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The next line of its truth."""
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline())
    return line


# ---- What is measured.


def test_a_spike_between_two_readings_is_known_exactly() -> None:
    """The system keeps the largest working set of this process."""
    from platforms.windows_workload import read_peak_bytes

    with gput.Tracker(sleep_time=1.0, disable_logs=True) as tracker:
        content = bytearray(300 * MB)
        del content
    assert tracker.report is not None
    ram = tracker.report.summary.ram

    assert ram.combined.basis == "exact"
    assert ram.combined.total_bytes == pytest.approx(read_peak_bytes(), rel=0.01)


def test_a_spike_of_another_process_is_known(tmp_path: Path) -> None:
    """It was freed long before the end, so that a reading has met its high-water mark."""
    truth, recording = track(tmp_path, "spike", 300)

    assert recording.summary.ram.combined.total_bytes == pytest.approx(truth["peak_bytes"], rel=0.01)


def test_cpu_time_of_what_runs(tmp_path: Path) -> None:
    """Of a process that runs, within one percent."""
    truth, recording = track(tmp_path, "busy", 2)

    assert recording.summary.cpu.combined.seconds == pytest.approx(truth["cpu_seconds"], rel=0.01)


def test_cpu_time_of_this_process() -> None:
    """As exact as the system tells it."""
    from platforms.windows_workload import burn

    before = time.process_time()
    with gput.Tracker(sleep_time=0.5, disable_logs=True) as tracker:
        burn(1.0)
        truth = time.process_time() - before

    assert tracker.report is not None
    assert tracker.report.summary.cpu.main.seconds == pytest.approx(truth, abs=0.05)


def test_many_short_children(tmp_path: Path) -> None:
    """Windows counts what they used; under Wine nobody does, and the figure says so."""
    truth, recording = track(tmp_path, "children", 200, 0.05)
    counted = recording.summary.cpu.combined.seconds
    used = truth["cpu_seconds"] + truth["children_seconds"]

    assert truth["n_children"] == 200
    if is_wine():
        assert truth["cpu_seconds"] * 0.9 <= counted <= used * 1.01
        assert recording.summary.is_cpu_least
    else:
        assert counted == pytest.approx(used, rel=0.05)


def test_an_orphan_stays_of_the_job(tmp_path: Path) -> None:
    """Its parent has ended, but is remembered."""
    _, recording = track(tmp_path, "orphan", 150)

    assert recording.summary.ram.descendants.total_bytes > 150 * MB


def test_regions_and_metrics_of_workers_that_were_started_anew(tmp_path: Path) -> None:
    """They find the mailbox by the environment."""
    truth, recording = track(tmp_path, "workers", 2)
    regions = {region.path: region for region in recording.region_totals}
    work = [region for path, region in regions.items() if path[-1] == "work"]

    assert (
        sum(region.calls for region in recording.region_totals if region.path[-1] == "work") == truth["calls"]
    )
    assert work
    assert {row.values["number"] for row in recording.metric_rows} == set(range(truth["calls"]))


def test_a_number_that_is_used_again_is_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows gives a number to the next process at once: the time of its begin tells it from the last."""
    windows, source = load_system(), import_module("gpu_tracker.sources.windows")

    def make_row(pid: int, parent: int, started: int) -> object:
        return windows.TableRow(1, 0, started, 1.0, "x.exe", pid, parent, 0, 0, MB, MB, 0, 0)

    table = [make_row(900_004, 1, 10), make_row(900_008, 900_004, 20)]
    monkeypatch.setattr(windows, "read_table", lambda: table)
    tree = source.ProcessTree(900_004)
    before = {reading.pid for reading in tree.read()}
    table[1] = make_row(900_008, 1, 30)
    after = {reading.pid for reading in tree.read()}
    table.append(make_row(900_012, 900_008, 40))

    assert before == {900_004, 900_008}
    assert after == {900_004}
    assert {reading.pid for reading in tree.read()} == {900_004}


def test_the_driver_s_library_is_found_and_read(tmp_path: Path) -> None:
    """nvml.dll, where the driver puts it; who uses a device is known by its number."""
    library = Path(sys.executable).with_name("nvml.dll")
    if not library.exists():
        pytest.skip("needs the library that `make test-wine` compiles")
    (tmp_path / "System32").mkdir()
    shutil.copy(library, tmp_path / "System32")
    told, recording = tmp_path / "process.txt", tmp_path / "run.jsonl"
    environment = {**os.environ, "WINDIR": str(tmp_path), "NVML_PROCESS": str(told)}
    words = ("run", "--st", "0.1", "--record", str(recording), "--", *workload("holds_on_gpu", told, 1500))
    run(*words, directory=tmp_path, env=environment)
    (gpu,) = gput.load(recording).gpus

    assert gpu.name == "NVIDIA of Tests"
    assert gput.load(recording).summary.gpu_bytes.combined == 1500 * MB


# ---- How it ends.


@pytest.mark.parametrize(
    ("told", "code"), [(0, 0), (7, 7), (255, 255), (ACCESS_VIOLATION - (1 << 32), ACCESS_VIOLATION)]
)
def test_the_exit_code_is_the_job_s(tmp_path: Path, told: int, code: int) -> None:
    """All 32 bits of it, also in the recording."""
    recording = tmp_path / "run.jsonl"
    done = run(
        "run", "--record", str(recording), "--", *workload("exits", told), directory=tmp_path, check=False
    )

    assert done.returncode == code
    assert read_end(recording)["exit_code"] == code


def test_a_command_that_cannot_be_run(tmp_path: Path) -> None:
    """With the exit codes of a shell, and nothing is left."""
    (tmp_path / "text.exe").write_text("no program")
    missing = run("run", "--", "no-such-command", directory=tmp_path, check=False)
    refused = run("run", "--", str(tmp_path / "text.exe"), directory=tmp_path, check=False)

    assert (missing.returncode, refused.returncode) == (127, 126)
    assert b"Command not found" in missing.stderr
    assert not list(tmp_path.rglob("*.jsonl"))


def test_arguments_and_output_arrive_unchanged(tmp_path: Path) -> None:
    """Spaces, quotes, backslashes and letters of every alphabet."""
    words = ["a b", 'say "no"', "C:\\a b\\", "tail\\\\", "", "Grüße"]
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    done = run("run", "--no-record", "--", sys.executable, "-c", code, *words, directory=tmp_path)

    assert json.loads(done.stdout) == words


def test_a_killed_owner_leaves_a_whole_recording(tmp_path: Path) -> None:
    """Its sampler notices, writes the end and goes."""
    with start(tmp_path, *workload("tracks_itself", "own.jsonl")) as process:
        read_line(process)
        wait_for(lambda: has_samples(tmp_path / "own.jsonl"), "there are samples")
        process.kill()
    wait_for(lambda: gput.load(tmp_path / "own.jsonl").is_complete, "the recording has its end")
    recording = gput.load(tmp_path / "own.jsonl")

    assert read_end(tmp_path / "own.jsonl")["reason"] == "abandoned"
    assert {region.path for region in recording.region_totals} == {("endless",)}


def test_a_killed_wrapper_takes_the_job_along(tmp_path: Path) -> None:
    """As killing the job itself would have; the recording has its end."""
    words = ("run", "--st", "0.1", "--record", "run.jsonl", "--", *workload("waits", 60))
    with start(tmp_path, *COMMAND, *words) as wrapper:
        job = read_line(wrapper)["pid"]
        wait_for(lambda: has_samples(tmp_path / "run.jsonl"), "there are samples")
        wrapper.kill()
    wait_for(lambda: not runs(job), "the job has ended")
    wait_for(lambda: gput.load(tmp_path / "run.jsonl").is_complete, "the recording has its end")


def test_a_killed_sampler_costs_neither_the_job_nor_its_recording(tmp_path: Path) -> None:
    """The wrapper completes what was written."""
    words = ("run", "--st", "0.1", "--record", "run.jsonl", "--", *workload("waits", 3))
    with start(tmp_path, *COMMAND, *words) as wrapper:
        read_line(wrapper)
        wait_for(lambda: has_samples(tmp_path / "run.jsonl"), "there are samples")
        (sampler,) = list_samplers()
        terminate(sampler)
        assert wrapper.wait(60) == 0
        assert wrapper.stderr is not None
        told = wrapper.stderr.read()

    assert b"The sampler was lost" in told
    assert b"Traceback" not in told
    assert read_end(tmp_path / "run.jsonl")["exit_code"] == 0


@pytest.mark.parametrize("event", ["Ctrl-C", "Ctrl-Break"])
def test_a_key_reaches_the_job_once(tmp_path: Path, event: str) -> None:
    """It and the wrapper are in one console; the wrapper passes nothing on, and reports."""
    if event == "Ctrl-Break" and is_wine():
        pytest.skip("Wine has no Ctrl-Break")
    options = {} if event == "Ctrl-C" else {"creationflags": NEW_GROUP}
    words = ("run", "--record", "run.jsonl", "--", *workload("counts_interrupts", 3))
    ours = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with start(tmp_path, *COMMAND, *words, **options) as wrapper:
            read_line(wrapper)
            send(event, wrapper.pid)
            truth = read_line(wrapper)
            assert wrapper.wait(60) == 0
    finally:
        signal.signal(signal.SIGINT, ours)

    assert len(truth["received"]) == 1
    assert gput.load(tmp_path / "run.jsonl").is_complete


def send(event: str, group: int) -> None:
    """Press a key: Ctrl-C cannot be sent to one group, so everybody in this console gets it."""
    import ctypes

    kernel32 = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    is_sent = kernel32.GenerateConsoleCtrlEvent(*((0, 0) if event == "Ctrl-C" else (1, group)))
    if not is_sent:
        pytest.skip("there is no console")


def test_a_job_that_an_interrupt_ends(tmp_path: Path) -> None:
    """Its exit code says so, and is ours."""
    ours = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with start(
            tmp_path, *COMMAND, "run", "--record", "run.jsonl", "--", *workload("waits", 30)
        ) as wrapper:
            read_line(wrapper)
            send("Ctrl-C", wrapper.pid)
            assert wrapper.wait(20) == ENDED_BY_CTRL_C
    finally:
        signal.signal(signal.SIGINT, ours)

    assert read_end(tmp_path / "run.jsonl")["exit_code"] == ENDED_BY_CTRL_C


def test_attach_follows_a_process_to_its_end(tmp_path: Path) -> None:
    """And tells its exit code."""
    with start(tmp_path, *workload("waits", 12)) as process:
        pid = read_line(process)["pid"]
        done = run("attach", str(pid), "--st", "0.1", "--record", "run.jsonl", directory=tmp_path)
    recording = gput.load(tmp_path / "run.jsonl")

    assert b"GPU" in done.stderr + done.stdout
    assert recording.is_complete
    assert recording.summary.ram.main.total_bytes > MB


def test_the_paper_s_command_line(tmp_path: Path) -> None:
    """-e, with its output as JSON."""
    output = tmp_path / "usage.json"
    command = subprocess.list2cmdline(workload("busy", 0.5)).replace("\\", "/")
    run("-e", command, "-o", str(output), "-f", "json", "--st", "0.1", directory=tmp_path)
    usage = json.loads(output.read_text())

    assert usage["max_ram"]["main"]["total_rss"] > 0


# ---- What is made of a recording.


@pytest.mark.parametrize(
    "words",
    [
        ["report", "run.jsonl"],
        ["report", "run.jsonl", "-o", "report.html"],
        ["report", "run.jsonl", "-o", "report.svg"],
        ["ls", "."],
        ["compare", "run.jsonl", "run.jsonl"],
        ["size", "run.jsonl"],
        ["export", "run.jsonl", "-o", "run.csv"],
        ["export", "run.jsonl", "-o", "run.sqlite"],
        ["export", "run.jsonl", "-o", "trace.json"],
        ["explain"],
        ["top", "--once", "run.jsonl"],
        ["combine", "run.jsonl", "-o", "job.html"],
        ["watch", "--once"],
        ["doctor"],
        ["query", "--help-query-gpu"],
        ["--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_commands_that_read_a_recording(recorded: Path, words: list[str]) -> None:
    """Each ends well."""
    run(*words, directory=recorded)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a recording."""
    directory = tmp_path_factory.mktemp("recorded")
    track(directory, "busy", 0.3)
    return directory


def test_a_report_can_be_printed_where_few_letters_can(recorded: Path) -> None:
    """A pipe takes those of one alphabet."""
    code = "import gpu_tracker; print(gpu_tracker.load('run.jsonl').report)"
    printed = subprocess.run([sys.executable, "-c", code], cwd=recorded, stdout=subprocess.PIPE, check=True)

    assert b"RAM" in printed.stdout


def test_a_served_page(recorded: Path) -> None:
    """In the browser, with its secret in the address."""
    from urllib.request import urlopen

    with start(recorded, *COMMAND, "serve", ".") as server:
        assert server.stdout is not None
        address = server.stdout.readline().decode().strip()
        with urlopen(address, timeout=20) as answer:
            page = answer.read()
        server.kill()

    assert b"<html" in page


def test_a_job_is_shown_while_it_runs(tmp_path: Path) -> None:
    """As lines, and a command is started for what goes wrong."""
    notify = f'{sys.executable} -c "import sys; open(sys.argv[1][:4] + chr(46) + chr(116), chr(119))"'
    done = run(
        *("run", "--live", "0.5", "--notify", notify, "--no-record", "--", *workload("exits_late", 3)),
        directory=tmp_path,
        check=False,
    )

    assert done.returncode == 3
    assert b"gpu-tracker 0:00:01" in done.stderr


def test_a_recording_has_lines_as_on_every_system(recorded: Path) -> None:
    """It can be read elsewhere."""
    content = (recorded / "run.jsonl").read_bytes()

    assert b"\r" not in content
    assert content.endswith(b"\n")


def test_a_tracking_file_replaces_another(tmp_path: Path) -> None:
    """Files that are open cannot be deleted here, so they must be closed by then."""
    for _ in range(2):
        with gput.Tracker(
            sleep_time=0.1, tracking_file=str(tmp_path / "t.csv"), overwrite=True, disable_logs=True
        ):
            time.sleep(0.3)

    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def has_samples(path: Path) -> bool:
    """Whether a recording has begun in earnest."""
    return path.exists() and path.read_bytes().count(b"\n") > 3


def read_end(path: Path) -> dict[str, Any]:
    """The last line of a recording."""
    end: dict[str, Any] = json.loads(path.read_bytes().splitlines()[-1])["end"]
    return end


def runs(pid: int) -> bool:
    """Whether there is such a process."""
    from gpu_tracker.sources.processes import exists

    return exists(pid)


def terminate(pid: int) -> None:
    """As the task manager does it."""
    load_system().terminate(pid)

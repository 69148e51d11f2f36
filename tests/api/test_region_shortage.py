"""Regions in a process that has run out of something, or cannot reach its tracker: they do nothing, and the report says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_tracker as gput

USE = """
with gput.region("block") as one: assert one is not None
assert gput.region("call")(lambda: 7)() == 7
gput.log(step=1, loss=2.0)
print("survived")
"""
NO_DESCRIPTORS = "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))"
NO_MEMORY = """
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), -1))
"""


def track(tmp_path: Path, command_line: str, program: str) -> gput.Recording:
    """The recording of a program, which must survive."""
    script, record = tmp_path / "program.py", tmp_path / "run.jsonl"
    script.write_text(f"import os, resource, gpu_tracker as gput\n{program}")
    command = [command_line, "run", "--record", str(record), "--", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout.partition("\n")[0]) == (0, "survived"), done.stderr
    return gput.load(record)


@pytest.mark.parametrize("shortage", [NO_DESCRIPTORS, NO_MEMORY])
def test_a_region_that_cannot_be_loaded_does_nothing(
    tmp_path: Path, command_line: str, shortage: str
) -> None:
    """Its code is loaded when it is first used, and that may be too late."""
    recording = track(tmp_path, command_line, shortage + USE)

    assert recording.regions == ()
    assert any(note.startswith("Regions of 1 process could not be followed") for note in recording.notes)


def test_other_names_say_why_they_cannot_be_loaded() -> None:
    """Who asks for a tracker must learn that there is none."""
    program = f"import resource, gpu_tracker as gput\n{NO_DESCRIPTORS}\ngput.Tracker"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)

    assert "Too many open files" in done.stderr


def test_a_process_without_a_free_descriptor_says_what_is_missing(tmp_path: Path, command_line: str) -> None:
    """It needs none for that."""
    recording = track(
        tmp_path, command_line, f"gput.region, gput.log\n{NO_DESCRIPTORS}\n{USE}gput.log(loss=1)"
    )

    assert recording.regions == () == recording.metrics
    assert "Regions of 1 process could not be followed: their files could not be created." in recording.notes
    assert (
        "Metrics of 2 calls of log could not be recorded: there was no room for them."
        in recording.notes
    )  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "code"), [("regions.work.time > 100s", 2), ("metrics.loss > 100", 2), ("time > 100s", 0)]
)
def test_a_gate_does_not_pass_what_a_process_could_not_record(
    tmp_path: Path, command_line: str, limit: str, code: int
) -> None:
    """Its parent's region of the same name says nothing of its own."""
    program = """
import os, resource, gpu_tracker as gput
def work():
    with gput.region("work"): gput.log(loss=1)
work()
if not os.fork():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, -1))
    work()
else: os.wait()
"""
    command = [command_line, "run", "--no-record", "--fail-if", limit, "--", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)

    assert done.returncode == code
    assert ("could not be recorded in 1 of 1 runs" in done.stderr) == bool(code)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its user or root")
@pytest.mark.parametrize("change", ["os.setgid(65534); os.setuid(65534)", "os.chroot({folder!r})"])
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("earlier", ["work()", "gput.region, gput.log", "pass"])
def test_a_forked_process_that_cannot_reach_its_tracker_any_more_is_known(
    tmp_path: Path, command_line: str, change: str, earlier: str, depth: int
) -> None:
    """It tells a process around it, which tells the tracker: no gate on regions or metrics passes. Also if none of them had any before."""
    program = f"""
import os, gpu_tracker as gput
def work():
    with gput.region("work"): gput.log(loss=1)
{earlier}
for _ in range({depth}):
    if os.fork():
        os.wait()
        break
else:
    {change.format(folder=str(tmp_path))}
    work()
if os.getpid() != {"root"}: os._exit(0)
work()
"""
    program = program.replace("import os,", "import os; root = os.getpid(); import", 1)
    record = tmp_path / "run.jsonl"
    command = [command_line, "run", "--record", str(record), "--", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    gaps = gput.load(record).report.notes

    assert done.returncode == 0
    assert "Regions of 1 process could not be followed: their files could not be created." in gaps
    assert any(note.startswith("Metrics of 1 call of log could not be recorded") for note in gaps)
    for limit in ("regions.work.time > 100s", "metrics.loss > 100"):
        checked = subprocess.run(
            [command_line, "compare", str(record), "--fail-if", limit],
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert (checked.returncode, "could not be recorded in 1 of 1 runs" in checked.stderr) == (2, True)


@pytest.mark.parametrize("most_bytes", [0, 1, 300])
def test_a_file_is_never_larger_than_the_process_may_write(
    tmp_path: Path, command_line: str, most_bytes: int
) -> None:
    """Trying to would end a process that does not ignore SIGXFSZ, as Python does at first."""
    limit = f"""
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, ({most_bytes}, -1))
"""
    recording = track(tmp_path, command_line, f"{limit}{USE}for _ in range(20): gput.log(loss=1)")

    assert "Regions of 1 process could not be followed: their files could not be created." in recording.notes
    lost = 21 - len(recording.metric_rows)
    assert lost > 10
    assert (
        f"Metrics of {lost} calls of log could not be recorded: there was no room for them."
        in recording.notes
    )


@pytest.mark.parametrize("departure", [
    "os.setgroups([]); os.setgid(23456); os.setuid(23456)",
    "os.mkdir('root'); os.chroot('root')",
    "os.makedirs('root/dev/shm'); os.chroot('root')",
])  # fmt: skip
def test_a_process_that_cannot_reach_the_mailbox_says_so_itself(
    tmp_path: Path, command_line: str, departure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tracker cannot know that it has regions."""
    if os.geteuid():
        pytest.skip("needs the right to change the user or the root")
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "program.py"
    script.write_text(f"import os, gpu_tracker as gput\ngput.region, gput.log\n{departure}\n{USE}")
    done = subprocess.run(
        [command_line, "run", "--no-record", "--", sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert done.stdout.startswith("survived\n"), done.stderr
    assert done.stderr.count("Regions and metrics of process") == 1


def test_a_process_in_which_regions_cannot_be_loaded_any_more_says_so_itself(
    tmp_path: Path, command_line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: below another root there is neither their code nor the mailbox."""
    if os.geteuid():
        pytest.skip("needs the right to change the root")
    monkeypatch.chdir(tmp_path)
    program = f"import os, gpu_tracker as gput\nos.makedirs('root/dev/shm'); os.chroot('root')\n{USE}"
    done = subprocess.run(
        [command_line, "run", "--no-record", "--", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert done.stdout.startswith("survived\n"), done.stderr
    assert done.stderr.count("Regions and metrics of process") == 1


def test_a_process_whose_shared_memory_is_another_says_so_itself(tmp_path: Path, command_line: str) -> None:
    """As in a container: the directory is there, but not the mailbox."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("needs the right to make a mount namespace")
    script = tmp_path / "program.py"
    script.write_text(f"import gpu_tracker as gput\n{USE}")
    mount = 'mount -t tmpfs none /dev/shm; exec "$@"'
    done = subprocess.run(
        [command_line, "run", "--no-record", "--", "unshare", "--mount", "sh", "-c", mount, "sh",
         sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=100,
    )  # fmt: skip

    assert done.stdout.startswith("survived\n"), done.stderr
    assert done.stderr.count("Regions and metrics of process") == 1


def test_a_mailbox_that_the_job_deletes_is_missed(tmp_path: Path, command_line: str) -> None:
    """What it says afterwards is lost, and what nobody had read yet."""
    delete = "import shutil; shutil.rmtree(os.environ['GPU_TRACKER_MAILBOX'])\n"
    recording = track(tmp_path, command_line, f"gput.region, gput.log\n{delete}{USE}")

    assert (
        "The directory for regions and metrics was deleted while the job ran: what was not read by then is missing."
        in recording.notes
    )  # fmt: skip


@pytest.mark.parametrize(("mount", "is_followed"), [
    ("mount -t tmpfs -o size=1m,nr_inodes=1 none /dev/shm", True),
    ("mount -t tmpfs -o size=1m,nr_inodes=4 none /dev/shm", True),
    (
        "export TMPDIR=/none; for place in /dev/shm /var/tmp /tmp; do mount --bind $place $place; mount -o remount,bind,ro $place; done",
        False,
    ),
])  # fmt: skip
def test_another_place_is_found_or_its_lack_is_said(
    tmp_path: Path, command_line: str, mount: str, is_followed: bool
) -> None:
    """Where no directory can be made in shared memory, there may be room in a temporary one."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("needs the right to make a mount namespace")
    command = [
        command_line,
        "run",
        "--no-record",
        "--",
        sys.executable,
        "-c",
        f"import gpu_tracker as gput\n{USE}",
    ]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f'{mount}; exec "$@"', "sh", *command],
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert done.stdout.startswith("survived\n"), done.stderr
    note = "Regions and metrics cannot be followed: no directory for them could be created."
    assert ("block" in done.stderr, note in done.stderr) == (is_followed, not is_followed)

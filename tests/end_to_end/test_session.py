"""One session for all: whoever tracks, secrets are masked, notes can be silenced, labels are kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gpu_tracker as gput
from patience import wait_until

SECRETS = ["--password", "hunter2", "--token=hunter2", "--env=DB_PASSWORD=hunter2", "https://me:hunter2@host"]
MASKED = ("--password", "***", "--token=***", "--env=DB_PASSWORD=***", "https://me:***@host")
SLEEPER = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(0.6)", *SECRETS]
TRACKING = """
import sys, gpu_tracker as gput
{begin}(record=sys.argv[1], disable_logs=True, **{options}){end}
"""
LABELS = {"seed": 7, "site": "a=b", "token": "hunter2"}
FULL = """
import sys, gpu_tracker as gput
tracker = gput.Tracker(disable_logs=True)
{start}
for step in range(3):
    with gput.region("step"):
        gput.log(step=step, loss=1.0)
print("done")
if {is_inside}:
    tracker.stop()
    print([note for note in tracker.report.notes if "Regions" in note], file=sys.stderr)
sys.exit(7)
"""
WAYS = ("run", "-e", "attach", "Tracker", "track", "Tracker(process_id)")
BLOCK = {"begin": "with gput.Tracker", "end": ": pass"}
CALL = {"begin": "@gput.track", "end": "\ndef call(): pass\ncall()"}


def record(way: str, directory: Path, command_line: str) -> tuple[gput.Recording, str]:
    """Track a command with secrets in it, and return its recording and what was printed about it."""
    target, options = str(directory / "x.jsonl"), ("--record", str(directory / "x.jsonl"), "--disable-logs")
    labels = (
        "--name",
        "night",
        *(word for pair in LABELS.items() for word in ("--label", "{}={}".format(*pair))),
    )
    if way == "run":
        done = _run([command_line, "run", *options, *labels, "--", *SLEEPER])
    elif way == "-e":
        words = " ".join(f"'{word}'" for word in SLEEPER)
        done = _run([command_line, *options, *labels, "-e", words])
    elif way in ("Tracker", "track"):
        kind = BLOCK if way == "Tracker" else CALL
        script = TRACKING.format(options=f'dict(name="night", labels={LABELS})', **kind)
        done = _run([sys.executable, "-c", script, target, *SECRETS])
    else:
        with subprocess.Popen(SLEEPER, stdout=subprocess.PIPE) as job:
            assert job.stdout is not None
            job.stdout.readline()  # its command line can be read now
            if way == "attach":
                done = _run([command_line, "attach", *options, *labels, str(job.pid)])
            else:
                chosen = f'dict(process_id={job.pid}, name="night", labels={LABELS})'
                script = TRACKING.format(options=chosen, **BLOCK)
                done = _run([sys.executable, "-c", script, target])
    return gput.load(target), done.stdout + done.stderr


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_masks_secrets_keeps_labels_and_can_be_silent(
    way: str, tmp_path: Path, command_line: str
) -> None:
    """In the header, and anywhere in the file."""
    recording, printed = record(way, tmp_path, command_line)

    assert recording.header.command[-len(MASKED) :] == MASKED
    assert "hunter2" not in printed
    assert b"hunter2" not in (tmp_path / "x.jsonl").read_bytes()
    assert "No GPU" not in printed
    assert (recording.header.identity.name, recording.header.identity.labels) == (
        "night",
        (("seed", "7"), ("site", "a=b"), ("token", "***")),
    )


@pytest.mark.parametrize("way", WAYS)
def test_every_way_leaves_nothing_but_the_recording(way: str, tmp_path: Path, command_line: str) -> None:
    """No mailbox in memory."""
    before = set(Path("/dev/shm").glob("gpu-tracker-*/*"))
    record(way, tmp_path, command_line)
    wait_until(
        lambda: not any(map(_is_abandoned, {*Path("/dev/shm").glob("gpu-tracker-*/*")} - before)),
        "no mailbox is left",
        seconds=2,
    )

    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]


def _is_abandoned(path: Path) -> bool:
    """Another test may be tracking at the same time."""
    return not Path(f"/proc/{path.name.split('-')[0]}").exists()


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_full_shared_memory_costs_the_regions_and_never_the_job(
    is_inside: bool, tmp_path: Path, command_line: str
) -> None:
    """Workers of data loaders fill it routinely; a page that cannot be had would end the job with SIGBUS."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("needs the right to make a mount namespace")
    program = tmp_path / "job.py"
    program.write_text(FULL.format(start="tracker.start()" if is_inside else "", is_inside=is_inside))
    tracked = "" if is_inside else f"{command_line} run --no-record -- "
    script = (
        "mount -t tmpfs -o size=1m none /dev/shm && head -c 2000000 /dev/zero > /dev/shm/full; "
        f"{tracked}{sys.executable} {program}"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stdout) == (7, "done\n"), done.stderr
    assert "Regions of 1 process could not be followed: their files could not be created." in done.stderr

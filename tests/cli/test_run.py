"""The arguments of `run`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from cli.conftest import Run
from gpu_tracker.cli.run import parse, parse_options
from gpu_tracker.core.errors import UsageError


@pytest.mark.parametrize(
    "arguments",
    [
        ["true"],
        ["--", "true"],
        ["--", "--", "true"],
        ["job", "--name", "of the job", "--", "-f", "json"],
        ["--", "-o", "odd"],
        ["", "true"],
        ["--", ""],
        ["--"],
        [],
    ],
)
def test_without_options_the_defaults_apply(arguments: list[str]) -> None:
    """They are taken without argparse, which would give the same."""
    try:
        expected = parse_options(arguments)
    except UsageError as error:
        with pytest.raises(UsageError, match=str(error)):
            parse(arguments)
    else:
        assert parse(arguments) == expected


def test_options_end_where_the_command_begins() -> None:
    """What follows is the job's own."""
    request = parse(["--name", "mine", "--no-record", "job", "--name", "its"])

    assert request.command == ["job", "--name", "its"]
    assert request.settings.name == "mine"
    assert request.wishes.record is None


def test_a_limit_that_needs_another_run_says_how_to_compare() -> None:
    """A run by itself has nothing to compare with, and no groups."""
    with pytest.raises(UsageError) as refused:
        parse(["--fail-if", "time > +10%", "--", "true"])

    assert "gpu-tracker compare" in str(refused.value)
    assert "second group" not in str(refused.value)


UNREAPED = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(6):
    if not os.fork():
        end = time.process_time() + 0.1
        while time.process_time() < end: pass
        os._exit(0)
    time.sleep(0.15)
"""


@pytest.mark.parametrize("size", [0, 1000])
def test_a_recording_that_is_truncated_passes_no_gate(run: Run, size: int) -> None:
    """It is said, and the exit code is that of a full disk."""
    program = f"import os, time; time.sleep(0.5); os.truncate('x.jsonl', {size}); time.sleep(0.3)"
    arguments = ("run", "--record", "x.jsonl", "--st", "0.1", "--fail-if", "time > 1h")
    done = run(*arguments, "--", sys.executable, "-c", program)

    assert "note: The recording was truncated while it was being written" in done.stderr
    assert done.returncode == 3


def test_cpu_time_of_which_the_kernel_keeps_no_account_is_a_lower_bound(run: Run) -> None:
    """It is said, and no limit on it passes; one that is exceeded fails."""
    passing, failing = (
        run("run", "--no-record", "--fail-if", f"cpu_time > {limit}s", "--", sys.executable, "-c", UNREAPED)
        for limit in (100, 0.001)
    )

    assert "ignores SIGCHLD" in passing.stderr
    assert re.search(r"CPU .*at least .* of CPU time", passing.stderr)
    assert (passing.returncode, failing.returncode) == (2, 1)
    assert "used at least " in passing.stderr


UNWAITED = """
import os, time
for _ in range(10):
    if not os.fork():
        while time.process_time() < 0.05: pass
        os._exit(0)
    time.sleep(0.12)
"""


def test_children_that_nobody_has_waited_for_count(run: Run) -> None:
    """Whoever takes them over at the end learns what they used."""
    job = [sys.executable, "-c", UNWAITED]
    outcome = run("run", "--no-record", "--fail-if", "cpu_time > 0.5s", "--", *job)

    assert outcome.returncode == 1, outcome.stderr
    assert not re.search(r"CPU .*at least .* of CPU time", outcome.stderr)


def test_orphans_of_the_first_process_of_a_container_count(run: Run) -> None:
    """It inherits its own sampler as well, which does not make it doubt what it inherits from the job."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "--pid", "--fork", "--mount-proc", "true"]).returncode:
        pytest.skip("cannot make a pid namespace here")
    job = [sys.executable, "-c", UNWAITED]
    outcome = run(
        "run",
        "--no-record",
        "--fail-if",
        "cpu_time > 100s",
        "--",
        *job,
        within=[unshare, "-pf", "--mount-proc"],
    )

    assert outcome.returncode == 0, outcome.stderr
    assert "nobody has waited" not in outcome.stderr


FORGOTTEN = """
import ctypes, os, signal, sys, time
from signal import SIGCHLD
class Action(ctypes.Structure):
    _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_ulong * 16), ("flags", ctypes.c_int), ("restorer", ctypes.c_void_p)]
NO_CHILD_WAIT = 2
handle = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: None)
ctypes.CDLL(None).sigaction(SIGCHLD, ctypes.byref(Action(ctypes.cast(handle, ctypes.c_void_p), flags=NO_CHILD_WAIT)), None)
for _ in range(4):
    if not os.fork():
        while time.process_time() < 0.3: pass
        os._exit(0)
    time.sleep(0.4)
"""


def test_children_of_which_the_kernel_forgets_what_they_used_make_lower_bounds(run: Run) -> None:
    """A flag of the handler says so to the kernel, which shows it to nobody: their time is missing in their parent's."""
    outcome = run("run", "--no-record", "--fail-if", "cpu_time > 100s", "--", sys.executable, "-c", FORGOTTEN)

    assert outcome.returncode == 2, outcome.stderr
    assert "ended for which nobody has waited" in outcome.stderr


UNSEEN = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
time.sleep(0.6)  # long before and after it: a reading sees a child of a moment by chance only
if not os.fork():
    held = bytes(range(256)) * 400_000
    os._exit(0)
time.sleep(0.6)
"""


@pytest.mark.parametrize("limit", ["cpu_time > 100s", "peak_ram > 1GB"])
def test_children_that_no_reading_has_met_make_lower_bounds_too(run: Run, limit: str) -> None:
    """Of what they used nobody keeps an account, so neither CPU time nor memory passes a limit."""
    outcome = run("run", "--no-record", "--fail-if", limit, "--", sys.executable, "-c", UNSEEN)

    assert outcome.returncode == 2, outcome.stderr
    assert re.search(r"RAM .*peak at least ", outcome.stderr)
    assert "CPU time and peak RAM are lower bounds" in outcome.stderr
    assert "next time, at least: --mem=" in outcome.stderr

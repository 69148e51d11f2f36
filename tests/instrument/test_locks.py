"""A program ends, whatever its threads were doing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# One thread is stopped while it has every lock, others while they wait for one; then an object is deleted that uses regions.
PROGRAM = """
import atexit, builtins, importlib, sys, threading, time

def stop_others():
    is_over.set()
    is_held.wait()

is_over, is_held = threading.Event(), threading.Event()
atexit.register(stop_others)  # first, so it is called last
import gpu_tracker as gput
from gpu_tracker.instrument import outbox

def hold_all():
    is_over.wait()
    held = outbox._opening, outbox.stack, outbox._metrics
    for lock in (getattr(holder, "_lock", holder) for holder in held if holder is not None):
        lock.acquire()
    loading = []
    for name in ("json", "hashlib", "logging", "gpu_tracker.api.regions"):
        if name not in sys.modules:
            loading.append(importlib._bootstrap._ModuleLockManager(name))
            loading[-1].__enter__()
    is_held.set()
    time.sleep(1000)

def use():
    with gput.region("main"):
        gput.log(loss=1)

def use_late():
    is_held.wait()
    use()

class Loader:
    def __del__(self, {given}):
        {last_words}
        print("ended")

{begin}
for target in (hold_all, use_late, use_late):
    threading.Thread(target=target, daemon=True).start()
builtins.outbox, builtins.loader = outbox, Loader()
"""
GIVEN = "region=gput.region, log=gput.log"


@pytest.mark.parametrize("last_words", [
    'with region("close"): pass',
    'region("close")(lambda: None)()',
    "log(loss=2)",
    "outbox.search_due_ns = 0; outbox._search.forget(); log(loss=2)",
    'outbox.close_mailbox("another")',
])  # fmt: skip
def test_what_is_deleted_last_waits_for_no_thread_that_was_stopped(tmp_path: Path, last_words: str) -> None:
    """A daemon thread gives nothing back when the interpreter ends."""
    script = tmp_path / "program.py"
    begin = "builtins.tracker = gput.Tracker(disable_logs=True); tracker.start(); use()"
    script.write_text(PROGRAM.format(begin=begin, last_words=last_words, given=GIVEN))

    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=100)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "ended\n"


@pytest.mark.parametrize("last_words", ['with region("close"): pass', "log(loss=2)"])
def test_so_it_is_in_a_tracked_command(tmp_path: Path, command_line: str, last_words: str) -> None:
    """What it did before is in the recording."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(begin="use()", last_words=last_words, given=GIVEN))
    record = tmp_path / "run.jsonl"

    done = subprocess.run(
        [command_line, "run", "--record", str(record), "--", sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert (done.returncode, done.stdout[:6]) == (0, "ended\n"), done.stderr
    assert '"main"' in record.read_text()


@pytest.mark.parametrize(("given", "last_words"), [
    (GIVEN, "log(loss=2)"),
    (GIVEN, 'log(loss="low")'),
    (GIVEN, 'with region("x" * 200): pass'),
    ("gput=gput", 'with gput.region("first"): gput.log(loss=1)'),
])  # fmt: skip
def test_nothing_is_loaded_any_more(tmp_path: Path, command_line: str, given: str, last_words: str) -> None:
    """A thread may have been stopped while it loaded just that."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(begin="pass", last_words=last_words, given=given))

    done = subprocess.run(
        [command_line, "run", "--no-record", "--", sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert (done.returncode, done.stdout[:6]) == (0, "ended\n"), done.stderr

"""The first use of a region loads it: other threads, forks and interruptions meanwhile do no harm."""

from __future__ import annotations

import subprocess
import sys

import pytest

# From 3.12 on Python warns of every fork beside a thread.
IN_SPITE_OF_THREADS = "-Wignore:This process:DeprecationWarning"
# Loading takes a while, and something happens in the middle of it.
SLOW = """
import os, sys, threading, time
import gpu_tracker as gput

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "gpu_tracker.api.regions":
            meanwhile()
            time.sleep(0.3)

sys.meta_path.insert(0, Slow())
"""
FORKING = """
has_begun = threading.Event()
meanwhile = has_begun.set
thread = threading.Thread(target=lambda: gput.region("a"))
thread.start()
has_begun.wait()
child = os.fork()
if not child:
    with gput.region("b"):
        os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""
INTERRUPTING = """
def meanwhile():
    with gput.region("inside"):
        gput.log(loss=1)
    print("inside")

with gput.region("a"):
    print(type(gput.region("b")).__name__)
"""
# A finalizer of cyclic garbage runs wherever memory is allocated, also in the middle of entering a region.
FINALIZING = """
import gc
import gpu_tracker as gput
gc.set_threshold(1)

class Model:
    def __init__(self):
        self.hook = self.close

    @gput.region("close")
    def close(self):
        pass

    def __del__(self):
        self.close()

with gput.Tracker(disable_logs=True):
    for _ in range(20_000):
        with gput.region("step"):
            Model()
print("ended")
"""


@pytest.mark.parametrize(
    ("program", "words"),
    [(SLOW + FORKING, ["7"]), (SLOW + INTERRUPTING, ["inside", "region"]), (FINALIZING, ["ended"])],
    ids=["fork", "interruption", "finalizer"],
)
def test_the_program_goes_on(program: str, words: list[str]) -> None:
    """Neither it nor its child waits for ever, fails or crashes."""
    done = subprocess.run(
        [sys.executable, IN_SPITE_OF_THREADS, "-c", program], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == words

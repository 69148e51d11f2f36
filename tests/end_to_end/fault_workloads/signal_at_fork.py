"""The command line, whose process group gets a signal just before or after it forks the job.

Arguments: "before" or "after", then those of the command line.
"""

from __future__ import annotations

import os
import signal
import sys

import gpu_tracker.cli

fork = os.fork
moment = sys.argv.pop(1)


def fork_with_signal() -> int:
    """Fork, and signal everybody at that moment."""
    is_of_the_job = sys._getframe(1).f_globals["__name__"] == "gpu_tracker.cli.job"
    if is_of_the_job and moment == "before":
        os.killpg(0, signal.SIGRTMIN)
    pid = fork()
    if is_of_the_job and pid and moment == "after":
        os.killpg(0, signal.SIGRTMIN)
    return pid


os.fork = fork_with_signal
gpu_tracker.cli.main()
